r"""Samples of a density on a box of few dimensions, found globally, with weights that are right.

The densities here are cheap, smooth, and have many narrow modes far apart, the kind on which a chain sits in one and
reports that all is well. So nothing walks:

1. a scrambled Sobol sequence sweeps the box;
2. the samples so far, weighted for a *tempered* density :math:`p^\beta` with the largest :math:`\beta` that leaves
   enough of them alive, are summarised by a mixture of Student distributions;
3. new samples come from that mixture; all samples, old and new, are weighted against the average of all proposals so
   far (the deterministic-mixture weights of adaptive multiple importance sampling, Cornuet et al. 2012);
4. 2 and 3 repeat until :math:`\beta = 1` and the effective sample size suffices.

Two halves do this independently. Each estimates the evidence; where they disagree, a mode was missed by one of them,
and the search is repeated with four times the effort. All samples of all rounds enter the result, so what either
found stays found.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray
from scipy.special import gammaln
from scipy.stats import qmc

from latentpde.errors import DataError

LogDensity = Callable[[Float[ndarray, "point dim"]], Float[ndarray, " point"]]
_DEGREES = 5.0  # of freedom, of the proposals' Student components
_MOST_COMPONENTS = 32
_NEGLIGIBLE = 40.0  # in log weight
_SMALLEST_SCALE = 1e-7  # of a proposal, in units of the box


@dataclass(frozen=True)
class Effort:
    """How hard to search.

    Args:
        sweep: Sobol points per half to begin with; a power of two.
        most_doublings: of the sweep, while it leaves the density so rugged that ``coldest`` is not reached.
        coldest: inverse temperature that a sweep must support.
        step: samples per half and iteration.
        alive: effective samples that a tempered fit is made from.
        target: effective samples wanted in the end.
        most_rounds: searches, each of four times the effort of the one before.
        most_evaluations: after which no further round begins.
        most_iterations: per search.
    """

    sweep: int = 1024
    most_doublings: int = 2
    coldest: float = 0.02
    step: int = 256
    alive: float = 100.0
    target: float = 400.0
    most_rounds: int = 3
    most_evaluations: int = 50_000
    most_iterations: int = 24


@dataclass(frozen=True, eq=False)
class WeightedSamples:
    """Points of the unit box with normalised log weights.

    ``trusted`` is false where the halves still disagreed, or too few samples carried weight, when the effort ran out.
    """

    points: Float[ndarray, "point dim"]
    log_weights: Float[ndarray, " point"]
    log_evidence: float
    log_evidence_error: float
    effective_size: float
    evidence_gap: float
    num_evaluations: int
    num_rounds: int
    trusted: bool

    def resample(self, num: int, *, generator: np.random.Generator) -> Int[ndarray, " draw"]:
        """Indices of equally weighted draws, by systematic resampling, in random order."""
        cumulative = np.cumsum(np.exp(self.log_weights))
        ticks = (np.arange(num) + generator.random()) / num * cumulative[-1]
        index = np.searchsorted(cumulative, ticks, side="right").clip(max=len(cumulative) - 1)
        return generator.permutation(index)


def sample_box(
    log_density: LogDensity, dim: int, *, generator: np.random.Generator, effort: Effort | None = None
) -> WeightedSamples:
    """Weighted samples of an unnormalised density on the unit box.

    Args:
        log_density: of a batch of points; minus infinity is allowed, NaN is taken for it.
        dim: at least one, and few.
        generator: of all randomness.
        effort: how hard to search before giving up and saying so.
    """
    effort = effort or Effort()
    populations: list[_Population] = []
    gap, trusted, rounds = np.inf, False, 0
    for rounds in range(1, effort.most_rounds + 1):
        scale = 4 ** (rounds - 1)
        halves = [_Population(dim) for _ in range(2)]
        _search(halves, log_density, effort, scale, generator)
        populations += halves
        gap, tolerance, effective = _compare(halves)
        trusted = gap <= tolerance and effective >= 0.25 * effort.target
        if trusted or sum(p.num_evaluations for p in populations) > effort.most_evaluations:
            break
    points, log_weights = _merge(populations)
    total = logsumexp(log_weights)
    if not np.isfinite(total):
        raise DataError(f"the density is zero or not a number at all {len(points)} points tried; check data and bounds")
    effective = _effective_size(log_weights)
    return WeightedSamples(
        points=points,
        log_weights=log_weights - total,
        log_evidence=total,
        log_evidence_error=float(1 / np.sqrt(max(effective, 1.0))),
        effective_size=float(effective),
        evidence_gap=float(gap),
        num_evaluations=sum(p.num_evaluations for p in populations),
        num_rounds=rounds,
        trusted=bool(trusted),
    )


class _Population:
    """The samples of one half that still matter, and everything they were proposed from."""

    def __init__(self, dim: int):
        self.points, self.values = np.empty((0, dim)), np.empty(0)
        self.log_proposed = np.empty(0)  # log of the sum over proposals of number drawn times density
        self.num_uniform, self.num_evaluations = 0, 0
        self.components: list[_Mixture] = []

    def add(self, points: ndarray, values: ndarray, proposal: _Mixture | None, num_drawn: int) -> None:
        """Samples inside the box of ``num_drawn`` from a proposal; what fell outside has no weight but counts."""
        if proposal is None:
            self.num_uniform += num_drawn
            fresh = np.full(len(self.points), np.log(num_drawn))
        else:
            self.components.append(proposal.scaled(num_drawn))
            fresh = self.components[-1].log_density(self.points)
        self.log_proposed = np.logaddexp(self.log_proposed, fresh)
        self.points = np.concatenate([self.points, points])
        self.values = np.concatenate([self.values, values])
        self.log_proposed = np.concatenate([self.log_proposed, self.log_proposed_at(points)])
        self.num_evaluations += len(points)

    def log_proposed_at(self, points: ndarray) -> ndarray:
        with np.errstate(divide="ignore"):
            uniform = np.full(len(points), np.log(self.num_uniform))
        if not self.components:
            return uniform
        return np.logaddexp(uniform, _Mixture.concatenate(self.components).log_density(points))

    def log_weights(self, beta: float = 1.0) -> ndarray:
        """Log of tempered density over proposed density; they sum to the evidence."""
        with np.errstate(invalid="ignore"):
            return np.where(np.isneginf(self.values), -np.inf, beta * self.values - self.log_proposed)

    def temper(self, alive: float) -> tuple[float, ndarray]:
        """The largest inverse temperature that leaves ``alive`` effective samples, and the weights there."""
        weights = self.log_weights(1.0)
        if _effective_size(weights) >= alive:
            return 1.0, weights
        low, high = 0.0, 1.0
        for _ in range(20):
            beta = 0.5 * (low + high)
            low, high = (beta, high) if _effective_size(self.log_weights(beta)) >= alive else (low, beta)
        return low, self.log_weights(low)

    def forget(self, log_weights: ndarray) -> None:
        """Drop samples that carry no weight now; at higher inverse temperatures they carry even less."""
        keep = log_weights > log_weights.max() - _NEGLIGIBLE
        self.points, self.values, self.log_proposed = self.points[keep], self.values[keep], self.log_proposed[keep]


def _search(
    halves: list[_Population], log_density: LogDensity, effort: Effort, scale: int, generator: np.random.Generator
) -> None:
    dim = halves[0].points.shape[1]
    wanted, alive = effort.target / 2, effort.alive * np.sqrt(scale)
    sequences, num = [qmc.Sobol(dim, rng=generator) for _ in halves], effort.sweep * scale
    for doublings in range(effort.most_doublings + 1):
        _evaluate(halves, [sequence.random(num) for sequence in sequences], [None, None], [num, num], log_density)
        if min(half.temper(alive)[0] for half in halves) >= effort.coldest:
            break
        num = effort.sweep * scale * 2**doublings
    if any(np.isneginf(half.values).all() for half in halves):
        return  # nothing to fit; a larger sweep may find something
    for _ in range(effort.most_iterations):
        fits, done = [], []
        for half in halves:
            beta, weights = half.temper(alive)
            done.append(beta == 1.0 and _effective_size(weights) >= wanted)
            # On the way there are many modes, and a component for each finds them; at the end few, and smooth fits
            # that leave no gaps between components give the better weights.
            per_component = 1.0 * dim if beta < 1 else 4.0 * dim
            fits.append(_Mixture.fit(half.points, weights, per_component, generator))
            half.forget(weights)
        if all(done):
            return
        num = effort.step * scale
        drawn = [fit.sample(num, generator) for fit in fits]
        inside = [points[((points >= 0) & (points <= 1)).all(1)] for points in drawn]
        _evaluate(halves, inside, fits, [num, num], log_density)


def _evaluate(halves, points, proposals, counts, log_density: LogDensity) -> None:
    """One call for both halves: the batch is what makes it fast."""
    values = log_density(np.concatenate(points))
    values = np.where(np.isnan(values), -np.inf, values)
    for half, part, value, proposal, count in zip(
        halves, points, np.split(values, [len(points[0])]), proposals, counts, strict=True
    ):
        half.add(part, value, proposal, count)


def _compare(halves: list[_Population]) -> tuple[float, float, float]:
    """How far apart the halves' log evidences are, how far chance would put them, and the smaller sample size."""
    weights = [half.log_weights() for half in halves]
    sizes = [max(_effective_size(w), 1.0) for w in weights]
    evidences = [logsumexp(w) for w in weights]
    gap = abs(evidences[0] - evidences[1])
    return (gap if np.isfinite(gap) else np.inf), 0.1 + 3 * np.sqrt(sum(1 / n for n in sizes)), min(sizes)


