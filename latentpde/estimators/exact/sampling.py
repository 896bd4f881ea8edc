"""The parameters of one case, sampled: which search suits its likelihood, and with how many readings it begins.

Where an evaluation takes long, as with thousands of readings, the global search sees some of the readings only, spread
over places and times. What it finds is where the search with all of them begins: the maxima are climbed to again, and
the samples are of the posterior given all readings, with importance weights that are right. Only that a mode exists at
all is learnt from the part.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from latentpde.estimators.exact.climbing import Maxima, climb
from latentpde.estimators.exact.gradient_search import GradientEffort, sample_by_gradients
from latentpde.estimators.exact.likelihood import MarginalLikelihood
from latentpde.estimators.exact.normal_box import NormalDensity, of_box, to_box
from latentpde.estimators.exact.parameters import Parameters
from latentpde.estimators.exact.search import Effort, WeightedSamples, sample_box
from latentpde.progress import Say

#: Numbers in the largest array of an evaluation; beyond, the global search sees a part of the readings.
MOST_VALUES = 700**2
#: Readings in that part.
NUM_IN_PART = 250

_FIRST_EXTRA, _EXTRA_RATIO = 0.1, 0.2
_FEWER = 4  # times fewer points of the sweep where the search climbs by gradients
_STARTS, _FAR, _CLIMBING_STEPS = 3, 4.0, 15  # with all readings, from what the part found
_STEPS_ANEW = 40  # within wider bounds
_FEWER_OF_MANY = 2  # times fewer samples where there are many parameters: fields are drawn for half as many of them
_FEWER_EFFECTIVE, _LEAST_EFFECTIVE = 4, 50.0  # times fewer samples where an evaluation takes long
_SMALL_STEP, _SMALL_FIT, _INSPECTED = 64, 20.0, 200
_SAME_END = 1e-6  # of the box: units are rounded

#: Is shown parameters, and where the posterior has maxima, as far as that is known.
Inspect = Callable[[Float[Tensor, "point parameter"], Float[Tensor, "top parameter"]], None]


@dataclass(frozen=True, eq=False)
class Begun:
    """What a search within narrower bounds has found.

    Args:
        parameters: where the posterior has maxima there, the highest first.
        bounds: of the coefficients that it swept. Beyond them there may be other maxima; beyond bounds of levels there
            are none.
    """

    parameters: Float[Tensor, "top parameter"]
    bounds: Float[Tensor, "coefficient 2"]

    def in_units(self, units: Float[Tensor, " parameter"]) -> Begun:
        """The same in other units, of which these are given in the present ones."""
        return Begun(self.parameters / units, self.bounds / units[: len(self.bounds), None])

    def swept(self, parameters: Parameters) -> Float[np.ndarray, "2 free"] | None:
        """The lower and the upper corner of what was swept, in the box of the wider bounds; ``None`` where that is all
        of it."""
        free, num_levels = parameters.free, len(parameters.levels)
        lower, upper = parameters.latent.bounds[free].unbind(-1)
        shares = ((self.bounds[free].T - lower) / (upper - lower)).numpy()
        corners = np.concatenate([shares, np.tile([[0.0], [1.0]], num_levels)], axis=1)
        corners = np.where(np.abs(corners - corners.round()) < _SAME_END, corners.round(), corners)
        return None if (corners[0] <= 0).all() and (corners[1] >= 1).all() else corners


@dataclass(frozen=True, eq=False)
class Sampler:
    """A way to sample the parameters of one case.

    Args:
        parameters: what is free, and its prior.
        sweep, target: effort, see `latentpde.estimators.exact.search.Effort`.
        inspect: is shown the highest maximum before samples are drawn, and draws before more is done with them; it may
            raise what ends the search.
        say: is told what is being done, where that takes long.
        begin: what a search within narrower bounds has found; the search climbs on from there and sweeps the rest.
    """

    parameters: Parameters
    sweep: int = Effort.sweep
    target: float = Effort.target
    inspect: Inspect | None = None
    say: Say = lambda sentence: None
    begin: Begun | None = None

    def sample(self, likelihood: MarginalLikelihood, rng: np.random.Generator) -> WeightedSamples:
        """Coefficients and levels, on the unit box."""
        samples = self._sample(likelihood, rng)
        self._show(samples)
        return samples

    def _show(self, samples: WeightedSamples) -> None:
        if self.inspect and self.parameters.num_free:
            generator = np.random.default_rng(0)  # of its own: who looks changes nothing
            draws = samples.points[samples.resample(_INSPECTED, generator=generator)]
            starts, _ = _apart(draws, np.ones(len(draws)))
            self.inspect(self.parameters.at(draws), self.parameters.at(to_box(starts)))

    def _sample(self, likelihood: MarginalLikelihood, rng: np.random.Generator) -> WeightedSamples:
        density = _Density(likelihood, self.parameters)
        if not self.parameters.num_free:
            value = float(density(np.zeros((1, 0)))[0])
            return WeightedSamples(np.zeros((1, 0)), np.zeros(1), value, 0.0, 1.0, 0.0, 1, 1, True)
        if likelihood.known is not None:
            return self._with_known_mean(likelihood, density, rng)
        # levels smooth the way, and there are many parameters
        num = len(likelihood.values)
        if likelihood.num_values > MOST_VALUES and num > 2 * NUM_IN_PART:
            return self._with_a_part_first(likelihood, density, rng)
        return self._by_gradients(density, rng, target=self.target / _FEWER_OF_MANY)

    def _by_gradients(self, density: _Density, rng: np.random.Generator, **effort: Any) -> WeightedSamples:
        begin, swept = None, None
        if self.begin is not None:
            starts = of_box(self.parameters.in_box(self.begin.parameters))
            begin = climb(NormalDensity(density, density.with_slope), starts, _STEPS_ANEW)
            swept = self.begin.swept(self.parameters)
        return sample_by_gradients(
            density,
            density.with_slope,
            self.parameters.num_free,
            generator=rng,
            effort=GradientEffort(sweep=max(2, self.sweep // _FEWER), **effort),
            begin=begin,
            swept=swept,
            inspect=self._show_in_box if self.inspect else None,
        )

    def _show_in_box(self, points: Float[np.ndarray, "point free"], tops: Float[np.ndarray, "top free"]) -> None:
        assert self.inspect is not None
        self.inspect(self.parameters.at(points), self.parameters.at(tops))

    def _with_a_part_first(
        self, likelihood: MarginalLikelihood, density: _Density, rng: np.random.Generator
    ) -> WeightedSamples:
        num = len(likelihood.values)
        chosen = torch.from_numpy(np.sort(rng.permutation(num)[:NUM_IN_PART]))
        self.say(f"search with {NUM_IN_PART} of {num:,} readings")
        part = _Density(likelihood.only(chosen), self.parameters)
        # where the search with all begins: samples that are not quite good serve as well
        found = self._by_gradients(part, rng, target=self.target / _FEWER_EFFECTIVE, most_searches=1)
        self._show(found)
        self.say(f"climb with all {num:,} readings")
        start = _climbed_again(density, found.points, np.exp(found.log_weights), NUM_IN_PART / num)
        self.say(f"sample with all {num:,} readings")
        target = max(self.target / _FEWER_EFFECTIVE, min(self.target, _LEAST_EFFECTIVE))
        # so many readings leave the parameters nearly normal, and a gradient takes a sixth of a second
        options = {"step": _SMALL_STEP, "min_effective": _SMALL_FIT, "most_searches": 1, "walks": False}
        effort = GradientEffort(target=target, **options)
        samples = sample_by_gradients(
            density, density.with_slope, self.parameters.num_free, generator=rng, effort=effort, begin=start
        )
        self.say(f"draw given all {num:,} readings")
        return replace(samples, num_evaluations=samples.num_evaluations + found.num_evaluations)

    def _with_known_mean(
        self, likelihood: MarginalLikelihood, density: _Density, rng: np.random.Generator
    ) -> WeightedSamples:
        easier = [likelihood.with_extra_noise(std) for std in _extra_noise(likelihood)]
        surrogate = (easier[0] if easier else likelihood).surrogate(self.parameters.middle)
        return sample_box(
            density,
            self.parameters.num_free,
            generator=rng,
            effort=Effort(sweep=self.sweep, target=self.target),
            easier=[_Density(noisier, self.parameters) for noisier in easier],
            surrogate=_Density(surrogate, self.parameters) if surrogate else None,
        )


class _Density:
    """The log density of parameters on the unit box, given the readings."""

    def __init__(self, likelihood, parameters: Parameters):
        self._likelihood, self._parameters = likelihood, parameters

    def __call__(self, points: np.ndarray) -> np.ndarray:
        with torch.no_grad():
            chosen = self._parameters.at(points)
            return (self._likelihood.log_likelihood(chosen) + self._parameters.log_density(chosen)).numpy()

    def with_slope(self, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The same with its gradient; a few points at a time, since graphs take memory."""
        found = []
        for few in torch.from_numpy(points).split(max(1, self._likelihood.batch)):
            at = few.clone().requires_grad_(True)
            chosen = self._parameters.of_box(at)
            values = self._likelihood.log_likelihood(chosen) + self._parameters.log_density(chosen)
            (slope,) = torch.autograd.grad(values.sum(), at)
            found.append((values.detach().numpy(), slope.numpy()))
        return np.concatenate([value for value, _ in found]), np.concatenate([slope for _, slope in found])


