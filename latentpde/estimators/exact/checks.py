r"""Whether the readings of one case can have come from its model.

Given the parameters :math:`\theta`, what the mean leaves of the readings is Gaussian, :math:`r \sim N(0, S)`. So
anything taken of :math:`r` and :math:`\theta` whose distribution is then known is a check with a known false-alarm
rate, also for parameters drawn from the posterior: if the model is right, these and the readings are distributed as
the true ones and the readings are (Johnson 2007). p-values of several such parameters are combined by Cauchy's rule,
which keeps that rate; their mean would raise fewer alarms than are due.

With :math:`v = S^{-1} r` the checks are

``misfit``
    :math:`r^T v`, a chi-squared variable, on both sides;
``reading``
    the largest of the leave-one-out scores :math:`v_i / \sqrt{(S^{-1})_{ii}}`, corrected for their number;
``amplitude``
    :math:`a^T v / \sqrt{a^T S^{-1} a}` with the mean :math:`a` that the known initial state gives, a standard normal
    variable: far below zero where the readings hold less of the initial state than the PDE leaves of it, as they do of
    any state that is not theirs;
``noise``, ``neighbours``, ``times``, ``source``, ``start``
    :math:`v^T K v`, which is how the likelihood changes with the strength of an additional field of covariance
    :math:`K`: the locally most powerful test for it (Lin 1997). ``noise`` is more noise, of each reading in
    units of what is left open of it, so that this is the sum of the squared leave-one-out scores: a source or a state
    whose levels are inferred takes understated noise for structure as fine as the readings, which brings the misfit to
    what it should be but predicts no reading from the others. ``neighbours`` is a field of the length of the distance
    between readings, anew at each time; ``times`` one that stays; ``source`` the source itself, which is then found
    stronger than its prior; ``start`` an initial state with the spectrum of the given one and other phases,
    or, where it is unknown, the state's own prior. :math:`v^T K v` is a weighted sum of chi-squared variables, whose
    tails are taken by four moments (Liu, Tang and Zhang 2009).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from latentpde.estimators.exact.model import Model
from latentpde.posterior.adequacy import EVERY_RUN, Check, combined

MOST_READINGS = 1000  # beyond, products of matrices of their size would take longer than the search
_NODES, _READINGS_TIMES_NODES = 8, 2000
_REACH = 1.0  # of a field among neighbours, in distances to the nearest one
_LEAST_SIZE = 1e-12  # of what a known initial state gives, squared and in units of the readings' covariance


@dataclass(frozen=True, eq=False)
class NodeChecks:
    """What the checks at some parameters take of a model, whatever was read: the same for all cases of a layout.

    Args:
        node: the parameters.
        precision: the inverse of the readings' covariance, less what the trend explains; ``None`` for too many.
        kernels: covariances of additional fields.
        tails: of their products with the residuals.
    """

    node: Float[Tensor, "1 parameter"]
    precision: Float[Tensor, "reading reading2"] | None
    kernels: dict[str, Float[Tensor, "reading reading2"]]
    tails: dict[str, WeightedChiSquared]

    @classmethod
    def of(cls, model: Model, node: Float[Tensor, "1 parameter"]) -> NodeChecks:
        """Those of a model."""
        likelihood = model.likelihood
        if not likelihood.trend.shape[1] < len(likelihood.values) <= MOST_READINGS:
            return cls(node, None, {}, {})
        precision = likelihood.precision(node)
        kernels = _kernels(model, node, precision)
        tails = {name: WeightedChiSquared.of(precision @ kernel) for name, kernel in kernels.items()}
        return cls(node, precision, kernels, tails)

    def check(self, model: Model) -> dict[str, Check]:
        """All checks of a case."""
        likelihood, node = model.likelihood, self.node
        degrees = len(likelihood.values) - likelihood.trend.shape[1]
        if degrees < 1:
            return {}
        misfit = float(likelihood.misfit(node)[0])
        checks = {"misfit": Check(_two_sided(*chi_squared(misfit, degrees)), misfit / degrees)}
        mean, std = likelihood.leave_one_out(node)
        scores = ((likelihood.values - mean[0]) / std[0]).abs()
        worst = int(scores.argmax())
        checks["reading"] = Check(
            min(1.0, len(scores) * math.erfc(float(scores[worst]) / math.sqrt(2))),
            float(scores[worst]),
            worst if model.order is None else int(model.order[worst]),
        )
        if self.precision is None:
            return checks
        dual = self.precision @ likelihood.residual(node)
        mean = likelihood.mean(node)[0]
        size = float(mean @ self.precision @ mean)
        if size > _LEAST_SIZE:
            score = float(mean @ dual) / math.sqrt(size)
            checks["amplitude"] = Check(math.erfc(-score / math.sqrt(2)) / 2, 1 + score / math.sqrt(size))
        for name, tail in self.tails.items():
            product = float(dual @ self.kernels[name] @ dual)
            ratio = math.sqrt(max(product, 0.0) / max(tail.mean, 1e-300))
            checks[name] = Check(tail.probabilities(product)[0], ratio)
        return checks


def node_checks(model: Model, nodes: Float[Tensor, "node parameter"]) -> list[NodeChecks]:
    """Checks at as many parameters as the time allows.

    Args:
        model: of a case.
        nodes: parameters drawn from the posterior, in the model's units.
    """
    few = nodes[: max(1, min(_NODES, _READINGS_TIMES_NODES // len(model.likelihood.values)))]
    with torch.no_grad():
        return [NodeChecks.of(model, node[None]) for node in few]


def check_case(model: Model, nodes: list[NodeChecks]) -> dict[str, Check]:
    """All checks of one case; those that do not apply, such as ``times`` for a single snapshot, are NaN."""
    with torch.no_grad():
        found = [node.check(model) for node in nodes]
    checks = {}
    for name in EVERY_RUN:
        here = [one[name] for one in found if name in one]
        if here:
            p = combined([check.p for check in here])
            checks[name] = Check(p, float(np.median([check.found for check in here])), here[0].reading)
        else:
            checks[name] = Check(math.nan, math.nan)
    return checks


def _kernels(model: Model, node: Tensor, precision: Tensor) -> dict[str, Float[Tensor, "reading reading2"]]:
    """Covariances of additional fields at the readings. More of one than expected is wrong; of less, which four moments
    do not tell well, the misfit speaks."""
    likelihood, places = model.likelihood, model.likelihood.unknown.places
    kernels = {}
    # in units of what is left open of each reading, so that those that are known best do not speak alone
    scale = 1 / torch.sqrt(precision.diagonal())
    extent = torch.tensor(model.decoder.extent, dtype=torch.float64)
    apart = places.positions[:, None] - places.positions
    apart = apart - extent * torch.round(apart / extent)
    squared = (apart**2).sum(-1)
    elsewhere = torch.where(squared > 0, squared, torch.inf).amin(1)
    reach = _REACH**2 * elsewhere.median().clamp(max=float(extent.square().max()))
    near = torch.exp(-squared / (2 * reach)) * scale[:, None] * scale
    snapshots = torch.cat([torch.full((s.stop - s.start,), t) for t, s in enumerate(places.snapshots)])
    kernels["noise"] = torch.diag(scale**2)
    kernels["neighbours"] = near * (snapshots[:, None] == snapshots)
    if len(places.times) > 1 and not places.has_source:
        kernels["times"] = near
    for field, responses in likelihood.unknown.responses_by_field(node).items():
        waves = torch.cat([responses.real, responses.imag], dim=-1)
        kernels["start" if field == "state" else field] = waves @ waves.T
    if likelihood.known is not None and likelihood.known.num_modes:
        waves = likelihood.known.responses(node)
        kernels["start"] = waves.real.T @ waves.real + waves.imag.T @ waves.imag
    return {name: kernel for name, kernel in kernels.items() if bool((kernel.diagonal() > 0).any())}


def chi_squared(value: float, degrees: float | int, centre: float = 0.0) -> tuple[float, float]:
    """Probabilities of more and of less, for a chi-squared variable with some noncentrality.

    >>> [round(p, 4) for p in chi_squared(18.307, 10)]
    [0.05, 0.95]
    """
    from scipy.special import chdtr, chdtrc, chndtr

    if value <= 0:
        return 1.0, 0.0
    if centre <= 0:
        return float(chdtrc(degrees, value)), float(chdtr(degrees, value))
    below = float(chndtr(value, degrees, centre))
    return max(1 - below, 0.0), below


@dataclass(frozen=True)
class WeightedChiSquared:
    """A sum of squared normals with weights, by its first four moments.

    >>> of_ten = WeightedChiSquared.of(2 * torch.eye(10, dtype=torch.float64))
    >>> [round(p, 4) for p in of_ten.probabilities(2 * 18.307)]
    [0.05, 0.95]

    Args:
        mean, variance: of the sum.
        scale, degrees, centre: of the chi-squared variable, with noncentrality, that has its skewness and kurtosis.
    """

    mean: float
    variance: float
    scale: float
    degrees: float
    centre: float

    @classmethod
    def of(cls, product: Float[Tensor, "reading reading2"]) -> WeightedChiSquared:
        """That of a matrix whose eigenvalues are the weights, not negative; only traces of its powers are taken."""
        squared = product @ product
        first, second = float(product.trace()), float((product * product.T).sum())
        third, fourth = float((squared * product.T).sum()), float((squared * squared.T).sum())
        skewness, kurtosis = third / second**1.5, fourth / second**2
        a, centre, degrees = 1 / skewness, 0.0, 1 / skewness**2
        if skewness**2 > kurtosis:
            own = 1 / (skewness - math.sqrt(skewness**2 - kurtosis))
            own_centre = skewness * own**3 - own**2
            if own**2 - 2 * own_centre > 0 and own_centre >= 0:
                a, centre, degrees = own, own_centre, own**2 - 2 * own_centre
        return cls(first, 2 * second, a, degrees, centre)

    def probabilities(self, value: float) -> tuple[float, float]:
        """Of more and of less."""
        deviation = (value - self.mean) / math.sqrt(self.variance)
        return chi_squared(
            deviation * math.sqrt(2) * self.scale + self.degrees + self.centre, self.degrees, self.centre
        )


def _two_sided(upper: float, lower: float) -> float:
    return min(1.0, 2 * min(upper, lower))