def _merge(populations: list[_Population]) -> tuple[ndarray, ndarray]:
    """All points, with their weights against everything that any population proposed."""
    points = np.concatenate([p.points for p in populations])
    values = np.concatenate([p.values for p in populations])
    proposed = np.logaddexp.reduce([p.log_proposed_at(points) for p in populations])
    return points, values - proposed


@dataclass(frozen=True, eq=False)
class _Mixture:
    """A mixture of Student distributions; ``whiten`` are the inverses of the scale matrices' Cholesky factors."""

    log_shares: ndarray
    means: ndarray
    factors: ndarray
    whiten: ndarray

    @classmethod
    def concatenate(cls, mixtures: list[_Mixture]) -> _Mixture:
        names = ("log_shares", "means", "factors", "whiten")
        return cls(*(np.concatenate([getattr(m, name) for m in mixtures]) for name in names))

    def scaled(self, factor: int) -> _Mixture:
        return replace(self, log_shares=self.log_shares + np.log(factor))

    @classmethod
    def fit(
        cls,
        points: ndarray,
        log_weights: ndarray,
        per_component: float,
        generator: np.random.Generator,
        steps: int = 8,
    ) -> _Mixture:
        """Expectation-maximisation on weighted points, with covariances shrunk to their common one.

        There is one component per ``per_component`` effective points.
        """
        weights = np.exp(log_weights - logsumexp(log_weights))
        order = np.argsort(weights)[::-1]
        enough = int(np.searchsorted(np.cumsum(weights[order]), 0.999)) + 1
        chosen = order[: max(enough, 2 * points.shape[1] + 2)]
        x, w = points[chosen], weights[chosen] / weights[chosen].sum()
        dim, size = x.shape[1], 1 / (w**2).sum()
        count = int(np.clip(size / per_component, 1, _MOST_COMPONENTS))
        x0 = w @ x
        x = x - x0
        products = (x[:, :, None] * x[:, None, :]).reshape(len(x), -1)
        spread = np.sqrt((w @ products).reshape(dim, dim).diagonal()) + 1e-12
        means = _seeds(x / spread, w, count, generator) * spread
        nearest = (((x[:, None] - means) / spread) ** 2).sum(-1).argmin(1)
        share = np.zeros((len(x), len(means)))
        share[np.arange(len(x)), nearest] = 1.0
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
            covariances = (strength * covariances + (dim + 2) * common) / (strength + dim + 2)
            factors = np.linalg.cholesky(covariances + _SMALLEST_SCALE**2 * np.eye(dim))
            mixture = cls(np.log(totals / totals.sum()), means, factors, np.linalg.inv(factors))
            log_share = mixture.component_densities(x)
            share = np.exp(log_share - log_share.max(1, keepdims=True))
            share /= share.sum(1, keepdims=True)
        assert mixture is not None
        return replace(mixture, means=mixture.means + x0)

    def component_densities(self, x: ndarray) -> ndarray:
        dim = x.shape[1]
        distance = np.zeros((len(x), len(self.means)))
        for rows in self.whiten.swapaxes(0, 1):  # one axis at a time: sums over an axis of three are slow
            white = x @ rows.T
            white -= (rows * self.means).sum(1)
            distance += np.square(white, out=white)
        constant = gammaln((_DEGREES + dim) / 2) - gammaln(_DEGREES / 2) - dim / 2 * np.log(_DEGREES * np.pi)
        log_volume = np.log(np.diagonal(self.factors, axis1=1, axis2=2)).sum(1)
        distance /= _DEGREES
        tail = np.log1p(distance, out=distance)
        tail *= -(_DEGREES + dim) / 2
        tail += self.log_shares + constant - log_volume
        return tail

    def log_density(self, x: ndarray) -> ndarray:
        parts = self.component_densities(x)
        top = parts.max(1)
        return top + np.log(np.exp(parts - top[:, None]).sum(1))

    def sample(self, num: int, generator: np.random.Generator) -> ndarray:
        which = generator.choice(len(self.means), size=num, p=np.exp(self.log_shares))
        normal = generator.standard_normal((num, self.means.shape[1]))
        stretch = np.sqrt(_DEGREES / generator.chisquare(_DEGREES, num))
        return self.means[which] + stretch[:, None] * np.einsum("nij,nj->ni", self.factors[which], normal)


def _seeds(x: ndarray, weights: ndarray, count: int, generator: np.random.Generator) -> ndarray:
    """Far-apart starting means, by weighted k-means++."""
    seeds = [x[generator.choice(len(x), p=weights)]]
    nearest = ((x - seeds[0]) ** 2).sum(1)
    for _ in range(count - 1):
        chance = weights * nearest
        if chance.sum() <= 0:
            break
        seeds.append(x[generator.choice(len(x), p=chance / chance.sum())])
        nearest = np.minimum(nearest, ((x - seeds[-1]) ** 2).sum(1))
    return np.stack(seeds)


def logsumexp(values: ndarray) -> float:
    """Of a list; minus infinity where all are."""
    top = float(values.max(initial=-np.inf))
    return top if not np.isfinite(top) else top + float(np.log(np.exp(values - top).sum()))


def _effective_size(log_weights: ndarray) -> float:
    top = log_weights.max()
    if not np.isfinite(top):
        return 0.0
    weights = np.exp(log_weights - top)
    return float(weights.sum() ** 2 / (weights**2).sum())
