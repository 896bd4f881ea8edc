"""Zarr stores in and out: folders that are looked through before anything in them is trusted."""

from __future__ import annotations

import json
import math
import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from latentpde.errors import DataError, LatentPDEError, UsageError
from latentpde.io.files import check_writable, disk_errors, reason
from latentpde.io.zarr_chunks import check_chunks
from latentpde.needs import require_memory
from latentpde.validation import MOST, shortened

if TYPE_CHECKING:
    import xarray as xr

_METADATA = ("zarr.json", ".zarray", ".zgroup", ".zattrs", ".zmetadata")
_MOST_FILES, _LONGEST_METADATA = 1_000_000, 50_000_000
#: Codecs that only move bytes about; others, such as pickle, could run code.
_CODECS = (
    *("bytes", "gzip", "zstd", "blosc", "crc32c", "transpose", "sharding_indexed", "vlen-utf8"),  # of version 3
    *("zlib", "lz4", "bz2", "lzma", "shuffle", "delta", "fixedscaleoffset", "packbits"),  # of version 2
)


def is_zarr(path: str | Path) -> bool:
    """Whether a path is a folder that holds a Zarr store, or is named like one."""
    inside = (os.path.join(path, name) for name in _METADATA)
    return Path(path).suffix == ".zarr" or (os.path.isdir(path) and any(map(os.path.exists, inside)))


def read_zarr(
    path: str | Path, groups: tuple[str, ...] = ("/",), choose: Callable[[xr.Dataset], xr.Dataset] = lambda d: d
) -> dict[str, xr.Dataset]:
    """Some groups of a store that it has, in memory; arguments as those of `latentpde.io.netcdf.read_groups`."""
    xr, found = _checked(path), {}
    try:
        for name in groups:
            inside = Path(path) / name.strip("/")
            if name == "/" or (inside.is_dir() and any((inside / file).exists() for file in _METADATA)):
                group = None if name == "/" else name
                opened = xr.open_zarr(
                    path, group=group, consolidated=_is_consolidated(inside), chunks=None, decode_timedelta=False
                )
                found[name] = choose(opened)
                for variable in found[name].variables:
                    check_chunks(inside / str(variable))
        require_memory(
            2 * sum(d.nbytes for d in found.values()), f"to read {path}", "cut it to the variables that are needed"
        )
        return {name: dataset.load() for name, dataset in found.items()}
    except LatentPDEError:
        raise
    except Exception as error:  # zarr and its codecs raise many kinds
        raise DataError(f"cannot read {path}: {error}; it may be incomplete or damaged") from error


def open_zarr(path: str | Path) -> xr.Dataset:
    """The root of a store, whose values are read when they are asked for."""
    xr = _checked(path)
    try:
        return xr.open_zarr(path, consolidated=_is_consolidated(Path(path)), chunks=None, decode_timedelta=False)
    except Exception as error:  # as above
        raise DataError(f"cannot read {path}: {error}; it may be incomplete or damaged") from error


def _is_consolidated(group: Path) -> bool:
    """Whether one file of a group describes all that is in it; xarray warns where it has to look for that."""
    if (group / ".zmetadata").is_file():
        return True
    described = group / "zarr.json"
    return described.is_file() and bool(json.loads(described.read_bytes()).get("consolidated_metadata"))


def _checked(path: str | Path):
    """Xarray, ready to open a store that was looked through."""
    xr = _xarray_with_zarr()
    if not Path(path).is_dir():
        raise UsageError(
            f"there is no folder {path}" if not Path(path).exists() else f"{path} is a file, not a Zarr store"
        )
    _check_store(Path(path))
    return xr


def write_zarr(tree: xr.Dataset | xr.DataTree, path: str | Path) -> None:
    """Write a store; what was there before is replaced only when the new one is complete."""
    _xarray_with_zarr()
    with atomic_folder(path) as temporary, disk_errors(path):
        tree.to_zarr(temporary, mode="w", zarr_format=2, consolidated=True)


