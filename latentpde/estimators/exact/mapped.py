r"""Readings of a field whose source, or initial state, has its prior in another basis than the field's own.

A mode of the source is then a sum of modes of the field, :math:`\hat f = M a` (`latentpde.grid.bases`), and a reading
responds to it by

.. math:: A_{ic} = \sum_n \phi_n(x_i)\, H_n(\theta, t_i)\, M_{nc}\, \sigma_c ,

a product of one small matrix along y and one along x for each reading, because :math:`\phi_n` and :math:`M` are
products of functions along the axes. Both axes have walls, so everything is real. For a state :math:`G` takes the place
of :math:`H`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Complex, Float, Int
from torch import Tensor

from latentpde.decoder import Decoder
from latentpde.estimators.exact.fourier import as_wavenumbers
from latentpde.estimators.exact.places import Places
from latentpde.estimators.exact.responses import UnknownPart, response_of
from latentpde.grid import Basis, Wavenumbers
from latentpde.grid.bases import functions

_READINGS_AT_ONCE = 128  # their responses to 128 x 128 modes are 16 MB


@dataclass(frozen=True, eq=False)
class _Map:
    """The way of one field from its basis to the readings.

    Args:
        basis: of the prior.
        k: wavenumbers of the field's own functions.
        along: these at the readings, along y and along x.
        own_along: the functions of the basis there.
    """

    basis: Basis
    k: Wavenumbers
    along: tuple[Tensor, Tensor]
    own_along: tuple[Tensor, Tensor]

    @classmethod
    def of(cls, basis: Basis, decoder: Decoder, places: Places) -> _Map:
        signs, own_signs = (decoder.mirror.y, decoder.mirror.x), (basis.mirror.y, basis.mirror.x)
        along, own_along, numbers = [], [], []
        for axis, (num, num_own) in enumerate((basis.along_y.shape, basis.along_x.shape)):
            position, side = places.positions[:, axis], decoder.rectangle[axis]
            along.append(functions(signs[axis], side, num, position))
            own_along.append(functions(own_signs[axis], basis.extent[axis] / 2, num_own, position + basis.margin))
            numbers.append(torch.pi / side * torch.arange(num, dtype=torch.float64))
        k = Wavenumbers(numbers[0][:, None], numbers[1][None, :])
        return cls(basis, k, (along[0], along[1]), (own_along[0], own_along[1]))

    @property
    def shape(self) -> tuple[int, int]:
        """Of the modes of the basis."""
        return self.basis.along_y.shape[1], self.basis.along_x.shape[1]


class MappedModes:
    """Whitened modes of source, initial state and velocity, of which some have a basis of their own.

    Args:
        decoder: of the field.
        places: of the readings, which are at points.
        fields: the unknown ones.
    """

    def __init__(self, decoder: Decoder, places: Places, fields: list[UnknownPart]):
        self._decoder = decoder
        self.family, self.places = decoder.latent.family, places
        self.parts = [(part, as_wavenumbers(part.modes.k)) for part in fields]
        self._maps = {part.field: _Map.of(part.basis, decoder, places) for part in fields if part.basis is not None}
        self.num_values = len(places.positions) * len(self)
        # of fields whose levels are inferred, for the coefficients that were asked for last, which may be known
        self._kept: dict[str, tuple[Tensor, list[Tensor]]] = {}

    def __len__(self) -> int:
        return sum(len(part.modes) for part, _ in self.parts)

    def only(self, chosen: Int[Tensor, " chosen"]) -> MappedModes:
        """At some of the readings."""
        return MappedModes(self._decoder, self.places.only(chosen), [part for part, _ in self.parts])

    def covariance(self, parameters: Float[Tensor, "batch parameter"]) -> Float[Tensor, "batch reading reading2"]:
        """Of the readings, without noise."""
        found = []
        for row in parameters.split(1):
            products = [_gram(self._rows(part, k, row)) for part, k in self.parts]
            found.append(sum(products[1:], products[0]))
        return torch.stack(found)

    def all_readings(
        self, parameters: Tensor, unknown: Complex[Tensor, "batch column unknown"]
    ) -> Float[Tensor, "batch reading column"]:
        """What given unknowns add to the readings, several for each set of parameters."""
        found = []
        for row, own in zip(parameters.split(1), unknown.real, strict=True):
            start, total = 0, 0.0
            for part, k in self.parts:
                values = own[:, start : start + len(part.modes)] * self._amplitude(part, k, row)
                total = total + torch.cat(
                    [self._heard(part, k, row, t, here, values) for t, here in enumerate(self.places.snapshots)]
                )
                start += len(part.modes)
            found.append(total)
        return torch.stack(found)

    def all_adjoints(
        self, parameters: Tensor, dual: Float[Tensor, "batch reading column"]
    ) -> Complex[Tensor, "batch column unknown"]:
        """The transpose of `all_readings`."""
        found = []
        for row, own in zip(parameters.split(1), dual, strict=True):
            parts = []
            for part, k in self.parts:
                told = [self._told(part, k, row, t, own[here], here) for t, here in enumerate(self.places.snapshots)]
                parts.append(sum(told[1:], told[0]) * self._amplitude(part, k, row))
            found.append(torch.cat(parts, dim=-1))
        return torch.stack(found).to(torch.complex128)

    def responses_by_field(
        self, parameters: Float[Tensor, "1 parameter"]
    ) -> dict[str, Complex[Tensor, "reading mode"]]:
        """How readings respond to whitened modes, field by field."""
        return {part.field: torch.cat(self._rows(part, k, parameters)).to(torch.complex128) for part, k in self.parts}

    def prior_variance(self, parameters: Tensor) -> Float[Tensor, " reading"]:
        """Variance of the readings under the prior, without noise, for the first of the parameters."""
        parts = [[(few**2).sum(-1) for few in self._rows(part, k, parameters[:1])] for part, k in self.parts]
        return torch.stack([torch.cat(part) for part in parts]).sum(0)

    def to_field(self, field: str, block: Complex[Tensor, "batch row col"]) -> Complex[Tensor, "batch row2 col2"]:
        """The coefficients of an unknown field in the basis of the field that is read."""
        return self._maps[field].basis.to_field(block) if field in self._maps else block

    def _amplitude(self, part: UnknownPart, k: Wavenumbers, row: Tensor) -> Float[Tensor, " mode"]:
        inferred = part.inferred_amplitude(k, row)
        return part.scale if inferred is None else part.scale * inferred[0, 0]

    def _response(self, part: UnknownPart, k: Wavenumbers, row: Tensor, t: int) -> Tensor:
        """Of the field's modes to those of an unknown one; zeros and ones for readings of the source."""
        theta, times, mapped = row[:, : len(self.family.coefficients)], self.places.times, self._maps.get(part.field)
        if t == len(times):
            only_source = torch.tensor(float(part.field == "source"), dtype=torch.float64)
            return only_source if mapped is None else only_source * torch.ones_like(mapped.k.y * mapped.k.x)
        response = response_of(self.family, part.field)
        if mapped is None:
            return response(k, times[t : t + 1], theta).reshape(-1)
        return response(mapped.k, times[t : t + 1], theta)[0, 0]

    def _rows(self, part: UnknownPart, k: Wavenumbers, row: Tensor) -> list[Float[Tensor, "_ mode"]]:
        """What readings see of whitened modes of a field, a few readings after the other; of one with a basis of its
        own, of all of its block, zero where it has none."""
        amplitude = self._amplitude(part, k, row)
        if part.field in self._maps:
            flat = torch.zeros(math.prod(self._maps[part.field].shape), dtype=torch.float64)
            amplitude = flat.index_put((part.modes.index,), amplitude)
        if not any(isinstance(level, int) for level in part.levels) or row.requires_grad:
            return [few * amplitude for few in self._unit_rows(part, k, row)]
        theta = row[:, : len(self.family.coefficients)]
        if part.field not in self._kept or not torch.equal(self._kept[part.field][0], theta):
            self._kept[part.field] = theta.clone(), list(self._unit_rows(part, k, row))
        return [few * amplitude for few in self._kept[part.field][1]]

    def _unit_rows(self, part: UnknownPart, k: Wavenumbers, row: Tensor) -> Iterator[Float[Tensor, "_ mode"]]:
        """The same of modes of unit amplitude, which do not depend on levels."""
        waiting: list[Tensor] = []
        for t, here in enumerate(self.places.snapshots):
            response = self._response(part, k, row, t)
            for start in range(here.start, here.stop, _READINGS_AT_ONCE):
                few = slice(start, min(start + _READINGS_AT_ONCE, here.stop))
                waiting.append(self._few_rows(part, t, few, response))
                if sum(map(len, waiting)) >= _READINGS_AT_ONCE:
                    yield _joined(waiting)
                    waiting = []
        if waiting:
            yield _joined(waiting)

    def _few_rows(self, part: UnknownPart, t: int, few: slice, response: Tensor) -> Tensor:
        """Those of some readings of a snapshot."""
        mapped = self._maps.get(part.field)
        if mapped is None:
            return part.modes.waves(self.places.positions[few]).real * response
        if self._is_itself(part, t):
            along_y, along_x = (along[few] for along in mapped.own_along)
            return (along_y[:, :, None] * along_x[:, None, :]).flatten(1)
        along_y, along_x = (along[few] for along in mapped.along)
        of_x = (along_x[:, None, :] * response) @ mapped.basis.along_x
        return ((along_y[:, None, :] * mapped.basis.along_y.T) @ of_x).flatten(1)

    def _heard(self, part: UnknownPart, k: Wavenumbers, row: Tensor, t: int, here: slice, values: Tensor) -> Tensor:
        """What readings of a snapshot hear of modes' values, ``(reading, column)``."""
        response, mapped = self._response(part, k, row, t), self._maps.get(part.field)
        if mapped is None:
            return part.modes.waves(self.places.positions[here]).real @ (response * values).T
        square = torch.zeros((len(values), math.prod(mapped.shape)), dtype=torch.float64)
        square[:, part.modes.index] = values
        square, along = square.unflatten(-1, mapped.shape), mapped.own_along
        if not self._is_itself(part, t):
            square, along = response * (mapped.basis.along_y @ square @ mapped.basis.along_x.T), mapped.along
        return ((along[0][here] @ square) * along[1][here]).sum(-1).T

    def _told(self, part: UnknownPart, k: Wavenumbers, row: Tensor, t: int, dual: Tensor, here: slice) -> Tensor:
        """The transpose of `_heard`, ``(column, mode)``."""
        response, mapped = self._response(part, k, row, t), self._maps.get(part.field)
        if mapped is None:
            return (dual.T @ part.modes.waves(self.places.positions[here]).real) * response
        itself = self._is_itself(part, t)
        along_y, along_x = (along[here] for along in (mapped.own_along if itself else mapped.along))
        square = along_y.T @ (dual.T[..., None] * along_x)
        if not itself:
            square = mapped.basis.along_y.T @ (response * square) @ mapped.basis.along_x
        return square.flatten(1)[:, part.modes.index]

    def _is_itself(self, part: UnknownPart, t: int) -> bool:
        """Whether readings of a snapshot are of the part itself, and not of the field: those of the source are."""
        return part.field == "source" and t == len(self.places.times)


def _gram(rows: list[Float[Tensor, "_ mode"]]) -> Float[Tensor, "reading reading2"]:
    """``A A^T`` of a matrix that comes some rows after the other, of which half need not be computed."""
    lower = [[one @ other.T for other in rows[: i + 1]] for i, one in enumerate(rows)]
    return torch.cat(
        [torch.cat([*own, *(lower[j][i].T for j in range(i + 1, len(rows)))], dim=1) for i, own in enumerate(lower)]
    )


def _joined(parts: list[Tensor]) -> Tensor:
    return parts[0] if len(parts) == 1 else torch.cat(parts)
