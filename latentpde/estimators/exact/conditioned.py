r"""Readings of a field whose initial state has been conditioned on the cells of its start.

The state's modes and the trend are then :math:`(w, \beta) = m + F z` with :math:`z` standard normal and real
(`latentpde.estimators.exact.start`). Readings respond to :math:`z` by :math:`B(\theta) F`, with :math:`B` what they see
of modes and trend. Most of what a start leaves open lies beyond open edges, or is finer than any reading tells; so
:math:`F` is turned such that its columns come in the order of what readings see of them, over all coefficients, and the
likelihood takes those that can matter against the noise. The others are drawn from their prior, which the readings do
not change.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Complex, Float, Int
from torch import Tensor

from latentpde.estimators.exact.covariances import signal_of
from latentpde.estimators.exact.fourier import Modes, as_wavenumbers, box_points
from latentpde.estimators.exact.places import Places
from latentpde.estimators.exact.responses import UnknownModes, UnknownPart
from latentpde.estimators.exact.trends import trend_columns
from latentpde.estimators.exact.units import Units
from latentpde.grid import Wavenumbers
from latentpde.latent import Latent
from latentpde.pde import Family
from latentpde.spectra import Spectrum

#: Share of the readings' noise variance below which what readings see of all directions left out stays, on average.
NEGLIGIBLE = 1e-5
_NUM_ROWS, _ROWS_AT_ONCE = 4096, 256  # readings at coefficients of their own that directions are ordered by


@runtime_checkable
class Cells(Protocol):
    """The likelihood of the levels of the state's prior, given cells of its start."""

    values: Tensor

    def log_likelihood(self, parameters: Tensor) -> Tensor: ...

    def with_values(self, values: Tensor) -> Cells: ...


@dataclass(frozen=True, eq=False)
class ConditionedState:
    """State and trend given the cells of a start.

    Args:
        modes: of the state.
        block_shape: of the block that holds them.
        amplitude: standard deviation of each mode's real and imaginary part beforehand.
        spectrum: the state's prior.
        trend: ``none``, ``constant`` or ``linear``.
        middle: of the observed rectangle.
        cells: the likelihood of the levels, given the cells.
        at: the parameters that it is taken at.
        gain: from the cells' values to the means of real and imaginary parts of whitened modes, one after another, and
            of the trend's coefficients.
        factor: ``F``.
        level_names: of the levels that were fitted to the cells.
        num_seen: columns of the factor that readings see; ``None`` for all.
        field: whose modes they are.
    """

    modes: Modes
    block_shape: tuple[int, int]
    amplitude: Float[Tensor, " mode"]
    spectrum: Spectrum
    trend: str
    middle: Float[Tensor, " 2"]
    cells: Cells
    at: Float[Tensor, "1 parameter"]
    gain: Float[Tensor, "unknown cell"]
    factor: Float[Tensor, "unknown unknown2"]
    level_names: tuple[str, ...] = ()
    num_seen: int | None = None
    field: str = "state"

    @cached_property
    def mean(self) -> Float[Tensor, " unknown"]:
        """Of modes and trend, given the cells."""
        return self.gain @ self.cells.values

    @cached_property
    def log_evidence(self) -> float:
        """Log density of the cells."""
        with torch.no_grad():
            return float(self.cells.log_likelihood(self.at)[0])

    def with_values(self, values: Float[Tensor, " cell"]) -> ConditionedState:
        """The same given other values of the same cells."""
        return replace(self, cells=self.cells.with_values(values))

    @property
    def num_unknown(self) -> int:
        """Real numbers: modes have two each, and the trend its coefficients."""
        return len(self.factor)

    @property
    def num_cells(self) -> int:
        return len(self.cells.values)

    @property
    def num_trend(self) -> int:
        return self.num_unknown - 2 * len(self.modes)

    def held_levels(self, units: Units | None) -> dict[str, float]:
        """Levels that were fitted to the cells, in the user's units."""
        values = self.at[0] if units is None else self.at[0] * units.of_parameters(self.level_names)
        return dict(zip(self.level_names, values[len(values) - len(self.level_names) :].tolist(), strict=True))

    def block(
        self, whitened: Complex[Tensor, "batch unknown"], parameters: Float[Tensor, "batch parameter"]
    ) -> Complex[Tensor, "batch block"]:
        """Coefficients of the whole block, flat, the mean included."""
        parts = self._values(whitened)[:, : 2 * len(self.modes)].unflatten(-1, (-1, 2))
        return self.modes.block(self.amplitude * torch.view_as_complex(parts.contiguous()), self.block_shape)

    def trend_of(self, whitened: Complex[Tensor, "batch unknown"]) -> Float[Tensor, "batch column"]:
        """The trend's coefficients."""
        return self._values(whitened)[:, 2 * len(self.modes) :]

    def _values(self, whitened: Tensor) -> Tensor:
        return self.mean + whitened.real @ self.factor.T

    def ordered(self, latent: Latent, places: Places, noise_variance: float) -> ConditionedState:
        """The same, with the columns of the factor in the order of what readings see of them.

        Args:
            latent: the family, and its coefficients' bounds.
            places: of the readings.
            noise_variance: of the readings, about as small as it can be.
        """
        seen, num = Heard.of(latent.family, self, places), len(places.positions)
        theta = box_points(latent.bounds, _NUM_ROWS)
        which = torch.arange(len(theta)) * 7919 % num  # a prime: readings take turns, whatever the order of the points
        total = torch.zeros_like(self.factor)
        with torch.no_grad():
            for few, own in zip(theta.split(_ROWS_AT_ONCE), which.split(_ROWS_AT_ONCE), strict=True):
                rows = seen.rows_of(few, own)
                total += rows.T @ rows / len(theta)
            power, turn = torch.linalg.eigh(self.factor.T @ total @ self.factor)
        left = power.clamp(min=0).cumsum(0)  # by all columns up to each, the least first
        num_seen = max(1, int((left > NEGLIGIBLE * noise_variance).sum()))
        return replace(self, factor=self.factor @ turn.flip(-1), num_seen=num_seen)


