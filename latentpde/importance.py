r"""Samples of a density on a box of few dimensions, found globally, with weights that are right.

The densities here are cheap, smooth, and have many narrow modes far apart, the kind on which a chain sits in one and
reports that all is well. So nothing walks:

1. a scrambled Sobol sequence sweeps the box; where that finds the density rugged, many more points are tried with a
   cheap likeness of it, and its peaks are looked at;
2. the samples so far, weighted for a *tempered* density :math:`p^\beta` with the largest :math:`\beta` that leaves
   enough of them alive, are summarised by a mixture of Student distributions;
3. new samples come from that mixture, and some from around the highest points met so far; all samples, old and new,
   are weighted against the average of all proposals so far (the deterministic-mixture weights of adaptive multiple
   importance sampling, Cornuet et al. 2012);
4. 2 and 3 repeat until :math:`\beta = 1`; the result are fresh samples of the last mixture.

Two halves do this independently. Each estimates the evidence; where they disagree, a mode was missed by one of them,
and the search is repeated with four times the effort. All samples of all rounds enter the result, so what either
found stays found.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray
from scipy.spatial import KDTree
from scipy.special import gammaln
from scipy.stats import qmc

from latentpde.errors import DataError
from latentpde.parallel import run_together

LogDensity = Callable[[Float[ndarray, "point dim"]], Float[ndarray, " point"]]
_MOST_COMPONENTS = 32
_NEGLIGIBLE = 40.0  # in log weight
_MOST_PEAKS, _MOST_SCOUTED, _CLIMBS = 32, 64, 4
_PEAK_SHARE = 0.1  # of the samples
_MOST_HARVESTS, _MOST_BATCHES, _SMALL_LOSS = 4, 8, 0.5
_SMALLEST_SCALE = 1e-7  # of a proposal, in units of the box


@dataclass(frozen=True)
class Effort:
    """How hard to search.

    Args:
        sweep: Sobol points per half to begin with; a power of two.
        coldest: inverse temperature that the sweep must support; where it does not, the density is so rugged that
            scouts go out.
        scouts: points per half at which only the density's cheap likeness is taken; a power of two.
        step: samples per half and iteration.
        alive: effective samples that a tempered fit is made from.
        target: effective samples wanted in the end.
        most_rounds: searches, each of four times the effort of the one before.
        most_evaluations: after which no further round begins.
        most_iterations: per search.
    """

    sweep: int = 1024
    coldest: float = 0.02
    scouts: int = 16_384
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
    log_density: LogDensity,
    dim: int,
    *,
    generator: np.random.Generator,
    effort: Effort | None = None,
    easier: Sequence[LogDensity] = (),
    likeness: LogDensity | None = None,
) -> WeightedSamples:
    """Weighted samples of an unnormalised density on the unit box.

    Args:
        log_density: of a batch of points; minus infinity is allowed, NaN is taken for it. Two threads may call it at
            once.
        dim: at least one, and few.
        generator: of all randomness.
        effort: how hard to search before giving up and saying so.
        easier: smoother relatives of the density, the smoothest first. What is found of each is where the search of
            the next begins: stepping stones to modes too narrow for a sweep to meet.
        likeness: something that is cheap and high where the density is. Where a sweep is not enough, many more points
            are tried with it, and the search looks at its peaks.
    """
    effort, stages = effort or Effort(), (*easier, log_density)
    populations: list[_Population] = []
    gap, trusted, rounds = np.inf, False, 0
    for rounds in range(1, effort.most_rounds + 1):
        halves = run_together(
            *(partial(_search, stages, likeness, dim, effort, 4 ** (rounds - 1), own) for own in generator.spawn(2))
        )
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
    trusted = trusted and effective >= 0.25 * effort.target  # an earlier round may have met what the last one missed
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

    def __init__(self, dim: int, num_evaluations: int = 0):
        self.points, self.values = np.empty((0, dim)), np.empty(0)
        self.log_proposed = np.empty(0)  # log of the sum over proposals of number drawn times density
        self.num_uniform, self.num_drawn, self.num_evaluations = 0, 0, num_evaluations
        self.components: list[_Mixture] = []

    def add(self, points: ndarray, values: ndarray, proposal: _Mixture | None, num_drawn: int) -> None:
        """Samples inside the box of ``num_drawn`` from a proposal; what fell outside has no weight but counts."""
        self.num_drawn += num_drawn
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

    def draw(self, proposal: _Mixture, num: int, log_density: LogDensity, generator: np.random.Generator) -> None:
        """Add samples of a proposal."""
        points = proposal.sample(num, generator)
        inside = points[((points >= 0) & (points <= 1)).all(1)]
        self.add(inside, _values(log_density, inside), proposal, num)

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
        keep = log_weights >= log_weights.max() - _NEGLIGIBLE
        self.points, self.values, self.log_proposed = self.points[keep], self.values[keep], self.log_proposed[keep]


def _search(
    stages: Sequence[LogDensity],
    likeness: LogDensity | None,
    dim: int,
    effort: Effort,
    scale: int,
    generator: np.random.Generator,
) -> _Population:
    """One half's whole search."""
    half, proposal = _Population(dim), None
    sequence = qmc.Sobol(dim, rng=generator)
    for log_density in stages:
        half = _Population(dim, half.num_evaluations)
        points = sequence.random(effort.sweep * scale)
        half.add(points, _values(log_density, points), None, len(points))
        if log_density is stages[-1] and _effective_size(half.log_weights()) >= effort.target / 2:
            return half
        scouted = proposal is None and likeness and half.temper(effort.alive)[0] < effort.coldest
        if scouted and likeness:
            points = sequence.random(effort.scouts * scale)
            proposal = _peaks(points, _values(likeness, points), _MOST_SCOUTED)
        if proposal is not None:
            half.draw(proposal, 2 * effort.step * scale, log_density, generator)
        if scouted:  # before mass decides, each peak shows how high it is
            for _ in range(_CLIMBS):
                half.draw(_peaks(half.points, half.values, _MOST_PEAKS), effort.step * scale, log_density, generator)
        proposal = _climb(half, log_density, effort, scale, generator)
        if proposal is None:  # nothing to go on from; a larger sweep may find something
            return half
    assert proposal is not None
    return _harvest(half, proposal, stages[-1], effort, scale, generator)


