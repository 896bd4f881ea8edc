r"""Cases from the prior itself between walls, for simulation-based calibration.

A field between walls is made of a stationary one on the rectangle with its mirror images,
:math:`|G|^{-1/2} \sum_g s_g\, u(g x)` over the reflections :math:`g` with their signs. The equation is solved on the
torus of these images, mode by mode in closed form, and reflected afterwards. So nothing here knows of sines and
cosines, which is how the model under test has it. The source of a steady field may have other walls than the field has:
its sum of cosines is then taken to sums of sines by integrals over a fine lattice.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Complex, Float

NUM_CELLS = 8  # along each side of the unit square at whose centres field and source are asked for
SMOOTHNESS = 1.5
KAPPA = (0.01, 0.1)
NOISE, NOISE_OF_SOURCE = 0.1, 0.2
LEVELS = {
    "initial_prior_std": (0.5, 2.0),
    "initial_prior_length": (0.2, 0.6),
    "source_prior_std": (0.5, 2.0),
    "source_prior_length": (0.2, 0.6),
}
#: Edges along y and x of heat, case after case.
EDGES = (("dirichlet", "dirichlet"), ("neumann", "neumann"), ("dirichlet", "neumann"), ("periodic", "dirichlet"))
TIMES = np.linspace(0.0, 1.0, 3)
NUM_STATIONS, NUM_OF_SOURCE, NUM_STEADY = 10, 6, 24
HIGHEST = 10  # modes along an axis with its images, from 0 up
_SIGNS = {"dirichlet": -1, "neumann": 1, "periodic": 0}
_SEED = 512
_LATTICE = 2000
_STEADY_SIZE = 0.03  # of the field that a source of size one gives


@dataclass(frozen=True, eq=False)
class WalledCase:
    """One case with all that was drawn.

    Args:
        edges: along y and x.
        values: the readings.
        noise_std: of each.
        places: ``(y, x)`` of each.
        times: of each; those of readings of the source do not count.
        of_source: whether each is of the source.
        field, source: at the centres of the cells, the field at the last time.
        truth: coefficients and levels by name.
    """

    edges: tuple[str, str]
    values: Float[np.ndarray, " reading"]
    noise_std: Float[np.ndarray, " reading"]
    places: Float[np.ndarray, "reading 2"]
    times: Float[np.ndarray, " reading"]
    of_source: Bool[np.ndarray, " reading"]
    field: Float[np.ndarray, " cell"]
    source: Float[np.ndarray, " cell"]
    truth: dict[str, float]


def heat_between_walls(index: int) -> WalledCase:
    """Heat with an unknown start and source, read at stations three times, and the source at a few places."""
    rng = np.random.default_rng([_SEED, 0, index])
    levels, kappa, edges = _levels(rng), float(rng.uniform(*KAPPA)), EDGES[index % len(EDGES)]
    images = Images(edges)
    state = images.draw(levels["initial_prior_std"], levels["initial_prior_length"], rng)
    source = images.draw(levels["source_prior_std"], levels["source_prior_length"], rng)
    stations, of_source = rng.random((NUM_STATIONS, 2)), rng.random((NUM_OF_SOURCE, 2))
    read = [images.at(images.evolved(state, source, time, kappa), stations) for time in TIMES]
    cells = _cells()
    return WalledCase(
        edges,
        *_noisy([*read, images.at(source, of_source)], [stations] * len(TIMES), of_source, NOISE, rng),
        images.at(images.evolved(state, source, float(TIMES[-1]), kappa), cells),
        images.at(source, cells),
        {"kappa": kappa, **levels},
    )


def steady_between_walls(index: int) -> WalledCase:
    """Poisson's equation between walls that hold zero, with a source that is a sum of cosines; both are read."""
    rng = np.random.default_rng([_SEED, 1, index])
    levels = {name: value for name, value in _levels(rng).items() if not name.startswith("initial")}
    numbers, lattice = np.arange(HIGHEST), (np.arange(_LATTICE) + 0.5) / _LATTICE
    std, length = levels["source_prior_std"], levels["source_prior_length"]
    power = matern_power(np.pi * np.hypot(numbers[:, None], numbers), std, length)
    # of a cosine: 4 along each axis, 2 for the constant, on a torus of area 4
    share = np.where(numbers == 0, 2.0, 4.0)
    cosines = rng.standard_normal((HIGHEST, HIGHEST)) * np.sqrt(power / 4 * share[:, None] * share)
    sine_numbers = np.arange(1, 2 * HIGHEST)

    def source(places: np.ndarray) -> np.ndarray:
        along = [np.cos(np.pi * places[:, axis, None] * numbers) for axis in (0, 1)]
        return np.einsum("pn,nm,pm->p", along[0], cosines, along[1])

    on_lattice = np.cos(np.pi * lattice[:, None] * numbers)
    to_sines = 2 * np.sin(np.pi * lattice[:, None] * sine_numbers).T @ on_lattice / _LATTICE
    coefficients = to_sines @ cosines @ to_sines.T
    coefficients = coefficients / (np.pi**2 * (sine_numbers[:, None] ** 2 + sine_numbers**2))

    def field(places: np.ndarray) -> np.ndarray:
        along = [np.sin(np.pi * places[:, axis, None] * sine_numbers) for axis in (0, 1)]
        return np.einsum("pn,nm,pm->p", along[0], coefficients, along[1])

    stations, of_source, cells = rng.random((NUM_STEADY, 2)), rng.random((NUM_OF_SOURCE, 2)), _cells()
    return WalledCase(
        ("dirichlet", "dirichlet"),
        *_noisy([field(stations), source(of_source)], [stations], of_source, NOISE * _STEADY_SIZE, rng),
        field(cells),
        source(cells),
        levels,
    )


