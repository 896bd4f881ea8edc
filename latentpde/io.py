"""Files in and out. Reading checks; writing goes to a temporary file first, so nothing is ever half written."""

from __future__ import annotations

import os
import signal
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager
from io import BytesIO, RawIOBase
from pathlib import Path
from typing import TYPE_CHECKING, Any

from latentpde.errors import DataError, UsageError

if TYPE_CHECKING:
    import xarray as xr


@contextmanager
def atomic_path(path: str | Path) -> Iterator[Path]:
    """A temporary path beside ``path`` that replaces it when the block ends well, and vanishes when it does not."""
    check_writable(path)
    path = Path(path).resolve()  # a link stays a link: what it points to is replaced
    with _disk_errors(path):
        handle, name = tempfile.mkstemp(prefix=f".{path.name[:64]}.", suffix=".part", dir=path.parent)
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        with _disk_errors(path):
            temporary.chmod(0o666 & ~_umask())
            temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def check_writable(path: str | Path) -> None:
    """Raise `UsageError` where ``path`` cannot be written, before any work is done for it."""
    target = Path(path).resolve()
    try:
        exists, is_folder, is_file = target.exists(), target.is_dir(), target.is_file()
    except OSError as error:  # a name too long, a folder that may not be entered
        raise UsageError(f"cannot write {path}: {error.strerror}; choose another name") from error
    if not target.parent.is_dir():
        raise UsageError(f"cannot write {path}: the folder {target.parent} does not exist; create it first")
    if is_folder:
        raise UsageError(f"cannot write {path}: it is a folder; name a file in it")
    if exists and not is_file:
        # renaming over a device or pipe would destroy it
        raise UsageError(f"cannot write {path}: it is a device or a pipe, and only files can be written")
    if not os.access(target.parent, os.W_OK):
        raise UsageError(f"cannot write {path}: no permission to write in {target.parent}")
    if exists and not os.access(target, os.W_OK):
        raise UsageError(f"cannot write {path}: the file is write-protected; choose another name")


def open_cases(path: str | Path) -> xr.DataTree:
    """A whole file in memory, the truths included where it has any."""
    import xarray as xr

    opened = _open(path, xr.open_datatree)
    return opened if isinstance(opened, xr.DataTree) else xr.DataTree(opened)


def open_observed(path: str | Path) -> xr.Dataset:
    """What was observed, and nothing of the truth."""
    import xarray as xr

    return _open(path, xr.open_dataset)


def open_fine_initial(path: str | Path) -> xr.DataArray:
    """The variable ``initial`` of a file: that of its group ``truth`` where there is one, as simulated cases have."""
    tree = open_cases(path)
    for node in ("truth", "/"):
        if (node == "/" or node in tree.children) and "initial" in tree[node]:
            return tree[node].to_dataset()["initial"]
    raise DataError(f"{path} holds no fine initial state; expected a variable 'initial'")


def write_netcdf(dataset: xr.Dataset | xr.DataTree, path: str | Path) -> None:
    content = BytesIO()  # see _HDF5File
    with _signals_wait():
        dataset.to_netcdf(content, engine="h5netcdf")
    with atomic_path(path) as temporary, _disk_errors(path):
        temporary.write_bytes(content.getbuffer())


def append_samples(
    parts: Iterable[xr.DataTree],
    path: str | Path,
    num_samples: int,
    advance: Callable[[int], None] = lambda count: None,
) -> None:
    """Write trees that follow each other along ``sample`` to one file, holding one of them at a time."""
    import h5netcdf

    with (
        atomic_path(path) as temporary,
        _disk_errors(path),
        _signals_wait() as deliver_signals,
        closing(_HDF5File(temporary)) as disk,
        h5netcdf.File(disk, "w") as file,
    ):
        start = 0
        for part in parts:
            stop = start + part.sizes["sample"]
            for node in part.subtree:
                group = file if node.path == "/" else file.groups.get(node.name) or file.create_group(node.name)
                dataset = node.to_dataset(inherit=False)
                if start == 0:
                    _create(group, dataset, num_samples)
                for name, variable in dataset.variables.items():
                    if "sample" in variable.dims:
                        group.variables[str(name)][start:stop] = variable.values
            disk.check()
            advance(stop - start)
            start = stop
            deliver_signals()


