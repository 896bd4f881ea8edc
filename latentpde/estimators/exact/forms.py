r"""Two forms of one Gaussian: of readings :math:`y = a + A c + \varepsilon` with :math:`c \sim N(0, I)` integrated out.

*covariance*, for few readings
    :math:`S = A A^T + \Sigma` between two readings depends on their displacement alone, so a product of
    :math:`|R|^2` with a table of cosines over the *distinct* displacements gives it, a gather puts it in place, and
    Cholesky does the rest (`CovarianceForm`);
*information*, for many readings
    :math:`\Lambda = I + A^T \Sigma^{-1} A` is of the size of the unknowns; the sums over readings do not depend on
    :math:`\theta` and are taken once, so the cost of an evaluation does not grow with the readings
    (`latentpde.estimators.exact.information`).

A form is factorised at some parameters, once, and the factors answer all that is asked there: the likelihood, the
conditional of the unknowns, and what leaving readings out would give. All in float64, batched over :math:`\theta`, and
differentiable in it.
"""

from __future__ import annotations

from functools import cached_property
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Complex, Float
from torch import Tensor
from torch.autograd.function import once_differentiable

from latentpde.estimators.exact.conditioned import ConditionedModes
from latentpde.estimators.exact.covariances import Signal, signal_of
from latentpde.estimators.exact.mapped import MappedModes
from latentpde.estimators.exact.noise import Noise
from latentpde.estimators.exact.responses import UnknownModes


@runtime_checkable
class GaussianForm(Protocol):
    """A way to evaluate the Gaussian of the readings, given what the mean leaves of them.

    ``num_values`` is how many numbers the largest array has that one set of parameters takes.
    """

    num_values: int
    noise: Noise

    def factorised(self, parameters: Tensor) -> Factors:
        """The Gaussian at each of some parameters."""
        ...

    def whitening(self, parameters: Tensor) -> Tensor:
        """What makes residuals about white: a matrix to multiply by from the right, or a factor for each reading."""
        ...

    def with_noise(self, noise: Noise) -> GaussianForm:
        """The same with other noise."""
        ...


@runtime_checkable
class Factors(Protocol):
    """The Gaussian at a batch of parameters. Columns have a number for each reading: residuals, and the constants and
    trends that are integrated out with them."""

    @property
    def log_det(self) -> Tensor:
        """:math:`\\log \\det S`."""
        ...

    def products(self, columns: Tensor) -> Tensor:
        """:math:`C^T S^{-1} C` for the columns of ``(batch, reading, column)``."""
        ...

    def evaluated(self, columns: Tensor) -> tuple[Tensor, Tensor]:
        """`log_det` and `products`, at whose derivatives nothing else is looked at."""
        ...

    def solve(self, columns: Tensor) -> Tensor:
        """:math:`S^{-1} C`."""
        ...

    def diagonal(self) -> Tensor:
        """That of :math:`S^{-1}`."""
        ...

    def conditional(self, residuals: Tensor, generator: torch.Generator | None) -> Tensor:
        """Whitened unknowns, ``(batch, column, unknown)``, given residuals ``(batch, reading, column)``: their means,
        or with a generator a draw for each column."""
        ...


class NoiseForm:
    """Readings without anything unknown: independent noise."""

    num_values = 1

    def __init__(self, noise: Noise):
        self.noise = noise

    def factorised(self, parameters: Tensor) -> NoiseFactors:
        return NoiseFactors(torch.atleast_2d(self.noise.variance(parameters)), len(parameters))

    def whitening(self, parameters: Tensor) -> Tensor:
        return 1 / torch.sqrt(torch.atleast_2d(self.noise.variance(parameters))[0])

    def with_noise(self, noise: Noise) -> NoiseForm:
        return NoiseForm(noise)


class NoiseFactors:
    """Those of `NoiseForm`: variances, of each set of parameters or one for all."""

    def __init__(self, variance: Tensor, num: int):
        self._variance, self._num = variance, num

    @property
    def log_det(self) -> Tensor:
        return torch.log(self._variance).sum(-1)

    def products(self, columns: Tensor) -> Tensor:
        return gram(columns, self._variance)

    def evaluated(self, columns: Tensor) -> tuple[Tensor, Tensor]:
        return self.log_det, self.products(columns)

    def solve(self, columns: Tensor) -> Tensor:
        return columns / self._variance[..., None]

    def diagonal(self) -> Tensor:
        return (1 / self._variance).expand(self._num, -1)

    def conditional(self, residuals: Tensor, generator: torch.Generator | None) -> Tensor:
        return torch.zeros((len(residuals), residuals.shape[-1], 0), dtype=torch.complex128)


class CovarianceForm:
    """The form for few readings: factorises their covariance."""

    def __init__(
        self, unknown: UnknownModes | MappedModes | ConditionedModes, noise: Noise, signal: Signal | None = None
    ):
        self.unknown, self.noise = unknown, noise
        self._last: tuple[Tensor, CovarianceFactors] | None = None
        self._signal = signal or signal_of(unknown)
        self.num_values = max(len(noise.known) ** 2, self._signal.num_values)

    def factorised(self, parameters: Tensor) -> CovarianceFactors:
        last, once = self._last, len(parameters) == 1 and not parameters.requires_grad
        if once and last is not None and torch.equal(last[0], parameters):
            return last[1]
        whole = self._signal.covariance(parameters)
        whole.diagonal(dim1=-2, dim2=-1).add_(self.noise.variance(parameters))
        factors = CovarianceFactors(self, parameters, whole)
        if once:  # cases of one layout may ask for it again; it has no graph for a gradient
            self._last = parameters.clone(), factors
        return factors

    def whitening(self, parameters: Tensor) -> Tensor:
        return torch.linalg.inv(self.factorised(parameters).factor)[0].T

    def with_noise(self, noise: Noise) -> CovarianceForm:
        return CovarianceForm(self.unknown, noise, self._signal)


