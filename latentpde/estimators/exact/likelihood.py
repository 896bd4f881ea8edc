r"""The readings of one case as a Gaussian, given the coefficients.

Every family is affine in the source (and in the initial state): with :math:`c` the whitened Fourier coefficients of
what is unknown, and :math:`R_m(\theta)` the response of mode :math:`m` (``H`` for the source, ``G`` for the state),

.. math:: y_i = a_i(\theta) + \operatorname{Re} \sum_m E_{im} R_m(\theta, t_i)\, c_m + \varepsilon_i,
          \qquad E_{im} = \sigma_m w_m e^{i k_m \cdot x_i}

so :math:`c` integrates out: :math:`y \sim N(a(\theta), S(\theta))`. Two forms of the same density:

*covariance*, for few readings
    :math:`S` between two readings depends on their distance alone, so a product of :math:`|R|^2` with a table of
    cosines over the *distinct* distances gives it, a gather puts it in place, and Cholesky does the rest;
*information*, for many readings
    :math:`\Lambda = I + \sum_i \sigma_i^{-2} b_i b_i^T` is of the size of the latent; the sums over readings do not
    depend on :math:`\theta` and are taken once, so the cost of an evaluation does not grow with the readings.

All in float64, batched over :math:`\theta`, and differentiable in it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from copy import copy

import numpy as np
import torch
from jaxtyping import Complex, Float, Int
from torch import Tensor

from latentpde.decoder import Decoder
from latentpde.errors import DataError
from latentpde.estimators.exact.fourier import Modes, as_wavenumbers, fold, heard_modes, is_even, phases
from latentpde.latent import source_scale
from latentpde.observation import Observation

# Above this many readings the information form is the cheaper one; of several snapshots it sums complex matrices.
COVARIANCE_LIMIT, COVARIANCE_LIMIT_OF_SEVERAL = 500, 800
_LIKENESS_BATCH = 256
_MEANS_AT_ONCE = 64
_BATCH_VALUES = 2**18  # entries of the largest array of a batch: 2 MB, which caches hold


class CollapsedModel:
    """Log likelihood of the coefficients, and the conditional of the latent, for one case.

    Args:
        observation: a single case.
        decoder: family, prior of the source, rectangle.
        initial_hat: Fourier coefficients of the initial state's mean, in the sense in which the readings see it.
        initial_std: prior standard deviation of those coefficients, where the initial state is not known exactly.
        extra_variance: variance that readings have beyond their noise.
        form: ``"covariance"``, ``"information"``, or the cheaper one.
    """

    def __init__(
        self,
        observation: Observation,
        decoder: Decoder,
        initial_hat: Complex[Tensor, "row col"],
        initial_std: Float[Tensor, "row col"] | None = None,
        extra_variance: float = 0.0,
        form: str | None = None,
    ):
        if len(observation) != 1:
            raise DataError(f"the collapsed model is of one case at a time, got {len(observation)}")
        self.decoder, self.times = decoder, observation.times
        mask = observation.mask[0]
        order = mask.nonzero()
        ends = np.cumsum(np.bincount(order[:, 0].numpy(), minlength=len(self.times))).tolist()
        self._snapshots = [slice(start, stop) for start, stop in zip([0, *ends[:-1]], ends, strict=True)]
        self.values = observation.values[0][mask]
        self.variance = observation.noise_std[0][mask] ** 2 + extra_variance
        positions = _positions(observation, order)
        most = COVARIANCE_LIMIT if len(self.times) == 1 else COVARIANCE_LIMIT_OF_SEVERAL
        self._form = form or ("covariance" if len(self.values) <= most else "information")

        state = Modes.of((initial_hat.shape[-2], initial_hat.shape[-1]), observation)
        mean = state.weight * state.attenuation * initial_hat.flatten()
        heard = heard_modes(state.k, mean.abs(), decoder.latent, self.times, float(self.variance.min().sqrt()))
        even = is_even(decoder.latent)
        self._state_k, mean = state.select(heard).k, mean[heard]
        waves = mean[:, None] * torch.exp(1j * phases(self._state_k, positions))
        if even:
            self._state_k, waves = fold(self._state_k, waves)
        self._state = [(waves.real[:, here].contiguous(), waves.imag[:, here].contiguous()) for here in self._snapshots]

        unknown, scales = [], []
        self._state_std: tuple[Tensor, Tensor, int] | None = None
        m = decoder.latent.num_modes
        if m:
            source = Modes.of((2 * m, m), observation)
            unknown.append(("source", source))
            scales.append(source.weight * source.attenuation * source_scale(m) * decoder.latent.source_prior_std)
        if initial_std is not None:
            keep = initial_std.flatten() > 0
            part = state.select(keep)
            # A column of weight one holds each mode twice, as n and -n; elsewhere both parts share the variance.
            split = torch.full_like(part.weight, math.sqrt(0.5))
            split[part.weight == 1] = 1.0
            amplitude = split * initial_std.flatten()[part.index]
            unknown.append(("state", part))
            scales.append(part.weight * part.attenuation * amplitude)
            self._state_std = amplitude, part.index, initial_std.numel()
        self._unknown = [(name, part.k) for name, part in unknown]
        self._scale = torch.cat(scales) if scales else torch.zeros(0, dtype=torch.float64)
        k = torch.cat([part.k for _, part in unknown]) if unknown else torch.zeros((0, 2), dtype=torch.float64)
        if self._form == "covariance":
            self._tabulate(positions, _pair_keys(observation, order), even)
        self._waves = self._scale * torch.exp(1j * phases(k, positions)).T
        if self._form == "information":
            self._accumulate()

    @property
    def num_unknown(self) -> int:
        """Complex unknowns: modes of the source, and of the initial state where it is uncertain."""
        return len(self._scale)

    @property
    def _batch(self) -> int:
        size = len(self.values) if self._form == "covariance" else 2 * self.num_unknown
        return max(1, _BATCH_VALUES // max(size**2, 1))

    def log_likelihood(self, theta: Float[Tensor, "batch coefficient"]) -> Float[Tensor, " batch"]:
        """``log p(y | theta)`` with everything else integrated out."""
        return self._in_batches(theta)[0]

    def misfit(self, theta: Float[Tensor, "batch coefficient"]) -> Float[Tensor, " batch"]:
        """Squared distance of the readings from their mean, in units of their covariance: if ``theta`` is right, a
        chi-squared variable with as many degrees of freedom as there are readings."""
        return self._in_batches(theta)[1]

    def likeness(self) -> Callable[[Float[Tensor, "batch coefficient"]], Float[Tensor, " batch"]] | None:
        """Something like the log likelihood and several times cheaper: the readings' covariance is that in the middle
        of the bounds. ``None`` where the mean does not depend on the coefficients."""
        if not len(self._state_k):
            return None
        middle = self.decoder.latent.bounds.mean(-1)[None]
        if not self.num_unknown:
            whiten = 1 / torch.sqrt(self.variance)
        elif self._form == "covariance":
            whiten = torch.linalg.inv(_cholesky(self._covariance(middle)))[0].T
        else:
            whiten = 1 / torch.sqrt(self.variance + self._prior_variance(middle))

        rough = copy(self)  # single precision is enough here, and twice as fast
        rough.times, rough.values = self.times.float(), self.values.float()
        rough._state_k, whiten = self._state_k.float(), whiten.float()
        rough._state = [(real.float(), imag.float()) for real, imag in self._state]

        def misfit(theta: Tensor) -> Tensor:
            residual = rough.values - rough._mean(theta)
            return ((residual @ whiten if whiten.ndim == 2 else residual * whiten) ** 2).sum(-1)

        return lambda theta: -0.5 * torch.cat([misfit(part) for part in theta.float().split(_LIKENESS_BATCH)]).double()

    def _prior_variance(self, theta: Tensor) -> Float[Tensor, " reading"]:
        power = _abs2(self._responses(theta)[0])
        return torch.cat([_abs2(self._waves[here]) @ power[t] for t, here in enumerate(self._snapshots)])

    def blurred(self, std: float) -> CollapsedModel:
        """The same readings with more noise."""
        other = copy(self)
        other.variance = self.variance + std**2
        if self._form == "information":
            other._accumulate()
        return other

    def conditional(
        self, theta: Float[Tensor, "batch coefficient"], *, generator: torch.Generator | None = None
    ) -> Complex[Tensor, "batch unknown"]:
        """Whitened unknowns given the data, one set per ``theta``: their mean, or with a generator a draw."""
        return torch.cat([self._conditional(few, left, generator) for few, left in self._residuals(theta)])

    def source(self, unknown: Complex[Tensor, "batch unknown"]) -> Float[Tensor, "batch source"]:
        """The source latent ``q`` in whitened unknowns."""
        m = self.decoder.latent.num_modes
        block = unknown[:, : 2 * m * m]
        parts = torch.stack([block.real, block.imag], dim=1).unflatten(-1, (2, m, m))
        return self.decoder.latent.source_prior_std * parts.movedim(2, 1).flatten(1)

    def state(self, unknown: Complex[Tensor, "batch unknown"]) -> Complex[Tensor, "batch mode"] | None:
        """Deviations of the initial state's coefficients, as a flat block; ``None`` where it is known."""
        if self._state_std is None:
            return None
        scale, keep, num_modes = self._state_std
        block = torch.zeros((len(unknown), num_modes), dtype=unknown.dtype)
        block[:, keep] = scale * unknown[:, unknown.shape[1] - len(keep) :]
        return block

    def _in_batches(self, theta: Tensor) -> tuple[Tensor, Tensor]:
        """The log likelihood and the misfit in it."""
        parts = [self._log_likelihood(few, left) for few, left in self._residuals(theta)]
        return torch.cat([part[0] for part in parts]), torch.cat([part[1] for part in parts])

    def _residuals(self, theta: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
        """Batches of coefficients, and what their means leave of the readings. Means are taken in larger batches than
        matrices need: one at a time, each would read the whole table of waves again."""
        for some in theta.split(max(self._batch, _MEANS_AT_ONCE)):
            residual = self.values - self._mean(some)
            yield from zip(some.split(self._batch), residual.split(self._batch), strict=True)

    def _log_likelihood(self, theta: Tensor, residual: Tensor) -> tuple[Tensor, Tensor]:
        scaled = (residual**2 / self.variance).sum(-1)
        if not self.num_unknown:
            misfit, log_det = scaled, torch.log(self.variance).sum()
        elif self._form == "covariance":
            factor = _cholesky(self._covariance(theta))
            white = torch.linalg.solve_triangular(factor, residual[..., None], upper=False)[..., 0]
            misfit, log_det = (white**2).sum(-1), _log_det(factor)
        else:
            precision, rhs, _ = self._information(theta, residual)
            factor = _cholesky(precision)
            white = torch.linalg.solve_triangular(factor, rhs[..., None], upper=False)[..., 0]
            misfit, log_det = scaled - (white**2).sum(-1), _log_det(factor) + torch.log(self.variance).sum()
        return -0.5 * (misfit + log_det + len(self.values) * math.log(2 * math.pi)), misfit

    def _conditional(self, theta: Tensor, residual: Tensor, generator: torch.Generator | None) -> Tensor:
        shape = (len(theta), self.num_unknown)
        prior = torch.zeros(shape, dtype=torch.complex128)
        if not self.num_unknown:
            return prior
        if generator is not None:
            prior = torch.complex(*torch.randn((2, *shape), dtype=torch.float64, generator=generator))
        if self._form == "covariance":
            if generator is not None:
                noise = torch.randn(residual.shape, dtype=torch.float64, generator=generator)
                residual = residual - self._predict(theta, prior) - torch.sqrt(self.variance) * noise
            factor = _cholesky(self._covariance(theta))
            dual = torch.cholesky_solve(residual[..., None], factor)[..., 0]
            return prior + self._adjoint(theta, dual)
        precision, rhs, phase = self._information(theta, residual)
        factor = _cholesky(precision)
        mean = torch.cholesky_solve(rhs[..., None], factor)[..., 0]
        if generator is not None:
            white = torch.cat([prior.real, prior.imag], dim=-1)
            mean = mean + torch.linalg.solve_triangular(factor.mT, white[..., None], upper=True)[..., 0]
        unknown = torch.complex(*mean.chunk(2, dim=-1))
        return unknown if phase is None else unknown * phase.conj()

    def _mean(self, theta: Tensor) -> Float[Tensor, "batch reading"]:
        """The readings' mean: the propagated initial state."""
        g = self.decoder.latent.family.state_response(as_wavenumbers(self._state_k), self.times, theta)
        g = g.expand(len(theta), len(self.times), 1, len(self._state_k))[:, :, 0]
        parts = []
        for t, (real, imag) in enumerate(self._state):
            part = g[:, t].real @ real
            parts.append(part - g[:, t].imag @ imag if g.is_complex() else part)
        return torch.cat(parts, dim=-1)

    def _responses(self, theta: Tensor, modes: list[tuple[str, Tensor]] | None = None) -> Tensor:
        """Responses of modes, by default the unknown ones, ``(batch, time, mode)``."""
        family, parts = self.decoder.latent.family, []
        for name, k in self._unknown if modes is None else modes:
            respond = family.source_response if name == "source" else family.state_response
            response = respond(as_wavenumbers(k), self.times, theta)
            parts.append(response.expand(len(theta), len(self.times), 1, len(k))[:, :, 0])
        if len(parts) > 1 and any(p.is_complex() for p in parts):
            parts = [p.to(torch.complex128) for p in parts]
        return torch.cat(parts, dim=-1)

    def _covariance(self, theta: Tensor) -> Float[Tensor, "batch reading reading2"]:
        response = self._responses(theta, self._table_modes)
        if len(self.times) == 1:
            whole = self._look_up(_abs2(response[:, 0]) @ self._cosines, self._gather)
        else:
            later, earlier = torch.tril_indices(len(self.times), len(self.times))
            cross = response[:, later] * response[:, earlier].conj()
            tables = cross.real @ self._cosines
            tables = tables - cross.imag @ self._sines if cross.is_complex() else tables
            whole = torch.empty((len(theta), len(self.values), len(self.values)), dtype=torch.float64)
            for pair, (a, b) in enumerate(zip(later.tolist(), earlier.tolist(), strict=True)):
                rows, cols = self._snapshots[a], self._snapshots[b]
                whole[:, rows, cols] = block = self._look_up(tables[:, pair], self._gather[rows, cols])
                if a != b:
                    whole[:, cols, rows] = block.mT
        whole.diagonal(dim1=-2, dim2=-1).add_(self.variance)
        return whole

    @staticmethod
    def _look_up(table: Tensor, where: Tensor) -> Tensor:
        return table.gather(1, where.reshape(1, -1).expand(len(table), -1)).unflatten(1, where.shape)

    def _tabulate(self, positions: Tensor, keys: Tensor, even: bool) -> None:
        """Cosines (and sines) of every distinct distance, and where each pair of readings finds its own."""
        if len(self.times) == 1:
            keys = torch.minimum(keys, keys.T)  # the cosine is even
        _, first, inverse = np.unique(keys.numpy().ravel(), return_index=True, return_inverse=True)
        self._gather = torch.from_numpy(inverse.reshape(keys.shape))
        row, col = np.unravel_index(first, keys.shape)
        distances = positions[row] - positions[col]
        self._table_modes, tables = [], []
        squares = torch.split(self._scale**2, [len(k) for _, k in self._unknown])
        for (name, k), squared in zip(self._unknown, squares, strict=True):
            table = squared[:, None] * torch.exp(1j * phases(k, distances))
            k, table = fold(k, table) if even else (k, table)
            self._table_modes.append((name, k))
            tables.append(table)
        table = torch.cat(tables) if tables else torch.zeros((0, len(first)), dtype=torch.complex128)
        self._cosines = table.real.contiguous()
        self._sines = table.imag.contiguous() if len(self.times) > 1 else torch.zeros(0, dtype=torch.float64)

    def _accumulate(self) -> None:
        """The sums over readings that the information form needs, per snapshot."""
        self._sums = []
        for here in self._snapshots:
            waves = self._waves[here]
            weighted = waves / self.variance[here, None]
            hermitian, symmetric = waves.conj().T @ weighted, waves.T @ weighted
            self._sums.append(_as_real(hermitian, symmetric) if len(self.times) == 1 else (hermitian, symmetric))

    def _information(self, theta: Tensor, residual: Tensor) -> tuple[Tensor, Tensor, Tensor | None]:
        """Precision and right-hand side of the unknowns, real parts before imaginary ones; with one snapshot of the
        unknowns turned by the phases of their responses, which are the third result: their prior does not mind, and
        the precision is a product of real numbers."""
        response = self._responses(theta)
        if len(self.times) == 1:
            size, phase = response[:, 0], None
            if size.is_complex():
                size, phase = size.abs(), torch.polar(torch.ones_like(size.real), size.angle())
            twice = torch.cat([size, size], dim=-1)
            precision = twice[:, :, None] * self._sums[0] * twice[:, None, :]
            precision.diagonal(dim1=-2, dim2=-1).add_(1.0)
            heard = (residual / self.variance).to(torch.complex128) @ self._waves
            return precision, twice * torch.cat([heard.real, -heard.imag], dim=-1), phase
        response = response.to(torch.complex128)
        num = self.num_unknown
        precision = torch.eye(2 * num, dtype=torch.float64).expand(len(theta), -1, -1).clone()
        rhs = torch.zeros((len(theta), num), dtype=torch.complex128)
        for t, (hermitian, symmetric) in enumerate(self._sums):
            r, here = response[:, t], self._snapshots[t]
            a, b = r.conj()[:, :, None] * hermitian * r[:, None, :], r[:, :, None] * symmetric * r[:, None, :]
            precision = precision + _as_real(a, b)
            weighted = (residual[:, here] / self.variance[here]).to(torch.complex128)
            rhs = rhs + r * (weighted @ self._waves[here])
        return precision, torch.cat([rhs.real, -rhs.imag], dim=-1), None

    def _predict(self, theta: Tensor, unknown: Tensor) -> Tensor:
        amplitude = (self._responses(theta) * unknown[:, None]).to(torch.complex128)
        parts = [(amplitude[:, t] @ self._waves[here].T).real for t, here in enumerate(self._snapshots)]
        return torch.cat(parts, dim=-1)

    def _adjoint(self, theta: Tensor, dual: Tensor) -> Tensor:
        response = self._responses(theta)
        total = torch.zeros((len(theta), self.num_unknown), dtype=torch.complex128)
        for t, here in enumerate(self._snapshots):
            total = total + response[:, t] * (dual[:, here].to(torch.complex128) @ self._waves[here])
        return total.conj().resolve_conj()


def _positions(observation: Observation, order: Tensor) -> Float[Tensor, "reading 2"]:
    """Where readings are, relative to the origin."""
    if observation.positions is None:
        return (order[:, 1:] + 0.5) * torch.tensor(observation.grid.spacing, dtype=torch.float64)
    return observation.positions[0][order[:, 1]] - torch.tensor(observation.grid.origin, dtype=torch.float64)


def _pair_keys(observation: Observation, order: Tensor) -> Int[Tensor, "reading reading2"]:
    """A whole number for each pair of readings, equal where their distance is."""
    if observation.positions is None:
        (ny, nx), row, col = observation.grid.shape, order[:, 1], order[:, 2]
        return ((row[:, None] - row) % ny) * nx + (col[:, None] - col) % nx
    sensor = order[:, 1]
    return sensor[:, None] * (int(sensor.max()) + 1) + sensor


def _cholesky(matrix: Tensor) -> Tensor:
    """The lower factor; NaN, rather than an error for the whole batch, where rounding left none."""
    factor, info = torch.linalg.cholesky_ex(matrix)
    return torch.where((info > 0)[:, None, None], torch.nan, factor) if bool(info.any()) else factor


def _as_real(hermitian: Tensor, symmetric: Tensor) -> Tensor:
    """The quadratic form ``(c* A c + Re c^T B c) / 2`` in the real and imaginary parts of ``c``."""
    plus, minus = 0.5 * (hermitian + symmetric), 0.5 * (hermitian - symmetric)
    upper = torch.cat([plus.real, -plus.imag], dim=-1)
    lower = torch.cat([-plus.imag.mT, minus.real], dim=-1)
    return torch.cat([upper, lower], dim=-2)


def _log_det(factor: Tensor) -> Tensor:
    return 2 * torch.log(factor.diagonal(dim1=-2, dim2=-1)).sum(-1)


def _abs2(z: Tensor) -> Tensor:
    return z.real**2 + z.imag**2 if z.is_complex() else z**2
