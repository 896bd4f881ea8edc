r"""Whether the readings of one case can have come from its model.

Given the parameters :math:`\theta`, what the mean leaves of the readings is Gaussian, :math:`r \sim N(0, S)`. So
anything taken of :math:`r` and :math:`\theta` whose distribution is then known is a check with a known false-alarm
rate, also for parameters drawn from the posterior: if the model is right, these and the readings are distributed as
the true ones and the readings are (Johnson 2007). p-values are averaged over such parameters.

With :math:`v = S^{-1} r` the checks are

``misfit``
    :math:`r^T v`, a chi-squared variable, on both sides;
``reading``
    the largest of the leave-one-out scores :math:`v_i / \sqrt{(S^{-1})_{ii}}`, corrected for their number;
``neighbours``, ``times``, ``source``, ``start``
    :math:`v^T K v`, which is how the likelihood changes with the strength of an additional field of covariance
    :math:`K`: the locally most powerful test for it (Lin 1997). ``neighbours`` is a field of the length of the distance
    between readings, anew at each time; ``times`` one that stays; ``source`` the source itself, which is then found
    stronger than its prior; ``start`` an initial state with the spectrum of the given one and other phases,
    or, where it is unknown, the state's own prior. :math:`v^T K v` is a weighted sum of chi-squared variables, whose
    tails are taken by four moments (Liu, Tang and Zhang 2009).
"""

from __future__ import annotations

import math

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from latentpde.estimators.exact.model import Model
from latentpde.posterior.adequacy import EVERY_RUN, Check

MOST_READINGS = 1000  # beyond, products of matrices of their size would take longer than the search
_NODES, _READINGS_TIMES_NODES = 8, 2000
_REACH = 2.0  # of a field among neighbours, in distances to the nearest one


def check_case(model: Model, nodes: Float[Tensor, "node parameter"]) -> dict[str, Check]:
    """All checks of one case; those that do not apply, such as ``times`` for a single snapshot, are NaN.

    Args:
        model: of the case.
        nodes: parameters drawn from the posterior, in the model's units.
    """
    num = len(model.likelihood.values)
    few = nodes[: max(1, min(_NODES, _READINGS_TIMES_NODES // num))]
    with torch.no_grad():
        found = [_check_node(model, node[None]) for node in few]
    checks = {}
    for name in EVERY_RUN:
        here = [one[name] for one in found if name in one]
        if here:
            p = float(np.mean([check.p for check in here]))
            checks[name] = Check(p, float(np.median([check.found for check in here])), here[0].reading)
        else:
            checks[name] = Check(math.nan, math.nan)
    return checks


def _check_node(model: Model, node: Float[Tensor, "1 parameter"]) -> dict[str, Check]:
    likelihood = model.likelihood
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
    if len(likelihood.values) > MOST_READINGS:
        return checks
    residual, precision = likelihood.residual_and_precision(node)
    dual = precision @ residual
    for name, kernel in _kernels(model, node, precision).items():
        product, expected = float(dual @ kernel @ dual), precision @ kernel
        upper, _ = weighted_chi_squared(product, expected)
        ratio = math.sqrt(max(product, 0.0) / max(float(expected.trace()), 1e-300))
        checks[name] = Check(upper, ratio)
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


def weighted_chi_squared(value: float, product: Float[Tensor, "reading reading2"]) -> tuple[float, float]:
    """Probabilities of more and of less, for a sum of squared normals with weights.

    >>> upper, lower = weighted_chi_squared(2 * 18.307, 2 * torch.eye(10, dtype=torch.float64))
    >>> round(upper, 4), round(lower, 4)
    (0.05, 0.95)

    Args:
        value: of the sum.
        product: a matrix whose eigenvalues are the weights, not negative; only traces of its powers are taken.
    """
    squared = product @ product
    first, second = float(product.trace()), float((product * product.T).sum())
    third, fourth = float((squared * product.T).sum()), float((squared * squared.T).sum())
    skewness, kurtosis = third / second**1.5, fourth / second**2
    if skewness**2 > kurtosis:
        a = 1 / (skewness - math.sqrt(skewness**2 - kurtosis))
        centre = skewness * a**3 - a**2
        degrees = a**2 - 2 * centre
    else:
        a, centre, degrees = 1 / skewness, 0.0, 1 / skewness**2
    if degrees <= 0 or centre < 0:
        a, centre, degrees = 1 / skewness, 0.0, 1 / skewness**2
    deviation = (value - first) / math.sqrt(2 * second)
    return chi_squared(deviation * math.sqrt(2) * a + degrees + centre, degrees, centre)


def _two_sided(upper: float, lower: float) -> float:
    return min(1.0, 2 * min(upper, lower))
