r"""Readings of a gridded field, for the methods whose unknown is the field and not the PDE.

Each reading is a weighted sum of a few fine cells, :math:`(H x)_i = \sum_e w_{ie}\, x_{j(i, e)}`: the cells that a
coarse cell averages, or the four around a sensor (bilinear, across the periodic edge). A snapshot is one case at one
time, and each is treated on its own; those with fewer readings than others are padded with readings of weight zero,
noise one and value zero, which change nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from latentpde.estimators.padding import padded_indices
from latentpde.grid import Grid
from latentpde.observation import Observation


@dataclass(frozen=True, eq=False)
class FieldReadings:
    """Readings of one or many snapshots, and the linear operator ``H`` that predicts them from gridded fields.

    Args:
        grid: the fine grid, on which fields are given.
        index: the fine cells that a reading depends on, counted row by row.
        weight: the weight of each of them; all zero for padding.
        values: what was read.
        variance: variance of each reading's noise.
        positions: ``(y, x)`` of the centre of each reading, in physical units relative to the grid's origin.

    Example:
        >>> import numpy as np
        >>> observation = Observation.from_arrays([[1.0, np.nan], [np.nan, 2.0]], noise_std=0.1, pooling=2)
        >>> readings = FieldReadings.of(observation)
        >>> readings.grid.shape, readings.values.tolist()
        ((4, 4), [[1.0, 2.0]])
        >>> fields = torch.arange(16.0, dtype=torch.float64).reshape(1, 4, 4)
        >>> readings.predict(fields).tolist()  # averages of 2 x 2 cells
        [[2.5, 12.5]]
    """

    grid: Grid
    index: Int[Tensor, "snapshot reading entry"]
    weight: Float[Tensor, "snapshot reading entry"]
    values: Float[Tensor, "snapshot reading"]
    variance: Float[Tensor, "snapshot reading"]
    positions: Float[Tensor, "snapshot reading 2"]

    @classmethod
    def of(cls, observation: Observation) -> FieldReadings:
        """The readings of every snapshot of every case, cases first, on the observation's fine grid."""
        fine, mask = observation.fine_grid, observation.mask.flatten(0, 1).flatten(1)
        chosen, is_reading = padded_indices(mask)
        if observation.positions is None:
            index, weight, positions = _cells(observation.grid, observation.refinement)
            index, weight, positions = index[chosen], weight[chosen], positions[chosen]
        else:
            origin = torch.tensor(observation.grid.origin, dtype=torch.float64)
            everywhere = (observation.positions - origin).repeat_interleave(len(observation.times), 0)
            positions = torch.take_along_dim(everywhere, chosen[..., None], 1)
            index, weight = _bilinear(fine, positions)
        values = torch.take_along_dim(observation.values.flatten(0, 1).flatten(1), chosen, 1)
        noise = torch.take_along_dim(observation.noise_std.flatten(0, 1).flatten(1), chosen, 1)
        variance = torch.where(is_reading, noise**2, 1.0)
        return cls(fine, index, weight * is_reading[..., None], values * is_reading, variance, positions)

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, snapshots: slice) -> FieldReadings:
        """Some of the snapshots, without padding that they do not need."""
        parts = [part[snapshots] for part in (self.index, self.weight, self.values, self.variance, self.positions)]
        most = max(1, int(self.is_reading[snapshots].sum(1).max()))
        return FieldReadings(self.grid, *(part[:, :most] for part in parts))

    @property
    def is_reading(self) -> Tensor:
        """Which entries are readings, and not padding; axes ``(snapshot, reading)``."""
        return (self.weight != 0).any(-1)

    def predict(self, fields: Float[Tensor, "snapshot *batch y x"]) -> Float[Tensor, "snapshot *batch reading"]:
        """Predict the readings of fields: ``H x``."""
        flat = fields.flatten(-2)
        shape = (len(self), *[1] * (flat.ndim - 2), -1)
        cells = torch.take_along_dim(flat, self.index.reshape(shape), -1).unflatten(-1, self.index.shape[1:])
        return (cells * self.weight.reshape(len(self), *[1] * (flat.ndim - 2), *self.weight.shape[1:])).sum(-1)

    def adjoint(self, readings: Float[Tensor, "snapshot *batch reading"]) -> Float[Tensor, "snapshot *batch y x"]:
        """Multiply by the operator's transpose, ``H^T y``: a value goes to the cells that its reading averages."""
        batch = readings.shape[1:-1]
        shape = (len(self), *[1] * len(batch), *self.weight.shape[1:])
        parts = (readings[..., None] * self.weight.reshape(shape)).flatten(-2)
        index = self.index.reshape(len(self), *[1] * len(batch), -1).expand(parts.shape)
        flat = readings.new_zeros((*readings.shape[:-1], self.grid.shape[0] * self.grid.shape[1]))
        return flat.scatter_add_(-1, index, parts).unflatten(-1, self.grid.shape)

    def footprints(self) -> Float[Tensor, "snapshot reading y x"]:
        """The columns of ``H^T``: for each reading a field that is zero but in the cells that it depends on."""
        eye = torch.eye(self.values.shape[1], dtype=self.weight.dtype)
        return self.adjoint(eye.expand(len(self), -1, -1))


def _cells(coarse: Grid, factor: int) -> tuple[Tensor, Tensor, Tensor]:
    """The fine cells of every coarse cell, their weights, and the coarse cells' centres relative to the origin."""
    ny, nx = coarse.shape
    rows = torch.arange(ny * factor).reshape(ny, 1, factor, 1)
    cols = torch.arange(nx * factor).reshape(1, nx, 1, factor)
    index = (rows * nx * factor + cols).reshape(ny * nx, factor**2)
    row, col = torch.meshgrid(torch.arange(ny), torch.arange(nx), indexing="ij")
    centres = (torch.stack([row, col], -1).flatten(0, 1) + 0.5) * torch.tensor(coarse.spacing, dtype=torch.float64)
    return index, torch.full(index.shape, factor**-2.0, dtype=torch.float64), centres


def _bilinear(grid: Grid, positions: Float[Tensor, "snapshot reading 2"]) -> tuple[Tensor, Tensor]:
    """The four fine cells around each position, across the periodic edge, and their bilinear weights."""
    scaled = positions / torch.tensor(grid.spacing, dtype=torch.float64) - 0.5
    below = scaled.floor()
    share = scaled - below
    index, weight = [], []
    for dy in (0, 1):
        for dx in (0, 1):
            row, col = (below[..., 0].long() + dy) % grid.shape[0], (below[..., 1].long() + dx) % grid.shape[1]
            index.append(row * grid.shape[1] + col)
            weight.append((share[..., 0] if dy else 1 - share[..., 0]) * (share[..., 1] if dx else 1 - share[..., 1]))
    return torch.stack(index, -1), torch.stack(weight, -1)
