r"""The unit box in normal coordinates, and samples there with importance weights.

With :math:`x = \Phi(z)` along each axis the uniform prior of the box is the standard normal one, and a posterior is

.. math:: p(z) \propto L(\Phi(z))\; N(z; 0, I).

There are no bounds: a parameter that the readings say nothing of is a standard normal one instead of a plateau with two
walls, one that presses against a bound has a tail like any other, and every sample of a proposal is inside. Between a
posterior and its prior are the tempered ones, :math:`L^\beta N`, whose tails are never heavier than the prior's.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from jaxtyping import Float
from numpy import ndarray
from scipy.special import ndtr, ndtri

from latentpde.estimators.exact.mixture import Mixture
from latentpde.estimators.exact.parallel import run_together
from latentpde.estimators.exact.population import LogDensity, LogDensityAndSlope, effective_size, values_of

COST_OF_SLOPE = 4  # evaluations that a gradient takes the time of
FARTHEST = 3.0  # from the middle, where starts and steps are cut off: a thousandth of the box is beyond


def to_box(z: Float[ndarray, "point dim"]) -> Float[ndarray, "point dim"]:
    """Points of the unit box at normal coordinates."""
    return ndtr(z)


def of_box(points: Float[ndarray, "point dim"]) -> Float[ndarray, "point dim"]:
    """Normal coordinates of points of the unit box; those next to a bound are cut off.

    >>> of_box(np.array([[0.5, 1.0]]))
    array([[0., 3.]])
    """
    return np.clip(ndtri(points), -FARTHEST, FARTHEST)


def log_prior(z: Float[ndarray, "point dim"]) -> Float[ndarray, " point"]:
    """The standard normal log density."""
    return -0.5 * (z**2).sum(1) - 0.5 * z.shape[1] * np.log(2 * np.pi)


class NormalDensity:
    """A density on the unit box in normal coordinates. Batches are shared between two cores.

    Args:
        log_density: of a batch of points of the box; not a number is taken for minus infinity.
        with_slope: the same with its gradient.
    """

    def __init__(self, log_density: LogDensity, with_slope: LogDensityAndSlope):
        self._log_density, self._with_slope = log_density, with_slope
        self.num_evaluations = 0

    def log_likelihood(self, z: Float[ndarray, "point dim"]) -> Float[ndarray, " point"]:
        """The logarithm of the density on the box."""
        self.num_evaluations += len(z)
        return np.concatenate(_in_two(partial(values_of, self._log_density), to_box(z)))

    def log_posterior(self, z: Float[ndarray, "point dim"]) -> Float[ndarray, " point"]:
        """That of the density of ``z``."""
        return self.log_likelihood(z) + log_prior(z)

    def with_slope(
        self, z: Float[ndarray, "point dim"]
    ) -> tuple[Float[ndarray, " point"], Float[ndarray, "point dim"]]:
        """The same with its gradient."""
        self.num_evaluations += COST_OF_SLOPE * len(z)
        parts = _in_two(self._with_slope, to_box(z))
        values, slopes = (np.concatenate([part[i] for part in parts]) for i in (0, 1))
        return values + log_prior(z), slopes * np.exp(-0.5 * z**2) / np.sqrt(2 * np.pi) - z


class NormalPopulation:
    """Samples in normal coordinates, their likelihoods, and everything they were proposed from."""

    def __init__(self, dim: int):
        self.points, self.values = np.empty((0, dim)), np.empty(0)
        self.proposals: dict[Mixture, int] = {}  # and how many were drawn from each

    def draw(self, proposal: Mixture, num: int, density: NormalDensity, generator: np.random.Generator) -> None:
        """Add samples of a proposal."""
        if not num:
            return
        points = proposal.sample(num, generator)
        self.points = np.concatenate([self.points, points])
        self.values = np.concatenate([self.values, density.log_likelihood(points)])
        self.proposals[proposal] = self.proposals.get(proposal, 0) + num

    def join(self, other: NormalPopulation) -> None:
        """Add all samples of another."""
        self.points = np.concatenate([self.points, other.points])
        self.values = np.concatenate([self.values, other.values])
        for proposal, num in other.proposals.items():
            self.proposals[proposal] = self.proposals.get(proposal, 0) + num

    def log_weights(self, beta: float = 1.0) -> Float[ndarray, " point"]:
        """Log of the tempered density over the sum of all proposals: they sum to the evidence."""
        drawn = Mixture.concatenate([proposal.scaled(num) for proposal, num in self.proposals.items()])
        return self._tempered(log_prior(self.points) - drawn.log_density(self.points), beta)

    def temper(self, min_effective: float, most: float = 1.0) -> tuple[float, Float[ndarray, " point"]]:
        """The largest inverse temperature up to ``most`` that leaves so many effective samples, and the log weights
        there."""
        of_prior = self.log_weights(0.0)
        if effective_size(self._tempered(of_prior, most)) >= min_effective:
            return most, self._tempered(of_prior, most)
        low, high = 0.0, most
        for _ in range(20):
            beta = 0.5 * (low + high)
            enough = effective_size(self._tempered(of_prior, beta)) >= min_effective
            low, high = (beta, high) if enough else (low, beta)
        return low, self._tempered(of_prior, low)

    def _tempered(self, of_prior: ndarray, beta: float) -> ndarray:
        with np.errstate(invalid="ignore"):
            return np.where(np.isneginf(self.values), -np.inf, beta * self.values + of_prior)


def _in_two(function: Callable[[ndarray], object], points: ndarray) -> list:
    """A function of each half of a batch, both at once. However many cores there are, the halves are the same, and so
    are the last digits."""
    if len(points) < 2:
        return [function(points)]
    return run_together(*(partial(function, part) for part in np.array_split(points, 2)))
