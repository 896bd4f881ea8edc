r"""Probes: the masked residual at fixed coefficients, as an input of networks.

To find the coefficients that explain the readings is to compare the initial state, carried along by the PDE, with what
was read, and convolutions were not seen to learn that in hours on a CPU. But the residual :math:`J` makes just this
comparison. So it is computed at fixed coefficients spread over their bounds, without a source, and its gradient with
respect to the whole latent at the best of them. Networks then start from a coarse map of the likelihood and one step of
a descent. The gradient as an input is the
idea of Adler and Öktem, *Solving ill-posed inverse problems using iterative deep neural networks* (2017).
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import torch
from jaxtyping import Float
from torch import Tensor

from latentpde.decoder import Decoder
from latentpde.nn.units import Units
from latentpde.observation import Observation
from latentpde.operator import ObservationOperator

_CASES_AT_ONCE = 8  # fields of more do not stay in a core's cache


def num_features(num_probes: int, num_coefficients: int) -> int:
    """Number of features that `probe` returns for each case, besides the gradient."""
    return num_probes + 1 + num_coefficients if num_probes else 0


def probe(
    observation: Observation, units: Units, num_probes: int
) -> tuple[Float[Tensor, "case feature"], Float[Tensor, "case gradient"]]:
    """What the probes say of each case.

    Args:
        observation: readings of the cases, with an initial state.
        units: the latent's prior, and the network's units.
        num_probes: number of coefficient vectors; 0 returns empty arrays.
    Returns:
        The features: logarithms of the residuals in units of the noise's variance, the logarithm of the number of
        readings, and the raw coefficients of the best probe. Then the gradient of the log-likelihood there with respect
        to ``w``, its large entries compressed by an inverse hyperbolic sine.
    """
    if not num_probes:
        nothing = torch.zeros((len(observation), 0))
        return nothing, nothing
    coefficients = _sobol(num_probes, units.latent.num_coefficients)
    variance = observation.typical_variance[:, None]
    bare = Decoder(replace(units.latent, num_modes=0), observation.grid.extent)
    residuals = []
    with torch.no_grad():
        for first in range(0, len(observation), _CASES_AT_ONCE):
            operator = ObservationOperator(observation[first : first + _CASES_AT_ONCE], bare)
            residuals.append(operator.residual(coefficients[None]))
    residual = torch.cat(residuals).double() / variance
    best = coefficients[residual.argmin(1)].double()
    z = torch.nn.functional.pad(best, (0, units.latent.size - best.shape[1]))[:, None]
    operator = ObservationOperator(observation, Decoder(units.latent, observation.grid.extent))
    slope = operator.residual_and_gradient(z)[1][:, 0]
    counts = observation.num_readings[:, None].double()
    gradient = units.gradient(-0.5 * counts / variance * slope)
    features = torch.cat([torch.log(residual + 0.1) / 2, torch.log(counts) / 2, best], dim=1)
    return features.float(), torch.asinh(gradient).float()


@cache
def _sobol(num: int, num_coefficients: int) -> Float[Tensor, "probe coefficient"]:
    """Raw coefficients of a Sobol sequence between the bounds; trained networks depend on it, so it must not change."""
    places = torch.quasirandom.SobolEngine(num_coefficients, scramble=False).draw(num + 1)[1:]
    return torch.logit(places.double(), eps=1e-3).float()
