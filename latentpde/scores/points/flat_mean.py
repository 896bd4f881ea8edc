r"""Gaussian fields whose mean is unknown: kriging and Gaussian processes are this, with different covariances.

Readings :math:`y \sim N(B \beta, K)` with trend functions in the columns of :math:`B` (a constant, or a constant and
slopes) and a flat prior for :math:`\beta`, which is integrated out. With

.. math:: P = K^{-1} - K^{-1} B (B^\top K^{-1} B)^{-1} B^\top K^{-1}

the log-likelihood of the contrasts (restricted maximum likelihood) is

.. math:: -\tfrac12 \big[ (n - p) \log 2\pi + \log|K| + \log|B^\top K^{-1} B| - \log|B^\top B| + y^\top P y \big],

the prediction elsewhere is the best linear unbiased one, and readings left out are predicted in closed form: those of
a block :math:`b` miss theirs by :math:`P_{bb}^{-1} (P y)_b`, with the covariance :math:`P_{bb}^{-1}`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Float
from torch import Tensor

Trend = Float[Tensor, "*batch reading trend"]


def log_likelihood(
    covariance: Float[Tensor, "*batch reading reading"], trend: Trend, values: Float[Tensor, " reading"]
) -> Float[Tensor, "*batch"]:
    """Log-likelihood of the contrasts of some readings.

    Args:
        covariance: of the readings, noise included; several for several values.
        trend: functions whose coefficients are unknown, a column each.
        values: the readings.

    Example:
        >>> two = torch.tensor([1.0, 3.0], dtype=torch.float64)  # their one contrast is their difference over sqrt(2)
        >>> found = log_likelihood(torch.eye(2).double(), torch.ones(2, 1).double(), two)
        >>> round(float(found) + 0.5 * math.log(2 * math.pi), 9)
        -1.0
    """
    factor = torch.linalg.cholesky(covariance)
    white = torch.linalg.solve_triangular(factor, torch.cat([trend, values[:, None]], -1), upper=False)
    of_trend, of_values = white[..., :-1], white[..., -1:]
    gram = torch.linalg.cholesky(of_trend.mT @ of_trend)
    explained = torch.linalg.solve_triangular(gram, of_trend.mT @ of_values, upper=False)
    misfit = of_values.square().sum((-2, -1)) - explained.square().sum((-2, -1))
    num = len(values) - trend.shape[-1]
    constant = num * math.log(2 * math.pi) - torch.logdet(trend.mT @ trend)
    return -0.5 * (constant + 2 * _log_diagonal(factor) + 2 * _log_diagonal(gram) + misfit)


def _log_diagonal(factor: Tensor) -> Tensor:
    return factor.diagonal(dim1=-2, dim2=-1).log().sum(-1)


@dataclass(frozen=True, eq=False)
class FlatMean:
    """A Gaussian field with an unknown mean, conditioned on readings.

    Args:
        covariance: of the readings, noise included.
        trend: at the readings, a column for each function.
        values: the readings.
    """

    covariance: Float[Tensor, "reading reading"]
    trend: Float[Tensor, "reading trend"]
    values: Float[Tensor, " reading"]

    @cached_property
    def _solved(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """The factor of the covariance, the factor of the trend's Gram matrix, its coefficients and the weights."""
        factor = torch.linalg.cholesky(self.covariance)
        of_trend = torch.cholesky_solve(self.trend, factor)
        gram = torch.linalg.cholesky(self.trend.mT @ of_trend)
        beta = torch.cholesky_solve(of_trend.mT @ self.values[:, None], gram)
        weights = torch.cholesky_solve(self.values[:, None] - self.trend @ beta, factor)
        return factor, gram, beta, weights

    def predict(
        self,
        cross: Float[Tensor, "point reading"],
        trend: Float[Tensor, "point trend"],
        variance: float,
    ) -> tuple[Float[Tensor, " point"], Float[Tensor, " point"]]:
        """Mean and variance of the field elsewhere.

        Args:
            cross: covariance of the field there with the readings.
            trend: the functions there.
            variance: of the field itself.
        """
        factor, gram, beta, weights = self._solved
        mean = (cross @ weights + trend @ beta)[:, 0]
        white = torch.linalg.solve_triangular(factor, cross.mT, upper=False)
        rest = trend.mT - self.trend.mT @ torch.cholesky_solve(cross.mT, factor)
        of_mean = torch.linalg.solve_triangular(gram, rest, upper=False)
        return mean, (variance - white.square().sum(0) + of_mean.square().sum(0)).clamp(min=0)

    @cached_property
    def precision(self) -> Float[Tensor, "reading reading"]:
        """The matrix ``P`` at the top of this file."""
        factor, gram, _, _ = self._solved
        of_trend = torch.cholesky_solve(self.trend, factor)
        whitened = torch.linalg.solve_triangular(gram, of_trend.mT, upper=False)
        return torch.cholesky_inverse(factor) - whitened.mT @ whitened

    def left_out(self, block: Tensor) -> tuple[Float[Tensor, " index"], Float[Tensor, " index"]]:
        """Mean and variance of some readings, noise included, as the others predict them.

        Args:
            block: indices of the readings that are left out together.
        """
        inverse = torch.linalg.inv(self.precision[block][:, block])
        error = inverse @ (self.precision[block] @ self.values)
        return self.values[block] - error, inverse.diagonal()
