r"""Two forms of one Gaussian: of readings :math:`y = a + A c + \varepsilon` with :math:`c \sim N(0, I)` integrated out.

*covariance*, for few readings
    :math:`S = A A^T + \Sigma` between two readings depends on their displacement alone, so a product of
    :math:`|R|^2` with a table of cosines over the *distinct* displacements gives it, a gather puts it in place, and
    Cholesky does the rest;
*information*, for many readings
    :math:`\Lambda = I + A^T \Sigma^{-1} A` is of the size of the unknowns; the sums over readings do not depend on
    :math:`\theta` and are taken once, so the cost of an evaluation does not grow with the readings.

All in float64, batched over :math:`\theta`, and differentiable in it.
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Complex, Float
from torch import Tensor

from latentpde.estimators.exact.fourier import as_wavenumbers, fold, phases
from latentpde.estimators.exact.responses import UnknownModes, squared


@runtime_checkable
class GaussianForm(Protocol):
    """A way to evaluate the Gaussian of the readings, given what the mean leaves of them.

    ``size`` is the side of the matrix that is factorised, ``variance`` that of each reading's noise.
    """

    size: int
    variance: Tensor

    def quadratic_and_log_det(self, theta: Tensor, residual: Tensor) -> tuple[Tensor, Tensor]:
        """:math:`r^T S^{-1} r` and :math:`\\log \\det S`."""
        ...

    def conditional(self, theta: Tensor, residual: Tensor, generator: torch.Generator | None) -> Tensor:
        """Whitened unknowns given the readings: their mean, or with a generator a draw."""
        ...

    def whitening(self, theta: Tensor) -> Tensor:
        """What makes residuals about white: a matrix to multiply by from the right, or a factor for each reading."""
        ...

    def with_variance(self, variance: Tensor) -> GaussianForm:
        """The same with another noise variance of each reading."""
        ...


class NoiseForm:
    """Readings without anything unknown: independent noise."""

    size = 1

    def __init__(self, variance: Float[Tensor, " reading"]):
        self.variance = variance

    def quadratic_and_log_det(self, theta: Tensor, residual: Tensor) -> tuple[Tensor, Tensor]:
        return (residual**2 / self.variance).sum(-1), torch.log(self.variance).sum()

    def conditional(self, theta: Tensor, residual: Tensor, generator: torch.Generator | None) -> Tensor:
        return torch.zeros((len(theta), 0), dtype=torch.complex128)

    def whitening(self, theta: Tensor) -> Tensor:
        return 1 / torch.sqrt(self.variance)

    def with_variance(self, variance: Tensor) -> NoiseForm:
        return NoiseForm(variance)


class CovarianceForm:
    """The form for few readings: factorises their covariance."""

    def __init__(
        self,
        unknown: UnknownModes,
        variance: Float[Tensor, " reading"],
        table: DisplacementTable | None = None,
    ):
        self.unknown, self.variance = unknown, variance
        self.size = len(variance)
        self._table = table or DisplacementTable(unknown)

    def quadratic_and_log_det(self, theta: Tensor, residual: Tensor) -> tuple[Tensor, Tensor]:
        factor = _cholesky(self._covariance(theta))
        white = torch.linalg.solve_triangular(factor, residual[..., None], upper=False)[..., 0]
        return (white**2).sum(-1), _log_det(factor)

    def conditional(self, theta: Tensor, residual: Tensor, generator: torch.Generator | None) -> Tensor:
        prior = _normals(theta, len(self.unknown), generator)
        if generator is not None:
            noise = torch.randn(residual.shape, dtype=torch.float64, generator=generator)
            residual = residual - self.unknown.readings(theta, prior) - torch.sqrt(self.variance) * noise
        factor = _cholesky(self._covariance(theta))
        dual = torch.cholesky_solve(residual[..., None], factor)[..., 0]
        return prior + self.unknown.adjoint(theta, dual)

    def whitening(self, theta: Tensor) -> Tensor:
        return torch.linalg.inv(_cholesky(self._covariance(theta)))[0].T

    def with_variance(self, variance: Tensor) -> CovarianceForm:
        return CovarianceForm(self.unknown, variance, self._table)

    def _covariance(self, theta: Tensor) -> Float[Tensor, "batch reading reading2"]:
        whole = self._table.covariance(theta)
        whole.diagonal(dim1=-2, dim2=-1).add_(self.variance)
        return whole


class DisplacementTable:
    """The readings' covariance without noise, from cosines (and sines) of every distinct displacement."""

    def __init__(self, unknown: UnknownModes):
        self._unknown, places = unknown, unknown.places
        keys = places.pair_keys()
        if places.num_snapshots == 1:
            keys = torch.minimum(keys, keys.T)  # the cosine is even
        _, first, inverse = np.unique(keys.numpy().ravel(), return_index=True, return_inverse=True)
        self._gather = torch.from_numpy(inverse.reshape(keys.shape))
        row, col = np.unravel_index(first, keys.shape)
        displacements = places.positions[row] - places.positions[col]
        self._parts, tables = [], []
        squares = torch.split(unknown.scale**2, [k.x.shape[-1] for _, k in unknown.parts])
        for (name, wavenumbers), square in zip(unknown.parts, squares, strict=True):
            k = torch.cat([wavenumbers.y, wavenumbers.x]).T
            table = square[:, None] * torch.exp(1j * phases(k, displacements))
            if unknown.even:
                k, table = fold(k, table)
            self._parts.append((name, as_wavenumbers(k)))
            tables.append(table)
        table = torch.cat(tables)
        self._cosines = table.real.contiguous()
        self._sines = table.imag.contiguous() if places.num_snapshots > 1 else torch.zeros(0, dtype=torch.float64)

    def covariance(self, theta: Tensor) -> Float[Tensor, "batch reading reading2"]:
        response = self._unknown.responses(theta, self._parts)
        snapshots = self._unknown.places.snapshots
        if len(snapshots) == 1:
            return self._look_up(squared(response[:, 0]) @ self._cosines, self._gather)
        later, earlier = torch.tril_indices(len(snapshots), len(snapshots))
        cross = response[:, later] * response[:, earlier].conj()
        tables = cross.real @ self._cosines
        tables = tables - cross.imag @ self._sines if cross.is_complex() else tables
        num_readings = len(self._gather)
        whole = torch.empty((len(theta), num_readings, num_readings), dtype=torch.float64)
        for pair, (a, b) in enumerate(zip(later.tolist(), earlier.tolist(), strict=True)):
            rows, cols = snapshots[a], snapshots[b]
            whole[:, rows, cols] = block = self._look_up(tables[:, pair], self._gather[rows, cols])
            if a != b:
                whole[:, cols, rows] = block.mT
        return whole

    @staticmethod
    def _look_up(table: Tensor, where: Tensor) -> Tensor:
        return table.gather(1, where.reshape(1, -1).expand(len(table), -1)).unflatten(1, where.shape)


