"""Cases written one batch after another to one HDF5 file, which must not be interrupted half way."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager
from io import RawIOBase
from pathlib import Path
from typing import TYPE_CHECKING

from latentpde.io.files import atomic_path, disk_errors

if TYPE_CHECKING:
    import xarray as xr


def append_cases(
    parts: Iterable[xr.DataTree],
    path: str | Path,
    num_cases: int,
    advance: Callable[[int], None] = lambda count: None,
) -> None:
    """Write trees that follow each other along ``case`` to one file, holding one of them at a time.

    >>> import tempfile
    >>> from latentpde.io.netcdf import open_cases
    >>> from latentpde.simulation import Simulation
    >>> path = Path(tempfile.mkdtemp()) / "cases.nc"
    >>> append_cases(Simulation(regime="diffusion", shape=(16, 16)).batches(5, size=2), path, num_cases=5)
    >>> open_cases(path).sizes["case"]
    5

    Args:
        parts: trees in the layout of ``cases.nc``, the same but for their cases.
        path: of the file, which is replaced only when the new one is complete.
        num_cases: of all parts together.
        advance: called with the number of cases just written.
    """
    import h5netcdf

    with (
        atomic_path(path) as temporary,
        disk_errors(path),
        signals_wait() as deliver_signals,
        closing(_HDF5File(temporary)) as disk,
        h5netcdf.File(disk, "w") as file,
    ):
        start = 0
        for part in parts:
            stop = start + part.sizes["case"]
            for node in part.subtree:
                group = file if node.path == "/" else file.groups.get(node.name) or file.create_group(node.name)
                dataset = node.to_dataset(inherit=False)
                if start == 0:
                    _create(group, dataset, num_cases)
                for name, variable in dataset.variables.items():
                    if "case" in variable.dims:
                        group.variables[str(name)][start:stop] = variable.values
            disk.check()
            advance(stop - start)
            start = stop
            deliver_signals()


@contextmanager
def signals_wait() -> Iterator[Callable[[], None]]:
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


def _create(group, dataset: xr.Dataset, num_cases: int) -> None:
    import h5py

    inherited = getattr(group, "parent", None)
    for name, size in dataset.sizes.items():
        size = num_cases if name == "case" else size
        if inherited is None or name not in inherited.dimensions or group is inherited:
            group.dimensions[str(name)] = size
    for name, variable in dataset.variables.items():
        kind = h5py.string_dtype() if variable.dtype.kind in "OUT" else variable.dtype
        created = group.create_variable(str(name), tuple(map(str, variable.dims)), dtype=kind)
        if "case" not in variable.dims:
            created[...] = variable.values
        created.attrs.update(variable.attrs)
    group.attrs.update(dataset.attrs)
