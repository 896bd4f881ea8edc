"""Readings from whatever somebody has: a CSV, a Parquet file, NetCDF, Zarr, a DataFrame, a Dataset."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from latentpde.domain import Domain
from latentpde.errors import DataError, UsageError
from latentpde.frame import Frame
from latentpde.io.axes import choose_variable
from latentpde.io.columns import parse_columns
from latentpde.io.dates import DateOptions
from latentpde.io.delimited import read_delimited
from latentpde.io.excluded import excluded_areas, find_mask, notice_masks
from latentpde.io.files import check_readable
from latentpde.io.gridded import MOST_CELLS, observation_from_grid
from latentpde.io.initial import with_initial
from latentpde.io.netcdf import read_groups
from latentpde.io.observations import observation_from_dataset
from latentpde.io.readings import GROUP, readings_from_dataset
from latentpde.io.selection import parse_selection, selected
from latentpde.io.stations import TableOptions, observation_from_table
from latentpde.io.table import Table, read_parquet, table_of_frame
from latentpde.io.zarr_store import is_zarr, read_zarr
from latentpde.observation import Observation
from latentpde.validation import LARGEST, shortened

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

_PACKED = {b"\x1f\x8b": "gzip", b"BZh": "bzip2", b"\xfd7zXZ": "xz", b"(\xb5/\xfd": "zstd"}


@dataclass(frozen=True, kw_only=True)
class ReadOptions:
    """Arguments of `read`, checked and gathered."""

    variable: str | None = None
    columns: str | Mapping[str, str] | None = None
    select: str | Mapping[str, Any] | None = None
    excluded: Any = None
    time_unit: str | None = None
    time_zone: str | None = None
    date_order: str | None = None
    separator: str | None = None
    decimal: str | None = None
    encoding: str | None = None
    noise_std: float | None = None
    family: str | None = None
    domain: Domain | None = None
    start: Any = None
    rectangle: str | Sequence[float] | None = None
    observed_kind: str | None = None
    keep_outliers: bool = False
    times: tuple[float, ...] | None = None
    extent: tuple[float, float] | None = None
    fine_initial: Any = None
    initial_state: Any = None

    def of_table(self) -> TableOptions:
        """Those that tables and grids share."""
        return TableOptions(
            columns=parse_columns(self.columns),
            time_unit=self.time_unit,
            dates=DateOptions(self.date_order, self.time_zone),
            noise_std=self.noise_std,
            family=self.family,
            domain=self.domain,
            start=self.start,
            rectangle=_corners(self.rectangle),
            keep_outliers=self.keep_outliers,
        )


def read(
    data: str | Path | pd.DataFrame | xr.Dataset | xr.DataArray | xr.DataTree | Observation, **options: Any
) -> Observation:
    """Readings of a file, a table or a dataset, in the user's own coordinates, dates and units.

    >>> import pandas as pd
    >>> table = pd.DataFrame({"lon": [8.0, 9.0, 8.5], "lat": [50.0, 50.0, 51.0], "pm10": [21.0, 17.5, 30.0]})
    >>> observation = read(table)
    >>> observation.num_readings, observation.frame.projection
    (tensor([3]), Projection(latitude=50.5, longitude=8.5, is_band=False))

    What is not clear is asked for, by an error that says how to answer. The guide has a section on files.

    Args:
        data: a table with a row for each reading (CSV, Parquet, DataFrame); a gridded dataset with gaps (NetCDF, Zarr,
            Dataset, DataArray); a file that `latentpde` wrote.
        options: any of these, all of which may be left out.

            ``variable``: what was read, of a dataset with several. ``columns``: names of columns or axes by their roles
            ``x``, ``y``, ``t``, ``value``, ``sigma``, ``group``, ``reads`` (``field`` or ``source``) and ``station``,
            as a mapping or as text such as ``"x=lon,y=lat,value=pm10"``. ``rectangle``: that a table is reconstructed
            on, ``(y_low, y_high, x_low, x_high)``, and that its walls bound; by default around its readings.
            ``select``: parts of a dataset, ``"time=2026-05-01/2026-05-03,level=850"``.
            ``excluded``: a mask of areas that are left out, by the name of a variable, a file or an array;
            ``"~name"`` for one that says what is kept.

            ``time_unit``: of times that are numbers, or that dates are to be counted in. ``time_zone``: of dates that
            name none, UTC by default. ``date_order``: ``day-first`` or ``month-first``. ``start``: the time from which
            on the field is modelled, that of the first reading by default. ``separator``, ``decimal``, ``encoding``: of
            a text file.

            ``noise_std``: standard deviation of the readings' noise. ``family``: the PDE. ``domain``: the edges.
            ``observed_kind``: ``pooled``, ``point`` or ``lowres-solve``. ``keep_outliers``: take values as they are
            that look like gaps. ``initial_state``: of a table, a file with the state that the field starts from, on a
            grid in the table's coordinates. ``times``, ``extent``, ``fine_initial``: of a file in the layout of
            ``cases.nc``, see `latentpde.io.observations.observation_from_dataset`.
    """
    unknown = sorted({*options} - {f.name for f in fields(ReadOptions)})
    if unknown:
        known = ", ".join(f.name for f in fields(ReadOptions))
        raise UsageError(f"there is no option {unknown[0]!r} of reading; there are: {known}")
    asked = ReadOptions(**options)
    if isinstance(data, Observation):
        return data
    if isinstance(data, str | Path):
        return _read_path(data, asked)
    kind = f"{type(data).__module__.split('.')[0]}.{type(data).__name__}"
    if kind == "pandas.DataFrame":
        return _of_table(table_of_frame(data), asked)  # pyright: ignore[reportArgumentType]
    if kind == "xarray.DataArray":
        return _of_dataset(data.to_dataset(name=data.name or "value"), asked)  # pyright: ignore
    if kind == "xarray.DataTree":
        if GROUP in data.children:  # pyright: ignore
            return readings_from_dataset(data[GROUP].to_dataset(inherit=False))  # pyright: ignore
        return _of_dataset(data.to_dataset(), asked)  # pyright: ignore
    if kind == "xarray.Dataset":
        return _of_dataset(data, asked)  # pyright: ignore[reportArgumentType]
    raise DataError(
        "expected an Observation, a path, a pandas DataFrame, or an xarray Dataset, DataArray or DataTree; got "
        f"{shortened(data)}"
    )


def _read_path(path: str | Path, asked: ReadOptions) -> Observation:
    if is_zarr(path):
        return _of_groups(read_zarr, path, asked)
    check_readable(path, "file of readings")
    with Path(path).open("rb") as file:
        magic = file.read(8)
    if magic.startswith((b"\x89HDF", b"CDF")):
        return _of_groups(read_groups, path, asked)
    if magic.startswith(b"PAR1"):
        return _of_table(read_parquet(path), asked)
    if Path(path).suffix.lower() in (".nc", ".nc4", ".cdf", ".netcdf", ".h5", ".hdf5"):
        read_groups(path, ("/",))  # says what it is instead
    for mark, name in _PACKED.items():
        if magic.startswith(mark):
            raise DataError(f"{path} is packed by {name}; unpack it first")
    if magic.startswith(b"PK"):
        raise DataError(f"{path} is a ZIP archive or a workbook of Excel; unpack it, or save the sheet as CSV (UTF-8)")
    if magic.startswith(b"GRIB"):
        raise DataError(
            f"{path} is a GRIB file; convert it to NetCDF, for instance with grib_to_netcdf or cdo -f nc4 copy"
        )
    table = read_delimited(path, separator=asked.separator, decimal=asked.decimal, encoding=asked.encoding)
    return _of_table(table, asked)


def holds_cases(path: str | Path) -> bool:
    """Whether a file is in the layout of ``cases.nc``, by its variables; nothing of them is read."""
    if not is_zarr(path):
        check_readable(path, "file of readings")
        with Path(path).open("rb") as file:
            if not file.read(8).startswith((b"\x89HDF", b"CDF")):
                return False
    found: list[bool] = []

    def look(dataset: xr.Dataset) -> xr.Dataset:
        found.append(_is_ours(dataset, ReadOptions()))
        return dataset.drop_vars([*dataset.variables])

    (read_zarr if is_zarr(path) else read_groups)(path, ("/",), look)
    return found[0]


def _of_groups(reader, path: str | Path, asked: ReadOptions) -> Observation:
    """A file with groups: a reconstruction by the readings that it keeps, anything else by its root."""

    def choose(dataset: xr.Dataset) -> xr.Dataset:
        if "observation" in dataset.attrs:
            return dataset
        if "latentpde_version" in dataset.attrs and "mean" in dataset:
            return dataset[[]]
        return _needed(dataset, asked)

    groups = reader(path, ("/", GROUP), choose)
    if GROUP in groups and "observation" in groups[GROUP].attrs:
        return readings_from_dataset(groups[GROUP])
    return _of_dataset(groups["/"], asked, str(path), cut=True)


def _needed(dataset: xr.Dataset, asked: ReadOptions) -> xr.Dataset:
    """What is to be read of a dataset that is not in memory yet: some variables, cut, and not more than can be used."""
    if _is_ours(dataset, asked):
        return dataset
    dataset = selected(dataset, parse_selection(asked.select))
    columns = parse_columns(asked.columns)
    sigma, excluded = columns.get("sigma"), str(asked.excluded or "").removeprefix("~")
    name = _chosen(dataset, asked)
    if asked.excluded is None:
        notice_masks(dataset, name)
    wanted = [other for other in (name, sigma, excluded) if other in dataset.data_vars]
    for other in wanted:
        if dataset[other].size > MOST_CELLS:
            lengths = ", ".join(f"{axis} {size:,}" for axis, size in dataset[other].sizes.items())
            raise DataError(
                f"{other!r} has {dataset[other].size:,} cells ({lengths}), and at most {MOST_CELLS:,} can be read; "
                'take a part of it, such as --select "time=2026-05-01/2026-05-03"'
            )
    near = [v for v in dataset.data_vars if v not in wanted and {*dataset[v].dims} <= {*dataset[name].dims}]
    places = [v for v in near if v in columns.values() or (dataset[v].ndim <= 2 and _is_place(dataset[v]))]
    return dataset[[*wanted, *places]]


def _chosen(dataset: xr.Dataset, asked: ReadOptions) -> str:
    """The name of the variable that was read."""
    columns = parse_columns(asked.columns)
    aside = (columns.get("sigma", ""), str(asked.excluded or "").removeprefix("~"))
    return choose_variable(dataset, asked.variable or columns.get("value"), tuple(name for name in aside if name))


def _is_place(array: xr.DataArray) -> bool:
    standard = array.attrs.get("standard_name") in ("longitude", "latitude", "time")
    return standard or str(array.name).lower() in ("lon", "lat", "longitude", "latitude", "time")


def _is_ours(dataset: xr.Dataset, asked: ReadOptions) -> bool:
    """Whether a dataset has the layout of ``cases.nc``; ``observed`` with dates and degrees alone is anybody's."""
    if asked.variable is not None or asked.columns is not None:
        return False
    if "sensor_x" in dataset or {"observed_kind", "regime"} & {*dataset.attrs}:
        return True
    if "observed" not in dataset:
        return False
    if "initial" in dataset or "family" in dataset.attrs:
        return True
    has_dates = "time" in dataset.coords and dataset["time"].dtype.kind == "M"
    names = {str(axis).lower() for axis in dataset["observed"].dims}
    return not has_dates and not names & {"lat", "lon", "latitude", "longitude"}