def _open(path: str | Path, opener) -> Any:
    """What the file holds, in memory; a file of the old format has no groups and always opens as a dataset."""
    import xarray as xr

    path = Path(path)
    if not path.exists():
        raise UsageError(f"there is no file {path}")
    if not path.is_file():
        raise UsageError(f"{path} is a {'folder' if path.is_dir() else 'device or a pipe'}, not a NetCDF file")
    try:
        with path.open("rb") as file:
            magic = file.read(8)
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from error
    if magic.startswith(b"\x89HDF"):
        engine = "h5netcdf"
    elif magic.startswith(b"CDF"):
        engine, opener = "scipy", xr.open_dataset
    else:
        found = f"it begins with {magic.decode('ascii', 'replace')!r}" if magic else "it is empty"
        raise DataError(f"{path} is not a NetCDF file: {found}; was it converted or downloaded completely?")
    try:
        with opener(path, engine=engine, decode_timedelta=False) as opened:
            return opened.load()
    except Exception as error:  # readers raise many kinds; whatever it was, the file cannot be read
        raise DataError(f"cannot read {path}: {error}; it may be truncated or damaged") from error


@contextmanager
def _signals_wait() -> Iterator[Callable[[], None]]:
    """Ctrl-C and requests to end wait for the block's end, or for a call of what it gives.

    HDF5 cannot be stopped half way: an exception out of one of its calls leaves a file that can no longer be closed.
    """
    waiting: list[int] = []
    handlers: dict[int, Callable] = {}

    def deliver() -> None:
        while waiting:
            number = waiting.pop(0)
            handlers[number](number, None)

    with ExitStack() as stack:
        stack.callback(deliver)
        if threading.current_thread() is threading.main_thread():  # no other is interrupted
            for number in (signal.SIGINT, signal.SIGTERM):
                handler = signal.getsignal(number)
                if callable(handler):  # the rest raises nothing
                    handlers[number] = handler
                    stack.callback(signal.signal, number, handler)
                    signal.signal(number, lambda number, _: waiting.append(number))
        yield deliver


class _HDF5File(RawIOBase):
    """A new file for HDF5 to write, which brings the process down where a write fails, as on a full disk.

    It is told that all is well; the first error is kept, and raised by `check` and `close`.
    """

    def __init__(self, path: Path):
        self._file = path.open("w+b", buffering=0)
        self._error: OSError | None = None

    def check(self) -> None:
        if self._error is not None:
            raise self._error

    def write(self, data) -> int:
        view = memoryview(data).cast("B")
        done = 0
        while done < len(view) and self._error is None:
            with self._kept():
                done += self._file.write(view[done:])
        return len(view)

    def truncate(self, size: int | None = None) -> int:
        with self._kept():
            return self._file.truncate(size)
        return size or 0

    def close(self) -> None:
        if not self.closed:
            with self._kept():
                self._file.close()
            super().close()
            self.check()

    def readinto(self, buffer) -> int | None:
        return self._file.readinto(buffer)

    def seek(self, offset: int, whence: int = 0) -> int:
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        return self._file.tell()

    def readable(self) -> bool:
        return True

    writable = seekable = readable

    @contextmanager
    def _kept(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            self._error = self._error or error


@contextmanager
def _disk_errors(path: str | Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        reason = error.strerror or error
        raise DataError(f"cannot write {path}: {reason}; what was there before is unchanged") from error


def _create(group, dataset: xr.Dataset, num_samples: int) -> None:
    import h5py

    inherited = getattr(group, "parent", None)
    for name, size in dataset.sizes.items():
        size = num_samples if name == "sample" else size
        if inherited is None or name not in inherited.dimensions or group is inherited:
            group.dimensions[str(name)] = size
    for name, variable in dataset.variables.items():
        kind = h5py.string_dtype() if variable.dtype.kind in "OUT" else variable.dtype
        created = group.create_variable(str(name), tuple(map(str, variable.dims)), dtype=kind)
        if "sample" not in variable.dims:
            created[...] = variable.values
        created.attrs.update(variable.attrs)
    group.attrs.update(dataset.attrs)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
