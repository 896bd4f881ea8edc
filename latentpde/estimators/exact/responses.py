r"""How one case's readings respond to modes: to the known initial state, and to modes that are unknown.

A reading at :math:`x_i` and time :math:`t_i` is linear in Fourier coefficients,

.. math:: y_i = \operatorname{Re} \sum_m E_{im} R_m(\theta, t_i)\, c_m,
          \qquad E_{im} = \sigma_m w_m e^{i k_m \cdot x_i},

with :math:`R_m` the response of mode :math:`m` (``H`` for the source, ``G`` for the state). The waves :math:`E` do not
depend on the coefficients and are computed once; the responses are the family's. Where levels of a prior are inferred,
its amplitudes depend on the parameters and are part of the response.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import torch
from jaxtyping import Complex, Float, Int
from torch import Tensor

from latentpde.decoder import Decoder
from latentpde.estimators.exact.fourier import Modes, all_waves, as_wavenumbers, fold, is_even, phases, relevant_modes
from latentpde.estimators.exact.places import Places
from latentpde.grid import Basis, Mirror, Wavenumbers
from latentpde.latent import Latent, source_scale
from latentpde.observation import Observation
from latentpde.pde import Family
from latentpde.spectra import Spectrum, WhiteBand


@dataclass(frozen=True, eq=False)
class KnownState:
    """The readings' mean: the known part of the initial state, propagated.

    Args:
        family: the PDE.
        times: PDE time of each snapshot.
        k: wavenumbers of the modes that matter, one row of them.
        waves: real and imaginary parts of each mode at the readings, for each snapshot.
        field: what the modes are of: the ``state``, or its ``velocity``.
        velocity: the same of the velocity that the state starts with; ``None`` for a state at rest.
    """

    family: Family
    times: Float[Tensor, " time"]
    k: Wavenumbers
    waves: list[tuple[Tensor, Tensor]]
    field: str = "state"
    velocity: KnownState | None = None

    @classmethod
    def of(
        cls,
        observation: Observation,
        decoder: Decoder,
        places: Places,
        u0_hat: Complex[Tensor, "row col"],
        noise: float,
        field: str = "state",
    ) -> KnownState:
        modes = Modes.of((u0_hat.shape[-2], u0_hat.shape[-1]), observation)
        amplitude = modes.weight * modes.attenuation * u0_hat.flatten()
        respond = response_of(decoder.latent.family, field)
        relevant = relevant_modes(modes.k, amplitude.abs(), decoder.latent, respond, places.times, noise)
        k, amplitude = modes.select(relevant).k, amplitude[relevant]
        waves = amplitude[:, None] * torch.exp(1j * phases(k, places.positions))
        if is_even(decoder.latent):
            k, waves = fold(k, waves)
        parts = [(waves.real[:, here].contiguous(), waves.imag[:, here].contiguous()) for here in places.snapshots]
        return cls(decoder.latent.family, places.times, as_wavenumbers(k), parts, field)

    @property
    def num_modes(self) -> int:
        return self.k.x.shape[-1]

    def mean(self, parameters: Float[Tensor, "batch parameter"]) -> Float[Tensor, "batch reading"]:
        """What the readings would be without noise and without anything unknown."""
        theta = parameters[:, : len(self.family.coefficients)]
        g = response_of(self.family, self.field)(self.k, self.times, theta)
        g = g.expand(len(theta), len(self.times), 1, self.num_modes)[:, :, 0]
        parts = []
        for t, (real, imag) in enumerate(self.waves):
            part = g[:, t].real @ real
            parts.append(part - g[:, t].imag @ imag if g.is_complex() else part)
        mean = torch.cat(parts, dim=-1)
        return mean if self.velocity is None else mean + self.velocity.mean(parameters)

    def responses(self, parameters: Float[Tensor, "1 parameter"]) -> Complex[Tensor, "mode reading"]:
        """What the readings see of each mode, which add up to the mean."""
        theta = parameters[:1, : len(self.family.coefficients)]
        g = self.family.state_response(self.k, self.times, theta)
        g = g.expand(1, len(self.times), 1, self.num_modes)[0, :, 0]
        return torch.cat([g[t][:, None] * torch.complex(*parts) for t, parts in enumerate(self.waves)], dim=-1)

    def in_single_precision(self) -> KnownState:
        waves = [(real.float(), imag.float()) for real, imag in self.waves]
        k, velocity = Wavenumbers(self.k.y.float(), self.k.x.float()), self.velocity
        velocity = None if velocity is None else velocity.in_single_precision()
        return replace(self, times=self.times.float(), k=k, waves=waves, velocity=velocity)


@dataclass(frozen=True, eq=False)
class UnknownPart:
    """Modes of one unknown field: those of its block that are not known.

    Args:
        field: ``"source"``, ``"state"`` or ``"velocity"``.
        modes: the unknown ones.
        block_shape: of the whole block.
        amplitude: standard deviation of each mode's real and imaginary part, in units; where levels of a spectrum are
            inferred, the factor of its amplitude.
        unit: of the coefficients: a latent's source is not counted in Fourier coefficients.
        spectrum: where levels of it are inferred.
        extent: of the periodic rectangle.
        levels: of the spectrum: the column of the parameter, or the value that is given.
        basis: that of the modes, where it is not the field's own.
    """

    field: str
    modes: Modes
    block_shape: tuple[int, int]
    amplitude: Float[Tensor, "*mode"]
    unit: float = 1.0
    spectrum: Spectrum | None = None
    extent: tuple[float, float] = (1.0, 1.0)
    levels: tuple[int | float, ...] = ()
    basis: Basis | None = None

    @classmethod
    def paper_source(cls, latent: Latent, observation: Observation, mirror: Mirror) -> UnknownPart:
        """The source of the paper: white, of a known strength, on all modes of the latent's block."""
        m, strength = latent.num_modes, torch.tensor(latent.source_prior_std, dtype=torch.float64)
        modes = Modes.of((2 * m, m), observation, mirror)
        if not mirror:
            return cls("source", modes, (2 * m, m), strength, source_scale(m))
        power = WhiteBand(m).power(as_wavenumbers(modes.k), observation.grid.extent, strength)[0]
        unit = source_scale(m) * math.sqrt(mirror.num_images)
        return cls("source", modes, (2 * m, m), modes.split * torch.sqrt(power) / unit, unit)

    @classmethod
    def known_to(cls, std: Float[Tensor, "row col"], observation: Observation, mirror: Mirror) -> UnknownPart:
        """A state whose coefficients are known up to standard deviations, which are zero for some."""
        block_shape = (std.shape[-2], std.shape[-1])
        modes = Modes.of(block_shape, observation, mirror)
        modes = modes.select(std.flatten()[modes.index] > 0)
        return cls("state", modes, block_shape, modes.split * std.flatten()[modes.index])

    @classmethod
    def of_spectrum(
        cls,
        field: str,
        modes: Modes,
        block_shape: tuple[int, int],
        spectrum: Spectrum,
        levels: tuple[int | float, ...],
        extent: tuple[float, float],
        unit: float = 1.0,
        basis: Basis | None = None,
    ) -> UnknownPart:
        """A field of which nothing is known but its spectrum."""
        return cls(field, modes, block_shape, modes.split / unit, unit, spectrum, extent, levels, basis)

    @property
    def num_unknown(self) -> int:
        return len(self.modes)

    @property
    def scale(self) -> Float[Tensor, " mode"]:
        """What a standard normal coefficient of each mode amounts to at a reading, before its response."""
        return self.modes.weight * self.modes.attenuation * self.unit * self.amplitude

    def block(
        self, whitened: Complex[Tensor, "batch mode"], parameters: Float[Tensor, "batch parameter"]
    ) -> Complex[Tensor, "batch block"]:
        """Coefficients of the whole block, flat and in units, of the whitened ones; zero where they are known."""
        inferred = self.inferred_amplitude(as_wavenumbers(self.modes.k), parameters)
        values = self.amplitude * whitened
        return self.modes.block(values if inferred is None else values * inferred[:, 0], self.block_shape)

    def inferred_amplitude(self, k: Wavenumbers, parameters: Float[Tensor, "batch parameter"]) -> Tensor | None:
        """The part of the modes' amplitude that depends on the parameters; ``None`` for one."""
        if self.spectrum is None:
            return None
        columns = [
            parameters[:, c] if isinstance(c, int) else torch.tensor(c, dtype=torch.float64) for c in self.levels
        ]
        power = self.spectrum.power(k, self.extent, *(c[..., None, None] for c in columns))
        return torch.sqrt(power).expand(len(parameters), 1, k.x.shape[-1])