def _of_dataset(dataset: xr.Dataset, asked: ReadOptions, origin: str = "the dataset", cut: bool = False) -> Observation:
    if asked.initial_state is not None:
        raise UsageError(
            "an initial state of its own is for a table of stations; a dataset holds it as a variable initial, or as "
            "its first snapshot"
        )
    if _is_ours(dataset, asked):
        return observation_from_dataset(
            dataset,
            family=asked.family,
            noise_std=asked.noise_std,
            times=asked.times,
            extent=asked.extent,
            observed_kind=asked.observed_kind,
            fine_initial=asked.fine_initial,
            keep_outliers=asked.keep_outliers,
        )
    dataset = dataset if cut else selected(dataset, parse_selection(asked.select))
    _refuse_options_of_cases(asked)
    mask = None
    if asked.excluded is not None:
        mask = find_mask(asked.excluded, dataset, _open_dataset)
        own = [n for n in dataset.data_vars if mask[0].identical(dataset[n])]
        dataset = dataset.drop_vars(own)
    elif not cut:
        notice_masks(dataset, _chosen(dataset, asked))
    return observation_from_grid(
        dataset,
        asked.of_table(),
        variable=asked.variable,
        observed_kind=asked.observed_kind,
        excluded=None if mask is None else _areas(*mask),
        origin=origin,
    )


