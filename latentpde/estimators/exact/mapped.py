r"""Readings of a field whose source has its prior in another basis than the field's own.

A mode of the source is then a sum of modes of the field, :math:`\hat f = M a` (`latentpde.grid.bases`), and a reading
responds to it by

.. math:: A_{ic} = \sum_n \phi_n(x_i)\, H_n(\theta, t_i)\, M_{nc}\, \sigma_c ,

a product of one small matrix along y and one along x for each reading, because :math:`\phi_n` and :math:`M` are
products of functions along the axes. Both axes have walls, so everything is real.
"""

from __future__ import annotations

import torch
from jaxtyping import Complex, Float, Int
from torch import Tensor

from latentpde.decoder import Decoder
from latentpde.estimators.exact.fourier import as_wavenumbers
from latentpde.estimators.exact.places import Places
from latentpde.estimators.exact.responses import UnknownPart, response_of
from latentpde.grid import Wavenumbers
from latentpde.grid.bases import functions


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

    def __len__(self) -> int:
        return sum(len(part.modes) for part, _ in self.parts)

    def only(self, chosen: Int[Tensor, " chosen"]) -> MappedModes:
        """At some of the readings."""
        return MappedModes(self._decoder, self.places.only(chosen), [part for part, _ in self.parts])

    def matrix(self, parameters: Float[Tensor, "1 parameter"]) -> Float[Tensor, "reading column"]:
        """``A``, of a single set of parameters."""
        columns = [self._columns(part, k, parameters) for part, k in self.parts]
        return columns[0] if len(columns) == 1 else torch.cat(columns, dim=-1)

    def covariance(self, parameters: Float[Tensor, "batch parameter"]) -> Float[Tensor, "batch reading reading2"]:
        """Of the readings, without noise."""
        found = []
        for row in parameters.split(1):
            matrix = self.matrix(row)
            found.append(matrix @ matrix.T)
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
        return {part.field: self._columns(part, k, parameters).to(torch.complex128) for part, k in self.parts}

    def prior_variance(self, parameters: Tensor) -> Float[Tensor, " reading"]:
        """Variance of the readings under the prior, without noise, for the first of the parameters."""
        return (self.matrix(parameters[:1]) ** 2).sum(-1)

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

    def _columns(self, part: UnknownPart, k: Wavenumbers, row: Tensor) -> Float[Tensor, "reading mode"]:
        """What readings see of whitened modes of a field; of a source, of all of its block, zero where it has none."""
        amplitude, basis, rows = self._amplitude(part, k, row), self.basis, []
        if part.field != "source":
            for t, here in enumerate(self.places.snapshots):
                waves = part.modes.waves(self.places.positions[here]).real
                rows.append(waves * (self._response(part, k, row, t) * amplitude))
            return torch.cat(rows)
        square = torch.zeros(basis.along_y.shape[1] * basis.along_x.shape[1], dtype=torch.float64)
        square = square.index_put((part.modes.index,), amplitude)
        square = square.unflatten(0, (basis.along_y.shape[1], basis.along_x.shape[1]))
        for t, here in enumerate(self.places.snapshots):
            if t == len(self.places.times):
                along_y, along_x = (along[here] for along in self._own_along)
                rows.append((along_y[:, :, None] * along_x[:, None, :] * square).flatten(1))
            else:
                along_y, along_x = (along[here] for along in self._along)
                of_x = (along_x[:, None, :] * self._response(part, k, row, t)) @ basis.along_x
                rows.append((((along_y[:, None, :] * basis.along_y.T) @ of_x) * square).flatten(1))
        return rows[0] if len(rows) == 1 else torch.cat(rows)

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
