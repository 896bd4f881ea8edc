r"""Cases from the prior itself, for simulation-based calibration of what is inferred from a table of readings.

Advection-diffusion on a torus, solved mode by mode in closed form. State and source are Matérn fields of smoothness
3/2, with the power

.. math:: E|\hat u_k|^2 = \sigma^2 \, \frac{4 \pi \nu \, (2 \nu / \ell^2)^\nu}{(2 \nu / \ell^2 + |k|^2)^{\nu + 1}} \,
          \frac{1}{\text{area}}

in each mode. Coefficients are uniform between their bounds, levels uniform in their logarithm. The observed domain is
the unit square: all of the torus, or for open edges the middle of one three times as long.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Complex, Float

from latentpde.scores.points.task import Readings, Task

BOUNDS = {"vx": (-0.8, 0.8), "vy": (-0.8, 0.8), "kappa": (0.002, 0.03)}
LEVELS = {
    "noise_std": (0.05, 0.5),
    "initial_prior_std": (0.5, 2.0),
    "initial_prior_length": (0.2, 0.6),
    "source_prior_std": (0.5, 2.0),
    "source_prior_length": (0.2, 0.6),
}
SMOOTHNESS = 1.5
NUM_STATIONS, TIMES = 10, np.linspace(0.0, 1.0, 3)
NUM_CELLS = 8  # along each side of the square at whose centres the field is asked for
_HIGHEST = 12  # mode number of the unit square; others have as many modes for their length
_OPEN_LENGTH = 3
_SEED = 256


@dataclass(frozen=True, eq=False)
class PriorCase:
    """One case with all that was drawn.

    Args:
        task: what is given and asked; its truth holds the coefficients.
        levels: by name.
        trend: the constant that was added to the field, and its slopes along y and x about the middle.
    """

    task: Task
    levels: dict[str, float]
    trend: tuple[float, float, float]


def prior_case(index: int, *, open_edges: bool = False, constant: bool = False, slopes: bool = False) -> PriorCase:
    """A case from the prior; the same index gives the same coefficients, levels and stations in every setting.

    Args:
        index: from 0.
        open_edges: whether the torus is larger than what is observed.
        constant: whether something is added to the field.
        slopes: whether slopes are, too.
    """
    generator = np.random.default_rng([_SEED, index])
    theta = {name: float(generator.uniform(*bounds)) for name, bounds in BOUNDS.items()}
    levels = {name: float(np.exp(generator.uniform(*np.log(bounds)))) for name, bounds in LEVELS.items()}
    stations, added = generator.uniform(0, 1, (NUM_STATIONS, 2)), generator.normal(0, 3, 3) * (constant, slopes, slopes)
    noise = levels["noise_std"] * generator.standard_normal(NUM_STATIONS * len(TIMES))
    torus = Torus(_OPEN_LENGTH if open_edges else 1)
    state = torus.draw(levels["initial_prior_std"], levels["initial_prior_length"], generator)
    source = torus.draw(levels["source_prior_std"], levels["source_prior_length"], generator)

    def field(points: np.ndarray, time: float) -> np.ndarray:
        moved = torus.evolved(state, source, time, (theta["vy"], theta["vx"]), theta["kappa"])
        return torus.at(moved, points) + added[0] + (points - 0.5) @ added[1:]

    centres = (np.arange(NUM_CELLS) + 0.5) / NUM_CELLS
    grid = np.stack(np.meshgrid(centres, centres, indexing="ij"), -1).reshape(-1, 2)
    readings = Readings(
        np.tile(stations, (len(TIMES), 1)),
        np.repeat(TIMES, NUM_STATIONS),
        np.concatenate([field(stations, time) for time in TIMES]) + noise,
        np.tile(np.arange(NUM_STATIONS), len(TIMES)),
    )
    last = float(TIMES[-1])
    asked = Readings(grid, np.full(len(grid), last), field(grid, last), np.arange(len(grid)))
    task = Task(f"prior {index}", readings, asked, (0.0, 0.0), (1.0, 1.0), noisy=False, truth=theta)
    return PriorCase(task, levels, (float(added[0]), float(added[1]), float(added[2])))


class Torus:
    """A square that closes on itself; fields are sums over one of each pair of conjugate modes."""

    def __init__(self, length: int):
        highest = _HIGHEST * length
        rows, columns = np.meshgrid(np.arange(-highest, highest + 1), np.arange(highest + 1), indexing="ij")
        half = (columns > 0) | (rows >= 0)
        self.length = length
        self.k: Float[np.ndarray, "mode 2"] = 2 * np.pi / length * np.stack([rows[half], columns[half]], -1)
        self.alone = (self.k == 0).all(-1)  # the mean has no conjugate

    def draw(self, std: float, scale: float, generator: np.random.Generator) -> Complex[np.ndarray, " mode"]:
        """Coefficients of a Matérn field."""
        nu, inverse = SMOOTHNESS, 2 * SMOOTHNESS / scale**2
        density = 4 * np.pi * nu * inverse**nu / (inverse + (self.k**2).sum(-1)) ** (nu + 1)
        real, imaginary = generator.standard_normal((2, len(self.k)))
        unit = np.where(self.alone, real + 0j, (real + 1j * imaginary) / np.sqrt(2))
        return std * np.sqrt(density) / self.length * unit

    def evolved(
        self,
        state: Complex[np.ndarray, " mode"],
        source: Complex[np.ndarray, " mode"],
        time: float,
        velocity: tuple[float, float],
        diffusivity: float,
    ) -> Complex[np.ndarray, " mode"]:
        """Coefficients some time later."""
        rate = -diffusivity * (self.k**2).sum(-1) - 1j * (self.k @ np.array(velocity))
        gain = np.where(self.alone, time, np.expm1(rate * time) / np.where(self.alone, 1, rate))
        return np.exp(rate * time) * state + gain * source

    def at(
        self, coefficients: Complex[np.ndarray, " mode"], points: Float[np.ndarray, "point 2"]
    ) -> Float[np.ndarray, " point"]:
        """The field at places of the observed square, which lies in the middle."""
        waves = np.exp(1j * (points + (self.length - 1) / 2) @ self.k.T)
        return np.real(waves @ (np.where(self.alone, 1, 2) * coefficients))