class InformationForm:
    """The form for many readings: factorises the precision of the unknowns."""

    def __init__(self, unknown: UnknownModes, variance: Float[Tensor, " reading"]):
        self.unknown, self.variance = unknown, variance
        self.size = 2 * len(unknown)
        self._sums = []  # over the readings of each snapshot
        for here in unknown.places.snapshots:
            waves = unknown.waves[here]
            weighted = waves / variance[here, None]
            hermitian, symmetric = waves.conj().T @ weighted, waves.T @ weighted
            one = unknown.places.num_snapshots == 1
            self._sums.append(_as_real(hermitian, symmetric) if one else (hermitian, symmetric))

    def quadratic_and_log_det(self, theta: Tensor, residual: Tensor) -> tuple[Tensor, Tensor]:
        precision, rhs, _ = self._information(theta, residual)
        factor = _cholesky(precision)
        white = torch.linalg.solve_triangular(factor, rhs[..., None], upper=False)[..., 0]
        quadratic = (residual**2 / self.variance).sum(-1) - (white**2).sum(-1)
        return quadratic, _log_det(factor) + torch.log(self.variance).sum()

    def conditional(self, theta: Tensor, residual: Tensor, generator: torch.Generator | None) -> Tensor:
        prior = _normals(theta, len(self.unknown), generator)
        precision, rhs, phase = self._information(theta, residual)
        factor = _cholesky(precision)
        mean = torch.cholesky_solve(rhs[..., None], factor)[..., 0]
        if generator is not None:
            white = torch.cat([prior.real, prior.imag], dim=-1)
            mean = mean + torch.linalg.solve_triangular(factor.mT, white[..., None], upper=True)[..., 0]
        unknown = torch.complex(*mean.chunk(2, dim=-1))
        return unknown if phase is None else unknown * phase.conj()

    def whitening(self, theta: Tensor) -> Tensor:
        return 1 / torch.sqrt(self.variance + self.unknown.prior_variance(theta))

    def with_variance(self, variance: Tensor) -> InformationForm:
        return InformationForm(self.unknown, variance)

    def _information(self, theta: Tensor, residual: Tensor) -> tuple[Tensor, Tensor, Tensor | None]:
        """Precision and right-hand side of the unknowns, real parts before imaginary ones. With one snapshot they are
        those of the unknowns turned by the phases of their responses, which are the third result: their prior is the
        same, and the precision is a product of real numbers."""
        response, snapshots, waves = self.unknown.responses(theta), self.unknown.places.snapshots, self.unknown.waves
        if len(snapshots) == 1:
            size, phase = response[:, 0], None
            if size.is_complex():
                size, phase = size.abs(), torch.polar(torch.ones_like(size.real), size.angle())
            twice = torch.cat([size, size], dim=-1)
            precision = twice[:, :, None] * self._sums[0] * twice[:, None, :]
            precision.diagonal(dim1=-2, dim2=-1).add_(1.0)
            projected = (residual / self.variance).to(torch.complex128) @ waves
            return precision, twice * torch.cat([projected.real, -projected.imag], dim=-1), phase
        response, num = response.to(torch.complex128), len(self.unknown)
        precision = torch.eye(2 * num, dtype=torch.float64).expand(len(theta), -1, -1).clone()
        rhs = torch.zeros((len(theta), num), dtype=torch.complex128)
        for t, (hermitian, symmetric) in enumerate(self._sums):
            r, here = response[:, t], snapshots[t]
            a, b = r.conj()[:, :, None] * hermitian * r[:, None, :], r[:, :, None] * symmetric * r[:, None, :]
            precision = precision + _as_real(a, b)
            weighted = (residual[:, here] / self.variance[here]).to(torch.complex128)
            rhs = rhs + r * (weighted @ waves[here])
        return precision, torch.cat([rhs.real, -rhs.imag], dim=-1), None


