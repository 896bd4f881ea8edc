r"""Samples of a density on a box of several dimensions, which is smooth and whose gradient is known.

In many dimensions a sweep alone meets nothing. Here, in normal coordinates (`latentpde.estimators.exact.normal_box`):

1. two halves sweep the box and climb from their best points by gradients, independently of each other. Where one of
   them missed the highest maximum of the other, both sweep again with four times the points;
2. the maxima of both, each with its curvature, and the places on the flanks of the highest where the posterior is
   higher than that curvature says (`latentpde.estimators.exact.climbing`), are where the first samples are drawn;
3. the samples so far, weighted against everything they were drawn from (Cornuet et al. 2012), are summarised by a
   mixture of Student distributions; another is fitted to the *tempered* posterior, whose tails are heavier, and the
   maxima and flanks remain a part of the proposal: no tail of a level is left to a component that has not seen it;
4. 2 and 3 repeat until enough effective samples are there; the result are fresh samples of the last proposal, whose
   evidence is unbiased. How many is decided once, by the first of them: who stops at the moment when the effective size
   suffices stops before the next large weight.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float
from numpy import ndarray
from scipy.special import ndtri

from latentpde.errors import DataError
from latentpde.estimators.exact.climbing import Maxima, climb, flanks
from latentpde.estimators.exact.mixture import Mixture, logsumexp, peaks
from latentpde.estimators.exact.normal_box import FARTHEST, NormalDensity, NormalPopulation, log_prior, of_box, to_box
from latentpde.estimators.exact.parallel import run_together
from latentpde.estimators.exact.population import LogDensity, LogDensityAndSlope, effective_size
from latentpde.estimators.exact.search import WeightedSamples

if TYPE_CHECKING:
    from scipy.stats.qmc import Sobol

_NUM_CLIMBED, _CLIMBING_STEPS = 5, 40
_SAME_HEIGHT = 1.0  # nats between the highest maxima of the halves, which climbs meet nearly
_POWERS, _POWER_SHARES, _FLANK_SHARE = (1.0, 0.5, 0.2), (0.4, 0.3, 0.3), 0.5  # of the first samples
_TEMPERED, _TEMPERED_SHARE, _WIDE_SHARE, _MAXIMA_SHARE = 0.4, 0.25, 0.1, 0.1  # of the later ones
_PER_COMPONENT, _PER_TEMPERED = 4.0, 2.0  # effective samples for each dimension
_GOOD, _NEARLY, _MARGIN = 0.15, 0.75, 1.05  # effective samples for each that was drawn; of the target
_NEAR_BOUND, _BOX_STEPS, _SMALL_GAIN = 1.0, 10, 1e-3  # of the highest point that is looked at
_INSPECTED = 200  # draws that are looked at
_PLACES, _REACH = 50, 3.0  # along an axis that is looked at to its ends; standard deviations that may reach them
_MOST_TRIES, _SMALL_LOSS = 5, 0.5  # nats of the evidence
_MOST_TAIL = 0.7  # the index of a Pareto tail beyond which averages do not settle

#: Is shown points of the box, and all its maxima; none of them while two halves of the search do not agree on them.
Inspect = Callable[[Float[ndarray, "point dim"], Float[ndarray, "top dim"]], None]


@dataclass(frozen=True)
class GradientEffort:
    """How hard to search.

    Args:
        sweep: Sobol points per half to begin with; a power of two.
        step: samples per iteration, and fresh ones before more of them are decided on.
        min_effective: effective samples that a tempered fit is made from.
        target: effective samples wanted in the end.
        most_rounds: sweeps, each of four times the points of the one before.
        most_searches: likewise, each of four times the effort.
        most_iterations: per search.
        walks: whether flanks are looked for; it takes some ten gradients for each dimension.
    """

    sweep: int = 256
    step: int = 192
    min_effective: float = 60.0
    target: float = 200.0
    most_rounds: int = 3
    most_searches: int = 3
    most_iterations: int = 24
    walks: bool = True


def sample_by_gradients(
    log_density: LogDensity,
    with_slope: LogDensityAndSlope,
    dim: int,
    *,
    generator: np.random.Generator,
    effort: GradientEffort | None = None,
    begin: Maxima | None = None,
    swept: Float[ndarray, "2 dim"] | None = None,
    inspect: Inspect | None = None,
) -> WeightedSamples:
    """Weighted samples of an unnormalised density on the unit box.

    Args:
        log_density: of a batch of points; minus infinity is allowed, NaN is taken for it. Two threads may call it at
            once.
        with_slope: the same with its gradient.
        dim: of the box.
        generator: of all randomness.
        effort: how hard to search before giving up and saying so.
        begin: maxima that are known, in normal coordinates; there is no sweep then, unless ``swept`` says where.
        swept: the lower and the upper corner of the part of the box that ``begin`` are the maxima of, about; the sweep
            is of the rest.
        inspect: is shown the highest maximum, about where the posterior is along axes on which it may reach an end of
            the box, and draws before the last ones are made, each beside all maxima; it may raise what ends the search.
    """
    effort, density = effort or GradientEffort(), NormalDensity(log_density, with_slope)
    maxima, climbs, height_gap = begin, 0, 0.0
    if maxima is None or swept is not None:
        found = _found_by_halves(log_density, with_slope, dim, generator, effort, density, begin, swept, inspect)
        maxima, climbs, height_gap = found
    at_flanks = flanks(density, maxima) if effort.walks else None
    population, known = NormalPopulation(dim), [maxima.mixture()]
    first = Mixture.concatenate(
        [maxima.mixture(power).scaled(share) for power, share in zip(_POWERS, _POWER_SHARES, strict=True)]
    )
    if at_flanks is not None:
        first = Mixture.concatenate([first.scaled(1 - _FLANK_SHARE), at_flanks.scaled(_FLANK_SHARE)])
        known.append(at_flanks)
    population.draw(first, effort.step, density, generator)
    ever_present = Mixture.concatenate([part.scaled(1 / len(known)) for part in known])
    final, fresh, searches = None, False, 0
    for searches in range(1, effort.most_searches + 1):
        scale = 4 ** (searches - 1)
        show = inspect and partial(_inspect_draws, population, maxima, inspect)
        final = _search(population, ever_present, density, effort, scale, generator, show)
        fresh = final is not None
        if fresh:
            break
    final = final or population
    gap, chance = _gap(final.log_weights())
    agreed = height_gap < _SAME_HEIGHT
    log_weights = final.log_weights()
    total, effective = logsumexp(log_weights), smallest_effective_size(final.points, log_weights)
    if not np.isfinite(total):
        raise DataError("the density is zero or not a number at all points tried; check data and bounds")
    return WeightedSamples(
        points=to_box(final.points),
        log_weights=log_weights - total,
        log_evidence=total,
        log_evidence_error=float(1 / np.sqrt(max(effective_size(log_weights), 1.0))),
        effective_size=effective,
        evidence_gap=gap if agreed else max(gap, height_gap),
        num_evaluations=density.num_evaluations,
        num_rounds=max(climbs, searches),
        trusted=bool(fresh and agreed and gap <= chance and effective >= 0.25 * effort.target),
    )


def _found_by_halves(
    log_density: LogDensity,
    with_slope: LogDensityAndSlope,
    dim: int,
    generator: np.random.Generator,
    effort: GradientEffort,
    density: NormalDensity,
    begin: Maxima | None,
    swept: Float[ndarray, "2 dim"] | None,
    inspect: Inspect | None,
) -> tuple[Maxima, int, float]:
    """The maxima that both halves found, in how many rounds, and by how much the highest was missed."""
    from scipy.stats import qmc  # a second of every start if it stood above; and before threads begin

    sequences = [qmc.Sobol(dim, rng=rng) for rng in generator.spawn(2)]
    found: list[Maxima] = []
    rounds, gap, highest = 0, np.inf, -np.inf
    for rounds in range(1, effort.most_rounds + 1):
        own = [NormalDensity(log_density, with_slope) for _ in sequences]
        num = effort.sweep * 4 ** (rounds - 1)
        given = zip(own, sequences, strict=True)
        halves = run_together(*(partial(_sweep_and_climb, *each, num, begin, swept) for each in given))
        density.num_evaluations += sum(one.num_evaluations for one in own)
        found += [half for half in halves if half is not None]
        heights = [-np.inf if half is None else half.values[0] for half in halves]
        before, highest = highest, max(highest, *heights)
        # how much was missed, by one half or by all before: nothing where a larger sweep finds nothing higher
        gap = float(min(highest - min(heights), highest - before)) if np.isfinite(highest) else np.inf
        if inspect and found:
            show = inspect if gap < _SAME_HEIGHT else partial(_show_without_maxima, inspect)
            _inspect_highest(Maxima.joined(found), with_slope, show)
            _inspect_ends(Maxima.joined(found), density, show)
        if gap < _SAME_HEIGHT:
            break
    if not found:
        raise DataError("the density is zero or not a number at all points tried; check data and bounds")
    return Maxima.joined(found), rounds, gap


def _sweep_and_climb(
    density: NormalDensity,
    sequence: Sobol,
    num: int,
    begin: Maxima | None,
    swept: Float[ndarray, "2 dim"] | None,
) -> Maxima | None:
    """The maxima above the best points of a sweep that are apart from each other, beside those that are known; ``None``
    where there are none and all of the sweep is zero."""
    points = sequence.random(num)
    if swept is not None:
        points = points[((points < swept[0]) | (points > swept[1])).any(1)]
    values = density.log_likelihood(of_box(points)) if len(points) else np.empty(0)
    if not np.isfinite(values).any():
        return begin
    most = math.ceil(_NUM_CLIMBED * len(points) / num)
    return climb(density, of_box(peaks(points, values, most).means), _CLIMBING_STEPS, known=begin)


def _inspect_highest(maxima: Maxima, with_slope: LogDensityAndSlope, inspect: Inspect) -> None:
    """Show the point of the box where the density is highest. In normal coordinates the top is drawn to the middle: one
    near a bound is climbed on from, so that it is seen whether it is at the bound."""
    from scipy.optimize import minimize

    point, widths = to_box(maxima.points[:1])[0], 1 / np.sqrt(np.diag(maxima.curvatures[0]))
    if (np.abs(maxima.points[0]) > _NEAR_BOUND).any():
        scale = widths * np.exp(-0.5 * maxima.points[0] ** 2) / np.sqrt(2 * np.pi)

        def downhill(scaled: ndarray) -> tuple[float, ndarray]:
            value, slope = with_slope(np.clip(scaled * scale, 0.0, 1.0)[None])
            return (-float(value[0]), -slope[0] * scale) if np.isfinite(value[0]) else (1e30, np.zeros_like(scaled))

        bounds = [(0.0, 1 / one) for one in scale]
        options = {"maxiter": _BOX_STEPS, "ftol": _SMALL_GAIN}
        found = minimize(downhill, point / scale, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
        point = np.clip(found.x * scale, 0.0, 1.0)
    inspect(point[None], to_box(maxima.points))


def _inspect_ends(maxima: Maxima, density: NormalDensity, inspect: Inspect) -> None:
    """Show about where the posterior is along each axis on which it may reach an end of the box: on the line on which
    the others are what the curvature of the highest maximum expects them to be. Far from there the posterior is higher
    beside the line, so that what is seen at an end is there."""
    top, covariance = maxima.points[0], np.linalg.inv(maxima.curvatures[0])
    stds = np.sqrt(np.diag(covariance))
    along = ndtri((np.arange(_PLACES) + 0.5) / _PLACES)
    for axis in np.flatnonzero(np.abs(top) + _REACH * stds > along[-1]):
        line = top + np.outer(along - top[axis], covariance[axis] / stds[axis] ** 2)
        line = np.clip(line, -FARTHEST, FARTHEST)
        weights = density.log_likelihood(line) + log_prior(line) + 0.5 * line[:, axis] ** 2
        if np.isfinite(weights).any():
            inspect(to_box(line[_resampled(weights)]), to_box(maxima.points))


def _show_without_maxima(
    inspect: Inspect, points: Float[ndarray, "point dim"], tops: Float[ndarray, "top dim"]
) -> None:
    inspect(points, tops[:0])


def _inspect_draws(population: NormalPopulation, maxima: Maxima, inspect: Inspect) -> None:
    inspect(to_box(population.points[_resampled(population.log_weights())]), to_box(maxima.points))


def _search(
    population: NormalPopulation,
    known: Mixture,
    density: NormalDensity,
    effort: GradientEffort,
    scale: int,
    generator: np.random.Generator,
    show: Callable[[], None] | None,
) -> NormalPopulation | None:
    """Fit and draw until a proposal is good, and fresh samples of it; ``None`` where it never is. All others stay in
    the population."""
    for _ in range(effort.most_iterations):
        beta, proposal = _fitted(population, known, effort, scale, generator)
        if beta == 1.0 and len(population.proposals) > 1:
            break
        population.draw(proposal, effort.step * scale, density, generator)
    for _ in range(_MOST_TRIES):
        beta, proposal = _fitted(population, known, effort, scale, generator)
        if show and beta == 1.0:
            show()
        final = NormalPopulation(population.points.shape[1])
        final.draw(proposal, effort.step * scale, density, generator)
        weights, num = final.log_weights(), len(final.points)
        size = min(effective_size(weights), smallest_effective_size(final.points, weights) / _NEARLY)
        if size >= _GOOD * num:
            final.draw(proposal, max(0, round(_MARGIN * effort.target * num / size) - num), density, generator)
            weights = final.log_weights()
            complete = logsumexp(population.log_weights()) < logsumexp(weights) + _SMALL_LOSS  # meets all that was met
            enough = effective_size(weights) >= _NEARLY * effort.target
            if complete and enough and tail_index(weights) < _MOST_TAIL:
                return final
        population.join(final)
    return None


def _fitted(
    population: NormalPopulation, known: Mixture, effort: GradientEffort, scale: int, generator: np.random.Generator
) -> tuple[float, Mixture]:
    """The largest inverse temperature that enough samples are effective at, and a proposal for the posterior there."""
    dim, enough = population.points.shape[1], effort.min_effective * np.sqrt(scale)
    beta, weights = population.temper(enough)
    _, tempered = population.temper(enough, _TEMPERED * beta)
    per_component = _PER_COMPONENT if beta == 1.0 else _PER_TEMPERED
    parts = [
        (_TEMPERED_SHARE, Mixture.fit(population.points, tempered, _PER_TEMPERED * dim, generator)),
        (_WIDE_SHARE, Mixture.wide(population.points, weights)),
        (_MAXIMA_SHARE, known),
    ]
    rest = 1 - sum(share for share, _ in parts)
    fit = Mixture.fit(population.points, weights, per_component * dim, generator)
    return beta, Mixture.concatenate([part.scaled(share) for share, part in [(rest, fit), *parts]])


def _resampled(log_weights: Float[ndarray, " point"]) -> ndarray:
    """Indices of draws that may be looked at; of a generator of their own, since who looks changes nothing."""
    weights = np.exp(log_weights - logsumexp(log_weights))
    return np.random.default_rng(0).choice(len(weights), _INSPECTED, p=weights / weights.sum())


def _gap(log_weights: Float[ndarray, " point"]) -> tuple[float, float]:
    """How far apart the log evidences of every other sample are, and how far chance may put them."""
    halves = log_weights[::2], log_weights[1::2]
    gap = abs(logsumexp(halves[0]) - logsumexp(halves[1]))
    chance = 0.1 + 3 * np.sqrt(sum(1 / max(effective_size(half), 1.0) for half in halves))
    return (float(gap) if np.isfinite(gap) else np.inf), float(chance)


def smallest_effective_size(points: Float[ndarray, "point dim"], log_weights: Float[ndarray, " point"]) -> float:
    """How many independent draws would know the mean of each coordinate as well, and the evidence. Where large weights
    are far out, these are fewer than the weights alone tell.

    >>> points, weights = np.array([[-1.0], [1.0], [-1.0], [1.0], [9.0]]), np.array([1.0, 1.0, 1.0, 1.0, 2.0])
    >>> round(effective_size(np.log(weights)), 2), round(smallest_effective_size(points, np.log(weights)), 2)
    (4.5, 3.65)
    """
    total = logsumexp(log_weights)
    if not np.isfinite(total):
        return 0.0
    weights = np.exp(log_weights - total)
    squares = (points - weights @ points) ** 2
    with np.errstate(divide="ignore", invalid="ignore"):
        sizes = (weights @ squares) / (weights**2 @ squares)
    return float(min(effective_size(log_weights), np.nanmin(sizes, initial=np.inf)))


def tail_index(log_weights: Float[ndarray, " point"]) -> float:
    r"""The index :math:`k` of the generalised Pareto distribution that the largest weights follow: moments of order
    :math:`1/k` and higher do not exist, and beyond 0.7 averages do not settle (Vehtari et al. 2024). The estimate is
    that of Zhang and Stephens (2009), drawn to a half as if ten more weights had it.

    >>> uniform = (np.arange(4000) + 0.5) / 4000
    >>> [round(tail_index(-k * np.log(uniform)), 1) for k in (0.2, 0.5, 0.9)]
    [0.2, 0.5, 0.9]
    """
    weights = np.sort(np.exp(log_weights - log_weights.max()))
    num = int(min(len(weights) / 5, 3 * np.sqrt(len(weights))))
    excess = weights[-num:] - weights[-num - 1]
    if num < 5 or excess[0] <= 0:
        return 0.0
    num_slopes = 30 + int(np.sqrt(num))
    quartile = excess[int(num / 4 + 0.5) - 1]
    slopes = 1 / excess[-1] + (1 - np.sqrt(num_slopes / (np.arange(num_slopes) + 0.5))) / (3 * quartile)
    indices = np.log1p(-slopes[:, None] * excess).mean(1)
    profile = num * (np.log(-slopes / indices) - indices - 1)
    shares = np.exp(profile - logsumexp(profile))
    index = np.log1p(-(shares @ slopes) * excess).mean()
    return float((num * index + 10 * 0.5) / (num + 10))
