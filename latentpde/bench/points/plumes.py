"""Plumes over a landscape, from a finite-difference code on a domain much larger than the one observed.

A uniform wind carries a smooth background across the observed domain, and steady sources add to it. Nothing stops at
the edges: the domain that is solved reaches upwind as far as the wind comes from, and to all sides as far as diffusion
does. Readings are those of stations that report hourly, with noise and with gaps; what is asked for is the field over
the observed domain at the last hour. Lengths are in km and times in hours.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from scipy.ndimage import gaussian_filter, map_coordinates

from latentpde.bench.points.transport import transport
from latentpde.scores.points.task import Readings, Task

EXTENT = (25.0, 40.0)  # of the observed domain along y and x, km
HOURS = np.arange(6.0)
NUM_STATIONS = 36
NOISE_STD = 0.4
MISSING = 0.1  # share of the readings
SHAPE = (40, 64)  # cells at whose centres the truth is asked for
SPACING = 0.25  # of the cells that are solved on, km
_SEED = 2005  # of the first case


@dataclass(frozen=True, eq=False)
class Plumes:
    """One case: the coefficients, and the state and source on the large domain.

    Args:
        velocity: wind along y and x, km/h.
        diffusivity: km²/h.
        origin: corner of the large domain as ``(y, x)``, km; that of the observed one is 0.
        initial: the state at time 0 on the large domain.
        source: per hour, likewise.
    """

    velocity: tuple[float, float]
    diffusivity: float
    origin: tuple[float, float]
    initial: Float[np.ndarray, "y x"]
    source: Float[np.ndarray, "y x"]

    def fields(self, spacing: float = SPACING) -> Float[np.ndarray, "time y x"]:
        """The field on the large domain at every hour."""
        return transport(
            self.initial,
            self.source,
            HOURS,
            spacing=spacing,
            velocity=self.velocity,
            diffusivity=self.diffusivity,
        )


def draw_plumes(generator: np.random.Generator, spacing: float = SPACING) -> Plumes:
    """A case at random: wind of 3 to 8 km/h, diffusivity of 1 to 3 km²/h, four to eight sources.

    The state is white noise smoothed over 2 to 4 km, with a standard deviation of 3 to 5 about a level of 5 to 10. A
    source is a Gaussian spot of 1 to 2.5 km that adds 5 to 15 units an hour at its centre.

    Args:
        generator: of random numbers.
        spacing: of the cells, km.
    """
    speed, direction = generator.uniform(3, 8), generator.uniform(0, 2 * math.pi)
    velocity = (speed * math.sin(direction), speed * math.cos(direction))
    diffusivity = generator.uniform(1, 3)
    spread = 5 * math.sqrt(2 * diffusivity * HOURS[-1])
    reach = [(spread + max(v, 0) * HOURS[-1], spread + max(-v, 0) * HOURS[-1]) for v in velocity]
    shape = [math.ceil((low + length + high) / spacing) for length, (low, high) in zip(EXTENT, reach, strict=True)]
    origin = (-reach[0][0], -reach[1][0])
    smoothing, level, std = generator.uniform(2, 4), generator.uniform(5, 10), generator.uniform(3, 5)
    noise = gaussian_filter(generator.standard_normal(shape), smoothing / spacing, mode="wrap")
    initial = level + noise * std * 2 * math.sqrt(math.pi) * smoothing / spacing
    y, x = (corner + (np.arange(n) + 0.5) * spacing for corner, n in zip(origin, shape, strict=True))
    source = np.zeros(shape)
    for _ in range(generator.integers(4, 9)):
        centre = [generator.uniform(-10, length + 10) for length in EXTENT]
        width, rate = generator.uniform(1, 2.5), generator.uniform(5, 15)
        source += rate * np.exp(-((y[:, None] - centre[0]) ** 2 + (x - centre[1]) ** 2) / (2 * width**2))
    return Plumes(velocity, diffusivity, origin, initial, source)


def plume_task(index: int, spacing: float = SPACING) -> Task:
    """One case as a method sees it, with the truth at the last hour beside it.

    Args:
        index: of the case, from 0; the same index gives the same case.
        spacing: of the cells that are solved on, km.
    """
    generator = np.random.default_rng([_SEED, index])
    case = draw_plumes(generator, spacing)
    fields = case.fields(spacing)
    stations = generator.uniform(0, EXTENT, (NUM_STATIONS, 2))
    hours, names = (a.ravel() for a in np.meshgrid(np.arange(len(HOURS)), np.arange(NUM_STATIONS), indexing="ij"))
    places = stations[names]
    values = np.concatenate([interpolate(field, stations, case.origin, spacing) for field in fields])
    values += NOISE_STD * generator.standard_normal(len(values))
    kept = generator.random(len(values)) >= MISSING
    cells = [length * (np.arange(n) + 0.5) / n for length, n in zip(EXTENT, SHAPE, strict=True)]
    grid = np.stack(np.meshgrid(*cells, indexing="ij"), -1).reshape(-1, 2)
    truth = interpolate(fields[-1], grid, case.origin, spacing)
    return Task(
        f"plumes {index}",
        Readings(places, HOURS[hours], values, names)[kept],
        Readings(grid, np.full(len(grid), HOURS[-1]), truth, np.arange(len(grid))),
        (0.0, 0.0),
        EXTENT,
        noisy=False,
        truth={"vx": case.velocity[1], "vy": case.velocity[0], "kappa": case.diffusivity},
    )


def interpolate(
    field: Float[np.ndarray, "y x"], points: Float[np.ndarray, "point 2"], origin: tuple[float, float], spacing: float
) -> Float[np.ndarray, " point"]:
    """A field of cell centres at any places, by cubic splines."""
    return map_coordinates(field, ((points - origin) / spacing - 0.5).T, order=3, mode="nearest")
