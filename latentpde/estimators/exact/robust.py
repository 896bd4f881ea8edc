r"""Noise with outliers: Gaussian for most readings, of heavy tails for some.

The noise of a reading is a scale mixture of Gaussians: its variance is that of an ordinary reading times a factor
:math:`f`. With probability :math:`1 - \epsilon` that is one; else the noise is Student's, with a few degrees of freedom
and a scale of several standard deviations, which is a mixture over :math:`f \sim` inverse gamma. A Student distribution
alone would take clean Gaussian readings for less noisy than they are; this one leaves them as they are.

Given the factors all is Gaussian, and closed form. They are found one reading at a time from what all *other* readings
predict of it, mean :math:`m` and variance :math:`v`, in closed form too: an outlier has no part in that, so it cannot
vouch for itself. The posterior of :math:`f` given :math:`N(y; m, v + f \sigma^2)` is a matter of one dimension; where
it finds the reading ordinary the factor is one, else the mode. A few turns for all readings settle that.

Parameters and factors depend on each other. A sweep of the parameters, each with factors of its own, chooses those that
predict readings left out best, heavy tails included, so that outliers capture neither noise level nor prior; the search
follows with the factors that belong there, and is repeated while its result gives others, a few times: where that does
not settle, the diagnostic ``outliers_settled`` is false. The result is the posterior given the factors: that other
factors were possible is not in its spread.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from latentpde.estimators.exact.covariances import signal_of
from latentpde.estimators.exact.likelihood import MarginalLikelihood
from latentpde.estimators.exact.model import Model
from latentpde.estimators.exact.parameters import Parameters
from latentpde.estimators.exact.search import WeightedSamples

OUTLIER_PROBABILITY, DEGREES, SCALE = 0.05, 2.0, 5.0  # of the noise that is not Gaussian, and its Student distribution
_LARGEST, _NUM_FACTORS = 1e10, 96
_SWEEP, _READINGS, _TURNS, _MOST_SEARCHES, _NODES = 512, 200, 8, 3, 8
_BATCH_VALUES = 2**21
_SAME = 2.0  # factors within this ratio of each other are the same

Search = Callable[[MarginalLikelihood], WeightedSamples]


def robust_search(
    model: Model, parameters: Parameters, search: Search, rng: np.random.Generator
) -> tuple[Model, WeightedSamples, bool]:
    """The model with the factors of its readings' noise, the samples of its parameters, and whether these would give
    the same factors again.

    Args:
        model: with ordinary noise.
        parameters: what is free, and its prior.
        search: of the parameters, given a likelihood.
        rng: of all randomness.
    """
    plain, may_lie = model.likelihood, torch.ones(len(model.likelihood.values), dtype=torch.bool)
    if model.order is not None:
        may_lie = model.order >= 0
    factors, _ = settled(plain, best_of_sweep(plain, parameters, may_lie, rng), may_lie)
    num_searches = 0
    while True:
        num_searches += 1
        likelihood = plain.with_noise(plain.noise.scaled(factors))
        samples = search(likelihood)
        nodes = parameters.at(samples.points[samples.resample(_NODES, generator=rng)])
        found, price = settled(plain, nodes, may_lie, factors)
        same = bool((torch.log(found / factors).abs() < math.log(_SAME)).all())
        if same or num_searches == _MOST_SEARCHES:
            return model.with_factors(factors), replace(samples, log_evidence=samples.log_evidence + price), same
        factors = found


def best_of_sweep(
    likelihood: MarginalLikelihood, parameters: Parameters, may_lie: Tensor, rng: np.random.Generator
) -> Float[Tensor, "1 parameter"]:
    """Of parameters spread over their box, those that predict readings left out best, each set with factors of its own;
    by some of the readings where there are many."""
    from scipy.stats import qmc  # a second of every start if it stood above

    num, dim = len(likelihood.values), parameters.num_free
    chosen = torch.from_numpy(np.sort(rng.permutation(num)[:_READINGS]))
    points = qmc.Sobol(dim, rng=rng).random(_SWEEP) if dim else np.zeros((1, 0))
    signal = signal_of(likelihood.unknown.only(chosen)) if len(likelihood.unknown) else None
    scores, batch = [], max(1, _BATCH_VALUES // max(len(chosen) ** 2, len(chosen) * _NUM_FACTORS))
    with torch.no_grad():
        for some in parameters.at(points).split(batch):
            residual = (likelihood.values - likelihood.mean(some)).expand(len(some), -1)[:, chosen]
            covariance = signal.covariance(some) if signal else torch.zeros((), dtype=torch.float64)
            noise = torch.atleast_2d(likelihood.noise.only(chosen).variance(some)).expand(len(some), -1)
            score = _left_out_score(residual, covariance, noise, likelihood.trend[chosen], may_lie[chosen])
            scores.append(score + parameters.log_density(some))
    best = int(torch.cat(scores).nan_to_num(nan=-torch.inf).argmax())
    return parameters.at(points[best : best + 1])


def _left_out_score(
    residual: Float[Tensor, "batch reading"], signal: Tensor, noise: Tensor, trend: Tensor, may_lie: Tensor
) -> Float[Tensor, " batch"]:
    """Log density of each reading given the others, in sum, with factors that have settled."""
    factors, score = torch.ones_like(residual), residual.new_zeros(len(residual))
    for _ in range(_TURNS):
        precision = torch.linalg.inv_ex(signal + torch.diag_embed(factors * noise))[0]
        if trend.shape[1]:
            weighted = precision @ trend
            precision = precision - weighted @ torch.linalg.solve_ex(trend.T @ weighted, weighted.mT)[0]
        diagonal = precision.diagonal(dim1=-2, dim2=-1)
        distance = (precision @ residual[..., None])[..., 0] / diagonal
        factors, densities = conditional_factors(distance, 1 / diagonal - factors * noise, noise)
        factors = torch.where(may_lie, factors, 1.0)
        score = densities.sum(-1)
    return score


def settled(
    likelihood: MarginalLikelihood,
    nodes: Float[Tensor, "node parameter"],
    may_lie: Tensor,
    factors: Float[Tensor, " reading"] | None = None,
) -> tuple[Float[Tensor, " reading"], float]:
    """The factors of all readings, given some parameters, and what the log evidence lacks that was found with them: the
    densities of readings with any factor, in units of those with their own.

    Args:
        likelihood: with ordinary noise.
        nodes: parameters.
        may_lie: which readings may be outliers.
        factors: to begin with.
    """
    plain = torch.atleast_2d(likelihood.noise.variance(nodes)).mean(0)
    found = torch.ones_like(likelihood.values) if factors is None else factors
    price = 0.0
    with torch.no_grad():
        for _ in range(_TURNS):
            before, noise = found, likelihood.noise.scaled(found)
            means, stds = likelihood.with_noise(noise).leave_one_out(nodes)
            mean = means.mean(0)
            variance = ((stds**2 + means**2).mean(0) - mean**2 - found * plain).clamp(min=0)
            distance = likelihood.values - mean
            found, density = conditional_factors(distance, variance, plain)
            found = torch.where(may_lie, found, 1.0)
            price = float((density - _log_normal(distance, variance + found * plain))[may_lie].sum())
            if bool((torch.log(found / before).abs() < 0.1).all()):
                break
    return found, price


def conditional_factors(
    distance: Float[Tensor, "*batch reading"],
    variance: Float[Tensor, "*batch reading"],
    noise: Float[Tensor, "*#batch reading"],
) -> tuple[Float[Tensor, "*batch reading"], Float[Tensor, "*batch reading"]]:
    """The factor of each reading, and the log density of the reading, given what the others predict.

    >>> of_one, far = conditional_factors(torch.tensor([1.0, 50.0]), torch.zeros(2), torch.ones(2))[0].tolist()
    >>> of_one, 500 < far < 1000
    (1.0, True)

    Args:
        distance: of the reading from the prediction.
        variance: of the prediction, without the reading's noise.
        noise: variance of an ordinary reading's noise.
    """
    shape, spread = DEGREES / 2, DEGREES / 2 * SCALE**2
    logs = torch.linspace(0.0, math.log(_LARGEST), _NUM_FACTORS, dtype=distance.dtype)
    prior = shape * math.log(spread) - math.lgamma(shape) - shape * logs - spread * torch.exp(-logs)
    noise, variance = noise.expand_as(distance), variance.clamp(min=0)
    heavy = prior + _log_normal(distance[..., None], variance[..., None] + torch.exp(logs) * noise[..., None])
    outlying = torch.logsumexp(heavy, -1) + math.log(float(logs[1])) + math.log(OUTLIER_PROBABILITY)
    ordinary = _log_normal(distance, variance + noise) + math.log1p(-OUTLIER_PROBABILITY)
    modes = torch.exp(logs[heavy.argmax(-1)])
    return torch.where(outlying > ordinary, modes, 1.0), torch.logaddexp(outlying, ordinary)


def _log_normal(distance: Tensor, variance: Tensor) -> Tensor:
    return -0.5 * (torch.log(2 * math.pi * variance) + distance**2 / variance)
