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

from collections.abc import Callable
from typing import Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Complex, Float
from torch import Tensor

from latentpde.estimators.exact.fourier import as_wavenumbers, fold, phases
from latentpde.estimators.exact.noise import Noise
from latentpde.estimators.exact.responses import UnknownModes, UnknownPart, squared

# How many times the pairs of readings the pairs of displacements may be before modes are the cheaper way.
_DENSE_ENOUGH = 2.0


@runtime_checkable
class GaussianForm(Protocol):
    """A way to evaluate the Gaussian of the readings, given what the mean leaves of them.

    ``size`` is the side of the matrix that is factorised. Columns are readings, or anything that has a number for each
    reading: residuals, and the constants and trends that are integrated out with them.
    """

    size: int
    noise: Noise

    def products_and_log_det(self, parameters: Tensor, columns: Tensor) -> tuple[Tensor, Tensor]:
        """:math:`C^T S^{-1} C` for the columns of ``(batch, reading, column)``, and :math:`\\log \\det S`."""
        ...

    def conditional(self, parameters: Tensor, residual: Tensor, generator: torch.Generator | None) -> Tensor:
        """Whitened unknowns given the readings: their mean, or with a generator a draw."""
        ...

    def precision(self, parameters: Tensor) -> Tensor:
        """:math:`S^{-1}`, of the first of the parameters."""
        ...

    def whitening(self, parameters: Tensor) -> Tensor:
        """What makes residuals about white: a matrix to multiply by from the right, or a factor for each reading."""
        ...

    def with_noise(self, noise: Noise) -> GaussianForm:
        """The same with other noise."""
        ...


class NoiseForm:
    """Readings without anything unknown: independent noise."""

    size = 1

    def __init__(self, noise: Noise):
        self.noise = noise

    def products_and_log_det(self, parameters: Tensor, columns: Tensor) -> tuple[Tensor, Tensor]:
        variance = self.noise.variance(parameters)
        return _gram(columns, variance), torch.log(variance).sum(-1)

    def conditional(self, parameters: Tensor, residual: Tensor, generator: torch.Generator | None) -> Tensor:
        return torch.zeros((len(parameters), 0), dtype=torch.complex128)

    def precision(self, parameters: Tensor) -> Tensor:
        return torch.diag(1 / torch.atleast_2d(self.noise.variance(parameters))[0])

    def whitening(self, parameters: Tensor) -> Tensor:
        return 1 / torch.sqrt(torch.atleast_2d(self.noise.variance(parameters))[0])

    def with_noise(self, noise: Noise) -> NoiseForm:
        return NoiseForm(noise)


class CovarianceForm:
    """The form for few readings: factorises their covariance."""

    def __init__(self, unknown: UnknownModes, noise: Noise, signal: DisplacementTable | ModeProducts | None = None):
        self.unknown, self.noise = unknown, noise
        self.size = len(noise.known)
        self._signal = signal or _signal(unknown)

    def products_and_log_det(self, parameters: Tensor, columns: Tensor) -> tuple[Tensor, Tensor]:
        factor = cholesky(self._covariance(parameters))
        return _gram(torch.linalg.solve_triangular(factor, columns, upper=False)), log_det(factor)

    def conditional(self, parameters: Tensor, residual: Tensor, generator: torch.Generator | None) -> Tensor:
        prior = _normals(parameters, len(self.unknown), generator)
        if generator is not None:
            noise = torch.randn(residual.shape, dtype=torch.float64, generator=generator)
            residual = residual - self.unknown.readings(parameters, prior)
            residual = residual - torch.sqrt(self.noise.variance(parameters)) * noise
        factor = cholesky(self._covariance(parameters))
        dual = torch.cholesky_solve(residual[..., None], factor)[..., 0]
        return prior + self.unknown.adjoint(parameters, dual)

    def precision(self, parameters: Tensor) -> Tensor:
        return torch.cholesky_inverse(cholesky(self._covariance(parameters[:1])))[0]

    def whitening(self, parameters: Tensor) -> Tensor:
        return torch.linalg.inv(cholesky(self._covariance(parameters)))[0].T

    def with_noise(self, noise: Noise) -> CovarianceForm:
        return CovarianceForm(self.unknown, noise, self._signal)

    def _covariance(self, parameters: Tensor) -> Float[Tensor, "batch reading reading2"]:
        whole = self._signal.covariance(parameters)
        whole.diagonal(dim1=-2, dim2=-1).add_(self.noise.variance(parameters))
        return whole


def _signal(unknown: UnknownModes) -> DisplacementTable | ModeProducts:
    """The cheaper way to the readings' covariance: by displacements where few snapshots share their places and all see
    the same of a mode, else by modes."""
    places = unknown.places
    alike = places.cells is None or not bool(places.cells.any())
    num_places = len(torch.unique(places.positions, dim=0))
    by_displacement = (places.num_snapshots * num_places) ** 2 <= _DENSE_ENOUGH * len(places.positions) ** 2
    return DisplacementTable(unknown) if alike and by_displacement else ModeProducts(unknown)


