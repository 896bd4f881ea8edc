r"""Samples of a density on a box of few dimensions, found globally, with weights that are right.

The densities here are cheap, smooth, and have many narrow modes far apart, the kind on which a chain sits in one and
reports that all is well. So nothing walks:

1. a scrambled Sobol sequence sweeps the box; where that finds the density rugged, many more points are tried with a
   cheap surrogate of it, and from the surrogate's peaks Newton's method climbs to the density's own
   (`latentpde.estimators.exact.ascent`): they say where to draw next;
2. the samples so far, weighted for a *tempered* density :math:`p^\beta` with the largest :math:`\beta` that leaves
   enough effective samples, are summarised by a mixture of Student distributions;
3. new samples come from that mixture, and some from around the highest points met so far; all samples, old and new,
   are weighted against the average of all proposals so far (the deterministic-mixture weights of adaptive multiple
   importance sampling, Cornuet et al. 2012);
4. 2 and 3 repeat until :math:`\beta = 1`; the result are fresh samples of the last mixture.

Two halves do this independently. Each estimates the evidence; where they disagree, a mode was missed by one of them,
and the search is repeated with four times the effort. The results of all rounds are merged, so what either found
stays found.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray

from latentpde.errors import DataError
from latentpde.estimators.exact.mixture import Mixture, logsumexp, peaks
from latentpde.estimators.exact.parallel import run_together
from latentpde.estimators.exact.population import (
    MOST_PEAKS,
    LogDensity,
    Population,
    effective_size,
    values_of,
)

if TYPE_CHECKING:
    from scipy.stats.qmc import Sobol

_MOST_SURROGATE_PEAKS = 64
_PEAK_SHARE = 0.1  # of the samples
_MOST_FINAL_TRIES, _MOST_BATCHES, _SMALL_LOSS = 4, 8, 0.5


@dataclass(frozen=True)
class Effort:
    """How hard to search.

    Args:
        sweep: Sobol points per half to begin with; a power of two.
        min_temperature: inverse temperature that the sweep must support; where it does not, the density is so
            rugged that its surrogate is searched too.
        num_surrogate: points per half at which only the density's cheap surrogate is taken; a power of two.
        step: samples per half and iteration.
        min_effective: effective samples that a tempered fit is made from.
        target: effective samples wanted in the end.
        most_rounds: searches, each of four times the effort of the one before.
        most_evaluations: after which no further round begins.
        most_iterations: per search.
    """

    sweep: int = 1024
    min_temperature: float = 0.02
    num_surrogate: int = 16_384
    step: int = 256
    min_effective: float = 100.0
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
    surrogate: LogDensity | None = None,
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
        surrogate: something that is cheap and high where the density is. Where a sweep is not enough, many more points
            are tried with it, and the search looks at its peaks.
    """
    from scipy.stats import qmc  # a second of every start if it stood above; and before threads begin

    effort, stages = effort or Effort(), (*easier, log_density)
    populations: list[Population] = []
    gap, trusted, rounds = np.inf, False, 0
    for rounds in range(1, effort.most_rounds + 1):
        scale, own = 4 ** (rounds - 1), generator.spawn(2)
        sequences = [qmc.Sobol(dim, rng=rng) for rng in own]
        search = partial(_search, stages, surrogate, effort, scale)
        halves = run_together(*(partial(search, *each) for each in zip(sequences, own, strict=True)))
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
    effective = effective_size(log_weights)
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