def _normals(theta: Tensor, num: int, generator: torch.Generator | None) -> Complex[Tensor, "batch unknown"]:
    """A draw of the whitened unknowns' prior for each ``theta``, or zeros without a generator."""
    if generator is None:
        return torch.zeros((len(theta), num), dtype=torch.complex128)
    return torch.complex(*torch.randn((2, len(theta), num), dtype=torch.float64, generator=generator))


def _cholesky(matrix: Tensor) -> Tensor:
    """The lower factor; NaN, rather than an error for the whole batch, where rounding left none."""
    factor, info = torch.linalg.cholesky_ex(matrix)
    return torch.where((info > 0)[:, None, None], torch.nan, factor) if bool(info.any()) else factor


def _log_det(factor: Tensor) -> Tensor:
    return 2 * torch.log(factor.diagonal(dim1=-2, dim2=-1)).sum(-1)


def _as_real(hermitian: Tensor, symmetric: Tensor) -> Tensor:
    """The quadratic form ``(c* A c + Re c^T B c) / 2`` in the real and imaginary parts of ``c``."""
    plus, minus = 0.5 * (hermitian + symmetric), 0.5 * (hermitian - symmetric)
    upper = torch.cat([plus.real, -plus.imag], dim=-1)
    lower = torch.cat([-plus.imag.mT, minus.real], dim=-1)
    return torch.cat([upper, lower], dim=-2)