@dataclass(frozen=True, eq=False)
class Heard:
    """``B``: what readings see of the state's whitened modes and of the trend.

    Args:
        family: the PDE.
        state: whose modes they are.
        places: of the readings.
        k: wavenumbers of the modes, one row of them.
        waves: the modes at the readings.
        trend: its columns.
    """

    family: Family
    state: ConditionedState
    places: Places
    k: Wavenumbers
    waves: Complex[Tensor, "reading mode"]
    trend: Float[Tensor, "reading column"]

    @classmethod
    def of(cls, family: Family, state: ConditionedState, places: Places) -> Heard:
        modes = state.modes
        scale = modes.weight * modes.attenuation * state.amplitude
        columns = trend_columns(state.trend, places.positions - state.middle)
        if places.has_source:
            columns = columns.clone()
            columns[places.snapshots[-1]] = 0.0
        waves = scale * modes.waves(places.positions, places.cells)
        return cls(family, state, places, as_wavenumbers(modes.k), waves, columns)

    def only(self, chosen: Int[Tensor, " chosen"]) -> Heard:
        places = self.places.only(chosen)
        return replace(self, places=places, waves=self.waves[chosen], trend=self.trend[chosen])

    def _responses(self, parameters: Float[Tensor, "batch parameter"]) -> Tensor:
        theta, times, num = parameters[:, : len(self.family.coefficients)], self.places.times, self.k.x.shape[-1]
        response = self.family.state_response(self.k, times, theta)
        response = response.expand(len(theta), len(times), 1, num)[:, :, 0]
        if self.places.has_source:
            response = torch.cat([response, torch.zeros_like(response[:, :1])], dim=1)
        return response

    def rows(self, parameters: Float[Tensor, "batch parameter"]) -> Float[Tensor, "batch reading unknown"]:
        heard = (self._responses(parameters)[:, self.places.times_of_readings] * self.waves).conj().resolve_conj()
        rows = torch.view_as_real(heard).flatten(-2)
        return torch.cat([rows, self.trend.expand(len(rows), -1, -1)], dim=-1) if self.trend.shape[1] else rows

    def rows_of(
        self, parameters: Float[Tensor, "row parameter"], readings: Int[Tensor, " row"]
    ) -> Float[Tensor, "row unknown"]:
        """Those of some readings, each at parameters of its own."""
        response = self._responses(parameters)[torch.arange(len(readings)), self.places.times_of_readings[readings]]
        heard = (response * self.waves[readings]).conj().resolve_conj()
        return torch.cat([torch.view_as_real(heard).flatten(1), self.trend[readings]], dim=1)

    def mean(self, parameters: Float[Tensor, "batch parameter"]) -> Float[Tensor, "batch reading"]:
        """What readings see of the state's and the trend's mean."""
        num, mean = 2 * len(self.state.modes), self.state.mean
        modes = torch.view_as_complex(mean[:num].reshape(-1, 2))
        amplitude = self._responses(parameters) * modes
        snapshots = enumerate(self.places.snapshots)
        parts = [(amplitude[:, t] @ self.waves[here].T).real for t, here in snapshots]
        return torch.cat(parts, dim=-1) + self.trend @ mean[num:]


