"""A cloud that drifts out of the unit square, in closed form: what open edges are for."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

import latentpde as lp
from latentpde.posterior import Posterior

WIND, DIFFUSIVITY = np.array([0.1, 0.7]), 0.004  # (y, x)
NOISE_STD, NUM_STATIONS = 0.03, 30
TIMES, ASKED = np.linspace(0, 1, 4), (0.33, 0.67, 1.0)
NEAR = 0.1  # of the edges
_NUM_CELLS = 24
_VARIANCE, _HEIGHT, _START = 0.02, 3.0, np.array([0.5, 0.35])


def blob(points: Float[np.ndarray, "*point 2"], time: float | np.ndarray) -> Float[np.ndarray, "*point"]:
    """The cloud at some places, each at its time."""
    variance = _VARIANCE + 2 * DIFFUSIVITY * time
    away = points - _START - WIND * np.asarray(time)[..., None]
    return _HEIGHT * _VARIANCE / variance * np.exp(-(away**2).sum(-1) / (2 * variance))


@dataclass(frozen=True, eq=False)
class Reconstructed:
    """The cloud as a method sees it.

    Args:
        posterior: of the readings.
        near, inside: root mean square errors near the edges, and elsewhere, at some times after the start.
    """

    posterior: Posterior
    near: float
    inside: float


def reconstructed(seed: int, edges: str) -> Reconstructed:
    """The cloud from 30 stations that read it four times while it leaves.

    Args:
        seed: of stations and noise.
        edges: ``open`` or ``periodic``.
    """
    rng = np.random.default_rng(seed)
    places, times = np.tile(rng.random((NUM_STATIONS, 2)), (len(TIMES), 1)), np.repeat(TIMES, NUM_STATIONS)
    values = blob(places, times) + NOISE_STD * rng.standard_normal(len(times))
    (y, x), grid = places.T, lp.Grid((_NUM_CELLS, _NUM_CELLS))
    observation = lp.Observation.from_table(values, y=y, x=x, t=times, sigma=NOISE_STD, grid=grid)
    posterior = lp.reconstruct(observation, "advection_diffusion", domain=edges, source="none")
    centres = (np.arange(_NUM_CELLS) + 0.5) / _NUM_CELLS
    points = np.stack(np.meshgrid(centres, centres, indexing="ij"), -1).reshape(-1, 2)
    errors = np.stack([posterior.at(points, time)["mean"].values - blob(points, time) for time in ASKED])
    near = np.minimum(points, 1 - points).min(1) < NEAR
    return Reconstructed(posterior, *(float(np.sqrt((errors[:, here] ** 2).mean())) for here in (near, ~near)))
