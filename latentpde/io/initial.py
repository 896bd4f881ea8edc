"""An initial state in a file of its own, beside a table of stations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch

from latentpde.errors import DataError
from latentpde.frame import Axis, Frame
from latentpde.grid import Grid
from latentpde.io.axes import choose_variable, find_axes, is_degrees, regular
from latentpde.io.places import axis_unwrapped
from latentpde.observation import Observation
from latentpde.observation.listing import Listing
from latentpde.quantities import conversion

if TYPE_CHECKING:
    import xarray as xr


def with_initial(
    observation: Observation, state: str | Path | xr.DataArray, open_dataset: Callable[[str | Path], xr.Dataset]
) -> Observation:
    """Readings of a table together with the state that the field starts from, whose cells fix the rectangle.

    Args:
        observation: of a table, one case; its first time, or its ``start``, is that of the state.
        state: a file with a variable ``initial``, or with one variable alone, in the table's coordinates; or the
            variable itself. NaN where it is not known.
        open_dataset: reads a file.
    """
    frame = observation.frame or Frame()
    initial, grid = _on_grid(state, frame, open_dataset)
    if observation.groups is not None and len(observation.groups[observation.mask].unique()) > 1:
        raise DataError("readings in groups and an initial state cannot be taken together yet; give sigma instead")
    listing = Listing.of(observation)
    first, station = np.unique(listing.stations, return_index=True)[1], listing.stations
    times, snapshot = np.unique(listing.times, return_inverse=True)
    if len(set(zip(snapshot.tolist(), station.tolist(), strict=True))) < len(listing):
        raise DataError(
            "a place was read twice at one time; beside an initial state readings have one value there: average them"
        )
    values = np.full((len(times), len(first)), np.nan)
    noise = np.ones(values.shape)
    values[snapshot, station], noise[snapshot, station] = listing.values, listing.noise_std
    found = Observation.from_arrays(
        values,
        initial,
        times=times - observation.start,
        noise_std=None,
        grid=grid,
        positions=listing.points[first],
        domain=observation.domain,
        family=observation.family,
        settings=observation.settings,
        keep_outliers=True,  # the readings were looked at
    )
    places = None if listing.names is None else tuple(listing.names[i] for i in first)
    return replace(
        found,
        noise_std=torch.from_numpy(noise)[None],
        frame=replace(frame, places=places),
        start=observation.start,
        batched=False,
    )


def _on_grid(state, frame: Frame, open_dataset) -> tuple[np.ndarray, Grid]:
    """The state with axes ``(y, x)``, upwards, and its cells on the plane of a frame."""
    where = str(state) if isinstance(state, str | Path) else "the initial state"
    dataset = open_dataset(state) if isinstance(state, str | Path) else state.to_dataset(name="initial")
    name = "initial" if "initial" in dataset else choose_variable(dataset, None)
    axes = find_axes(dataset, name, {})
    array = dataset[name].squeeze([d for d in dataset[name].dims if dataset.sizes[d] == 1], drop=True)
    if {*array.dims} != {axes["y"], axes["x"]}:
        raise DataError(
            f"{where}: {name!r} must have the axes {axes['y']} and {axes['x']} alone; it has "
            f"{', '.join(map(str, array.dims))}"
        )
    if is_degrees(dataset, axes) != (frame.projection is not None):
        raise DataError(f"{where} and the table must both be in degrees, or both in lengths")
    y, x = (_centres(dataset[axes[role]], axis, where) for role, axis in (("y", frame.y), ("x", frame.x)))
    rows, cols = np.argsort(y), np.argsort(x)
    y, x = y[rows], x[cols]
    size = [(c[-1] - c[0]) / (len(c) - 1) for c in (y, x)]
    extent = float(size[0] * len(y)), float(size[1] * len(x))
    grid = Grid((len(y), len(x)), extent, (float(y[0] - size[0] / 2), float(x[0] - size[1] / 2)))
    return array.transpose(axes["y"], axes["x"]).values.astype(float)[np.ix_(rows, cols)], grid


def _centres(coordinate: xr.DataArray, axis: Axis, where: str) -> np.ndarray:
    """Of the cells along an axis, on the plane."""
    values, unit = np.asarray(coordinate.values), str(coordinate.attrs.get("units", ""))
    numbers = values.astype(float) if values.dtype.kind in "iuf" and values.ndim == 1 else np.zeros(0)
    numbers = axis_unwrapped(numbers) if axis.period is not None else numbers
    if not regular(numbers):
        raise DataError(f"{where}: {coordinate.name!r} must be evenly spaced numbers; regrid the state")
    is_length = bool(unit and axis.unit) and not axis.unit.startswith("degrees")
    factor = conversion(unit, axis.unit) if is_length and unit != axis.unit else 1.0
    if factor is None:
        raise DataError(f"{where}: {coordinate.name!r} is in {unit}, and the table in {axis.unit}")
    return axis.to_plane(numbers * factor)