class ConditionedModes:
    """Whitened unknowns of a conditioned state, after those of all other fields.

    Args:
        latent: the family, and its coefficients' bounds.
        others: the modes of other fields.
        heard: what the readings see of the state.
    """

    def __init__(self, latent: Latent, others: UnknownModes, heard: Heard):
        self._latent, self.others, self.heard, self.state = latent, others, heard, heard.state
        self.family, self.places = latent.family, heard.places
        self.parts: list[tuple[UnknownPart | ConditionedState, Wavenumbers]] = [*others.parts, (self.state, heard.k)]
        self._signal = signal_of(others) if len(others) else None
        self._factor = self.state.factor[:, : self.state.num_seen].contiguous()
        self._last = threading.local()  # halves of a search run side by side
        of_others = 0 if self._signal is None else self._signal.num_values
        self.num_values = max(2 * heard.waves.numel(), of_others)

    @classmethod
    def of(cls, latent: Latent, places: Places, fields: list[UnknownPart], state: ConditionedState) -> ConditionedModes:
        """Those of some places."""
        return cls(latent, UnknownModes.of(latent, places, fields), Heard.of(latent.family, state, places))

    def __len__(self) -> int:
        return len(self.others) + self.state.num_unknown

    def only(self, chosen: Int[Tensor, " chosen"]) -> ConditionedModes:
        """At some of the readings."""
        return ConditionedModes(self._latent, self.others.only(chosen), self.heard.only(chosen))

    def at(self, places: Places) -> ConditionedModes:
        """At other places."""
        return ConditionedModes.of(self._latent, places, [part for part, _ in self.others.parts], self.state)

    def with_state(self, state: ConditionedState) -> ConditionedModes:
        """The same of a state with another mean."""
        return ConditionedModes(self._latent, self.others, replace(self.heard, state=state))

    def mean(self, parameters: Float[Tensor, "batch parameter"]) -> Float[Tensor, "batch reading"]:
        """What readings see of the state's mean."""
        return self.heard.mean(parameters)

    def covariance(self, parameters: Float[Tensor, "batch parameter"]) -> Float[Tensor, "batch reading reading2"]:
        """Of the readings, without noise."""
        seen = self._seen(parameters)
        whole = seen @ seen.mT
        return whole if self._signal is None else whole + self._signal.covariance(parameters)

    def all_readings(
        self, parameters: Tensor, unknown: Complex[Tensor, "batch column unknown"]
    ) -> Float[Tensor, "batch reading column"]:
        """What given unknowns add to the readings, several for each set of parameters."""
        seen, num = self._seen(parameters), len(self.others)
        own = seen @ unknown.real[..., num : num + seen.shape[-1]].mT
        return own + self.others.all_readings(parameters, unknown[..., :num]) if num else own

    def all_adjoints(
        self, parameters: Tensor, dual: Float[Tensor, "batch reading column"]
    ) -> Complex[Tensor, "batch column unknown"]:
        """The transpose of `all_readings`."""
        found = dual.new_zeros((len(dual), dual.shape[-1], len(self)), dtype=torch.complex128)
        seen, num = self._seen(parameters), len(self.others)
        if num:
            found[..., :num] = self.others.all_adjoints(parameters, dual)
        found[..., num : num + seen.shape[-1]] = (dual.mT @ seen).to(torch.complex128)
        return found

    def responses_by_field(
        self, parameters: Float[Tensor, "1 parameter"]
    ) -> dict[str, Complex[Tensor, "reading unknown"]]:
        """How readings respond to whitened unknowns, field by field; those of the state are real."""
        own = self.heard.rows(parameters[:1])[0] @ self.state.factor
        return self.others.responses_by_field(parameters) | {"state": own.to(torch.complex128)}

    def prior_variance(self, parameters: Tensor) -> Float[Tensor, " reading"]:
        """Variance of the readings given the cells, without noise, for the first of the parameters."""
        own = (self._seen(parameters[:1])[0] ** 2).sum(-1)
        return own + self.others.prior_variance(parameters) if len(self.others) else own

    def _seen(self, parameters: Tensor) -> Float[Tensor, "batch reading seen"]:
        """What readings see of the unknowns; a draw asks for it several times at the same parameters."""
        if parameters.requires_grad:
            return self.heard.rows(parameters) @ self._factor
        last = getattr(self._last, "found", None)
        if last is None or not torch.equal(last[0], parameters):
            last = parameters.clone(), self.heard.rows(parameters) @ self._factor
            self._last.found = last
        return last[1]
