r"""How one case's readings respond to modes: to the known initial state, and to modes that are unknown.

A reading at :math:`x_i` and time :math:`t_i` is linear in Fourier coefficients,

.. math:: y_i = \operatorname{Re} \sum_m E_{im} R_m(\theta, t_i)\, c_m,
          \qquad E_{im} = \sigma_m w_m e^{i k_m \cdot x_i},

with :math:`R_m` the response of mode :math:`m` (``H`` for the source, ``G`` for the state). The waves :math:`E` do not
depend on the coefficients and are computed once; the responses are the family's.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Complex, Float, Int
from torch import Tensor

from latentpde.decoder import Decoder
from latentpde.estimators.exact.fourier import Modes, as_wavenumbers, fold, is_even, phases, relevant_modes
from latentpde.grid import Wavenumbers
from latentpde.latent import source_scale
from latentpde.observation import Observation
from latentpde.pde import Family


@dataclass(frozen=True, eq=False)
class Places:
    """Where and when the readings of one case were taken, snapshot after snapshot.

    Args:
        positions: ``(y, x)`` of each reading relative to the grid's origin.
        labels: row and column of each reading's cell, or the number of its sensor.
        grid_shape: of the cells; ``None`` for sensors.
        times: PDE time of each snapshot.
        snapshots: which readings each snapshot has.
    """

    positions: Float[Tensor, "reading 2"]
    labels: Int[Tensor, "reading label"]
    grid_shape: tuple[int, int] | None
    times: Float[Tensor, " time"]
    snapshots: list[slice]

    @classmethod
    def of(cls, observation: Observation) -> Places:
        """The places of an observation's first case."""
        order = observation.mask[0].nonzero()
        ends = np.cumsum(np.bincount(order[:, 0].numpy(), minlength=len(observation.times))).tolist()
        snapshots = [slice(start, stop) for start, stop in zip([0, *ends[:-1]], ends, strict=True)]
        labels = order[:, 1:]
        if observation.positions is None:
            positions = (labels + 0.5) * torch.tensor(observation.grid.spacing, dtype=torch.float64)
            return cls(positions, labels, observation.grid.shape, observation.times, snapshots)
        origin = torch.tensor(observation.grid.origin, dtype=torch.float64)
        return cls(observation.positions[0][labels[:, 0]] - origin, labels, None, observation.times, snapshots)

    def pair_keys(self) -> Int[Tensor, "reading reading2"]:
        """A whole number for each pair of readings, the same where their displacement is."""
        if self.grid_shape is None:
            sensor = self.labels[:, 0]
            return sensor[:, None] * (int(sensor.max()) + 1) + sensor
        (ny, nx), (row, col) = self.grid_shape, self.labels.T
        return ((row[:, None] - row) % ny) * nx + (col[:, None] - col) % nx

    @property
    def num_snapshots(self) -> int:
        return len(self.snapshots)


@dataclass(frozen=True, eq=False)
class KnownState:
    """The readings' mean: the known part of the initial state, propagated.

    Args:
        family: the PDE.
        times: PDE time of each snapshot.
        k: wavenumbers of the modes that matter, one row of them.
        waves: real and imaginary parts of each mode at the readings, for each snapshot.
    """

    family: Family
    times: Float[Tensor, " time"]
    k: Wavenumbers
    waves: list[tuple[Tensor, Tensor]]

    @classmethod
    def of(
        cls,
        observation: Observation,
        decoder: Decoder,
        places: Places,
        u0_hat: Complex[Tensor, "row col"],
        noise: float,
    ) -> KnownState:
        modes = Modes.of((u0_hat.shape[-2], u0_hat.shape[-1]), observation)
        amplitude = modes.weight * modes.attenuation * u0_hat.flatten()
        relevant = relevant_modes(modes.k, amplitude.abs(), decoder.latent, places.times, noise)
        k, amplitude = modes.select(relevant).k, amplitude[relevant]
        waves = amplitude[:, None] * torch.exp(1j * phases(k, places.positions))
        if is_even(decoder.latent):
            k, waves = fold(k, waves)
        parts = [(waves.real[:, here].contiguous(), waves.imag[:, here].contiguous()) for here in places.snapshots]
        return cls(decoder.latent.family, places.times, as_wavenumbers(k), parts)

    @property
    def num_modes(self) -> int:
        return self.k.x.shape[-1]

    def mean(self, theta: Float[Tensor, "batch coefficient"]) -> Float[Tensor, "batch reading"]:
        """What the readings would be without noise and without anything unknown."""
        g = self.family.state_response(self.k, self.times, theta)
        g = g.expand(len(theta), len(self.times), 1, self.num_modes)[:, :, 0]
        parts = []
        for t, (real, imag) in enumerate(self.waves):
            part = g[:, t].real @ real
            parts.append(part - g[:, t].imag @ imag if g.is_complex() else part)
        return torch.cat(parts, dim=-1)

    def in_single_precision(self) -> KnownState:
        waves = [(real.float(), imag.float()) for real, imag in self.waves]
        return replace(self, times=self.times.float(), k=Wavenumbers(self.k.y.float(), self.k.x.float()), waves=waves)