def _harvest(
    half: _Population, proposal: _Mixture, log_density: LogDensity, effort: Effort, scale: int, generator
) -> _Population:
    """Samples that had no part in shaping what they are drawn from: weights of those that had come out too small.

    Where they do not suffice, or do not meet again what the search has met, they are added to it and it goes on.
    """
    for _ in range(_MOST_HARVESTS):
        harvest = _Population(half.points.shape[1], half.num_evaluations)
        for _ in range(_MOST_BATCHES):
            harvest.draw(proposal, effort.step * scale, log_density, generator)
            if _effective_size(harvest.log_weights()) >= effort.target / 2:
                break
        weights = harvest.log_weights()
        complete = logsumexp(half.log_weights()) < logsumexp(weights) + _SMALL_LOSS
        if complete and _effective_size(weights) >= effort.target / 2:
            return harvest
        half.add(harvest.points, harvest.values, proposal, harvest.num_drawn)
        proposal = _climb(half, log_density, effort, scale, generator) or proposal
    return half


def _climb(half: _Population, log_density: LogDensity, effort: Effort, scale: int, generator) -> _Mixture | None:
    """Fit and draw until enough effective samples of the density itself are there; the last fit."""
    dim, proposal = half.points.shape[1], None
    for iteration in range(effort.most_iterations + 1):
        if np.isneginf(half.values).all():
            return None
        beta, weights = half.temper(effort.alive * np.sqrt(scale))
        # On the way there are many modes, and a component for each finds them; at the end few, and smooth fits
        # that leave no gaps between components give the better weights.
        per_component = 1.0 * dim if beta < 1 else 4.0 * dim
        fit = _Mixture.fit(half.points, weights, per_component, generator)
        proposal = _Mixture.concatenate(
            [fit.scaled(1 - _PEAK_SHARE), _peaks(half.points, half.values, _MOST_PEAKS).scaled(_PEAK_SHARE)]
        )
        if beta == 1.0 or iteration == effort.most_iterations:
            break
        half.forget(weights)
        half.draw(proposal, effort.step * scale, log_density, generator)
    return proposal


def _values(log_density: LogDensity, points: ndarray) -> ndarray:
    values = log_density(points)
    return np.where(np.isnan(values), -np.inf, values)


