"""Units in which every case looks alike: readings of unit spread on a rectangle of unit size, over a unit of time.

What is inferred must not depend on the units of the data, and not by chance either: the search decides many things by
comparing numbers, and last digits that differ would lead it another way to the same posterior. So it works in these
units, in which the same data are the same numbers, rounded to the digits that all of them share.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from latentpde.decoder import Decoder
from latentpde.errors import DataError
from latentpde.estimators.exact.readings import Readings
from latentpde.grid import Grid
from latentpde.latent import Latent
from latentpde.pde import Family
from latentpde.pde.scales import exponents
from latentpde.spectra import Spectrum

_DIGITS = 10


@dataclass(frozen=True)
class Units:
    """The size of one unit, in the user's units.

    >>> from latentpde.pde import get_family
    >>> units = Units(get_family("advection_diffusion"), value=2.0, length=10.0, time=5.0)
    >>> units.of_coefficients
    tensor([ 2.,  2., 20.], dtype=torch.float64)
    >>> units.of_level("source_prior_std"), units.of_level("initial_prior_length")
    (0.4, 10.0)

    Args:
        family: the PDE.
        value: of readings.
        length: of places.
        time: of times; 1 for a family that knows none.
    """

    family: Family
    value: float
    length: float
    time: float

    @classmethod
    def of(cls, readings: Readings, grid: Grid, family: Family) -> Units:
        """The spread of the readings, the longer side of the rectangle, and the time of the last reading."""
        of_field = ~readings.of_source
        values = readings.values[of_field] if bool(of_field.any()) else readings.values
        size = float(values.std(correction=0)) or float(values.abs().max())
        if not np.isfinite(size) or size == 0:
            raise DataError("all readings are zero: nothing can be inferred of them")
        duration = float(readings.times.max())
        time = duration if family.order and duration > 0 else 1.0
        return cls(family, size if bool(of_field.any()) else size * time**family.order, max(grid.extent), time)

    @property
    def of_coefficients(self) -> Float[Tensor, " coefficient"]:
        """One unit of each coefficient."""
        powers = [exponents(c.unit) for c in self.family.coefficients]
        factors = [self.length ** float(of_length) * self.time ** float(of_time) for of_length, of_time in powers]
        return torch.tensor(factors, dtype=torch.float64)

    def of_level(self, name: str) -> float:
        """One unit of a level."""
        if name.endswith("length"):
            return self.length
        if name.endswith("slope"):
            return 1.0
        if name.startswith("velocity"):
            return self.of_velocity
        if name.startswith("noise_std_of_source"):
            return self.of_source
        return self.of_source if name.startswith("source") else self.value

    @property
    def of_source(self) -> float:
        """One unit of the PDE's right-hand side."""
        return self.value / self.time**self.family.order

    @property
    def of_velocity(self) -> float:
        """One unit of the field's change in time."""
        return self.value / self.time

    def of_readings(self, of_source: Bool[Tensor, " reading"]) -> Float[Tensor, " reading"]:
        """One unit of each reading, of the field or of the source."""
        units = torch.tensor([self.value, self.of_source], dtype=torch.float64)
        return units[of_source.long()]

    def of_trend(self, num_columns: int) -> Float[Tensor, " column"]:
        """One unit of each of the trend's coefficients."""
        slope = self.value / self.length
        return torch.tensor([self.value, slope, slope], dtype=torch.float64)[:num_columns]

    def readings(self, readings: Readings) -> Readings:
        """The same in these units."""
        unit = self.of_readings(readings.of_source)
        return replace(
            readings,
            values=_rounded(readings.values / unit),
            positions=_rounded(readings.positions / self.length),
            times=_rounded(readings.times / self.time),
            noise_std=_rounded(readings.noise_std / unit),
            cells=_rounded(readings.cells / self.length),
        )

    def grid(self, grid: Grid) -> Grid:
        """The same in these units."""
        height, width = (round(side / self.length, _DIGITS) for side in grid.extent)
        return replace(grid, extent=(height, width), origin=(0.0, 0.0))

    def latent(self, latent: Latent) -> Latent:
        """The same in these units."""
        bounds = _rounded(latent.bounds / self.of_coefficients[:, None])
        source_prior_std = latent.source_prior_std / self.of_source
        family = latent.family.in_units_of(self.length)
        return replace(latent, family=family, bounds=bounds, source_prior_std=source_prior_std)

    def users_decoder(self, decoder: Decoder) -> Decoder:
        """From latents in the user's units to fields in the user's units."""
        latent, (height, width) = decoder.latent, decoder.extent
        bounds, strength = latent.bounds * self.of_coefficients[:, None], latent.source_prior_std * self.of_source
        basis, lift = decoder.source_basis, decoder.lift
        return replace(
            decoder,
            latent=replace(latent, family=self.family, bounds=bounds, source_prior_std=strength),
            extent=(height * self.length, width * self.length),
            source_basis=None if basis is None else basis.scaled(self.length),
            lift=None if lift is None else lift.scaled(self.value, self.length),
        )

    def spectrum(self, spectrum: Spectrum | None, field: str) -> Spectrum | None:
        """A prior with the levels that are given in these units."""
        if spectrum is None:
            return None
        changed: dict[str, Any] = {}
        for name in (f.name for f in fields(spectrum) if f.name in spectrum.levels):
            value, unit = getattr(spectrum, name), self.of_level(f"{field}_prior_{name}")
            if value is not None:
                changed[name] = tuple(v / unit for v in value) if isinstance(value, tuple) else value / unit
        return replace(spectrum, margin=spectrum.margin / self.length, **changed)

    def coefficients(self, named: Mapping[str, Any]) -> dict[str, Any]:
        """Numbers, or pairs of them, by the coefficients' names."""
        units = dict(zip(self.family.coefficient_names, self.of_coefficients.tolist(), strict=True))
        return {
            name: tuple(v / units.get(name, 1.0) for v in value)
            if isinstance(value, tuple)
            else value / units.get(name, 1.0)
            for name, value in named.items()
        }

    def of_parameters(self, level_names: tuple[str, ...]) -> Float[Tensor, " parameter"]:
        """One unit of each parameter."""
        levels = torch.tensor([self.of_level(name) for name in level_names], dtype=torch.float64)
        return torch.cat([self.of_coefficients, levels])


def _rounded(values: Tensor) -> Tensor:
    return torch.round(values, decimals=_DIGITS)
