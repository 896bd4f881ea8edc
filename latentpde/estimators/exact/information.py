r"""The form for many readings: of the precision of the unknowns, whose size does not grow with the readings.

With :math:`A_{im} = E_{im} R_m(\theta, t_i)`, the precision :math:`I + A^T \Sigma^{-1} A` of whitened modes is a sum
over snapshots of products of responses with sums over readings, :math:`\sum_i E^*_{im} E_{in} / \Sigma_{ii}` and
:math:`\sum_i E_{im} E_{in} / \Sigma_{ii}`, that do not depend on the parameters. Fields that are made of the same
waves share these sums.

Short waves of a state may have died away before the first reading: modes of which the readings say nothing keep their
prior and are left out of the matrix. Which these are depends on the parameters; in the order of wavenumbers they are
the last of their field.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable

import torch
from torch import Tensor

from latentpde.estimators.exact.forms import cholesky, gram, log_det, log_det_and_products, normals
from latentpde.estimators.exact.noise import Noise
from latentpde.estimators.exact.responses import UnknownModes, squared

_READINGS_AT_ONCE = 256
_NOTHING = 1e-11  # precision that readings add to that of a mode, which is one by its prior


class InformationForm:
    """The form for many readings: factorises the precision of the unknowns."""

    def __init__(self, unknown: UnknownModes, noise: Noise):
        self.unknown, self.noise = unknown, noise
        self.num_values = (2 * len(unknown)) ** 2
        self._classes = noise.classes
        # unknowns of one snapshot are turned by the phases of their responses: that leaves their prior as it is, and
        # makes the precision a product of real numbers
        self.turns = unknown.places.num_snapshots == 1
        self._num_sharing = 1 if self.turns else _num_sharing(unknown)
        size = len(unknown) // self._num_sharing
        squares = torch.cat([k.squared.flatten() for _, k in unknown.parts])[:size]
        self._order = torch.arange(size) if self.turns else torch.argsort(squares, stable=True)
        waves = unknown.waves[:, self._order]
        self._sums = []  # over the readings of each snapshot and class of noise
        for here in unknown.places.snapshots:
            self._sums.append([])
            for kind in self._classes:
                inside = (kind.members >= here.start) & (kind.members < here.stop)
                own = waves[kind.members[inside]]
                weighted = own / kind.constant[inside, None]
                hermitian, symmetric = own.conj().T @ weighted, own.T @ weighted
                if self.turns:
                    self._sums[-1].append(_as_real(hermitian, symmetric)[None])
                else:
                    self._sums[-1].append((0.5 * hermitian, 0.5 * symmetric))

    def factorised(self, parameters: Tensor) -> InformationFactors:
        return InformationFactors(self, parameters)

    def whitening(self, parameters: Tensor) -> Tensor:
        variance = torch.atleast_2d(self.noise.variance(parameters))[0]
        return 1 / torch.sqrt(variance + self.unknown.prior_variance(parameters))

    def with_noise(self, noise: Noise) -> InformationForm:
        return InformationForm(self.unknown, noise)

    def precision(self, parameters: Tensor, response: Tensor) -> tuple[Tensor, Tensor]:
        """Of the unknowns that readings tell of, real parts before imaginary ones, given responses ``(batch, time,
        unknown)`` of all; and which these are."""
        if self.turns:
            kept, twice = self._order, torch.cat([response[:, 0], response[:, 0]], dim=-1)
            precision = twice[:, :, None] * self._weigh(self._sums[0], parameters) * twice[:, None, :]
        else:
            kept, precision = self._precision_of_several(parameters, response)
        precision.diagonal(dim1=-2, dim2=-1).add_(1.0)
        return precision, kept

    def _precision_of_several(self, parameters: Tensor, response: Tensor) -> tuple[Tensor, Tensor]:
        """Which are told of, and their precision without the prior's share; only the lower triangle of it, which is
        what is factorised."""
        sums = [[self._weigh([kind[i] for kind in kinds], parameters) for i in (0, 1)] for kinds in self._sums]
        fields = [own[..., self._order] for own in response.chunk(self._num_sharing, dim=-1)]
        told = torch.stack([own.diagonal(dim1=-2, dim2=-1).real for own, _ in sums], dim=-2).detach()
        sizes = [_num_told(told * squared(own.detach())) for own in fields]
        kept = torch.cat([i * len(self._order) + self._order[:size] for i, size in enumerate(sizes)])
        num, ends = len(kept), torch.tensor(sizes).cumsum(0).tolist()
        real = [slice(end - size, end) for end, size in zip(ends, sizes, strict=True)]
        imag = [slice(num + own.start, num + own.stop) for own in real]
        found = torch.zeros((len(parameters), 2 * num, 2 * num), dtype=torch.float64)
        for b, second in enumerate(fields):
            there = slice(sizes[b])
            turned = [[part[..., there] * second[:, t, None, there] for part in pair] for t, pair in enumerate(sums)]
            for a, first in list(enumerate(fields))[b:]:
                here = slice(sizes[a])
                hermitian = _sum(first[:, t, here, None].conj() * own[:, here] for t, (own, _) in enumerate(turned))
                symmetric = _sum(first[:, t, here, None] * own[:, here] for t, (_, own) in enumerate(turned))
                plus, minus = hermitian + symmetric, hermitian - symmetric
                found[:, real[a], real[b]], found[:, imag[a], imag[b]] = plus.real, minus.real
                found[:, imag[a], real[b]] = minus.imag
                if a != b:
                    found[:, imag[b], real[a]] = -plus.imag.mT
        return kept, found

    def _weigh(self, sums: list[Tensor], parameters: Tensor) -> Tensor:
        """The sums over all classes of noise, each with its precision."""
        total = None
        for kind, part in zip(self._classes, sums, strict=True):
            precision = kind.precision(parameters)
            part = part if precision is None else precision[:, None, None] * part
            total = part if total is None else total + part
        assert total is not None
        return total


class InformationFactors:
    """Those of `InformationForm`: Cholesky's of the precision of the unknowns."""

    def __init__(self, form: InformationForm, parameters: Tensor):
        self._form = form
        self._variance = torch.atleast_2d(form.noise.variance(parameters))
        response, self._phase = form.unknown.responses(parameters), None
        if form.turns and response.is_complex():
            size = response.abs()
            self._phase, response = torch.polar(torch.ones_like(size), response.angle())[:, 0], size
        self._response = response
        self._precision, self._kept = form.precision(parameters, response)

    @functools.cached_property
    def _factor(self) -> Tensor:
        return cholesky(self._precision)

    @property
    def log_det(self) -> Tensor:
        return log_det(self._factor) + torch.log(self._variance).sum(-1)

    def products(self, columns: Tensor) -> Tensor:
        return gram(columns, self._variance) - gram(self._white(columns / self._variance[..., None]))

    def evaluated(self, columns: Tensor) -> tuple[Tensor, Tensor]:
        if not self._precision.requires_grad:
            return self.log_det, self.products(columns)
        told = self._told(columns / self._variance[..., None])
        log_det, products = log_det_and_products(self._precision, told)
        return log_det + torch.log(self._variance).sum(-1), gram(columns, self._variance) - products

    def solve(self, columns: Tensor) -> Tensor:
        weighted = columns / self._variance[..., None]
        unknown = torch.linalg.solve_triangular(self._factor.mT, self._white(weighted), upper=True)
        return weighted - self._readings(unknown) / self._variance[..., None]

    def diagonal(self) -> Tensor:
        inverse = 1 / self._variance
        single = torch.eye(inverse.shape[-1], dtype=torch.float64).split(_READINGS_AT_ONCE)
        told = [(self._white(few.mT * inverse[..., None]) ** 2).sum(-2) for few in single]
        return inverse - torch.cat(told, dim=-1)

    def conditional(self, residuals: Tensor, generator: torch.Generator | None) -> Tensor:
        white = self._white(residuals / self._variance[..., None])
        unknown = normals((len(white), white.shape[-1], len(self._form.unknown)), generator)
        if generator is not None:
            prior = unknown[..., self._kept]
            white = white + torch.cat([prior.real, prior.imag], dim=-1).mT
        parts = torch.linalg.solve_triangular(self._factor.mT, white, upper=True)
        unknown[..., self._kept] = torch.complex(*parts.chunk(2, dim=1)).mT
        return unknown if self._phase is None else unknown * self._phase.conj()[:, None]

    def _white(self, weighted: Tensor) -> Tensor:
        """What readings in units of their variance tell of the unknowns, whitened."""
        return torch.linalg.solve_triangular(self._factor, self._told(weighted), upper=False)

    def _told(self, weighted: Tensor) -> Tensor:
        """The same, as it is: real parts before imaginary ones."""
        waves, snapshots = self._form.unknown.waves, self._form.unknown.places.snapshots
        total = None
        for t, here in enumerate(snapshots):
            part = self._response[:, t, :, None] * (weighted[..., here, :].to(torch.complex128).mT @ waves[here]).mT
            total = part if total is None else total + part
        assert total is not None
        total = total[..., self._kept, :]
        return torch.cat([total.real, -total.imag], dim=-2)

    def _readings(self, unknown: Tensor) -> Tensor:
        """What unknowns, real parts before imaginary ones, add to the readings."""
        told = torch.complex(*unknown.chunk(2, dim=-2))
        amplitudes = told.new_zeros((len(told), len(self._form.unknown), told.shape[-1]))
        amplitudes[:, self._kept] = told
        waves, snapshots = self._form.unknown.waves, self._form.unknown.places.snapshots
        parts = [(waves[here] @ (self._response[:, t, :, None] * amplitudes)).real for t, here in enumerate(snapshots)]
        return torch.cat(parts, dim=-2)


