"""Readings from a gridded dataset that somebody wrote without this project.

Evenly spaced cells stay cells. What is not (a Gaussian grid, a swath, stations along one axis) becomes a table of
points.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from latentpde.domain import Domain
from latentpde.errors import DataError, LatentPDEWarning, UsageError
from latentpde.frame import Axis, Clock, Frame
from latentpde.grid import Grid
from latentpde.io.axes import choose_variable, find_axes, is_degrees, regular
from latentpde.io.clocks import clock_of_dates, clock_of_numbers, in_nanoseconds
from latentpde.io.columns import ROLES
from latentpde.io.places import axis_unwrapped
from latentpde.io.stations import TableOptions, observation_from_table
from latentpde.io.table import MOST_ROWS, Table
from latentpde.observation import Observation
from latentpde.quantities import LENGTHS, conversion, short_unit

if TYPE_CHECKING:
    import xarray as xr

_KEPT = ("long_name", "standard_name", "cell_methods")
MOST_CELLS = 20_000_000  # of a variable that is read as it is


def observation_from_grid(
    dataset: xr.Dataset,
    options: TableOptions,
    *,
    variable: str | None = None,
    observed_kind: str | None = None,
    excluded=None,
    origin: str = "the dataset",
) -> Observation:
    """Readings of one variable, NaN where there is none.

    >>> import xarray as xr
    >>> values = np.arange(24.0).reshape(2, 3, 4)
    >>> coordinates = {"time": np.array(["2026-05-01T00", "2026-05-01T06"], dtype="datetime64[ns]")}
    >>> coordinates |= {"lat": [52.0, 51.0, 50.0], "lon": [8.0, 9.0, 10.0, 11.0]}
    >>> data = xr.Dataset({"t2m": (("time", "lat", "lon"), values, {"units": "K"})}, coordinates)
    >>> observation = observation_from_grid(data, TableOptions())
    >>> observation.times.tolist(), observation.values[0, 0, -1, 0].item()  # latitudes run downwards there
    ([0.0, 6.0], 0.0)

    Args:
        dataset: as it was found, decoded by CF.
        options: what it does not say; its columns name axes, and may name a variable with ``sigma``.
        variable: that was read.
        observed_kind: what a cell's value is: ``pooled``, its average, by default.
        excluded: as that of `latentpde.io.stations.observation_from_table`.
        origin: the file, for messages.
    """
    sigma = options.columns.get("sigma")
    name = choose_variable(dataset, variable or options.columns.get("value"), (sigma,) if sigma else ())
    axes = find_axes(dataset, name, options.columns)
    array = dataset[name]
    array = array.squeeze([d for d in array.dims if d not in axes.values() and array.sizes[d] == 1], drop=True)
    _check_array(array, name)
    array = _valid(array)
    flat = all(dataset[axes[r]].ndim == 1 if axes[r] in dataset.variables else True for r in "xy")
    on_grid = (
        flat
        and {*array.dims} == {d for r, d in axes.items() if d in array.dims}
        and {axes["x"], axes["y"]} <= {*array.dims}
    )
    coordinates = {role: _coordinate(dataset, axes[role], array) for role in "xy"} if on_grid else {}
    if on_grid and is_degrees(dataset, axes):
        coordinates["x"] = axis_unwrapped(coordinates["x"])
    if not on_grid or not all(regular(c) for c in coordinates.values()):
        return _as_points(dataset, array, axes, options, excluded, origin)
    clock, t = _times(dataset, axes, options, origin)
    frame, grid = frame_and_grid(dataset, axes, coordinates, origin)
    has_time = "t" in axes and axes["t"] in array.dims
    order = tuple({v: k for k, v in axes.items()}[str(d)].replace("t", "time") for d in array.dims)
    frame = replace(
        frame,
        clock=clock,
        value=name,
        value_unit=str(array.attrs.get("units", "")),
        value_attributes={key: str(array.attrs[key]) for key in _KEPT if key in array.attrs},
        order=order if has_time else ("time", *order),
        origin=origin,
    )
    wanted = [*([axes["t"]] if has_time else []), axes["y"], axes["x"]]
    values = _laid_out(array.transpose(*wanted).values, has_time, frame)
    noise = options.noise_std
    if noise is None and sigma is not None:
        noise = _laid_out(_sigma(dataset, sigma, array).transpose(*wanted).values, has_time, frame)
    if t is not None:
        in_order = np.argsort(t, kind="stable")
        _refuse_equal_times(t[in_order], axes["t"], clock)
        t, values = t[in_order], values[in_order]
        noise = noise[in_order] if isinstance(noise, np.ndarray) else noise
    if excluded is not None:
        frame = replace(frame, excluded=excluded(frame))
        out = frame.excluded_cells(grid)
        inside = int(np.isfinite(values[:, out]).sum())
        if inside:
            warnings.warn(
                f"{inside} reading(s) lie in the excluded area and do not count", LatentPDEWarning, stacklevel=3
            )
        values[:, out] = np.nan
    return _observation(frame, grid, values, noise, t, options, observed_kind)


def _observation(frame, grid, values, noise, t, options: TableOptions, kind: str | None) -> Observation:
    if not np.isfinite(values).any():
        raise DataError(f"every value of {frame.value!r} is missing or excluded")
    has_any = np.isfinite(values).any((1, 2))
    if t is not None:  # snapshots without a reading say nothing
        t, values = t[has_any], values[has_any]
        noise = noise[has_any] if isinstance(noise, np.ndarray) else noise
    numbers = np.zeros(1) if t is None else t
    clock = frame.clock or Clock()
    first = float(numbers.min()) if options.start is None else clock.to_number(options.start, "the start")
    if first > numbers.min():
        raise UsageError(f"the start must not be later than the first reading, at {frame.times_to_user(numbers.min())}")
    band = frame.projection is not None and frame.projection.is_band
    observation = Observation.from_arrays(
        values,
        times=numbers - first,
        noise_std=noise,
        grid=grid,
        observed=kind or "pooled",  # pyright: ignore[reportArgumentType]
        domain=options.domain or Domain(x="periodic" if band else "open"),
        family=options.family,
        keep_outliers=options.keep_outliers,
    )
    return replace(observation, frame=frame, start=first, batched=False)


def _check_array(array: xr.DataArray, name: str) -> None:
    if array.dtype.kind not in "biuf":
        raise DataError(f"{name!r} must hold numbers, found {array.dtype}")
    if 0 in array.shape:
        raise DataError(f"{name!r} is empty; its axes have the lengths {dict(array.sizes)}")
    if array.size > MOST_CELLS:
        lengths = ", ".join(f"{axis} {size:,}" for axis, size in array.sizes.items())
        raise DataError(
            f"{name!r} has {array.size:,} cells ({lengths}), and at most {MOST_CELLS:,} can be read; take a part of "
            'it, such as --select "time=2026-05-01/2026-05-03"'
        )


def _valid(array: xr.DataArray) -> xr.DataArray:
    """Without what the CF attributes of valid values rule out."""
    bounds = array.attrs.get("valid_range", (array.attrs.get("valid_min"), array.attrs.get("valid_max")))
    array = array.astype(float)
    try:
        low, high = bounds
        if low is not None:
            array = array.where(~(array < float(low)))
        if high is not None:
            array = array.where(~(array > float(high)))
    except (TypeError, ValueError) as error:
        raise DataError(f"valid_range of {array.name!r} must be two numbers, found {bounds!r}") from error
    return array


def _coordinate(dataset: xr.Dataset, name: str, array: xr.DataArray) -> np.ndarray:
    if name not in dataset.variables:
        raise DataError(
            f"the axis {name!r} has no coordinates, so nobody knows how large a cell is; add them, such as "
            f"dataset.assign_coords({name}=...)"
        )
    values = dataset[name].values
    if values.dtype.kind not in "iuf" or not np.isfinite(values.astype(float)).all():
        raise DataError(f"the coordinate {name!r} must be finite numbers, found {values.dtype} with gaps or text")
    if len(values) < 2:
        raise DataError(f"{array.name!r} has a single entry along {name!r}; a field needs at least two")
    return values.astype(float)


def frame_and_grid(
    dataset: xr.Dataset, axes: Mapping[str, str], coordinates: Mapping[str, np.ndarray], origin: str
) -> tuple[Frame, Grid]:
    """The frame of a grid, and the grid on the plane."""
    y, x = coordinates["y"], coordinates["x"]
    descending = (bool(y[0] > y[-1]), bool(x[0] > x[-1]))
    names = (axes["y"], axes["x"])
    steps = [(c[-1] - c[0]) / (len(c) - 1) for c in (y, x)]
    if is_degrees(dataset, axes):
        if np.abs(y).max() > 90.0 + 1e-6:
            raise DataError(f"{origin}: latitudes in {names[0]!r} go to {np.abs(y).max():g} degrees; are axes swapped?")
        turn = abs(steps[1]) * len(x)
        if turn > 360.0 + abs(steps[1]) / 2:
            raise DataError(
                f"{origin}: longitudes in {names[1]!r} go around more than once: {x.min():g} to {x.max():g}"
            )
        frame = Frame.geographic(
            latitudes=(float(y.min()), float(y.max())),
            longitudes=(float(x.min()), float(x.max())),
            names=names,
            descending=descending,
            is_band=bool(turn > 360.0 - abs(steps[1]) / 2),
        )
    else:
        units = [str(dataset[name].attrs.get("units", "")) for name in names]
        factor = 1.0 if units[0] == units[1] else conversion(*units)
        if factor is None:
            raise DataError(
                f"{origin}: {names[0]!r} is in {units[0]!r} and {names[1]!r} in {units[1]!r}; give both in one unit"
            )
        length = short_unit(units[1], LENGTHS) or units[1]
        frame = Frame(
            y=Axis(names[0], units[0], scale=factor, descending=descending[0]),
            x=Axis(names[1], units[1], descending=descending[1]),
            length_unit=length,
        )
    size = [float(abs(step) * axis.scale) for step, axis in zip(steps, (frame.y, frame.x), strict=True)]
    shape, extent = (len(y), len(x)), (float(size[0] * len(y)), float(size[1] * len(x)))
    low = [float((c.min() - axis.origin) * axis.scale) for c, axis in ((y, frame.y), (x, frame.x))]
    return frame, Grid(shape, extent, (low[0] - size[0] / 2, low[1] - size[1] / 2))


def _laid_out(values: np.ndarray, has_time: bool, frame: Frame) -> np.ndarray:
    """With axes ``(time, y, x)``, upwards."""
    values = np.array(values if has_time else values[None], dtype=float)
    values = values[:, ::-1] if frame.y.descending else values
    return np.ascontiguousarray(values[:, :, ::-1] if frame.x.descending else values)


def _sigma(dataset: xr.Dataset, name: str, array: xr.DataArray) -> xr.DataArray:
    import xarray as xr

    if name not in dataset.variables:
        raise UsageError(
            f"there is no variable {name!r} for sigma; there are: {', '.join(map(str, dataset.data_vars))}"
        )
    extra = {*dataset[name].dims} - {*array.dims}
    sigma = dataset[name].squeeze([d for d in extra if dataset.sizes[d] == 1], drop=True).astype(float)
    if {*sigma.dims} - {*array.dims}:
        raise DataError(f"{name!r} has axes that {array.name!r} has not: {', '.join(map(str, sigma.dims))}")
    sigma = xr.broadcast(sigma, array)[0]
    if not bool((sigma.where(array.notnull()) > 0).where(array.notnull(), True).where(sigma.notnull(), True).all()):
        raise DataError(
            f"{name!r} is a standard deviation, and some of it is not positive; put NaN where it is not known"
        )
    return sigma


def _times(dataset: xr.Dataset, axes, options: TableOptions, origin: str) -> tuple[Clock | None, np.ndarray | None]:
    if "t" not in axes:
        return None, None
    name = axes["t"]
    if name not in dataset.variables:
        raise DataError(f"the axis {name!r} has no coordinates: when was each snapshot taken? Add them")
    values = np.atleast_1d(dataset[name].values)
    if values.dtype.kind == "M":
        if np.isnat(values).any():
            raise DataError(f"{origin}: a date in {name!r} is missing")
        moments = in_nanoseconds(values, lambda row: f"{origin}, {name!r}")
        return clock_of_dates(moments, name, options.time_unit)
    if values.dtype.kind not in "iuf" or not np.isfinite(values.astype(float)).all():
        kind = type(values.flat[0]).__name__
        mend = "convert its calendar to the usual one" if "Datetime" in kind else "they must be dates or numbers"
        raise DataError(f"{origin}: times in {name!r} are {kind}; {mend}")
    unit = options.time_unit or str(dataset[name].attrs.get("units", ""))
    return clock_of_numbers(values.astype(float), name, unit, origin)


def _refuse_equal_times(t: np.ndarray, name: str, clock: Clock | None) -> None:
    same = np.flatnonzero(np.diff(t) <= 0)
    if len(same):
        raise DataError(
            f"{name!r} has {(clock or Clock()).to_user(t[same[0]])} twice; delete or average one of the snapshots"
        )


def _as_points(dataset: xr.Dataset, array, axes, options: TableOptions, excluded, origin: str) -> Observation:
    """A table of what is there, at the places of its cells or stations."""
    import xarray as xr

    names = {role: name for role, name in axes.items() if name in dataset.variables}
    lacking = [axes[r] for r in "xy" if axes[r] not in dataset.variables]
    if lacking:
        raise DataError(f"the axis {lacking[0]!r} has no coordinates, so nobody knows where a reading is; add them")
    extra = [str(d) for d in array.dims if not any(d in dataset[n].dims for n in names.values())]
    if extra:
        raise DataError(
            f"{array.name!r} has an axis {', '.join(extra)} that is neither place nor time; take one entry of it, such "
            f"as --select {extra[0]}={_first_of(dataset, extra[0])}"
        )
    parts = [array, *(dataset[name].reset_coords(drop=True) for name in names.values())]
    spread = xr.broadcast(*parts)
    if spread[0].size > MOST_CELLS:
        raise DataError(
            f"{array.name!r} has {spread[0].size:,} readings, and at most {MOST_ROWS:,} can be read; cut it"
        )
    there = np.isfinite(spread[0].values).ravel()
    if there.sum() > MOST_ROWS:
        raise DataError(
            f"{array.name!r} has {int(there.sum()):,} readings, and at most {MOST_ROWS:,} can be read; cut it"
        )
    columns = {str(array.name): spread[0].values.ravel()[there]}
    units = {str(array.name): str(array.attrs.get("units", ""))}
    for name, part in zip(names.values(), spread[1:], strict=True):
        columns[name] = part.values.ravel()[there]
        units[name] = str(dataset[name].attrs.get("units", ""))
    roles = {"value": str(array.name), **names}
    degrees = is_degrees(dataset, axes)
    for role, unit in (("x", "degrees_east"), ("y", "degrees_north")):
        units[names[role]] = unit if degrees else units[names[role]]
    table = Table(columns=columns, units=units, origin=origin)
    kept = {role: name for role, name in roles.items() if role in ROLES}
    observation = observation_from_table(table, replace(options, columns=kept), excluded)
    assert observation.frame is not None
    attributes = {key: str(array.attrs[key]) for key in _KEPT if key in array.attrs}
    return replace(observation, frame=replace(observation.frame, value_attributes=attributes))


def _first_of(dataset: xr.Dataset, name: str) -> str:
    return str(dataset[name].values[0]) if name in dataset.variables else "0"
