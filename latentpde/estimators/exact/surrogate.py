"""A cheap stand-in for the likelihood, to look for its modes with."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from latentpde.estimators.exact.forms import GaussianForm
from latentpde.estimators.exact.responses import KnownState

_BATCH = 256


class Surrogate:
    """The log likelihood with the readings' covariance held at one set of parameters, up to a constant and in single
    precision.

    It is several times cheaper than the likelihood, and has its modes about where the likelihood has them, because the
    mean moves much more with the coefficients than the covariance does.

    Args:
        values: the readings.
        known: their mean.
        form: their covariance.
        parameters: where the covariance is taken.
    """

    def __init__(
        self,
        values: Float[Tensor, " reading"],
        known: KnownState,
        form: GaussianForm,
        parameters: Float[Tensor, "1 parameter"],
    ):
        self._values, self._known = values.float(), known.in_single_precision()
        self._whitening = form.whitening(parameters).float()

    def log_likelihood(self, parameters: Float[Tensor, "batch parameter"]) -> Float[Tensor, " batch"]:
        return -0.5 * torch.cat([self._misfit(part) for part in parameters.float().split(_BATCH)]).double()

    def _misfit(self, parameters: Tensor) -> Tensor:
        residual, whitening = self._values - self._known.mean(parameters), self._whitening
        return ((residual @ whitening if whitening.ndim == 2 else residual * whitening) ** 2).sum(-1)
