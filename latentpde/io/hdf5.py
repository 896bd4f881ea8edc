"""Groups of an HDF5 file as datasets, once it is clear that reading them ends, and fits into memory.

HDF5 follows links wherever they lead: to another file, to a pipe that nobody writes to, back to where it came from. So
links are looked at before anything is opened through them, and only the groups that are asked for are entered.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from latentpde.errors import DataError
from latentpde.needs import require_memory

if TYPE_CHECKING:
    import h5py
    import xarray as xr


def read_hdf5(path: str | Path, groups: tuple[str, ...]) -> dict[str, xr.Dataset]:
    """Read those of some groups that the file has; raises `DataError` where links lead away or it does not fit.

    Args:
        path: of the file.
        groups: ``"/"`` for its root, and names of groups in it.
    """
    import h5netcdf
    import h5py
    import xarray as xr
    from xarray.backends import H5NetCDFStore

    with h5py.File(path, "r") as file:
        # h5netcdf asks for this first, and cannot be closed again where the answer is an error
        file.attrs.get("_nc3_strict")
        size = _checked_size(file, path)
        wanted = ["/"] if "/" in groups else []
        for name in groups:
            group = file.get(name)
            if isinstance(group, h5py.Group) and name != "/":
                size += _checked_size(group, path)
                wanted.append(name)
        require_memory(2 * size, f"to read {path}", "cut it to the variables and cases that are needed")
        netcdf = h5netcdf.File(file, "r", phony_dims="access", decode_vlen_strings=True)
        return {
            name: xr.open_dataset(H5NetCDFStore(netcdf, group=name), decode_timedelta=False).load() for name in wanted
        }


def _checked_size(group: h5py.Group, path: str | Path) -> int:
    """Bytes of a group's own variables; raises `DataError` where one of its entries is not in the file itself."""
    import h5py

    size = 0
    for name in group:
        link = group.get(name, getlink=True)
        entry = group[name] if isinstance(link, h5py.HardLink) else None
        elsewhere = isinstance(entry, h5py.Dataset) and (entry.external or entry.is_virtual)
        if entry is None or elsewhere:
            raise DataError(
                f"{path} has {name!r} only as a link to another place, which is not followed; copy the file with its "
                "links resolved, for instance by h5repack or ncks"
            )
        size += entry.nbytes if isinstance(entry, h5py.Dataset) else 0
    return size
