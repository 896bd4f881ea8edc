"""Points of the unit box with importance weights, and everything that they were proposed from."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from jaxtyping import Bool, Float
from numpy import ndarray

from latentpde.estimators.exact.ascent import NEGLIGIBLE, ascend
from latentpde.estimators.exact.mixture import Mixture

LogDensity = Callable[[Float[ndarray, "point dim"]], Float[ndarray, " point"]]
LogDensityAndSlope = Callable[
    [Float[ndarray, "point dim"]], tuple[Float[ndarray, " point"], Float[ndarray, "point dim"]]
]

_LEAST_INSIDE = 0.01  # of them

MOST_PEAKS, _NEWTON_STEPS = 32, 3


class Population:
    """The samples of one half that still matter, and everything they were proposed from.

    ``is_fresh`` says that none of them had a part in shaping what it was drawn from: weights of those that had come
    out too small.
    """

    def __init__(self, dim: int, num_evaluations: int = 0):
        self.points, self.values = np.empty((0, dim)), np.empty(0)
        self.log_proposed = np.empty(0)  # log of the sum over proposals of number drawn times density
        self.num_uniform, self.num_drawn, self.num_evaluations = 0, 0, num_evaluations
        self.proposals: dict[Mixture, int] = {}  # and how many were drawn from each
        self.is_fresh = True

    def evaluate(self, log_density: LogDensity, points: ndarray) -> ndarray:
        self.num_evaluations += len(points)
        return values_of(log_density, points)

    def add(self, points: ndarray, values: ndarray, proposal: Mixture | None, num_drawn: int) -> None:
        """Samples inside the box of ``num_drawn`` from a proposal; what fell outside has no weight but counts."""
        self.num_drawn += num_drawn
        if proposal is None:
            self.num_uniform += num_drawn
            fresh = np.full(len(self.points), np.log(num_drawn))
        else:
            fresh = proposal.scaled(num_drawn).log_density(self.points)
            self.proposals[proposal] = self.proposals.get(proposal, 0) + num_drawn
        self.log_proposed = np.logaddexp(self.log_proposed, fresh)
        self.points = np.concatenate([self.points, points])
        self.values = np.concatenate([self.values, values])
        self.log_proposed = np.concatenate([self.log_proposed, self.log_proposed_at(points)])

    def draw(self, proposal: Mixture, num: int, log_density: LogDensity, generator: np.random.Generator) -> None:
        """Add samples of a proposal, so many that about ``num`` fall inside the box."""
        num = round(num / max(_inside(proposal.sample(num, generator)).mean(), _LEAST_INSIDE))
        points = proposal.sample(num, generator)
        points = points[_inside(points)]
        self.add(points, self.evaluate(log_density, points), proposal, num)

    def refined_peaks(self, found: Mixture, log_density: LogDensity) -> Mixture:
        """The local maxima above the highest of those peaks, each with the width that the density has there.

        They only say where to draw: before mass decides, each shows how high it is.
        """
        evaluate = partial(self.evaluate, log_density)
        values = evaluate(found.means)
        highest = np.argsort(values)[::-1][:MOST_PEAKS]
        reach = 2 * np.sqrt(np.square(found.factors[highest]).sum((1, 2)))
        return mixture_of_maxima(*ascend(evaluate, found.means[highest], reach, _NEWTON_STEPS))

    def log_proposed_at(self, points: ndarray) -> ndarray:
        with np.errstate(divide="ignore"):
            uniform = np.full(len(points), np.log(self.num_uniform))
        if not self.proposals:
            return uniform
        drawn = Mixture.concatenate([proposal.scaled(num) for proposal, num in self.proposals.items()])
        return np.logaddexp(uniform, drawn.log_density(points))

    def log_weights(self, beta: float = 1.0) -> ndarray:
        """Log of tempered density over proposed density; they sum to the evidence."""
        with np.errstate(invalid="ignore"):
            return np.where(np.isneginf(self.values), -np.inf, beta * self.values - self.log_proposed)

    def temper(self, min_effective: float) -> tuple[float, ndarray]:
        """The largest inverse temperature that leaves ``min_effective`` effective samples, and the weights there."""
        weights = self.log_weights(1.0)
        if effective_size(weights) >= min_effective:
            return 1.0, weights
        low, high = 0.0, 1.0
        for _ in range(20):
            beta = 0.5 * (low + high)
            low, high = (beta, high) if effective_size(self.log_weights(beta)) >= min_effective else (low, beta)
        return low, self.log_weights(low)

    def prune(self, log_weights: ndarray) -> None:
        """Drop samples that carry no weight now; at higher inverse temperatures they carry even less."""
        keep = log_weights >= log_weights.max() - NEGLIGIBLE
        self.points, self.values, self.log_proposed = self.points[keep], self.values[keep], self.log_proposed[keep]


def mixture_of_maxima(means: ndarray, values: ndarray, curvatures: ndarray, trust: float = np.inf) -> Mixture:
    """A component at each distinct maximum, as wide as the density is there; of equal shares, or the smaller the more
    times ``trust`` the logarithm of its mass is below the largest."""
    scales, axes = np.linalg.eigh(curvatures)
    scales = np.maximum(scales, 1.0)
    mass = values - 0.5 * np.log(scales).sum(1)
    order = np.argsort(mass)[::-1]
    order = order[mass[order] >= mass.max() - NEGLIGIBLE]
    offsets = means[order][:, None] - means[order]  # of each from those before it
    near = np.einsum("ijk,jkl,ijl->ij", offsets, curvatures[order], offsets) < 1
    distinct = order[~np.tril(near, -1).any(1)]
    covariances = (axes / scales[:, None] @ axes.swapaxes(1, 2))[distinct]
    shares = np.exp((mass[distinct] - mass.max()) / trust)
    return Mixture.of(shares / shares.sum(), means[distinct], covariances)


def effective_size(log_weights: ndarray) -> float:
    top = log_weights.max()
    if not np.isfinite(top):
        return 0.0
    weights = np.exp(log_weights - top)
    return float(weights.sum() ** 2 / (weights**2).sum())


def values_of(log_density: LogDensity, points: ndarray) -> ndarray:
    values = log_density(points)
    return np.where(np.isnan(values), -np.inf, values)


def _inside(points: ndarray) -> Bool[ndarray, " point"]:
    return np.all((points >= 0) & (points <= 1), axis=1)
