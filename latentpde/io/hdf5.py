"""Groups of an HDF5 file as datasets, once it is clear that reading them ends, and fits into memory.

HDF5 follows links wherever they lead: to another file, to a pipe that nobody writes to, back to where it came from. So
links are looked at before anything is opened through them, and only the groups that are asked for are entered.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from latentpde.errors import DataError
from latentpde.io.packed import check_packed
from latentpde.needs import require_memory
from latentpde.validation import MOST

if TYPE_CHECKING:
    import h5py
    import xarray as xr


def read_hdf5(
    path: str | Path, groups: tuple[str, ...], choose: Callable[[xr.Dataset], xr.Dataset] = lambda dataset: dataset
) -> dict[str, xr.Dataset]:
    """Read those of some groups that the file has; raises `DataError` where links lead away or it does not fit.

    Args:
        path: of the file.
        groups: ``"/"`` for its root, and names of groups in it.
        choose: what of a group is read, of a dataset whose variables are not read yet.
    """
    import h5netcdf
    import h5py
    import xarray as xr
    from xarray.backends import H5NetCDFStore

    with h5py.File(path, "r") as file:
        # h5netcdf asks for this first, and cannot be closed again where the answer is an error
        file.attrs.get("_nc3_strict")
        _check_entries(file, path)
        wanted = ["/"] if "/" in groups else []
        for name in groups:
            group = file.get(name)
            if isinstance(group, h5py.Group) and name != "/":
                _check_entries(group, path)
                wanted.append(name)
        netcdf = h5netcdf.File(file, "r", phony_dims="access", decode_vlen_strings=True)
        stores = {name: H5NetCDFStore(netcdf, group=name) for name in wanted}
        found = {name: choose(xr.open_dataset(store, decode_timedelta=False)) for name, store in stores.items()}
        for name, dataset in found.items():
            for variable in dataset.variables:
                _check_chunks(file.get(f"{name}/{variable}"), path)
        size = sum(dataset.nbytes for dataset in found.values())
        require_memory(2 * size, f"to read {path}", "cut it to the variables and cases that are needed")
        return {name: dataset.load() for name, dataset in found.items()}


def _check_entries(group: h5py.Group, path: str | Path) -> None:
    """Raise `DataError` where an entry of a group is not in the file itself, or is a coordinate, which is read as
    soon as the file is opened, and claims to be too long for that."""
    import h5py

    for name in group:
        link = group.get(name, getlink=True)
        entry = group[name] if isinstance(link, h5py.HardLink) else None
        elsewhere = isinstance(entry, h5py.Dataset) and (entry.external or entry.is_virtual)
        if entry is None or elsewhere:
            raise DataError(
                f"{path} has {name!r} only as a link to another place, which is not followed; copy the file with its "
                "links resolved, for instance by h5repack or ncks"
            )
        if isinstance(entry, h5py.Dataset) and entry.ndim <= 1 and entry.size is not None and entry.size > MOST:
            raise DataError(
                f"{path} says that {name!r} has {entry.size:,} entries, and at most {MOST:,} can be read; is it "
                "damaged?"
            )
        if isinstance(entry, h5py.Dataset) and entry.ndim <= 1:
            _check_chunks(entry, path)


def _check_chunks(entry: Any, path: str | Path) -> None:
    """Raise `DataError` where a deflated chunk of a variable would unpack to far more than it should."""
    import h5py

    if not isinstance(entry, h5py.Dataset) or entry.chunks is None or entry.compression != "gzip":
        return
    expected = math.prod(entry.chunks) * entry.dtype.itemsize
    require_memory(2 * expected, f"for one chunk of {path}", "write it with smaller chunks")
    for number in range(entry.id.get_num_chunks()):
        stored = entry.id.get_chunk_info(number)
        _, content = entry.id.read_direct_chunk(stored.chunk_offset)
        check_packed(content, "zlib", expected, f"{path}, a chunk of {str(entry.name)!r},")