def matern_power(k: np.ndarray, std: float, length: float) -> np.ndarray:
    """Spectral density of a Matérn field in the plane, times the area of a cell of the plane per unit of area."""
    nu, inverse = SMOOTHNESS, 2 * SMOOTHNESS / length**2
    return std**2 * 4 * np.pi * nu * inverse**nu / (inverse + k**2) ** (nu + 1)


class Images:
    """The torus of the unit square and its images; fields are sums over one of each pair of conjugate modes."""

    def __init__(self, edges: tuple[str, str]):
        self._signs = [_SIGNS[edge] for edge in edges]
        lengths = np.array([2.0 if sign else 1.0 for sign in self._signs])
        rows, columns = np.meshgrid(np.arange(1 - HIGHEST, HIGHEST), np.arange(HIGHEST), indexing="ij")
        half = (columns > 0) | (rows >= 0)
        self._area = float(lengths.prod())
        self.k: Float[np.ndarray, "mode 2"] = 2 * np.pi * np.stack([rows[half], columns[half]], -1) / lengths
        self._alone = (self.k == 0).all(-1)  # the mean has no conjugate

    def draw(self, std: float, length: float, rng: np.random.Generator) -> Complex[np.ndarray, " mode"]:
        """Coefficients of a stationary Matérn field."""
        power = matern_power(np.sqrt((self.k**2).sum(-1)), std, length) / self._area
        real, imaginary = rng.standard_normal((2, len(self.k)))
        return np.sqrt(power) * np.where(self._alone, real + 0j, (real + 1j * imaginary) / np.sqrt(2))

    def evolved(self, state: np.ndarray, source: np.ndarray, time: float, kappa: float) -> Complex[np.ndarray, " mode"]:
        """Coefficients some time later, by the heat equation."""
        rate = -kappa * (self.k**2).sum(-1)
        gain = np.where(self._alone, time, np.expm1(rate * time) / np.where(self._alone, 1, rate))
        return np.exp(rate * time) * state + gain * source

    def at(
        self, coefficients: Complex[np.ndarray, " mode"], places: Float[np.ndarray, "place 2"]
    ) -> Float[np.ndarray, " place"]:
        """The field between walls at places of the square: that of the torus and its reflections."""
        total, images = 0.0, [(1, 1, 1)]
        for axis, sign in enumerate(self._signs):
            if sign:
                images += [(s * sign, *(-p if i == axis else p for i, p in enumerate(by))) for s, *by in images]
        for sign, *by in images:
            waves = np.exp(1j * (places * np.array(by)) @ self.k.T)
            total = total + sign * np.real(waves @ (np.where(self._alone, 1, 2) * coefficients))
        return np.asarray(total) / np.sqrt(len(images))


def _levels(rng: np.random.Generator) -> dict[str, float]:
    return {name: float(np.exp(rng.uniform(*np.log(bounds)))) for name, bounds in LEVELS.items()}


def _cells() -> Float[np.ndarray, "cell 2"]:
    centres = (np.arange(NUM_CELLS) + 0.5) / NUM_CELLS
    return np.stack(np.meshgrid(centres, centres, indexing="ij"), -1).reshape(-1, 2)


def _noisy(
    read: list[np.ndarray],
    places: list[np.ndarray],
    places_of_source: np.ndarray,
    noise_std: float,
    rng: np.random.Generator,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Values with noise, its standard deviations, places, times, and which are of the source; the last that was read
    is."""
    values, of_source = np.concatenate(read), np.repeat([False, True], [sum(map(len, places)), len(places_of_source)])
    times = TIMES if len(places) > 1 else TIMES[-1:]
    when = np.concatenate([np.repeat(times, len(places[0])), np.full(len(places_of_source), times[-1])])
    std = np.where(of_source, NOISE_OF_SOURCE, noise_std)
    noise = std * rng.standard_normal(len(values))
    return values + noise, std, np.concatenate([*places, places_of_source]), when, of_source
