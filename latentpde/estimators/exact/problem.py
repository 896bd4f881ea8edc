"""A case whose initial state is not known, or not everywhere: its readings, rectangle and units, ready for a model."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import torch

from latentpde.domain import Domain
from latentpde.estimators.exact.embedding import Embedding
from latentpde.estimators.exact.model import Model
from latentpde.estimators.exact.readings import Readings
from latentpde.estimators.exact.units import Units
from latentpde.grid import Grid
from latentpde.latent import Latent
from latentpde.lift import Lift
from latentpde.observation import Observation
from latentpde.observation.tables import typical_distance
from latentpde.spectra import Spectrum

#: Shortest wave that a prior of a given length needs: beyond it is 3 % of the variance, at a smoothness of 3/2.
_WAVE_PER_LENGTH = 1.2


@dataclass(frozen=True, eq=False)
class Problem:
    """A case without a known initial state, in units of its own.

    Args:
        readings: all of them, those of the initial state included.
        grid: the rectangle that was observed.
        latent: the family, and its coefficients' bounds.
        domain: the edges.
        units: of all of these; ``None`` for the user's.
        shortest: length that a prior was given; ``None`` where none was.
        noisy_start: whether the noise of the initial state's cells was given.
    """

    readings: Readings
    grid: Grid
    latent: Latent
    domain: Domain
    units: Units | None
    shortest: float | None = None
    noisy_start: bool = False

    @classmethod
    def of(
        cls,
        case: Observation,
        latent: Latent,
        initial_noise_std: float,
        *priors: Spectrum | None,
        in_users_units: bool = False,
    ) -> Problem:
        """The problem of one case, with modes fine enough for the lengths that priors were given; in the user's units
        where nothing is to be inferred in others."""
        readings, domain = Readings.of(case, initial_noise_std), case.domain or Domain.periodic()
        noisy = initial_noise_std > 0
        open_ended = [prior for prior in priors if prior is not None and prior.num_modes is None]
        lengths = [prior.shortest for prior in open_ended if prior.shortest is not None]
        shortest = min(lengths) if lengths else None
        if in_users_units:
            return cls(readings, replace(case.grid, origin=(0.0, 0.0)), latent, domain, None, shortest, noisy)
        units = Units.of(readings, case.grid, latent.family)
        shortest = None if shortest is None else shortest / units.length
        within = units.readings(readings), units.grid(case.grid), units.latent(latent)
        return cls(*within, domain, units, shortest, noisy)

    def num_modes(self, *priors: Spectrum | None) -> int:
        """Modes per half axis of the block that the case needs, for these priors."""
        bands = [prior.num_modes for prior in priors if prior and prior.num_modes is not None and prior.basis is None]
        return max(self._around.num_modes, *bands, 0 if self.latent.infers_source else self.latent.num_modes)

    def model(
        self,
        num_modes: int,
        *,
        initial: Spectrum | None,
        source: Spectrum | None,
        trend: str,
        velocity: Spectrum | None = None,
        lift: Lift | None = None,
        noise_bounds: tuple[float, float] | None = None,
    ) -> Model:
        """The model with blocks of a given size; the priors, and what is known on walls, are in the user's units."""
        around, units = self._around.with_block(num_modes), self.units
        if units is not None:
            initial, source = units.spectrum(initial, "initial"), units.spectrum(source, "source")
            velocity = units.spectrum(velocity, "velocity")
            lift = None if lift is None else lift.scaled(1 / units.value, 1 / units.length)
            if noise_bounds is not None:
                noise_bounds = (noise_bounds[0] / units.value, noise_bounds[1] / units.value)
        return Model.with_unknown_start(
            self.readings,
            self.grid,
            self.latent,
            around,
            initial=initial,
            source=source,
            velocity=velocity,
            trend=trend,
            units=units,
            noisy_start=self.noisy_start,
            lift=lift,
            noise_bounds=noise_bounds,
        )

    def is_like(self, other: Problem) -> bool:
        """Whether the other has its readings at the same places and times, with the same noise."""
        names = ("positions", "times", "noise_std", "groups", "cells", "order", "of_source")
        mine, theirs = self.readings, other.readings
        return self.units is None and all(
            torch.equal(getattr(mine, name).nan_to_num(), getattr(theirs, name).nan_to_num()) for name in names
        )

    @cached_property
    def _around(self) -> Embedding:
        distance = typical_distance(self.readings.positions.numpy(), self.grid.extent)
        distance = distance if self.shortest is None else min(distance, _WAVE_PER_LENGTH * self.shortest)
        duration = float(self.readings.times.max())
        return Embedding.of(self.grid, self.domain, self.latent.family, self.latent.bounds, duration, distance)


def models_of(problems: list[Problem], num_modes: int, **options: Any) -> list[Model]:
    """A model for each problem, with blocks of one size. Those that have their readings at the same places, and nothing
    inferred but fields, share what does not depend on the values that were read.

    Args:
        problems: one for each case.
        num_modes: per half axis.
        options: those of `Problem.model`.
    """
    models: list[Model] = []
    layouts: list[tuple[Problem, Model]] = []
    for problem in problems:
        first = next((model for other, model in layouts if problem.is_like(other)), None)
        if first is None:
            models.append(problem.model(num_modes, **options))
            layouts.append((problem, models[-1]))
        else:
            models.append(first.with_readings(problem.readings))
    return models