class ModeProducts:
    """The readings' covariance without noise, as the product of their responses to all modes."""

    def __init__(self, unknown: UnknownModes):
        self._unknown = unknown

    def covariance(self, parameters: Tensor) -> Float[Tensor, "batch reading reading2"]:
        response = self._unknown.responses(parameters).to(torch.complex128)
        snapshots = enumerate(self._unknown.places.snapshots)
        waves = torch.cat([response[:, t, None] * self._unknown.waves[here] for t, here in snapshots], dim=1)
        waves = torch.cat([waves.real, waves.imag], dim=-1)
        return waves @ waves.mT


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
        for parts in _with_same_waves([part for part, _ in unknown.parts]):
            k, square = parts[0].modes.k, parts[0].scale ** 2
            table = square[:, None] * torch.exp(1j * phases(k, displacements))
            if unknown.even:
                k, table = fold(k, table)
            self._parts.append([(part, as_wavenumbers(k)) for part in parts])
            tables.append(table)
        table = torch.cat(tables)
        self._cosines = table.real.contiguous()
        self._sines = table.imag.contiguous() if places.num_snapshots > 1 else torch.zeros(0, dtype=torch.float64)

    def covariance(self, parameters: Tensor) -> Float[Tensor, "batch reading reading2"]:
        snapshots = self._unknown.places.snapshots
        if len(snapshots) == 1:
            power = self._sum(parameters, lambda response: squared(response[:, 0]))
            return self._look_up(power @ self._cosines, self._gather)
        later, earlier = torch.tril_indices(len(snapshots), len(snapshots))
        cross = self._sum(parameters, lambda response: response[:, later] * response[:, earlier].conj())
        tables = cross.real @ self._cosines
        tables = tables - cross.imag @ self._sines if cross.is_complex() else tables
        num_readings = len(self._gather)
        whole = torch.empty((len(parameters), num_readings, num_readings), dtype=torch.float64)
        for pair, (a, b) in enumerate(zip(later.tolist(), earlier.tolist(), strict=True)):
            rows, cols = snapshots[a], snapshots[b]
            whole[:, rows, cols] = block = self._look_up(tables[:, pair], self._gather[rows, cols])
            if a != b:
                whole[:, cols, rows] = block.mT
        return whole

    def _sum(self, parameters: Tensor, function: Callable[[Tensor], Tensor]) -> Tensor:
        """Something quadratic in the responses, summed over fields that share waves, mode by mode."""
        found = []
        for parts in self._parts:
            first, *others = (function(self._unknown.responses(parameters, [part])) for part in parts)
            found.append(sum(others, first))
        return torch.cat(found, dim=-1)

    @staticmethod
    def _look_up(table: Tensor, where: Tensor) -> Tensor:
        return table.gather(1, where.reshape(1, -1).expand(len(table), -1)).unflatten(1, where.shape)


def _with_same_waves(parts: list[UnknownPart]) -> list[list[UnknownPart]]:
    """Fields grouped by what they look like at the readings, mode by mode: their powers can be added up."""
    groups: list[list[UnknownPart]] = []
    for part in parts:
        for group in groups:
            same = torch.equal(group[0].modes.k, part.modes.k) and torch.allclose(
                group[0].scale, part.scale, rtol=1e-12
            )
            if same:
                group.append(part)
                break
        else:
            groups.append([part])
    return groups


