r"""Readings of a field whose source has its prior in another basis than the field's own.

A mode of the source is then a sum of modes of the field, :math:`\hat f = M a` (`latentpde.grid.bases`), and a reading
responds to it by

.. math:: A_{ic} = \sum_n \phi_n(x_i)\, H_n(\theta, t_i)\, M_{nc}\, \sigma_c ,

a product of one small matrix along y and one along x for each reading, because :math:`\phi_n` and :math:`M` are
products of functions along the axes. Both axes have walls, so everything is real.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from jaxtyping import Complex, Float, Int
from torch import Tensor

from latentpde.decoder import Decoder
from latentpde.estimators.exact.fourier import as_wavenumbers
from latentpde.estimators.exact.places import Places
from latentpde.estimators.exact.responses import UnknownPart, response_of
from latentpde.grid import Wavenumbers
from latentpde.grid.bases import functions

_READINGS_AT_ONCE = 128  # their responses to 128 x 128 modes are 16 MB


class MappedModes:
    """Whitened modes of a source in a basis of its own, and of the initial state where it is uncertain.

    Args:
        decoder: with the source's basis.
        places: of the readings, which are at points.
        fields: the unknown ones.
    """

    def __init__(self, decoder: Decoder, places: Places, fields: list[UnknownPart]):
        assert decoder.source_basis is not None
        self._decoder = decoder
        self.family, self.places, self.basis = decoder.latent.family, places, decoder.source_basis
        self.parts = [(part, as_wavenumbers(part.modes.k)) for part in fields]
        self._along, self._own_along, mirror, basis = [], [], decoder.mirror, self.basis
        for axis, (num, num_own) in enumerate((basis.along_y.shape, basis.along_x.shape)):
            position, sign, own_sign = places.positions[:, axis], (mirror.y, mirror.x), (basis.mirror.y, basis.mirror.x)
            self._along.append(functions(sign[axis], decoder.rectangle[axis], num, position))
            own = functions(own_sign[axis], basis.extent[axis] / 2, num_own, position + basis.margin)
            self._own_along.append(own)
        rows, cols = (
            torch.pi / side * torch.arange(along.shape[1], dtype=torch.float64)
            for side, along in zip(decoder.rectangle, self._along, strict=True)
        )
        self._k = Wavenumbers(rows[:, None], cols[None, :])
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

    def _amplitude(self, part: UnknownPart, k: Wavenumbers, row: Tensor) -> Float[Tensor, " mode"]:
        inferred = part.inferred_amplitude(k, row)
        return part.scale if inferred is None else part.scale * inferred[0, 0]

    def _response(self, part: UnknownPart, k: Wavenumbers, row: Tensor, t: int) -> Tensor:
        """Of the field's modes to the source, or of the state's own; zeros and ones for readings of the source."""
        theta, times = row[:, : len(self.family.coefficients)], self.places.times
        if t == len(times):
            return torch.tensor(float(part.field == "source"), dtype=torch.float64)
        if part.field == "source":
            return self.family.source_response(self._k, times[t : t + 1], theta)[0, 0]
        return response_of(self.family, part.field)(k, times[t : t + 1], theta).reshape(-1)

    def _rows(self, part: UnknownPart, k: Wavenumbers, row: Tensor) -> list[Float[Tensor, "_ mode"]]:
        """What readings see of whitened modes of a field, a few readings after the other; of a source, of all of its
        block, zero where it has none."""
        amplitude = self._amplitude(part, k, row)
        if part.field == "source":
            flat = torch.zeros(self.basis.along_y.shape[1] * self.basis.along_x.shape[1], dtype=torch.float64)
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
        if part.field != "source":
            return part.modes.waves(self.places.positions[few]).real * response
        of_source = t == len(self.places.times)
        along_y, along_x = (along[few] for along in (self._own_along if of_source else self._along))
        if of_source:
            return (along_y[:, :, None] * along_x[:, None, :]).flatten(1)
        of_x = (along_x[:, None, :] * response) @ self.basis.along_x
        return ((along_y[:, None, :] * self.basis.along_y.T) @ of_x).flatten(1)

    def _heard(self, part: UnknownPart, k: Wavenumbers, row: Tensor, t: int, here: slice, values: Tensor) -> Tensor:
        """What readings of a snapshot hear of modes' values, ``(reading, column)``."""
        response, basis = self._response(part, k, row, t), self.basis
        if part.field != "source":
            return part.modes.waves(self.places.positions[here]).real @ (response * values).T
        shape = basis.along_y.shape[1], basis.along_x.shape[1]
        square = torch.zeros((len(values), shape[0] * shape[1]), dtype=torch.float64)
        square[:, part.modes.index] = values
        square, along = square.unflatten(-1, shape), self._own_along
        if t < len(self.places.times):
            square, along = response * (basis.along_y @ square @ basis.along_x.T), self._along
        return ((along[0][here] @ square) * along[1][here]).sum(-1).T

    def _told(self, part: UnknownPart, k: Wavenumbers, row: Tensor, t: int, dual: Tensor, here: slice) -> Tensor:
        """The transpose of `_heard`, ``(column, mode)``."""
        response, basis = self._response(part, k, row, t), self.basis
        if part.field != "source":
            return (dual.T @ part.modes.waves(self.places.positions[here]).real) * response
        of_source = t == len(self.places.times)
        along_y, along_x = (along[here] for along in (self._own_along if of_source else self._along))
        square = along_y.T @ (dual.T[..., None] * along_x)
        if not of_source:
            square = basis.along_y.T @ (response * square) @ basis.along_x
        return square.flatten(1)[:, part.modes.index]


def _gram(rows: list[Float[Tensor, "_ mode"]]) -> Float[Tensor, "reading reading2"]:
    """``A A^T`` of a matrix that comes some rows after the other, of which half need not be computed."""
    lower = [[one @ other.T for other in rows[: i + 1]] for i, one in enumerate(rows)]
    return torch.cat(
        [torch.cat([*own, *(lower[j][i].T for j in range(i + 1, len(rows)))], dim=1) for i, own in enumerate(lower)]
    )


def _joined(parts: list[Tensor]) -> Tensor:
    return parts[0] if len(parts) == 1 else torch.cat(parts)