def _of_table(table: Table, asked: ReadOptions) -> Observation:
    _refuse_options_of_cases(asked)
    options = asked.of_table()
    if asked.variable is not None:
        if "value" in options.columns and options.columns["value"] != asked.variable:
            raise UsageError("variable and columns name two columns of what was read; give one of them")
        options = TableOptions(**{**options.__dict__, "columns": {**options.columns, "value": asked.variable}})
    mask = None if asked.excluded is None else find_mask(asked.excluded, None, _open_dataset)
    observation = observation_from_table(table, options, None if mask is None else _areas(*mask))
    if asked.initial_state is None:
        return observation
    return with_initial(observation, asked.initial_state, _open_dataset)


def _corners(rectangle: str | Sequence[float] | None) -> tuple[float, float, float, float] | None:
    """Four finite numbers, also as text."""
    if rectangle is None:
        return None
    try:
        found = [float(part) for part in (rectangle.split(",") if isinstance(rectangle, str) else rectangle)]
    except (TypeError, ValueError):
        found = []
    if len(found) != 4 or not all(abs(number) <= LARGEST for number in found):
        raise UsageError(
            f"the rectangle is four numbers y_low,y_high,x_low,x_high in the data's own coordinates; got {rectangle!r}"
        )
    return found[0], found[1], found[2], found[3]


def _areas(mask: xr.DataArray, inverted: bool):
    def of_frame(frame: Frame):
        return excluded_areas(mask, frame, inverted=inverted)

    return of_frame


def _open_dataset(path: str | Path) -> xr.Dataset:
    return (read_zarr if is_zarr(path) else read_groups)(path, ("/",))["/"]


def _refuse_options_of_cases(asked: ReadOptions) -> None:
    for name in ("times", "extent", "fine_initial"):
        if getattr(asked, name) is not None:
            raise UsageError(f"{name} is for a file in the layout of cases.nc; these data say it themselves")