class InformationForm:
    """The form for many readings: factorises the precision of the unknowns."""

    def __init__(self, unknown: UnknownModes, noise: Noise):
        self.unknown, self.noise = unknown, noise
        self.size = 2 * len(unknown)
        self._classes = noise.classes
        self._one = unknown.places.num_snapshots == 1
        self._sums = []  # over the readings of each snapshot and class of noise
        for here in unknown.places.snapshots:
            self._sums.append([])
            for kind in self._classes:
                inside = (kind.members >= here.start) & (kind.members < here.stop)
                waves = unknown.waves[kind.members[inside]]
                weighted = waves / kind.constant[inside, None]
                hermitian, symmetric = waves.conj().T @ weighted, waves.T @ weighted
                self._sums[-1].append(_as_real(hermitian, symmetric)[None] if self._one else (hermitian, symmetric))

    def products_and_log_det(self, parameters: Tensor, columns: Tensor) -> tuple[Tensor, Tensor]:
        variance = self.noise.variance(parameters)
        precision, rhs, _ = self._information(parameters, columns)
        factor = cholesky(precision)
        white = torch.linalg.solve_triangular(factor, rhs, upper=False)
        return _gram(columns, variance) - _gram(white), log_det(factor) + torch.log(variance).sum(-1)

    def conditional(self, parameters: Tensor, residual: Tensor, generator: torch.Generator | None) -> Tensor:
        prior = _normals(parameters, len(self.unknown), generator)
        precision, rhs, phase = self._information(parameters, residual[..., None])
        factor = cholesky(precision)
        mean = torch.cholesky_solve(rhs, factor)[..., 0]
        if generator is not None:
            white = torch.cat([prior.real, prior.imag], dim=-1)
            mean = mean + torch.linalg.solve_triangular(factor.mT, white[..., None], upper=True)[..., 0]
        unknown = torch.complex(*mean.chunk(2, dim=-1))
        return unknown if phase is None else unknown * phase.conj()

    def precision(self, parameters: Tensor) -> Tensor:
        inverse = 1 / torch.atleast_2d(self.noise.variance(parameters))[0]
        columns = torch.diag(1 / inverse)[None]  # the right-hand side divides by the variance
        precision, rhs, _ = self._information(parameters[:1], columns)
        white = torch.linalg.solve_triangular(cholesky(precision), rhs, upper=False)[0]
        return torch.diag(inverse) - inverse[:, None] * (white.mT @ white) * inverse

    def whitening(self, parameters: Tensor) -> Tensor:
        variance = torch.atleast_2d(self.noise.variance(parameters))[0]
        return 1 / torch.sqrt(variance + self.unknown.prior_variance(parameters))

    def with_noise(self, noise: Noise) -> InformationForm:
        return InformationForm(self.unknown, noise)

    def _information(self, parameters: Tensor, columns: Tensor) -> tuple[Tensor, Tensor, Tensor | None]:
        """Precision of the unknowns, and right-hand sides for the columns, real parts before imaginary ones. With one
        snapshot they are those of the unknowns turned by the phases of their responses, which are the third result:
        their prior is the same, and the precision is a product of real numbers."""
        response, snapshots, waves = (
            self.unknown.responses(parameters),
            self.unknown.places.snapshots,
            self.unknown.waves,
        )
        weighted = (columns / self.noise.variance(parameters)[..., None]).to(torch.complex128)
        if self._one:
            size, phase = response[:, 0], None
            if size.is_complex():
                size, phase = size.abs(), torch.polar(torch.ones_like(size.real), size.angle())
            twice = torch.cat([size, size], dim=-1)
            precision = twice[:, :, None] * self._weigh(self._sums[0], parameters) * twice[:, None, :]
            precision.diagonal(dim1=-2, dim2=-1).add_(1.0)
            projected = (weighted.mT @ waves).mT
            return precision, twice[..., None] * torch.cat([projected.real, -projected.imag], dim=-2), phase
        response, num = response.to(torch.complex128), len(self.unknown)
        precision = torch.eye(2 * num, dtype=torch.float64).expand(len(parameters), -1, -1).clone()
        rhs = torch.zeros((len(parameters), num, columns.shape[-1]), dtype=torch.complex128)
        for t, sums in enumerate(self._sums):
            r, here = response[:, t], snapshots[t]
            hermitian = self._weigh([a for a, _ in sums], parameters)
            symmetric = self._weigh([b for _, b in sums], parameters)
            a, b = r.conj()[:, :, None] * hermitian * r[:, None, :], r[:, :, None] * symmetric * r[:, None, :]
            precision = precision + _as_real(a, b)
            rhs = rhs + r[..., None] * (weighted[:, here].mT @ waves[here]).mT
        return precision, torch.cat([rhs.real, -rhs.imag], dim=-2), None

    def _weigh(self, sums: list[Tensor], parameters: Tensor) -> Tensor:
        """The sums over all classes of noise, each with its precision."""
        total = None
        for kind, part in zip(self._classes, sums, strict=True):
            precision = kind.precision(parameters)
            part = part if precision is None else precision[:, None, None] * part
            total = part if total is None else total + part
        assert total is not None
        return total


def _normals(parameters: Tensor, num: int, generator: torch.Generator | None) -> Complex[Tensor, "batch unknown"]:
    """A draw of the whitened unknowns' prior for each set of parameters, or zeros without a generator."""
    if generator is None:
        return torch.zeros((len(parameters), num), dtype=torch.complex128)
    return torch.complex(*torch.randn((2, len(parameters), num), dtype=torch.float64, generator=generator))


def _gram(
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


def _as_real(hermitian: Tensor, symmetric: Tensor) -> Tensor:
    """The quadratic form ``(c* A c + Re c^T B c) / 2`` in the real and imaginary parts of ``c``."""
    plus, minus = 0.5 * (hermitian + symmetric), 0.5 * (hermitian - symmetric)
    upper = torch.cat([plus.real, -plus.imag], dim=-1)
    lower = torch.cat([-plus.imag.mT, minus.real], dim=-1)
    return torch.cat([upper, lower], dim=-2)
