"""What is inferred beside the coefficients: levels of noise and of priors, and the unknown fields that have them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from latentpde.errors import DataError, UsageError
from latentpde.estimators.exact.embedding import Embedding
from latentpde.estimators.exact.fourier import Modes
from latentpde.estimators.exact.noise import Noise
from latentpde.estimators.exact.parameters import Level
from latentpde.estimators.exact.readings import Readings
from latentpde.estimators.exact.responses import UnknownPart, response_of
from latentpde.grid import Basis, Grid, wavenumbers
from latentpde.latent import Latent, source_scale
from latentpde.observation.tables import typical_distance
from latentpde.spectra import Matern, Spectrum, WhiteBand

#: Bounds of levels that are inferred, in units of what the data suggest.
NOISE, _STRENGTH, _SOURCE_STRENGTH, _LENGTH, _SLOPE = (1e-3, 2.0), (0.1, 20.0), (1e-3, 20.0), (0.5, 1.0), (2.5, 10.0)

_WORDS = {"state": "initial state"}  # of fields whose word here is not the user's


def default_source(latent: Latent, num_modes: int) -> Spectrum:
    """The latent's own prior of the source, where somebody knows it."""
    if latent.infers_source and latent.num_modes:
        # the equation of a steady field makes it as smooth as it is; others only carry on what the source does
        return Matern() if latent.family.order else WhiteBand(num_modes)
    return WhiteBand(latent.num_modes, latent.source_prior_std)


class Levels(list[Level]):
    """Levels that are inferred, and the columns that they have among the parameters."""

    def __init__(self, latent: Latent):
        super().__init__()
        self._num_coefficients, self._stretched = latent.num_coefficients, latent.stretched

    def column(self, name: str, given: tuple[float, float] | None, guess: tuple[float, float]) -> int:
        """A new level, within bounds that were given or else follow from the data."""
        lower, upper = given or guess
        upper = upper if given else upper * self._stretched.get(name, 1.0)
        self.append(Level(name, lower, upper, guessed=given is None))
        return self._num_coefficients + len(self) - 1

    def noise(
        self,
        values: Tensor,
        std: Tensor,
        groups: Tensor,
        extra_variance: float,
        of_source: Tensor | None = None,
        given: tuple[float, float] | None = None,
    ) -> Noise:
        """The noise of readings, with a level for each group in which it is not known, within bounds that are given for
        the field or follow from the data. Readings of the source, whose unit is another, have levels of their own."""
        unknown = std.isnan()
        if not bool(unknown.any()):
            return Noise.given(std**2 + extra_variance)
        column = torch.full_like(groups, -1)
        of_source = torch.zeros_like(unknown) if of_source is None else of_source
        for kind, suffix in ((~of_source, ""), (of_source, "_of_source")):
            numbers, size = groups[unknown & kind].unique().tolist(), size_of(values[kind]) if bool(kind.any()) else 0.0
            for number in numbers:
                name = f"noise_std{suffix}" if len(numbers) == 1 else f"noise_std{suffix}_{number}"
                bounds = (NOISE[0] * size, NOISE[1] * size)
                column[unknown & kind & (groups == number)] = self.column(name, None if suffix else given, bounds)
        known = torch.where(unknown, 0.0, std**2) + extra_variance
        return Noise(known, column, torch.ones_like(std))


@dataclass(frozen=True, eq=False)
class Scales:
    """What the data suggest for levels that nobody gave."""

    readings: Readings
    grid: Grid
    latent: Latent

    def bounds(self, field: str, level: str) -> tuple[float, float]:
        """Of a level of a field's prior."""
        if level == "slope":
            return _SLOPE
        if level == "length":
            distance = typical_distance(self.readings.positions.numpy(), self.grid.extent)
            return _LENGTH[0] * distance, _LENGTH[1] * max(self.grid.extent)
        low, high = _STRENGTH if field == "state" else _SOURCE_STRENGTH
        values, of_source = self.readings.values, self.readings.of_source
        if field == "source" and bool(of_source.any()):
            size = size_of(values[of_source])
        else:
            size = size_of(values[~of_source]) / (1.0 if field == "state" else self._response(field))
        return low * size, high * size

    def _response(self, field: str) -> float:
        """Of the longest wave to a source or a velocity, in the middle of the coefficients' bounds."""
        k = wavenumbers((2, 2), (max(self.grid.extent),) * 2)
        last = self.readings.times.max()[None]
        middle = self.latent.bounds.mean(-1)[None]
        response = response_of(self.latent.family, field)(k, last, middle)
        return float(response.expand(1, 1, 2, 2)[0, 0, 0, 1].abs())