def _climbed_again(
    density: _Density, points: Float[np.ndarray, "point free"], weights: Float[np.ndarray, " point"], share: float
) -> Maxima:
    """The maxima of a density near those that another has, in normal coordinates.

    Args:
        density: given all readings.
        points, weights: samples given a part of the readings.
        share: of the readings that the part had; the density is narrower by its root, about.
    """
    starts, std = _apart(points, weights)
    scale = np.sqrt(share) * np.clip(std, 1e-6, None)
    return climb(NormalDensity(density, density.with_slope), starts, _CLIMBING_STEPS, scale)


def _apart(
    points: Float[np.ndarray, "point free"], weights: Float[np.ndarray, " point"]
) -> tuple[Float[np.ndarray, "start free"], Float[np.ndarray, " free"]]:
    """A few places where samples are, in normal coordinates, and their standard deviation: the mean, and others that
    are far from all before."""
    weights, z = weights / weights.sum(), of_box(points)
    mean = weights @ z
    std = np.sqrt(weights @ (z - mean) ** 2)
    starts = [mean]
    for point in z[np.argsort(weights)[::-1]]:
        if len(starts) < _STARTS and all((np.abs(point - other) > _FAR * std).any() for other in starts):
            starts.append(point)
    return np.stack(starts), std


def _extra_noise(likelihood: MarginalLikelihood) -> list[float]:
    """Noise to begin the search with where the readings have next to none: modes are as narrow as noise is small."""
    if likelihood.noise.inferred:
        return []
    signal, noise = float(likelihood.values.square().mean().sqrt()), float(likelihood.noise.known.min().sqrt())
    stds = []
    while (std := _FIRST_EXTRA * signal * _EXTRA_RATIO ** len(stds)) > 2 * noise:
        stds.append(std)
    return stds