@dataclass(frozen=True, eq=False)
class UnknownModes:
    """Whitened modes of the source, and of the initial state where it is uncertain, and how readings respond to them.

    Args:
        family: the PDE.
        places: of the readings.
        parts: the unknown fields, each with the wavenumbers of its modes, one row of them.
        scale: what a standard normal coefficient of each mode amounts to at a reading, before its response.
        waves: ``E``, the modes at the readings.
        even: whether modes that mirror each other have the same real response.
    """

    family: Family
    places: Places
    parts: list[tuple[UnknownPart, Wavenumbers]]
    scale: Float[Tensor, " unknown"]
    waves: Complex[Tensor, "reading unknown"]
    even: bool
    _last: dict[str, tuple[Tensor, Tensor]] = field(default_factory=dict, init=False, repr=False)

    @classmethod
    def of(cls, latent: Latent, places: Places, fields: list[UnknownPart]) -> UnknownModes:
        """The modes of some unknown fields."""
        scale = torch.cat([part.scale for part in fields]) if fields else torch.zeros(0, dtype=torch.float64)
        waves = scale * all_waves([part.modes for part in fields], places.positions, places.cells)
        parts: list[tuple[UnknownPart, Wavenumbers]] = []
        for part in fields:
            same = [own for other, own in parts if torch.equal(other.modes.k, part.modes.k)]
            parts.append((part, same[0] if same else as_wavenumbers(part.modes.k)))
        return cls(latent.family, places, parts, scale, waves, is_even(latent))

    def __len__(self) -> int:
        return len(self.scale)

    def only(self, chosen: Int[Tensor, " chosen"]) -> UnknownModes:
        """At some of the readings."""
        return replace(self, places=self.places.only(chosen), waves=self.waves[chosen])

    def responses(
        self,
        parameters: Float[Tensor, "batch parameter"],
        parts: list[tuple[UnknownPart, Wavenumbers]] | None = None,
    ) -> Tensor:
        """Responses of modes, by default all, ``(batch, time, mode)``; real where the family's are."""
        pairs = self.responses_and_amplitudes(parameters, parts)
        found = [response if amplitude is None else response * amplitude for response, amplitude in pairs]
        if len(found) > 1 and any(part.is_complex() for part in found):
            found = [part.to(torch.complex128) for part in found]
        return torch.cat(found, dim=-1)

    def responses_and_amplitudes(
        self,
        parameters: Float[Tensor, "batch parameter"],
        parts: list[tuple[UnknownPart, Wavenumbers]] | None = None,
    ) -> list[tuple[Tensor, Tensor | None]]:
        """The same field by field, with what of the modes' amplitudes is inferred beside it, ``(batch, 1, mode)``."""
        theta, times, found = parameters[:, : len(self.family.coefficients)], self.places.times, []
        chosen = self.parts if parts is None else parts
        waves, shared = [id(k) for _, k in chosen], {}
        for part, k in chosen:
            if self.family.order == 1 and waves.count(id(k)) > 1:  # state and source have their exponentials in common
                if id(k) not in shared:
                    shared[id(k)] = self.family.transfer(k, times, theta)
                response = shared[id(k)][part.field == "source"]
            else:
                response = response_of(self.family, part.field)(k, times, theta)
            response = response.expand(len(theta), len(times), 1, k.x.shape[-1])[:, :, 0]
            if self.places.has_source:  # which the source is, and the state is not
                own = torch.full((len(theta), 1, k.x.shape[-1]), float(part.field == "source"), dtype=response.dtype)
                response = torch.cat([response, own], dim=1)
            found.append((response, part.inferred_amplitude(k, parameters)))
        return found

    def responses_by_field(
        self, parameters: Float[Tensor, "1 parameter"]
    ) -> dict[str, Complex[Tensor, "reading mode"]]:
        """What the readings see of each whitened mode of each unknown field."""
        if not self.parts:
            return {}
        response, start, found = self.responses(parameters)[0].to(torch.complex128), 0, {}
        snapshots = list(enumerate(self.places.snapshots))
        for part, _ in self.parts:
            own = slice(start, start + len(part.modes))
            found[part.field] = torch.cat([response[t, own] * self.waves[here, own] for t, here in snapshots])
            start = own.stop
        return found

    def all_readings(
        self, parameters: Tensor, unknown: Complex[Tensor, "batch column unknown"]
    ) -> Float[Tensor, "batch reading column"]:
        """What given unknowns add to the readings, several for each set of parameters."""
        if self.places.is_scattered:
            return (self.heard(parameters) @ unknown.mT).real
        response = self.responses(parameters)
        snapshots = enumerate(self.places.snapshots)
        return torch.cat([(self.waves[here] @ (response[:, t, :, None] * unknown.mT)).real for t, here in snapshots], 1)

    def all_adjoints(
        self, parameters: Tensor, dual: Float[Tensor, "batch reading column"]
    ) -> Complex[Tensor, "batch column unknown"]:
        """The transpose of `all_readings`."""
        dual = dual.to(torch.complex128).mT
        if self.places.is_scattered:
            return (dual @ self.heard(parameters)).conj().resolve_conj()
        response = self.responses(parameters)
        total = dual.new_zeros((*dual.shape[:2], len(self)))
        for t, here in enumerate(self.places.snapshots):
            total = total + response[:, t, None] * (dual[..., here] @ self.waves[here])
        return total.conj().resolve_conj()

    def heard(self, parameters: Float[Tensor, "batch parameter"]) -> Complex[Tensor, "batch reading unknown"]:
        """What the readings see of each mode. The last is kept: a covariance, a mean and a draw at the same parameters
        ask for it one after the other."""
        last = self._last.get("heard")
        if last is not None and last[0] is parameters:
            return last[1]
        response, times = self.responses(parameters), self.places.times_of_readings
        found = (response if len(times) == response.shape[1] else response[:, times]) * self.waves
        if not found.requires_grad:
            self._last["heard"] = parameters, found
        return found

    def prior_variance(self, parameters: Tensor) -> Float[Tensor, " reading"]:
        """Variance of the readings under the prior, without noise, for the first of the parameters."""
        power = squared(self.responses(parameters)[0])
        snapshots = enumerate(self.places.snapshots)
        return torch.cat([squared(self.waves[here]) @ power[t] for t, here in snapshots])


def response_of(family: Family, field: str) -> Callable[[Wavenumbers, Tensor, Tensor], Tensor]:
    """What a family's field responds with to its source, or to its initial state or velocity."""
    return getattr(family, f"{field}_response")


def squared(z: Tensor) -> Tensor:
    """The squared modulus of real or complex numbers.

    >>> squared(torch.tensor([3 + 4j]))
    tensor([25.])
    """
    return z.real**2 + z.imag**2 if z.is_complex() else z**2
