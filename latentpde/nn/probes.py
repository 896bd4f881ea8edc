r"""What the physics says of a case before anything is learnt.

Which coefficients explain the readings is a comparison of the initial state, carried along by the PDE, with what was
read: convolutions do not find it in any time that we have. But the residual :math:`J` is at hand. It is asked for at
fixed coefficients spread over their bounds, without a source, and its gradient in the whole latent at the best of them.
Networks then learn to read a coarse map of the likelihood and one step of a descent. The gradient as an input is the
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

_SAMPLES_AT_ONCE = 8  # fields of more do not stay in a core's cache


def num_features(num_probes: int, num_coefficients: int) -> int:
    """Of `probe`, besides the gradient."""
    return num_probes + 1 + num_coefficients if num_probes else 0


def probe(
    observation: Observation, units: Units, num_probes: int
) -> tuple[Float[Tensor, "case feature"], Float[Tensor, "case gradient"]]:
    """Logarithms of the residuals in units of the noise, of the number of readings, and the best raw coefficients; and
    the gradient of the log-likelihood there by ``w``, its large entries compressed."""
    if not num_probes:
        nothing = torch.zeros((len(observation), 0))
        return nothing, nothing
    coefficients = _spread(num_probes, units.latent.num_coefficients)
    variance = observation.typical_variance[:, None]
    bare = Decoder(replace(units.latent, num_modes=0), observation.grid.extent)
    residuals = []
    with torch.no_grad():
        for first in range(0, len(observation), _SAMPLES_AT_ONCE):
            operator = ObservationOperator(observation[first : first + _SAMPLES_AT_ONCE], bare)
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
def _spread(num: int, num_coefficients: int) -> Float[Tensor, "probe coefficient"]:
    """Raw coefficients of evenly spread places between the bounds, the same for ever."""
    places = torch.quasirandom.SobolEngine(num_coefficients, scramble=False).draw(num + 1)[1:]
    return torch.logit(places.double(), eps=1e-3).float()