def unknown_field(
    field: str, spectrum: Spectrum, around: Embedding, levels: Levels, scales: Scales, basis: Basis | None = None
) -> UnknownPart:
    """An unknown field, with a new level for each of its spectrum's that is inferred; in another basis if one is
    given."""
    columns = []
    for name in spectrum.levels:
        value = getattr(spectrum, name)
        if isinstance(value, float | int):
            columns.append(float(value))
        else:
            own = f"{'initial' if field == 'state' else field}_prior_{name}"
            columns.append(levels.column(own, value, scales.bounds(field, name)))
    mirror, extent, m = around.mirror, around.extent, around.num_modes
    if basis is None:
        if spectrum.basis_mirror not in (None, mirror) or spectrum.margin:
            raise UsageError(
                f"a prior in another basis than the domain's needs a case whose start is not given; got {spectrum} for "
                f"the {_WORDS.get(field, field)}"
            )
        modes = around.up_to_the_finest() if spectrum.num_modes is None else around.within(spectrum.num_modes)
        if not isinstance(spectrum, WhiteBand):  # the row of -M has no counterpart
            modes = modes.select(modes.k[:, 0] > -2 * math.pi / extent[0] * (spectrum.num_modes or m))
    else:
        mirror, extent, m = basis.mirror, basis.extent, basis.along_y.shape[1]
        modes = replace(Modes.of_block((2 * m, m), extent, mirror), margin=basis.margin)
    if spectrum.zero_mean:
        modes = modes.select((modes.k != 0).any(-1))
    unit = source_scale(m) * math.sqrt(mirror.num_images) if field == "source" else 1.0
    return UnknownPart.of_spectrum(field, modes, (2 * m, m), spectrum, tuple(columns), extent, unit, basis)


def bases_of(
    spectra: Mapping[str, Spectrum | None],
    around: Embedding,
    rectangle: tuple[float, float],
    spacing: tuple[float, float] | None,
) -> dict[str, Basis]:
    """The bases that priors name, of those fields whose prior names another than the case's own.

    Args:
        spectra: the priors, field by field.
        around: the case's own.
        rectangle: ``(height, width)`` between its walls.
        spacing: of the nodes of a family that solves differences.
    """
    found = {}
    for field, spectrum in spectra.items():
        mirror = None if spectrum is None else spectrum.basis_mirror
        if spectrum is None or mirror is None or (mirror == around.mirror and not spectrum.margin):
            continue
        if not (around.mirror.y and around.mirror.x):
            raise UsageError(
                f"a prior in another basis needs a domain with walls along both axes (dirichlet or neumann); got "
                f"{spectrum} for the {_WORDS.get(field, field)}"
            )
        num_modes = around.num_modes if spectrum.num_modes is None else spectrum.num_modes
        num_nodes = None if spacing is None else min(round(s / h) for s, h in zip(rectangle, spacing, strict=True))
        found[field] = Basis.around(
            rectangle,
            around.mirror,
            mirror,
            margin=spectrum.margin,
            num_modes=num_modes,
            num_field_modes=2 * num_modes if num_nodes is None else num_nodes,
            spacing=spacing,
        )
    return found


def size_of(values: Float[Tensor, " reading"]) -> float:
    """How much readings vary: the unit of levels that nobody gave."""
    size = float(values.std(correction=0)) or float(values.abs().max())
    if not np.isfinite(size) or size == 0:
        raise DataError("all readings are zero: nothing can be inferred of their noise; give it (noise_std)")
    return size