@dataclass(frozen=True, eq=False)
class UnknownModes:
    """Whitened modes of the source, and of the initial state where it is uncertain, and how readings respond to them.

    Args:
        family: the PDE.
        places: of the readings.
        parts: ``"source"`` or ``"state"`` with the wavenumbers of its modes, one row of them.
        scale: what a standard normal coefficient of each mode amounts to at a reading, before its response.
        waves: ``E``, the modes at the readings.
        even: whether modes that mirror each other have the same real response.
    """

    family: Family
    places: Places
    parts: list[tuple[str, Wavenumbers]]
    scale: Float[Tensor, " unknown"]
    waves: Complex[Tensor, "reading unknown"]
    even: bool

    @classmethod
    def of(
        cls,
        observation: Observation,
        decoder: Decoder,
        places: Places,
        state: Modes | None,
        state_amplitude: Float[Tensor, " mode"] | None,
    ) -> UnknownModes:
        """All modes of the source, and those of the initial state that are given with their standard deviations."""
        found: list[tuple[str, Modes]] = []
        scales = []
        m = decoder.latent.num_modes
        if m:
            source = Modes.of((2 * m, m), observation)
            found.append(("source", source))
            scales.append(source.weight * source.attenuation * source_scale(m) * decoder.latent.source_prior_std)
        if state is not None:
            assert state_amplitude is not None
            found.append(("state", state))
            scales.append(state.weight * state.attenuation * state_amplitude)
        scale = torch.cat(scales) if scales else torch.zeros(0, dtype=torch.float64)
        k = torch.cat([modes.k for _, modes in found]) if found else torch.zeros((0, 2), dtype=torch.float64)
        waves = scale * torch.exp(1j * phases(k, places.positions)).T
        parts = [(name, as_wavenumbers(modes.k)) for name, modes in found]
        return cls(decoder.latent.family, places, parts, scale, waves, is_even(decoder.latent))

    def __len__(self) -> int:
        return len(self.scale)

    def responses(
        self, theta: Float[Tensor, "batch coefficient"], parts: list[tuple[str, Wavenumbers]] | None = None
    ) -> Tensor:
        """Responses of modes, by default all, ``(batch, time, mode)``; real where the family's are."""
        times, found = self.places.times, []
        for name, k in self.parts if parts is None else parts:
            respond = self.family.source_response if name == "source" else self.family.state_response
            found.append(respond(k, times, theta).expand(len(theta), len(times), 1, k.x.shape[-1])[:, :, 0])
        if len(found) > 1 and any(part.is_complex() for part in found):
            found = [part.to(torch.complex128) for part in found]
        return torch.cat(found, dim=-1)

    def readings(self, theta: Tensor, unknown: Complex[Tensor, "batch unknown"]) -> Float[Tensor, "batch reading"]:
        """What given unknowns add to the readings."""
        amplitude = (self.responses(theta) * unknown[:, None]).to(torch.complex128)
        snapshots = enumerate(self.places.snapshots)
        return torch.cat([(amplitude[:, t] @ self.waves[here].T).real for t, here in snapshots], dim=-1)

    def adjoint(self, theta: Tensor, dual: Float[Tensor, "batch reading"]) -> Complex[Tensor, "batch unknown"]:
        """The transpose of `readings`."""
        response = self.responses(theta)
        total = torch.zeros((len(theta), len(self)), dtype=torch.complex128)
        for t, here in enumerate(self.places.snapshots):
            total = total + response[:, t] * (dual[:, here].to(torch.complex128) @ self.waves[here])
        return total.conj().resolve_conj()

    def prior_variance(self, theta: Tensor) -> Float[Tensor, " reading"]:
        """Variance of the readings under the prior, without noise, for the first ``theta``."""
        power = squared(self.responses(theta)[0])
        snapshots = enumerate(self.places.snapshots)
        return torch.cat([squared(self.waves[here]) @ power[t] for t, here in snapshots])


class UncertainState:
    """Modes of an initial state whose coefficients have standard deviations.

    Args:
        modes: all modes of its block.
        std: standard deviation of each coefficient; zero where it is known.
    """

    def __init__(self, modes: Modes, std: Float[Tensor, "row col"]):
        self.modes, self._num_modes = modes.select(std.flatten() > 0), std.numel()
        # A column of weight one holds each mode twice, as n and -n; elsewhere both parts share the variance.
        split = torch.full_like(self.modes.weight, math.sqrt(0.5))
        split[self.modes.weight == 1] = 1.0
        self.amplitude = split * std.flatten()[self.modes.index]

    def deviations(self, whitened: Complex[Tensor, "batch unknown"]) -> Complex[Tensor, "batch mode"]:
        """Deviations of the block's coefficients, flat, of the whitened ones."""
        block = torch.zeros((len(whitened), self._num_modes), dtype=whitened.dtype)
        block[:, self.modes.index] = self.amplitude * whitened
        return block


def squared(z: Tensor) -> Tensor:
    """The squared modulus of real or complex numbers.

    >>> squared(torch.tensor([3 + 4j]))
    tensor([25.])
    """
    return z.real**2 + z.imag**2 if z.is_complex() else z**2
