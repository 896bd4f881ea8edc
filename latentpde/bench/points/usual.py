"""Data as users bring them, of several sizes, out of one kind of field: what their reconstruction costs is measured.

A tracer that drifts through the unit square by about half its side, out of a state and a source that go on beyond its
edges, about a level that nobody knows, read with noise. `latentpde.bench.points.prior_draws` has the field in closed
form, anywhere at any time.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import latentpde as lp
from latentpde.bench.points.plumes import plume_task
from latentpde.bench.points.prior_draws import Torus

FAMILY = "advection_diffusion"
_SEED = 1717
_LENGTH = 3  # of the torus, in sides of what is read
_LEVEL, _NOISE_STD, _DIFFUSIVITY = 10.0, 0.3, 0.02
_STATE, _SOURCE = (3.0, 0.4), (1.5, 0.4)  # standard deviation and length of each
_SPEEDS = (0.3, 0.7)  # along either axis
_CELLS = 32  # of a rectangle around stations, along its shorter side


def at_common_times(index: int) -> lp.Observation:
    """100 readings: 34 stations at three times, two readings missing.

    Args:
        index: of the case, from 0.
    """
    field, generator = _field(index)
    stations = generator.uniform(0, 1, (34, 2))
    return _table(field, np.tile(stations, (3, 1))[:100], np.repeat([0.0, 0.5, 1.0], 34)[:100], generator)


def at_own_times(index: int) -> lp.Observation:
    """100 readings, each at a place and a time of its own, as those of a ship are.

    Args:
        index: of the case, from 0.
    """
    field, generator = _field(index)
    return _table(field, generator.uniform(0, 1, (100, 2)), generator.uniform(0, 1, 100), generator)


def stations(index: int, edges: str = "open") -> lp.Observation:
    """36 stations at six times, a tenth missing: a case of `latentpde.bench.points.plumes`.

    Args:
        index: of the case, from 0.
        edges: of the domain.
    """
    task = plume_task(index)
    cell = min(task.extent) / _CELLS
    grid = lp.Grid((round(task.extent[0] / cell), round(task.extent[1] / cell)), task.extent, task.origin)
    (y, x), t = task.readings.points.T, task.readings.times
    return lp.Observation.from_table(task.readings.values, y=y, x=x, t=t, grid=grid, domain=lp.Domain(y=edges, x=edges))


def snapshots(index: int, shape: tuple[int, int], share: float) -> lp.Observation:
    """Three snapshots of cells with gaps, and no initial state.

    Args:
        index: of the case, from 0.
        shape: cells along y and x; the longer side has length one.
        share: of the cells that are read.
    """
    field, generator = _field(index)
    grid = lp.Grid(shape, (shape[0] / max(shape), shape[1] / max(shape)))
    centres = np.stack(np.meshgrid(*(axis.numpy() for axis in grid.coordinates()), indexing="ij"), -1).reshape(-1, 2)
    times = [0.3, 0.6, 1.0]
    values = np.stack([field(centres, time).reshape(shape) for time in times])
    values += _NOISE_STD * generator.standard_normal(values.shape)
    values[generator.random(values.shape) > share] = np.nan
    return lp.Observation.from_arrays(values, times=times, noise_std=None, grid=grid)


def _field(index: int) -> tuple[Callable[[np.ndarray, float], np.ndarray], np.random.Generator]:
    """A field as a function of places and a time, and a generator for what is read of it."""
    generator, torus = np.random.default_rng([_SEED, index]), Torus(_LENGTH)
    velocity = generator.uniform(*_SPEEDS, 2) * generator.choice([-1, 1], 2)
    state, source = torus.draw(*_STATE, generator), torus.draw(*_SOURCE, generator)

    def field(places: np.ndarray, time: float) -> np.ndarray:
        moved = torus.evolved(state, source, time, (float(velocity[0]), float(velocity[1])), _DIFFUSIVITY)
        return _LEVEL + torus.at(moved, places)

    return field, generator


def _table(
    field: Callable[[np.ndarray, float], np.ndarray], places: np.ndarray, times: np.ndarray, generator
) -> lp.Observation:
    values = np.concatenate([field(place[None], time) for place, time in zip(places, times.tolist(), strict=True)])
    values += _NOISE_STD * generator.standard_normal(len(values))
    grid = lp.Grid((_CELLS, _CELLS))
    return lp.Observation.from_table(values, y=places[:, 0], x=places[:, 1], t=times, grid=grid)