def _compare(halves: list[_Population]) -> tuple[float, float, float]:
    """How far apart the halves' log evidences are, how far chance would put them, and the smaller sample size."""
    weights = [half.log_weights() for half in halves]
    sizes = [max(_effective_size(w), 1.0) for w in weights]
    evidences = [logsumexp(w) for w in weights]
    gap = abs(evidences[0] - evidences[1])
    return (gap if np.isfinite(gap) else np.inf), 0.1 + 3 * np.sqrt(sum(1 / n for n in sizes)), min(sizes)


def _merge(populations: list[_Population]) -> tuple[ndarray, ndarray]:
    """All points, with their weights against everything that any population proposed."""
    for population in populations:
        population.forget(population.log_weights())
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

    @classmethod
    def of(cls, shares: ndarray, means: ndarray, covariances: ndarray) -> _Mixture:
        factors = np.linalg.cholesky(covariances + _SMALLEST_SCALE**2 * np.eye(means.shape[1]))
        return cls(np.log(shares), means, factors, np.linalg.inv(factors))

    def scaled(self, factor: int | float) -> _Mixture:
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
    ) -> _Mixture:
        """Expectation-maximisation on weighted points, with covariances shrunk to their common one.

        There is one component per ``per_component`` effective points.
        """
        weights = np.exp(log_weights - logsumexp(log_weights))
        order = np.argsort(weights)[::-1]
        enough = int(np.searchsorted(np.cumsum(weights[order]), 0.995)) + 1
        chosen = order[: max(enough, 2 * points.shape[1] + 2)]
        x, w = points[chosen], weights[chosen] / weights[chosen].sum()
        dim, size = x.shape[1], 1 / (w**2).sum()
        count = int(np.clip(size / per_component, 1, _MOST_COMPONENTS))
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
            size = np.einsum("ij,kji->k", np.linalg.pinv(common), covariances)[:, None, None] / dim
            usual = np.clip(size, 1e-12, None) ** (1 - 1 / strength) * common
            covariances = (strength * covariances + (dim + 2) * usual) / (strength + dim + 2)
            mixture = cls.of(totals / totals.sum(), means, covariances)
            share = mixture.component_densities(x)
            share /= share.sum(1, keepdims=True)
        assert mixture is not None
        return replace(mixture, means=mixture.means + x0)

    @property
    def degrees(self) -> int:
        """Of freedom. With these the density is a whole power of the distance: no logarithms, no exponentials."""
        return self.means.shape[1] + 2

    def component_densities(self, x: ndarray) -> Float[ndarray, "point component"]:
        """Each component's density times its share."""
        dim, degrees = x.shape[1], self.degrees
        stretched = np.ones((len(x), len(self.means)))
        for rows in self.whiten.swapaxes(0, 1) / np.sqrt(degrees):  # one axis at a time: short sums are slow
            white = x @ rows.T
            white -= (rows * self.means).sum(1)
            stretched += np.square(white, out=white)
        power = stretched.copy()
        for _ in range(dim):
            power *= stretched
        constant = gammaln((degrees + dim) / 2) - gammaln(degrees / 2) - dim / 2 * np.log(degrees * np.pi)
        log_volume = np.log(np.diagonal(self.factors, axis1=1, axis2=2)).sum(1)
        return np.divide(np.exp(self.log_shares + constant - log_volume), power, out=power)

    def log_density(self, x: ndarray) -> ndarray:
        return np.log(self.component_densities(x).sum(1))

    def sample(self, num: int, generator: np.random.Generator) -> ndarray:
        which = generator.choice(len(self.means), size=num, p=np.exp(self.log_shares))
        normal = generator.standard_normal((num, self.means.shape[1]))
        stretch = np.sqrt(self.degrees / generator.chisquare(self.degrees, num))
        return self.means[which] + stretch[:, None] * np.einsum("nij,nj->ni", self.factors[which], normal)


def _peaks(points: ndarray, values: ndarray, most: int) -> _Mixture:
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
    return _Mixture.of(np.full(len(top), 1 / len(top)), points[highest[top]], covariances)


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


def _effective_size(log_weights: ndarray) -> float:
    top = log_weights.max()
    if not np.isfinite(top):
        return 0.0
    weights = np.exp(log_weights - top)
    return float(weights.sum() ** 2 / (weights**2).sum())
