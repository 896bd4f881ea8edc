r"""Samples of a density on a box of few dimensions, found globally, with weights that are right.

The densities here are cheap, smooth, and have many narrow modes far apart, the kind on which a chain sits in one and
reports that all is well. So nothing walks:

1. a scrambled Sobol sequence sweeps the box; where that finds the density rugged, many more points are tried with a
   cheap likeness of it, and from its peaks Newton's method climbs the density's own (`latentpde.estimators.exact.ascent`): they say
   where to draw next;
2. the samples so far, weighted for a *tempered* density :math:`p^\beta` with the largest :math:`\beta` that leaves
   enough of them alive, are summarised by a mixture of Student distributions;
3. new samples come from that mixture, and some from around the highest points met so far; all samples, old and new,
   are weighted against the average of all proposals so far (the deterministic-mixture weights of adaptive multiple
   importance sampling, Cornuet et al. 2012);
4. 2 and 3 repeat until :math:`\beta = 1`; the result are fresh samples of the last mixture.

Two halves do this independently. Each estimates the evidence; where they disagree, a mode was missed by one of them,
and the search is repeated with four times the effort. The results of all rounds are merged, so what either found
stays found.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Bool, Float, Int
from numpy import ndarray

from latentpde.errors import DataError
from latentpde.estimators.exact.ascent import ascend
from latentpde.estimators.exact.mixture import Mixture, logsumexp, peaks
from latentpde.estimators.exact.parallel import run_together

if TYPE_CHECKING:
    from scipy.stats.qmc import Sobol

LogDensity = Callable[[Float[ndarray, "point dim"]], Float[ndarray, " point"]]
_NEGLIGIBLE = 40.0  # in log weight
_MOST_PEAKS, _MOST_SCOUTED, _CLIMBS = 32, 64, 3
_PEAK_SHARE = 0.1  # of the samples
_LEAST_INSIDE = 0.01  # of them
_MOST_HARVESTS, _MOST_BATCHES, _SMALL_LOSS = 4, 8, 0.5


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
    from scipy.stats import qmc  # a second of every start if it stood above; and before threads begin

    effort, stages = effort or Effort(), (*easier, log_density)
    populations: list[_Population] = []
    gap, trusted, rounds = np.inf, False, 0
    for rounds in range(1, effort.most_rounds + 1):
        scale, own = 4 ** (rounds - 1), generator.spawn(2)
        halves = run_together(
            *(partial(_search, stages, likeness, qmc.Sobol(dim, rng=rng), effort, scale, rng) for rng in own)
        )
        populations += halves
        gap, tolerance, effective = _compare(halves)
        fresh = all(half.is_fresh for half in halves)
        trusted = fresh and gap <= tolerance and effective >= 0.25 * effort.target
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
        return _values(log_density, points)

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

    def summits(self, peaks: Mixture, log_density: LogDensity) -> Mixture:
        """Where the highest of those peaks lead up to, each with the width that the density has there.

        They only say where to draw: before mass decides, each shows how high it is.
        """
        evaluate = partial(self.evaluate, log_density)
        values = evaluate(peaks.means)
        highest = np.argsort(values)[::-1][:_MOST_PEAKS]
        reach = 2 * np.sqrt(np.square(peaks.factors[highest]).sum((1, 2)))
        means, values, curvatures = ascend(evaluate, peaks.means[highest], reach, _CLIMBS)
        scales, axes = np.linalg.eigh(curvatures)
        scales = np.maximum(scales, 1.0)
        mass = values - 0.5 * np.log(scales).sum(1)
        order = np.argsort(mass)[::-1]
        order = order[mass[order] >= mass.max() - _NEGLIGIBLE]
        offsets = means[order][:, None] - means[order]  # of each from those before it
        near = np.einsum("ijk,jkl,ijl->ij", offsets, curvatures[order], offsets) < 1
        distinct = order[~np.tril(near, -1).any(1)]
        covariances = (axes / scales[:, None] @ axes.swapaxes(1, 2))[distinct]
        return Mixture.of(np.full(len(distinct), 1 / len(distinct)), means[distinct], covariances)

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
    sequence: Sobol,
    effort: Effort,
    scale: int,
    generator: np.random.Generator,
) -> _Population:
    """One half's whole search."""
    dim, proposal = sequence.d, None
    half = _Population(dim)
    for log_density in stages:
        half = _Population(dim, half.num_evaluations)
        points = sequence.random(effort.sweep * scale)
        half.add(points, half.evaluate(log_density, points), None, len(points))
        if log_density is stages[-1] and _effective_size(half.log_weights()) >= effort.target / 2:
            return half
        if proposal is None and likeness and half.temper(effort.alive)[0] < effort.coldest:
            points = sequence.random(effort.scouts * scale)
            proposal = half.summits(peaks(points, _values(likeness, points), _MOST_SCOUTED), log_density)
        if proposal is not None:
            half.draw(proposal, 2 * effort.step * scale, log_density, generator)
        proposal = _climb(half, log_density, effort, scale, generator)
        if proposal is None:  # nothing to go on from; a larger sweep may find something
            return half
    assert proposal is not None
    return _harvest(half, proposal, stages[-1], effort, scale, generator)


def _harvest(
    half: _Population, proposal: Mixture, log_density: LogDensity, effort: Effort, scale: int, generator
) -> _Population:
    """Fresh samples of the last proposal. Where they do not suffice, or do not meet again what the search has met, they
    are added to it and it goes on; if that does not help, all it has is returned, and is not fresh."""
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
        half.num_evaluations = harvest.num_evaluations
        proposal = _climb(half, log_density, effort, scale, generator) or proposal
    half.is_fresh = False
    return half


def _climb(half: _Population, log_density: LogDensity, effort: Effort, scale: int, generator) -> Mixture | None:
    """Fit and draw until enough effective samples of the density itself are there; the last fit."""
    dim, proposal = half.points.shape[1], None
    for iteration in range(effort.most_iterations + 1):
        if np.isneginf(half.values).all():
            return None
        beta, weights = half.temper(effort.alive * np.sqrt(scale))
        # On the way there are many modes, and a component for each finds them; at the end few, and smooth fits
        # that leave no gaps between components give the better weights.
        per_component = 1.0 * dim if beta < 1 else 4.0 * dim
        fit = Mixture.fit(half.points, weights, per_component, generator)
        proposal = Mixture.concatenate(
            [fit.scaled(1 - _PEAK_SHARE), peaks(half.points, half.values, _MOST_PEAKS).scaled(_PEAK_SHARE)]
        )
        if beta == 1.0 or iteration == effort.most_iterations:
            break
        half.forget(weights)
        half.draw(proposal, effort.step * scale, log_density, generator)
    return proposal


def _inside(points: ndarray) -> Bool[ndarray, " point"]:
    return np.all((points >= 0) & (points <= 1), axis=1)


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


def _effective_size(log_weights: ndarray) -> float:
    top = log_weights.max()
    if not np.isfinite(top):
        return 0.0
    weights = np.exp(log_weights - top)
    return float(weights.sum() ** 2 / (weights**2).sum())