def _search(
    stages: Sequence[LogDensity],
    surrogate: LogDensity | None,
    effort: Effort,
    scale: int,
    sequence: Sobol,
    generator: np.random.Generator,
) -> Population:
    """One half's whole search: a sweep, peaks of the surrogate where it is needed, annealing, final samples."""
    dim, proposal = int(sequence.d), None
    half = Population(dim)
    for log_density in stages:
        half = Population(dim, half.num_evaluations)
        points = sequence.random(effort.sweep * scale)
        half.add(points, half.evaluate(log_density, points), None, len(points))
        if log_density is stages[-1] and effective_size(half.log_weights()) >= effort.target / 2:
            return half
        if proposal is None and surrogate and half.temper(effort.min_effective)[0] < effort.min_temperature:
            points = sequence.random(effort.num_surrogate * scale)
            proposal = half.refined_peaks(
                peaks(points, values_of(surrogate, points), _MOST_SURROGATE_PEAKS), log_density
            )
        if proposal is not None:
            half.draw(proposal, 2 * effort.step * scale, log_density, generator)
        proposal = _anneal(half, log_density, effort, scale, generator)
        if proposal is None:  # nothing to go on from; a larger sweep may find something
            return half
    assert proposal is not None
    return _final_samples(half, proposal, stages[-1], effort, scale, generator)


def _final_samples(
    half: Population, proposal: Mixture, log_density: LogDensity, effort: Effort, scale: int, generator
) -> Population:
    """Fresh samples of the last proposal. Where they do not suffice, or do not meet again what the search has met, they
    are added to it and it goes on; if that does not help, all it has is returned, and is not fresh."""
    for _ in range(_MOST_FINAL_TRIES):
        final = Population(half.points.shape[1], half.num_evaluations)
        for _ in range(_MOST_BATCHES):
            final.draw(proposal, effort.step * scale, log_density, generator)
            if effective_size(final.log_weights()) >= effort.target / 2:
                break
        weights = final.log_weights()
        complete = logsumexp(half.log_weights()) < logsumexp(weights) + _SMALL_LOSS
        if complete and effective_size(weights) >= effort.target / 2:
            return final
        half.add(final.points, final.values, proposal, final.num_drawn)
        half.num_evaluations = final.num_evaluations
        proposal = _anneal(half, log_density, effort, scale, generator) or proposal
    half.is_fresh = False
    return half


def _anneal(half: Population, log_density: LogDensity, effort: Effort, scale: int, generator) -> Mixture | None:
    """Fit and draw until enough effective samples of the density itself are there; the last fit."""
    dim, proposal = half.points.shape[1], None
    for iteration in range(effort.most_iterations + 1):
        if np.isneginf(half.values).all():
            return None
        beta, weights = half.temper(effort.min_effective * np.sqrt(scale))
        # On the way there are many modes, and a component for each finds them; at the end few, and smooth fits
        # that leave no gaps between components give the better weights.
        per_component = 1.0 * dim if beta < 1 else 4.0 * dim
        fit = Mixture.fit(half.points, weights, per_component, generator)
        highest = peaks(half.points, half.values, MOST_PEAKS)
        proposal = Mixture.concatenate([fit.scaled(1 - _PEAK_SHARE), highest.scaled(_PEAK_SHARE)])
        if beta == 1.0 or iteration == effort.most_iterations:
            break
        half.prune(weights)
        half.draw(proposal, effort.step * scale, log_density, generator)
    return proposal


def _compare(halves: list[Population]) -> tuple[float, float, float]:
    """How far apart the halves' log evidences are, how far chance would put them, and the smaller sample size."""
    weights = [half.log_weights() for half in halves]
    sizes = [max(effective_size(w), 1.0) for w in weights]
    evidences = [logsumexp(w) for w in weights]
    gap = abs(evidences[0] - evidences[1])
    return (gap if np.isfinite(gap) else np.inf), 0.1 + 3 * np.sqrt(sum(1 / n for n in sizes)), min(sizes)


def _merge(populations: list[Population]) -> tuple[ndarray, ndarray]:
    """All points, with their weights against everything that any population proposed."""
    for population in populations:
        population.prune(population.log_weights())
    points = np.concatenate([p.points for p in populations])
    values = np.concatenate([p.values for p in populations])
    proposed = np.logaddexp.reduce([p.log_proposed_at(points) for p in populations])
    return points, values - proposed
