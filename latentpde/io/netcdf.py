"""NetCDF files in and out. What is read is held in memory, and what is written is never half a file."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from latentpde.errors import DataError, UsageError
from latentpde.io.files import atomic_path, disk_errors
from latentpde.io.heaps import check_heaps
from latentpde.io.streaming import signals_wait

if TYPE_CHECKING:
    import xarray as xr


def open_cases(path: str | Path) -> xr.DataTree:
    """Read a whole file of cases, the truths included where it has any.

    >>> import tempfile
    >>> from latentpde import simulate
    >>> path = Path(tempfile.mkdtemp()) / "cases.nc"
    >>> write_netcdf(simulate("diffusion", num=2, shape=(16, 16)), path)
    >>> open_cases(path)["truth/field"].dims
    ('case', 'y', 'x')
    >>> list(open_observed(path).data_vars)
    ['observed', 'initial']
    """
    import xarray as xr

    opened = _open(path, xr.open_datatree)
    try:
        return opened if isinstance(opened, xr.DataTree) else xr.DataTree(opened)
    except ValueError as error:  # a name with a slash, which the old format allows
        raise DataError(f"cannot read {path}: {error}") from error


def open_observed(path: str | Path) -> xr.Dataset:
    """Read what was observed, or reconstructed: a file's root, and nothing of its group of truths."""
    import xarray as xr

    return _open(path, xr.open_dataset)


def open_fine_initial(path: str | Path) -> xr.DataArray:
    """Read the variable ``initial`` of a file: that of its group ``truth`` if it has one, as simulated cases have."""
    tree = open_cases(path)
    for node in ("truth", "/"):
        if (node == "/" or node in tree.children) and "initial" in tree[node]:
            return tree[node].to_dataset()["initial"]
    raise DataError(f"{path} holds no fine initial state; expected a variable 'initial'")


def write_netcdf(dataset: xr.Dataset | xr.DataTree, path: str | Path) -> None:
    """Write a dataset or a tree; what was there before is replaced only when the new file is complete."""
    content = BytesIO()  # a full disk brings HDF5 and the process down
    with signals_wait():
        dataset.to_netcdf(content, engine="h5netcdf")
    with atomic_path(path) as temporary, disk_errors(path):
        temporary.write_bytes(content.getbuffer())


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
        check_heaps(path)
    elif magic.startswith(b"CDF"):
        engine, opener = "scipy", xr.open_dataset
    else:
        found = f"it begins with {magic.decode('ascii', 'replace')!r}" if magic else "it is empty"
        raise DataError(f"{path} is not a NetCDF file: {found}; was it converted or downloaded completely?")
    try:
        if engine == "h5netcdf":
            import h5py

            with h5py.File(path, "r") as file:
                # h5netcdf asks for this first, and cannot be closed again where the answer is an error
                file.attrs.get("_nc3_strict")
        with opener(path, engine=engine, decode_timedelta=False) as opened:
            return opened.load()
    except Exception as error:  # readers raise many kinds; whatever it was, the file cannot be read
        raise DataError(f"cannot read {path}: {error}; it may be truncated or damaged") from error