class CovarianceFactors:
    """Those of `CovarianceForm`: Cholesky's of the covariance."""

    def __init__(self, form: CovarianceForm, parameters: Tensor, covariance: Tensor):
        self._form, self._parameters, self._covariance = form, parameters, covariance

    @cached_property
    def factor(self) -> Tensor:
        """The lower one."""
        return cholesky(self._covariance)

    @property
    def log_det(self) -> Tensor:
        return log_det(self.factor)

    def products(self, columns: Tensor) -> Tensor:
        return gram(torch.linalg.solve_triangular(self.factor, columns, upper=False))

    def evaluated(self, columns: Tensor) -> tuple[Tensor, Tensor]:
        if self._covariance.requires_grad:
            return log_det_and_products(self._covariance, columns)
        return self.log_det, self.products(columns)

    def solve(self, columns: Tensor) -> Tensor:
        return torch.cholesky_solve(columns, self.factor)

    def diagonal(self) -> Tensor:
        return self._diagonal

    @cached_property
    def _diagonal(self) -> Tensor:
        return torch.cholesky_inverse(self.factor).diagonal(dim1=-2, dim2=-1)

    def conditional(self, residuals: Tensor, generator: torch.Generator | None) -> Tensor:
        # by Matheron's rule: a draw of the prior, moved by what its readings lack
        form, unknown, num_columns = self._form, self._form.unknown, residuals.shape[-1]
        prior = normals((len(residuals), num_columns, len(unknown)), generator)
        if generator is not None:
            noise = torch.randn(residuals.shape, dtype=torch.float64, generator=generator)
            std = torch.sqrt(torch.atleast_2d(form.noise.variance(self._parameters)))[..., None]
            residuals = residuals - unknown.all_readings(self._parameters, prior) - std * noise
        return prior + unknown.all_adjoints(self._parameters, self.solve(residuals))


def log_det_and_products(matrix: Tensor, columns: Tensor) -> tuple[Tensor, Tensor]:
    r""":math:`\log \det M` and :math:`C^T M^{-1} C` of the lower triangles of symmetric matrices, differentiable once:
    with :math:`X = M^{-1} C`, derivatives are :math:`M^{-1}` and :math:`-X X^T`, at the price of one inverse.

    Args:
        matrix: ``(batch, row, row)``.
        columns: ``(batch, row, column)``.
    """
    return _LogDetAndProducts.apply(matrix, columns)  # pyright: ignore[reportReturnType]


class _LogDetAndProducts(torch.autograd.Function):
    @staticmethod
    def forward(ctx, matrix, columns):  # pyright: ignore[reportIncompatibleMethodOverride]
        factor = cholesky(matrix)
        white = torch.linalg.solve_triangular(factor, columns, upper=False)
        ctx.save_for_backward(factor, white)
        return log_det(factor), white.mT @ white

    @staticmethod
    @once_differentiable
    def backward(ctx, to_log_det, to_products):  # pyright: ignore[reportIncompatibleMethodOverride]
        factor, white = ctx.saved_tensors
        solved = torch.linalg.solve_triangular(factor.mT, white, upper=True)
        weighted = solved @ (to_products + to_products.mT)
        to_columns = weighted if ctx.needs_input_grad[1] else None
        whole = torch.cholesky_inverse(factor)
        whole *= 2 * to_log_det[:, None, None]
        whole -= weighted @ solved.mT
        whole.diagonal(dim1=-2, dim2=-1).mul_(0.5)
        return whole.tril_(), to_columns


def normals(shape: tuple[int, ...], generator: torch.Generator | None) -> Complex[Tensor, "..."]:
    """Draws of the whitened unknowns' prior, or zeros without a generator."""
    if generator is None:
        return torch.zeros(shape, dtype=torch.complex128)
    return torch.complex(*torch.randn((2, *shape), dtype=torch.float64, generator=generator))


def gram(
    columns: Float[Tensor, "batch reading column"], variance: Tensor | float = 1.0
) -> Float[Tensor, "batch column column2"]:
    """Products of columns, in units of the variance; of a single one its square."""
    if columns.shape[-1] == 1:
        return (columns[..., 0] ** 2 / variance).sum(-1)[..., None, None]
    return columns.mT @ (columns / (variance[..., None] if isinstance(variance, Tensor) else variance))


def cholesky(matrix: Tensor) -> Tensor:
    """The lower factor; NaN, rather than an error for the whole batch, where rounding left none."""
    factor, info = torch.linalg.cholesky_ex(matrix)
    return torch.where((info > 0)[:, None, None], torch.nan, factor) if bool(info.any()) else factor


def log_det(factor: Tensor) -> Tensor:
    return 2 * torch.log(factor.diagonal(dim1=-2, dim2=-1)).sum(-1)