def _num_sharing(unknown: UnknownModes) -> int:
    """How many fields are made of the same waves: all, or one where they are not."""
    num, waves = len(unknown.parts), unknown.waves
    alike = waves.shape[1] % num == 0 and len({len(part.modes) for part, _ in unknown.parts}) == 1
    if num > 1 and alike:
        first, *others = waves.chunk(num, dim=1)
        if all(torch.allclose(first, other, rtol=1e-12, atol=0.0) for other in others):
            return num
    return 1


def _num_told(precision: Tensor) -> int:
    """How many of the modes, in their order, there are up to the last that readings tell of at any parameters."""
    told = (precision.sum(1) > _NOTHING).any(0).nonzero()
    return int(told[-1]) + 1 if len(told) else 0


def _sum(parts: Iterable[Tensor]) -> Tensor:
    return functools.reduce(torch.add, parts)


def _as_real(hermitian: Tensor, symmetric: Tensor) -> Tensor:
    """The quadratic form ``(c* A c + Re c^T B c) / 2`` in the real and imaginary parts of ``c``."""
    plus, minus = 0.5 * (hermitian + symmetric), 0.5 * (hermitian - symmetric)
    upper = torch.cat([plus.real, -plus.imag], dim=-1)
    lower = torch.cat([-plus.imag.mT, minus.real], dim=-1)
    return torch.cat([upper, lower], dim=-2)
