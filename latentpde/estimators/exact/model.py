"""The model of one case: what of it is known, what is not, and which parameters are inferred.

With a known initial state on the torus this is the paper's problem. Without one, state and source are Gaussian fields
whose levels are inferred with the coefficients, on a rectangle large enough for what enters through open edges.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Bool, Complex, Float, Int, Shaped
from torch import Tensor

from latentpde.decoder import Decoder
from latentpde.errors import DataError, UsageError
from latentpde.estimators.exact.conditioned import ConditionedModes
from latentpde.estimators.exact.driven import DrivenMean
from latentpde.estimators.exact.embedding import Embedding
from latentpde.estimators.exact.initial_state import InitialState, detail_variance
from latentpde.estimators.exact.likelihood import MarginalLikelihood
from latentpde.estimators.exact.mapped import MappedModes
from latentpde.estimators.exact.parameters import Level
from latentpde.estimators.exact.places import Places
from latentpde.estimators.exact.priors import NOISE, Levels, Scales, bases_of, default_source, size_of, unknown_field
from latentpde.estimators.exact.readings import Readings
from latentpde.estimators.exact.responses import KnownState, UnknownModes, UnknownPart
from latentpde.estimators.exact.start import conditioned_first, conditioned_state
from latentpde.estimators.exact.trends import trend_columns
from latentpde.estimators.exact.units import Units
from latentpde.grid import Grid, Mirror
from latentpde.latent import Latent
from latentpde.lift import Lift
from latentpde.observation import Observation
from latentpde.spectra import Matern, Spectrum, WhiteBand

_EDGE = 1e-9  # how near to its bounds a coefficient may be drawn, as a share of their distance


@dataclass(frozen=True, eq=False)
class Draws:
    """Draws of one case, or conditional means, in the user's units.

    Args:
        own_parameters: coefficients and levels in the model's units.
        parameters: in the user's.
        z: latents.
        trend: its coefficients.
        initial_hat: Fourier coefficients of an initial state that is not known.
        state_deviations: of the coarse coefficients of one that is, where these have noise.
        velocity_hat: Fourier coefficients of the velocities that the states start with; ``None`` for states at rest.
        seed: of the structure below the coarse cell of one that is.
    """

    own_parameters: Float[Tensor, "draw parameter"]
    parameters: Float[Tensor, "draw parameter"]
    z: Float[Tensor, "draw latent"]
    trend: Float[Tensor, "draw column"]
    initial_hat: Complex[Tensor, "draw row col"] | None
    state_deviations: Complex[Tensor, "draw mode"] | None
    velocity_hat: Complex[Tensor, "draw velocity_row velocity_col"] | None
    seed: int

    def in_order(self, order: Int[Tensor, " draw"]) -> Draws:
        """The same draws in another order."""
        given = {name: value for name, value in vars(self).items() if isinstance(value, Tensor)}
        return replace(self, **{name: value[order] for name, value in given.items()})


@dataclass(frozen=True, eq=False)
class Model:
    """A case, ready for the search.

    Args:
        decoder: from latents to fields, on the rectangle that the case is solved on.
        likelihood: of the parameters.
        levels: what is inferred beside the coefficients, in the order of the parameters.
        state: what is known of the initial state; ``None`` where nothing is.
        units: of the model; ``None`` for the user's.
        order: number of each of the model's readings among those of the case, -1 for a cell of its initial state;
            ``None`` where they are the same.
        given_velocity: Fourier coefficients of the velocity that the state starts with, in the user's units, where it
            is known.
        of_source: whether each of the model's readings is of the source; ``None`` where none is.
        factors: what the variance of each reading's noise is multiplied by, in the likelihood, since it is an outlier;
            ``None`` where nobody asked (`latentpde.estimators.exact.robust`).
    """

    decoder: Decoder
    likelihood: MarginalLikelihood
    levels: tuple[Level, ...]
    state: InitialState | None
    units: Units | None = None
    order: Int[Tensor, " reading"] | None = None
    given_velocity: Complex[Tensor, "row col"] | None = None
    of_source: Bool[Tensor, " reading"] | None = None
    factors: Float[Tensor, " reading"] | None = None

    @classmethod
    def with_known_start(
        cls,
        case: Observation,
        latent: Latent,
        state: InitialState,
        *,
        source: Spectrum | None = None,
        velocity: Spectrum | None = None,
        form: str | None = None,
        mirror: Mirror | None = None,
        lift: Lift | None = None,
        noise_bounds: tuple[float, float] | None = None,
    ) -> Model:
        """The paper's problem: an initial state that is known, but for noise, on the torus.

        Args:
            case: a single one; between walls, on the rectangle with its images.
            latent: the family, its coefficients' bounds, and the source's prior where it is known.
            state: what is known of the initial state.
            source: the source's prior, instead of the latent's.
            velocity: the prior of the velocity that the state starts with; without one it is the case's, or zero.
            form: as that of `MarginalLikelihood`.
            mirror: the symmetry between walls.
            lift: what is known on these.
            noise_bounds: of the noise, where it is inferred.
        """
        mirror = mirror or Mirror()
        if len(case) != 1:
            raise DataError(f"a model is of one case at a time, got {len(case)}")
        moving = velocity is not None or case.initial_velocity is not None
        decoder = Decoder(latent, case.grid.extent, moving, mirror, lift=lift)
        levels, places = Levels(latent), Places.of(case)
        values, std = case.values[0][case.mask[0]], case.noise_std[0][case.mask[0]]
        one_group, detail = torch.zeros_like(std, dtype=torch.long), detail_variance(state, case, decoder)
        noise = levels.noise(values, std, one_group, detail, given=noise_bounds)
        fields = [UnknownPart.paper_source(latent, case, mirror)] if latent.num_modes else []
        scales = Scales(Readings.of(case), case.grid, latent)
        if fields and (source is not None or latent.infers_source):
            around = Embedding.of_torus(case, latent.num_modes, mirror)
            source = source or default_source(latent, latent.num_modes)
            fields = [unknown_field("source", source, around, levels, scales)]
        if velocity is not None:
            around = Embedding.of_torus(case, max(latent.num_modes, min(case.grid.shape) // 2, 2), mirror)
            fields.append(unknown_field("velocity", velocity, around, levels, scales))
        if state.std is not None:
            fields.append(UnknownPart.known_to(state.std, case, mirror))
        least = NOISE[0] * size_of(values) if noise.inferred else float(noise.known.min().sqrt())
        known = KnownState.of(case, decoder, places, state.mean_hat, least)
        if moving and velocity is None:
            moved = KnownState.of(case, decoder, places, case.velocity_spectrum(seen=True)[0], least, "velocity")
            known = replace(known, velocity=moved)
        unknown, driven = UnknownModes.of(latent, places, fields), DrivenMean.of(decoder, places, case)
        likelihood = MarginalLikelihood(values, known, unknown, noise, form=form, driven=driven)
        given = case.velocity_spectrum()[0] if moving and velocity is None else None
        return cls(decoder, likelihood, tuple(levels), state, given_velocity=given)

    @classmethod
    def with_unknown_start(
        cls,
        readings: Readings,
        grid: Grid,
        latent: Latent,
        around: Embedding,
        *,
        initial: Spectrum | None = None,
        source: Spectrum | None = None,
        velocity: Spectrum | None = None,
        trend: str = "constant",
        form: str | None = None,
        units: Units | None = None,
        noisy_start: bool = False,
        lift: Lift | None = None,
        noise_bounds: tuple[float, float] | None = None,
    ) -> Model:
        """State and source are Gaussian fields with spectra; what lies beyond open edges is unknown like the rest.

        Args:
            readings: of the case, those of its initial state among them.
            grid: the rectangle that was observed.
            latent: the family and its coefficients' bounds.
            around: the periodic rectangle that it is embedded in.
            initial: the state's spectrum; by default `Matern` with all levels inferred.
            source: the source's; by default the latent's where its strength is known, else as that of the state.
            velocity: that of the velocity that the state starts with; ``None`` for one at rest.
            trend: ``none``, ``constant`` or ``linear``.
            form: as that of `MarginalLikelihood`.
            units: of all of these.
            noisy_start: whether somebody gave the noise of the initial state's cells.
            lift: what is known on walls.
            noise_bounds: of the noise of the field's readings, where it is inferred.
        """
        source, initial = source or default_source(latent, around.num_modes), initial or Matern()
        spectra = {"source": source, "state": initial, "velocity": velocity}
        bases = bases_of(spectra, around, grid.extent, latent.family.spacing)
        basis, mapped = bases.get("source"), bool(bases)
        latent = replace(latent, num_modes=around.num_modes if basis is None else basis.along_y.shape[1])
        decoder = Decoder(latent, around.extent, velocity is not None, around.mirror, basis, lift)
        levels, scales, middle = Levels(latent), Scales(readings, grid, latent), torch.tensor(grid.extent).double() / 2
        cells = None if mapped or not latent.family.order else conditioned_first(readings, middle, trend)
        start = None
        if cells is not None:  # they do not depend on the coefficients
            infers = units is not None and not noisy_start
            start = conditioned_state(readings.only(cells), grid, latent, around, initial, trend, infers)
            readings, trend = readings.only(~cells), "none"
        places = Places.of_table(readings)
        given = readings.noise_std, readings.groups, 0.0, readings.of_source, noise_bounds
        noise = levels.noise(readings.values, *given)
        fields = []
        if not (isinstance(source, WhiteBand) and source.num_modes == 0):
            fields.append(unknown_field("source", source, around, levels, scales, basis))
        if latent.family.order and start is None:
            fields.append(unknown_field("state", initial, around, levels, scales, bases.get("state")))
        if velocity is not None:
            fields.append(unknown_field("velocity", velocity, around, levels, scales, bases.get("velocity")))
        columns = trend_columns(trend, readings.positions - middle) * ~readings.of_source[:, None]
        if start is not None:
            start = start.ordered(latent, places, noise.least(size_of(readings.values)))
            unknown = ConditionedModes.of(latent, places, fields, start)
        elif mapped and fields:
            if bool((readings.cells > 0).any()):
                raise UsageError(
                    "a prior in another basis takes readings at points; these are means over cells (pooled)"
                )
            unknown = MappedModes(decoder, places, fields)
        else:
            unknown = UnknownModes.of(latent, places, fields)
        driven = DrivenMean.of(decoder, places)
        likelihood = MarginalLikelihood(readings.values, None, unknown, noise, columns, form, driven)
        return cls(decoder, likelihood, tuple(levels), None, units, readings.order, of_source=readings.of_source)

    @property
    def level_names(self) -> tuple[str, ...]:
        """Of what is inferred beside the coefficients."""
        return tuple(level.name for level in self.levels)

    @property
    def users_levels(self) -> tuple[Level, ...]:
        """The levels with their bounds in the user's units."""
        units = self.units_of_parameters[self.decoder.latent.num_coefficients :].tolist()
        pairs = zip(self.levels, units, strict=True)
        return tuple(replace(level, lower=level.lower * unit, upper=level.upper * unit) for level, unit in pairs)

    def settings(self) -> dict[str, Any]:
        """What is assumed of state, source and velocity, and within which bounds levels are inferred, in words."""
        found: dict[str, Any] = dict.fromkeys(("initial", "source", "velocity"), "none")
        found |= {"velocity": "zero" if self.given_velocity is None else "given"}
        found |= {"initial": "none" if self.state is None else "given"}
        for part, _ in self.likelihood.unknown.parts:
            name = "initial" if part.field == "state" else part.field
            if part.spectrum is not None:
                found[name] = type(part.spectrum).__name__
            elif part.field == "source":
                found[name] = "WhiteBand"
        if self.likelihood.conditioned is not None:
            found["initial_levels"] = self.likelihood.conditioned.held_levels(self.units)
        found["level_bounds"] = {level.name: [level.lower, level.upper] for level in self.users_levels}
        found["level_bounds_from"] = {level.name: "the data" if level.guessed else "given" for level in self.levels}
        return found

    @property
    def units_of_parameters(self) -> Float[Tensor, " parameter"]:
        """One of each of the model's units, in the user's."""
        num = self.decoder.latent.num_coefficients + len(self.levels)
        return torch.ones(num).double() if self.units is None else self.units.of_parameters(self.level_names)

    @property
    def log_unit_of_evidence(self) -> float:
        """What a log density of readings in the model's units lacks to one in the user's."""
        if self.units is None:
            return 0.0
        start, num_trend = self.likelihood.conditioned, self.likelihood.trend.shape[1]
        of_cells = 0.0 if start is None else start.num_cells * math.log(self.units.value)
        of_trend = float(torch.log(self.units.of_trend(num_trend if start is None else start.num_trend)).sum())
        return of_trend - of_cells - float(torch.log(self._units_of_readings).sum())

    @property
    def _units_of_readings(self) -> Float[Tensor, " reading"]:
        """One of each reading's units, in the user's."""
        assert self.units is not None
        of_source = torch.zeros(len(self.likelihood.values)) if self.of_source is None else self.of_source
        return self.units.of_readings(of_source.bool())

    @property
    def users_decoder(self) -> Decoder:
        """From latents in the user's units to fields in the user's units."""
        return self.decoder if self.units is None else self.units.users_decoder(self.decoder)

    def with_readings(self, readings: Readings) -> Model:
        """That of other readings at the same places and times, with the same noise: what was computed for these stays
        so."""
        if self.likelihood.conditioned is None:
            return replace(self, likelihood=self.likelihood.with_values(readings.values))
        values, cells = readings.values, readings.order < 0
        return replace(self, likelihood=self.likelihood.with_values(values[~cells], values[cells]))

    def shares(self, other: Model) -> bool:
        """Whether the other is one that `with_readings` made, of this or of the same."""
        return self.likelihood.shares(other.likelihood)

    def with_factors(self, factors: Float[Tensor, " reading"]) -> Model:
        """That of the same readings, the variance of each of which is multiplied by a factor."""
        likelihood = self.likelihood.with_noise(self.likelihood.noise.scaled(factors))
        return replace(self, likelihood=likelihood, factors=factors)

    def in_its_units(self, named: Mapping[str, Any]) -> dict[str, Any]:
        """What is said of coefficients, by their names, in the model's units."""
        return dict(named) if self.units is None else self.units.coefficients(named)

    def draw(self, parameters: Float[Tensor, "draw parameter"], generator: torch.Generator | None, seed: int) -> Draws:
        """A draw of everything else for each set of parameters, or without a generator its conditional mean.

        Args:
            parameters: in the model's units.
            generator: of random numbers.
            seed: of the initial states' structure below the coarse cell.
        """
        unknown, trend = self.likelihood.conditional(parameters, generator=generator)
        return self._in_users_units(unknown, trend, parameters, seed)

    def means_and_draws(
        self, parameters: Float[Tensor, "draw parameter"], generator: torch.Generator, seed: int
    ) -> tuple[Draws, Draws, Float[Tensor, " draw"]]:
        """The conditional mean of everything else for each set of parameters, a draw, and the readings' misfit."""
        means, draws, misfit = self.likelihood.means_and_draws(parameters, generator)
        return self._in_users_units(*means, parameters, seed), self._in_users_units(*draws, parameters, seed), misfit

    def _in_users_units(self, unknown: Tensor, trend: Tensor, parameters: Tensor, seed: int) -> Draws:
        source, users = self.source(unknown, parameters), parameters * self.units_of_parameters
        states = self.initial_states("state", unknown, parameters) if self.state is None else None
        velocities = self._velocities(unknown, parameters)
        if self.units is not None:
            assert states is not None
            source, states = source * self.units.of_source, states * self.units.value
            velocities = None if velocities is None else velocities * self.units.of_velocity
            trend = trend * self.units.of_trend(trend.shape[1])
        latent = self.users_decoder.latent
        z = _pack(latent, users[:, : latent.num_coefficients], source)
        deviations = None if self.state is None else self.likelihood.blocks("state", unknown, parameters)
        return Draws(parameters, users, z, trend, states, deviations, velocities, seed)

    def leave_one_out(
        self, parameters: Float[Tensor, "node parameter"]
    ) -> tuple[Float[Tensor, " reading"], Float[Tensor, " reading"]]:
        """What the other readings of the case predict for each, with the noise of an ordinary reading: mean and
        standard deviation in the user's units, over some nodes."""
        means, stds = self.likelihood.leave_one_out(parameters)
        variances = stds**2
        if self.factors is not None:
            variances = variances - (1 - 1 / self.factors) * self.likelihood.noise.variance(parameters)
        mean, std = means.mean(0), torch.sqrt((variances + means**2).mean(0) - means.mean(0) ** 2)
        if self.units is not None:
            mean, std = mean * self._units_of_readings, std * self._units_of_readings
        return self.of_case(mean), self.of_case(std)

    def of_case(self, column: Shaped[Tensor, " reading"]) -> Shaped[Tensor, " reading2"]:
        """What there is of each of the model's readings, for those of the case, in their order."""
        if self.order is None:
            return column
        of_case = self.order >= 0
        return column[of_case][torch.argsort(self.order[of_case])]

    def of_model(self, column: Float[Tensor, " reading2"]) -> Float[Tensor, " reading"]:
        """What `of_case` was made from, with one for each cell of an initial state."""
        return column if self.order is None else torch.where(self.order >= 0, column[self.order.clamp(min=0)], 1.0)

    def source(self, whitened: Complex[Tensor, "batch unknown"], parameters: Tensor) -> Float[Tensor, "batch source"]:
        """The source latent ``q`` in whitened unknowns."""
        m, block = self.decoder.latent.num_modes, self.likelihood.blocks("source", whitened, parameters)
        if block is None:
            return torch.zeros((len(whitened), self.decoder.latent.num_source), dtype=torch.float64)
        parts = torch.stack([block.real, block.imag], dim=1).unflatten(-1, (2, m, m))
        return parts.movedim(2, 1).flatten(1)

    def initial_states(self, field: str, whitened: Tensor, parameters: Tensor) -> Complex[Tensor, "batch row col"]:
        """Fourier coefficients of initial states, or of their velocities, that are not known at all."""
        block = self.likelihood.blocks(field, whitened, parameters)
        if block is None:
            return torch.zeros((len(whitened), 2, 1), dtype=torch.complex128)
        m = math.isqrt(block.shape[-1] // 2)
        block = block.unflatten(-1, (2 * m, m))
        unknown = self.likelihood.unknown
        return unknown.to_field(field, block) if isinstance(unknown, MappedModes) else block

    def _velocities(self, whitened: Tensor, parameters: Tensor) -> Complex[Tensor, "batch row col"] | None:
        if not self.decoder.moving:
            return None
        if self.given_velocity is not None:
            return self.given_velocity.expand(len(parameters), -1, -1)
        return self.initial_states("velocity", whitened, parameters)


def _pack(latent: Latent, theta: Tensor, q: Tensor) -> Float[Tensor, "draw latent"]:
    lower, upper = latent.bounds.unbind(-1)
    margin = _EDGE * (upper - lower)
    return latent.pack(torch.minimum(torch.maximum(theta, lower + margin), upper - margin), q)