@contextmanager
def atomic_folder(path: str | Path) -> Iterator[Path]:
    """A temporary folder beside ``path`` that replaces it when the block ends well, and vanishes when it does not.

    >>> folder = Path(tempfile.mkdtemp())
    >>> with atomic_folder(folder / "out.zarr") as temporary:
    ...     _ = (temporary / "zarr.json").write_text("{}")
    >>> [path.name for path in folder.iterdir()]
    ['out.zarr']
    """
    check_store_writable(path)
    target = Path(os.path.realpath(path))
    with disk_errors(path):
        temporary = Path(tempfile.mkdtemp(prefix=f".{target.name[:64]}.", suffix=".part", dir=target.parent))
    try:
        yield temporary
        with disk_errors(path):
            temporary.chmod(0o755)
            if target.exists():
                old = Path(tempfile.mkdtemp(prefix=f".{target.name[:64]}.", suffix=".old", dir=target.parent))
                target.replace(old / "was")
                temporary.replace(target)
                shutil.rmtree(old, ignore_errors=True)
            else:
                temporary.replace(target)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def check_store_writable(path: str | Path) -> None:
    """Raise `UsageError` where a store cannot be written, or something else than a store would be replaced."""
    if Path(path).is_dir():
        if any(Path(path).iterdir()) and not any((Path(path) / name).exists() for name in _METADATA):
            raise UsageError(f"cannot write {path}: it is a folder with other things in it; choose another name")
        if not os.access(Path(path).absolute().parent, os.W_OK):
            raise UsageError(f"cannot write {path}: no permission to write in {Path(path).absolute().parent}")
        return
    if Path(path).exists():
        raise UsageError(f"cannot write {path}: it is a file, and a Zarr store is a folder; choose another name")
    check_writable(path)


def _check_store(path: Path) -> None:
    """Raise `DataError` where the store leads away from its folder, claims what cannot be, or names unknown codecs."""
    count, top = 0, False
    try:
        for folder, folders, files in os.walk(path, followlinks=False):
            for name in (*folders, *files):
                place = Path(folder) / name
                mode = place.lstat().st_mode
                if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
                    raise DataError(
                        f"{place} is a link, a device or a pipe, which is not followed; copy the store whole"
                    )
                count += 1
                if count > _MOST_FILES:
                    raise DataError(f"{path} has more than {_MOST_FILES:,} files; cut it to the part that you need")
                if name in _METADATA:
                    top = top or Path(folder) == path
                    _check_metadata(place)
    except OSError as error:
        raise DataError(f"cannot read {path}: {reason(error)}") from error
    if not top:
        raise DataError(f"{path} is not a Zarr store: it has neither zarr.json nor .zgroup; was it copied completely?")


def _check_metadata(path: Path) -> None:
    if path.stat().st_size > _LONGEST_METADATA:
        raise DataError(f"{path} is {path.stat().st_size:,} bytes long, which no description of an array is")
    try:
        found = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise DataError(f"cannot read {path}: it is not JSON ({error}); the store may be damaged") from error
    for array in _arrays(found):
        shape = _sizes(array.get("shape"), path)
        grid = array.get("chunk_grid")
        inside = grid.get("configuration") if isinstance(grid, dict) else None
        of_grid = inside.get("chunk_shape") if isinstance(inside, dict) else None
        chunks = _sizes(of_grid or array.get("chunks") or shape, path)
        if len(shape) <= 1 and math.prod(shape) > MOST:
            raise DataError(f"{path} says that an axis has {math.prod(shape):,} entries; at most {MOST:,} can be read")
        require_memory(16 * math.prod(chunks), f"for one chunk of {path.parent}", "write the store with smaller chunks")
        if len(shape) <= 1 and path.name in ("zarr.json", ".zarray"):  # read as soon as the store is opened
            check_chunks(path.parent)
        unknown = sorted({codec for codec in _codecs(array) if codec.lower() not in _CODECS})
        if unknown:
            raise DataError(
                f"{path} uses the codec {unknown[0]!r}, which is not read; write the store with zstd or blosc"
            )


def _sizes(found: Any, path: Path) -> list[int]:
    if not isinstance(found, list) or not all(isinstance(n, int) and 0 <= n < 2**62 for n in found):
        raise DataError(f"{path} describes an array of shape {shortened(found)}; the store may be damaged")
    return found


def _arrays(found: Any) -> Iterator[dict]:
    """Descriptions of arrays, wherever they stand in metadata."""
    if isinstance(found, dict):
        if "shape" in found and ("dtype" in found or "data_type" in found):
            yield found
        else:
            for value in found.values():
                yield from _arrays(value)


def _codecs(array: dict) -> Iterator[str]:
    found = [array.get("compressor"), *(array.get("filters") or []), *(array.get("codecs") or [])]
    found += [c for outer in found if isinstance(outer, dict) for c in _inner(outer)]
    for codec in found:
        if isinstance(codec, dict):
            yield str(codec.get("id", codec.get("name", "")))
        elif codec is not None:
            yield str(codec)


def _inner(codec: dict) -> list:
    configuration = codec.get("configuration")
    if not isinstance(configuration, dict):
        return []
    return [*(configuration.get("codecs") or []), *(configuration.get("index_codecs") or [])]


def _xarray_with_zarr():
    import xarray as xr

    try:
        import zarr  # noqa: F401
    except ImportError as error:
        raise UsageError('Zarr stores need zarr; install it with: pip install "latentpde[files]"') from error
    return xr
