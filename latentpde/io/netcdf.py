"""NetCDF files in and out. What is read is held in memory, and what is written is never half a file."""

from __future__ import annotations

from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

from latentpde.errors import DataError, LatentPDEError
from latentpde.io.files import atomic_path, check_readable, disk_errors
from latentpde.io.hdf5 import read_hdf5
from latentpde.io.heaps import check_heaps
from latentpde.io.streaming import signals_wait
from latentpde.needs import require_memory

if TYPE_CHECKING:
    import xarray as xr


def open_cases(path: str | Path) -> xr.DataTree:
    """Read a file of cases: its root, and its group of truths where it has one.

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

    groups = read_groups(path, ("/", "truth"))
    try:
        return xr.DataTree.from_dict({name: groups[name] for name in groups})
    except ValueError as error:  # groups that do not fit together; a name with a slash, which the old format allows
        raise DataError(f"cannot read {path}: {error}") from error


def open_observed(path: str | Path) -> xr.Dataset:
    """Read what was observed, or reconstructed: a file's root, and nothing of its group of truths."""
    return read_groups(path, ("/",))["/"]


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


def read_groups(
    path: str | Path, groups: tuple[str, ...], choose: Callable[[xr.Dataset], xr.Dataset] = lambda dataset: dataset
) -> dict[str, xr.Dataset]:
    """Some groups of a file that it has, in memory. A file of the old format has no groups but its root.

    Args:
        path: of the file.
        groups: ``"/"`` for its root, and names of groups in it.
        choose: what of a group is read, of a dataset whose variables are not read yet.
    """
    check_readable(path, "NetCDF file")
    with Path(path).open("rb") as file:
        magic = file.read(8)
    if not magic.startswith((b"\x89HDF", b"CDF")):
        found = f"it begins with {magic.decode('ascii', 'replace')!r}" if magic else "it is empty"
        raise DataError(f"{path} is not a NetCDF file: {found}; was it converted or downloaded completely?")
    try:
        if magic.startswith(b"CDF"):
            return {"/": _read_old(path, choose)}
        check_heaps(path)
        return read_hdf5(path, groups, choose)
    except LatentPDEError:
        raise
    except Exception as error:  # readers raise many kinds; whatever it was, the file cannot be read
        raise DataError(f"cannot read {path}: {error}; it may be truncated or damaged") from error


def _read_old(path: str | Path, choose: Callable[[xr.Dataset], xr.Dataset]) -> xr.Dataset:
    import xarray as xr

    with xr.open_dataset(path, engine="scipy", decode_timedelta=False) as opened:
        chosen = choose(opened)
        require_memory(2 * chosen.nbytes, f"to read {path}", "cut it to the variables and cases that are needed")
        return chosen.load()
