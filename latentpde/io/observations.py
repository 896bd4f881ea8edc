"""Readings from a dataset: what the variables, axes and attributes of ``cases.nc`` mean.

The guide describes the layout. `latentpde.io.netcdf` moves datasets to and from files, and
`latentpde.io.reconstructions` makes the dataset that comes out.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from latentpde.domain import Domain
from latentpde.errors import DataError, LatentPDEWarning
from latentpde.frame import Frame
from latentpde.grid import Grid
from latentpde.io.attributes import Attributes
from latentpde.io.axes import is_degrees
from latentpde.io.gridded import frame_and_grid
from latentpde.io.names import check_names
from latentpde.io.netcdf import open_observed
from latentpde.observation import Observation
from latentpde.pde import families, get_family
from latentpde.validation import shortened

if TYPE_CHECKING:
    import xarray as xr

# Accepted names of the axes of gridded readings; the first is ours.
_Y_NAMES = ("y_obs", "y", "lat", "latitude")
_X_NAMES = ("x_obs", "x", "lon", "longitude")


def observation_from_dataset(
    data: xr.Dataset | xr.DataTree | str | Path,
    *,
    family: str | None = None,
    noise_std: float | None = None,
    times: tuple[float, ...] | None = None,
    extent: tuple[float, float] | None = None,
    observed_kind: str | None = None,
    fine_initial: xr.DataArray | None = None,
    keep_outliers: bool = False,
) -> Observation:
    """Take readings out of a dataset in the layout of ``cases.nc``. Axes are found by name, in any order.

    >>> import numpy as np, xarray as xr
    >>> readings = np.full((4, 6), np.nan)
    >>> readings[1, 2] = 0.3
    >>> data = xr.Dataset({"observed": (("y", "x"), readings)}, attrs={"noise_std": 0.1, "time": 0.25})
    >>> observation = observation_from_dataset(data, extent=(2.0, 3.0))
    >>> observation.grid, observation.values.sum().item()
    (Grid(shape=(4, 6), extent=(2.0, 3.0), origin=(0.0, 0.0)), 0.3)

    The arguments win over what the dataset says.

    Args:
        data: a dataset, or a tree whose root is one, or the path of a NetCDF file.
        family: name of the PDE family. Where the data name another, what they know of the coefficients and the source
            is of another PDE and does not count.
        noise_std: standard deviation of the readings' noise, in the field's unit; where nobody says it, it is to be
            inferred, with a warning.
        times: PDE time of each snapshot, counted from the initial state.
        extent: ``(height, width)`` of the rectangle; where neither this nor an attribute says it, axes of longitude and
            latitude become lengths in km.
        observed_kind: one of `latentpde.observation.Observed`.
        fine_initial: a finer initial state of the same cases on the same rectangle; a dataset holds none by itself.
        keep_outliers: as that of `latentpde.Observation.from_arrays`.
    """
    import xarray as xr

    data = open_observed(data) if isinstance(data, str | Path) else data
    if not isinstance(data, xr.Dataset | xr.DataTree):
        raise DataError(
            "expected an Observation, a dataset in the layout of cases.nc, or the path of a NetCDF file; got "
            f"{shortened(data)}"
        )
    dataset = _ascending(data.to_dataset() if isinstance(data, xr.DataTree) else data)
    if "observed" not in dataset:
        raise DataError(f"expected a variable 'observed' with the readings; found: {_names(dataset)}")
    observed, attributes = dataset["observed"], Attributes.of(dataset.attrs)
    if 0 in observed.shape:
        raise DataError(f"'observed' is empty; its axes have the lengths {dict(observed.sizes)}")
    points, batched = "sensor" in observed.dims, "case" in observed.dims
    frame = None
    if extent is None and attributes.extent is None:
        dataset, frame = _on_plane(dataset)
        observed = dataset["observed"]
    overrides = {"family": family, "noise_std": noise_std, "time": times, "extent": extent}
    overrides |= {"observed_kind": observed_kind, "initial": fine_initial}
    check_names(
        dataset, () if points else _axes(observed), [name for name, value in overrides.items() if value is not None]
    )
    initial, grid = _initial_and_grid(dataset, observed, points, extent, attributes.extent)
    kind = observed_kind or attributes.observed_kind or ("point" if points else "lowres-solve")
    known = _known(attributes, family)
    when = _times(dataset, observed, known["family"], times, attributes.time)
    noise = _first(noise_std, dataset.get("noise_std"), attributes.noise_std)
    if noise is None:
        warnings.warn(
            "the data do not say how noisy they are: the noise is inferred; add an attribute noise_std, or pass "
            "--noise-std, where it is known",
            LatentPDEWarning,
            stacklevel=3,
        )

    # the full layout, so that masks and noise that lack an axis are repeated along it
    reading_axes = ("sensor",) if points else _axes(observed)
    sizes = {axis: observed.sizes.get(axis, 1) for axis in ("case", "time", *reading_axes)}

    def laid_out(array: xr.DataArray) -> np.ndarray:
        values = _numbers(array, sizes)
        return values if batched else values[0] if len(when) > 1 else values[0, 0]

    positions = mask = None
    if points:
        missing = [name for name in ("sensor_y", "sensor_x") if name not in dataset]
        if missing:
            raise DataError(f"readings at sensors need {' and '.join(missing)}; found: {_names(dataset)}")
        where = {axis: sizes[axis] for axis in (("case",) * batched + ("sensor",))}
        positions = np.stack([_numbers(dataset[name], where) for name in ("sensor_y", "sensor_x")], axis=-1)
    if "mask" in dataset:
        numbers = laid_out(dataset["mask"])
        mask = (numbers != 0) & ~np.isnan(numbers)
    observation = Observation.from_arrays(
        laid_out(observed),
        initial,
        times=when,
        noise_std=laid_out(noise) if isinstance(noise, xr.DataArray) else noise,
        mask=mask,
        grid=grid,
        positions=positions,
        observed=kind,  # pyright: ignore[reportArgumentType]
        fine_initial=None if fine_initial is None else _fine_initial(fine_initial, observed, grid),
        initial_velocity=_velocity(dataset, observed),
        domain=attributes.settings.domain or _around_the_globe(frame) or _simulated(attributes),
        settings=attributes.settings,
        keep_outliers=keep_outliers,
        **known,
    )
    return observation if frame is None else replace(observation, frame=frame)


def _initial_and_grid(dataset, observed, points: bool, extent, stated_extent) -> tuple[Any, Grid]:
    array = dataset.get("initial")
    like = array if array is not None else observed
    if points and array is None:
        raise DataError("readings at sensors need an 'initial' state on a grid, which also fixes the domain")
    axes = _axes(like)
    sizes = {name: like.sizes[name] for name in axes}
    if 0 in sizes.values():
        raise DataError(f"{like.name!r} is empty; its axes have the lengths {dict(like.sizes)}")
    spans = [_span(dataset, name) for name in axes]
    if not points:
        for name, other, span in zip(axes, _axes(observed), spans, strict=True):
            if span and (others := _span(dataset, other)) and not np.allclose(span, others):
                raise DataError(f"'observed' along {other!r} and 'initial' along {name!r} must lie on the same cells")
    grid = Grid(tuple(sizes.values()), *_rectangle(spans, extent, stated_extent))
    if array is None:
        return None, grid
    return _numbers(array, {**{d: observed.sizes[d] for d in ("case",) if d in observed.dims}, **sizes}), grid


def _velocity(dataset: xr.Dataset, observed: xr.DataArray) -> np.ndarray | None:
    array = dataset.get("initial_velocity")
    if array is None:
        return None
    cases = {"case": observed.sizes["case"]} if "case" in observed.dims else {}
    return _numbers(array, {**cases, **{name: array.sizes[name] for name in _axes(array)}})


def _on_plane(dataset: xr.Dataset) -> tuple[xr.Dataset, Frame | None]:
    """The same in km where the axes are longitude and latitude, with the frame that leads back."""
    gridded = dataset["initial"] if "initial" in dataset else dataset["observed"]
    names = [next((name for name in some if name in gridded.dims), "") for some in (_Y_NAMES, _X_NAMES)]
    if any(name not in dataset.coords or dataset.sizes[name] < 2 for name in names):
        return dataset, None
    axes = dict(zip("yx", names, strict=True))
    coordinates = {role: _numbers(dataset[name], {name: dataset.sizes[name]}) for role, name in axes.items()}
    if not is_degrees(dataset, axes):
        return dataset, None
    frame, _ = frame_and_grid(dataset, axes, coordinates, "the data")
    dataset = dataset.assign_coords(
        {name: (name, axis.to_plane(dataset[name])) for name, axis in zip(names, (frame.y, frame.x), strict=True)}
    )
    for name, axis in (("sensor_y", frame.y), ("sensor_x", frame.x)):
        if name in dataset:
            dataset[name] = dataset[name].copy(data=axis.to_plane(dataset[name]))
    return dataset, frame


def _around_the_globe(frame: Frame | None) -> Domain | None:
    """Longitudes all around the globe close on themselves; of other axes nothing is known."""
    is_band = frame is not None and frame.projection is not None and frame.projection.is_band
    return Domain(x="periodic") if is_band else None


def _simulated(attributes: Attributes) -> Domain | None:
    """The torus of the simulator, whose files name a regime; those that it wrote first do not name their edges."""
    return Domain.periodic() if attributes.regime else None


def _fine_initial(array: xr.DataArray, observed, grid: Grid) -> np.ndarray:
    dataset = _ascending(array.to_dataset(name="fine_initial"))
    array, axes = dataset["fine_initial"], _axes(dataset["fine_initial"])
    for name, start, length in zip(axes, grid.origin, grid.extent, strict=True):
        span = _span(dataset, name)
        if span is not None and not np.allclose(span, (start, length), rtol=1e-3, atol=1e-3 * length):
            raise DataError(
                f"the fine initial state runs from {span[0]:g} to {sum(span):g} along {name!r}, the coarse grid from "
                f"{start:g} to {start + length:g}: they must cover the same rectangle"
            )
    cases = {"case": observed.sizes["case"]} if "case" in observed.dims else {}
    if "case" in array.dims and array.sizes["case"] != cases.get("case", 0):
        raise DataError(
            f"the fine initial state has {array.sizes['case']} case(s), the readings "
            f"{cases.get('case', 'no case axis')}: they must agree"
        )
    return _numbers(array, {**cases, **{name: array.sizes[name] for name in axes}})


def _rectangle(spans, extent, stated) -> tuple[tuple[float, float], tuple[float, float]]:
    """Extent and origin, from the coordinates or, where there are none, the attribute; the unit square otherwise."""
    height, width = (
        length if span is None else span[1] for span, length in zip(spans, stated or (1.0, 1.0), strict=True)
    )
    if extent is None and stated is not None and not np.allclose((height, width), stated, rtol=1e-3, atol=0):
        raise DataError(
            f"the coordinates span {height:g} along y and {width:g} along x, the attribute extent says "
            f"{stated[0]:g} and {stated[1]:g}; delete or correct the attribute"
        )
    start_y, start_x = (0.0 if span is None else span[0] for span in spans)
    return extent or (height, width), (start_y, start_x)


def _span(dataset, name: str) -> tuple[float, float] | None:
    """Start and length of an axis, from its coordinate where there is one: cell centres, evenly spaced."""
    if name not in dataset.coords or dataset.sizes[name] < 2:
        return None
    centres = _numbers(dataset[name], {name: dataset.sizes[name]})
    steps = np.diff(centres)
    if not np.isfinite(centres).all() or steps[0] <= 0 or not np.allclose(steps, steps[0], rtol=1e-4, atol=0):
        raise DataError(
            f"the coordinate {name!r} must be evenly spaced, found steps from {steps.min():g} to {steps.max():g}; "
            "regrid the data"
        )
    step = (centres[-1] - centres[0]) / (len(centres) - 1)
    start, length = float(centres[0] - step / 2), float(step * len(centres))
    return (0.0 if abs(start) < 1e-9 * length else start), length


def _ascending(dataset: xr.Dataset) -> xr.Dataset:
    """The same with axes that run downwards, as latitudes often do, turned round."""
    named = [name for name in (*_Y_NAMES, *_X_NAMES) if name in dataset.coords and dataset.sizes.get(name, 0) > 1]
    downwards = [name for name in named if dataset[name].dtype.kind in "iuf" and dataset[name][0] > dataset[name][-1]]
    return dataset.isel({name: slice(None, None, -1) for name in downwards})


def _numbers(array: xr.DataArray, sizes: dict[str, int]) -> np.ndarray:
    """Float64 values with exactly these axes, in this order; repeated along axes that the array lacks."""
    extra = [str(name) for name in array.dims if name not in sizes]
    if extra:
        raise DataError(
            f"{array.name!r} has an axis {', '.join(extra)} that means nothing here; "
            f"expected {', '.join(sizes)}: select one entry of it, or rename it"
        )
    if array.dtype.kind not in "biuf":
        raise DataError(f"{array.name!r} must hold real numbers, found {array.dtype}")
    return np.array(array.variable.set_dims(sizes).values, dtype=float)


def _known(attributes: Attributes, family: str | None) -> dict[str, Any]:
    """What the attributes say about the PDE and the readings."""
    named = attributes.family or None
    if family is None and named is not None and named not in families:
        raise DataError(
            f"the data name an unknown PDE family {named!r}; correct their attribute family, or pass --pde with one "
            f"of: {', '.join(families.names())}"
        )
    chosen = None if family is None and named is None else get_family(family or named or "")
    known: dict[str, Any] = {
        "family": None if chosen is None else chosen.name,
        "regime": attributes.regime or None,
        "pooling": attributes.pooling,
    }
    if chosen is None or named is None or named not in families or get_family(named) is not chosen:
        return known
    known |= {"source_prior_std": attributes.source_prior_std, "num_modes": attributes.num_modes}
    if (bounds := attributes.coefficient_bounds) is not None:
        if len(bounds) != 2 * len(chosen.coefficients):
            raise DataError(
                f"the attribute coefficient_bounds must be lower and upper bounds of "
                f"{', '.join(chosen.coefficient_names)}, one after the other; found {bounds}"
            )
        import torch

        known["bounds"] = torch.tensor(bounds, dtype=torch.float64).reshape(-1, 2)
    return known


def _axes(array) -> tuple[str, str]:
    found = []
    for names in (_Y_NAMES, _X_NAMES):
        match = [name for name in names if name in array.dims]
        if not match:
            raise DataError(
                f"expected an axis named one of {', '.join(names)}; "
                f"{array.name!r} has {', '.join(map(str, array.dims)) or 'none'}: rename it"
            )
        found.append(match[0])
    return found[0], found[1]


def _times(dataset, observed, family: str | None, given, stated: list[float] | None) -> np.ndarray:
    coordinate = dataset["time"] if "time" in dataset.coords else None
    if given is None and coordinate is not None and coordinate.dims == ("time",) and "time" in observed.dims:
        if coordinate.dtype.kind in "mM":
            raise DataError("times must be numbers in the PDE's unit of time since the initial state, not dates")
        given = _numbers(coordinate, {"time": coordinate.size})
    if given is None and coordinate is not None and coordinate.ndim == 0 and coordinate.dtype.kind in "iuf":
        given = coordinate.values  # what isel(time=...) leaves
    given = stated if given is None else given
    if given is None and family is None:
        raise DataError("the data do not say when they were taken; add an attribute time, or pass --time")
    if given is None:
        chosen = get_family(family or "")
        given = chosen.default_time
        if chosen.order:
            warnings.warn(
                f"the data do not say when they were taken: time {given:g} is assumed, the default of {chosen.name}; "
                "add an attribute time, or pass --time",
                LatentPDEWarning,
                stacklevel=4,
            )
    times = np.atleast_1d(np.array(given, dtype=float))
    num_snapshots = observed.sizes.get("time", 1)
    if times.shape != (num_snapshots,):
        raise DataError(
            f"expected one time for each of the {num_snapshots} snapshot(s) in 'observed', found {times.tolist()}"
        )
    return times


def _first(*candidates):
    return next((c for c in candidates if c is not None), None)


def _names(dataset) -> str:
    return ", ".join(map(str, dataset.data_vars)) or "no variables"
