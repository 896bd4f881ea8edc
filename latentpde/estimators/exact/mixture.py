"""Mixtures of Student distributions: what the search for coefficients proposes from."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from jaxtyping import Float
from numpy import ndarray
from scipy.spatial import KDTree
from scipy.special import gammaln

MOST_COMPONENTS = 32
SMALLEST_SCALE = 1e-7  # of a component, in units of the box
_WIDER = 2.0  # times the covariance
_IN_CACHE = 2**15  # densities at once


@dataclass(frozen=True, eq=False)
class Mixture:
    """A mixture of Student distributions; ``whiten`` are the inverses of the scale matrices' Cholesky factors."""

    log_shares: ndarray
    means: ndarray
    factors: ndarray
    whiten: ndarray

    @classmethod
    def concatenate(cls, mixtures: list[Mixture]) -> Mixture:
        names = ("log_shares", "means", "factors", "whiten")
        return cls(*(np.concatenate([getattr(m, name) for m in mixtures]) for name in names))

    @classmethod
    def of(cls, shares: ndarray, means: ndarray, covariances: ndarray) -> Mixture:
        factors = np.linalg.cholesky(covariances + SMALLEST_SCALE**2 * np.eye(means.shape[1]))
        return cls(np.log(shares), means, factors, np.linalg.inv(factors))

    def scaled(self, factor: int | float) -> Mixture:
        """With shares that sum to ``factor``."""
        return replace(self, log_shares=self.log_shares + np.log(factor))

    @classmethod
    def fit(
        cls,
        points: ndarray,
        log_weights: ndarray,
        per_component: float,
        generator: np.random.Generator,
        steps: int = 6,
    ) -> Mixture:
        """Expectation-maximisation on weighted points, with covariances shrunk to the shape that they have in common.

        There is one component per ``per_component`` effective points.
        """
        weights = np.exp(log_weights - logsumexp(log_weights))
        order = np.argsort(weights)[::-1]
        enough = int(np.searchsorted(np.cumsum(weights[order]), 0.995)) + 1
        chosen = order[: max(enough, 2 * points.shape[1] + 2)]
        x, w = points[chosen], weights[chosen] / weights[chosen].sum()
        dim, size = x.shape[1], 1 / (w**2).sum()
        count = int(np.clip(size / per_component, 1, MOST_COMPONENTS))
        x0 = w @ x
        x = x - x0
        products = (x[:, :, None] * x[:, None, :]).reshape(len(x), -1)
        spread = np.sqrt((w @ products).reshape(dim, dim).diagonal()) + 1e-12
        share = _nearest_seed(x / spread, w, count, generator)
        mixture = None
        for _ in range(steps):
            mass = w[:, None] * share
            totals = mass.sum(0)
            mass, totals = mass[:, totals > 1e-4], totals[totals > 1e-4]
            means = (mass.T @ x) / totals[:, None]
            outer = means[:, :, None] * means[:, None, :]
            covariances = (mass.T @ products).reshape(-1, dim, dim) / totals[:, None, None] - outer
            common = np.tensordot(totals / totals.sum(), covariances, axes=1)
            strength = (totals**2 / (mass**2).sum(0))[:, None, None]
            # of the common shape, and the more points there are the more of the component's own size
            relative = np.einsum("ij,kji->k", np.linalg.pinv(common), covariances)[:, None, None] / dim
            usual = np.clip(relative, 1e-12, None) ** (1 - 1 / strength) * common
            covariances = (strength * covariances + (dim + 2) * usual) / (strength + dim + 2)
            mixture = cls.of(totals / totals.sum(), means, covariances)
            share = mixture.component_densities(x)
            share /= share.sum(1, keepdims=True)
        assert mixture is not None
        return replace(mixture, means=mixture.means + x0)

    @classmethod
    def wide(cls, points: ndarray, log_weights: ndarray) -> Mixture:
        """One component around all weighted points, wider than they are spread."""
        weights = np.exp(log_weights - logsumexp(log_weights))
        mean = weights @ points
        offsets = points - mean
        return cls.of(np.ones(1), mean[None], _WIDER * (weights[:, None] * offsets).T @ offsets[None])

    @property
    def degrees(self) -> int:
        """Of freedom. With these the density is a whole power of the distance: no logarithms, no exponentials."""
        return self.means.shape[1] + 2

    def component_densities(self, x: ndarray) -> Float[ndarray, "point component"]:
        """Each component's density times its share."""
        rows, offsets, heights = self._terms
        stretched = np.ones((len(x), len(self.means)))
        for row, offset in zip(rows, offsets, strict=True):  # one axis at a time: short sums are slow
            white = x @ row.T
            white -= offset
            stretched += np.square(white, out=white)
        power = stretched.copy()
        for _ in range(x.shape[1]):
            power *= stretched
        return np.divide(heights, power, out=power)

    @cached_property
    def _terms(self) -> tuple[ndarray, ndarray, ndarray]:
        """Of the densities: what whitens each axis, what the means become, and the densities at the means."""
        dim, degrees = self.means.shape[1], self.degrees
        rows = self.whiten.swapaxes(0, 1) / np.sqrt(degrees)
        constant = gammaln((degrees + dim) / 2) - gammaln(degrees / 2) - dim / 2 * np.log(degrees * np.pi)
        log_volume = np.log(np.diagonal(self.factors, axis1=1, axis2=2)).sum(1)
        return rows, (rows * self.means).sum(2), np.exp(self.log_shares + constant - log_volume)

    def log_density(self, x: ndarray) -> ndarray:
        num_parts = -(-len(x) * len(self.means) // _IN_CACHE) or 1
        return np.log(np.concatenate([self.component_densities(p).sum(1) for p in np.array_split(x, num_parts)]))

    def sample(self, num: int, generator: np.random.Generator) -> ndarray:
        which = generator.choice(len(self.means), size=num, p=np.exp(self.log_shares))
        normal = generator.standard_normal((num, self.means.shape[1]))
        stretch = np.sqrt(self.degrees / generator.chisquare(self.degrees, num))
        return self.means[which] + stretch[:, None] * np.einsum("nij,nj->ni", self.factors[which], normal)


def peaks(points: ndarray, values: ndarray, most: int) -> Mixture:
    """A component at each of the highest points that no neighbour surpasses, as wide as the neighbours are far.

    Weights see mass, and a mode that the sweep met with one point, on its flank, has next to none as yet; these see
    height, and their samples climb.
    """
    dim = points.shape[1]
    highest = np.argsort(values)[::-1][: 8 * most]
    num_neighbours = min(2 * dim + 2, len(points) - 1)
    near = np.asarray(KDTree(points).query(points[highest], num_neighbours + 1)[1])[:, 1:]
    top = np.flatnonzero((values[highest][:, None] >= values[near]).all(1))[:most]
    offsets = points[near[top]] - points[highest[top]][:, None]
    covariances = offsets.swapaxes(1, 2) @ offsets / (2 * num_neighbours)
    return Mixture.of(np.full(len(top), 1 / len(top)), points[highest[top]], covariances)


def _nearest_seed(
    x: ndarray, weights: ndarray, count: int, generator: np.random.Generator
) -> Float[ndarray, "point seed"]:
    """One where a seed is a point's nearest; the seeds are points far apart, by weighted k-means++."""
    nearest, owner = np.full(len(x), np.inf), np.zeros(len(x), dtype=int)
    chance = weights
    for seed in range(count):
        cumulative = np.cumsum(chance)
        if not cumulative[-1] > 0:
            break
        chosen = np.searchsorted(cumulative, generator.random() * cumulative[-1], side="right").clip(max=len(x) - 1)
        distance = np.square(x - x[chosen]).sum(1)
        closer = distance < nearest
        nearest[closer], owner[closer] = distance[closer], seed
        chance = weights * nearest
    return np.eye(owner.max() + 1)[owner]


def logsumexp(values: ndarray) -> float:
    """Of a list; minus infinity where all are."""
    top = float(values.max(initial=-np.inf))
    return top if not np.isfinite(top) else top + float(np.log(np.exp(values - top).sum()))
