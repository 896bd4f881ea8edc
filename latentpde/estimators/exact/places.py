"""Where and when the readings of one case were taken."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from latentpde.estimators.exact.readings import Readings
from latentpde.observation import Observation

_FEW = 8  # readings of a snapshot, on average


@dataclass(frozen=True, eq=False)
class Places:
    """Where and when the readings of one case were taken, snapshot after snapshot.

    Args:
        positions: ``(y, x)`` of each reading relative to the grid's origin.
        labels: row and column of each reading's cell, or the number of its sensor.
        grid_shape: of the cells; ``None`` for sensors.
        times: PDE time of each snapshot.
        snapshots: which readings each snapshot has; after those of the times there may be one of the source.
        cells: ``(height, width)`` of what each reading is the average over, zero for a point; ``None`` where the modes'
            own attenuation says what all readings see of them.
    """

    positions: Float[Tensor, "reading 2"]
    labels: Int[Tensor, "reading label"]
    grid_shape: tuple[int, int] | None
    times: Float[Tensor, " time"]
    snapshots: list[slice]
    cells: Float[Tensor, "reading 2"] | None = None

    @classmethod
    def of(cls, observation: Observation) -> Places:
        """The places of the snapshots of an observation's first case."""
        order = observation.mask[0].nonzero()
        snapshots = _slices(np.bincount(order[:, 0].numpy(), minlength=len(observation.times)))
        labels = order[:, 1:]
        if observation.positions is None:
            positions = (labels + 0.5) * torch.tensor(observation.grid.spacing, dtype=torch.float64)
            return cls(positions, labels, observation.grid.shape, observation.times, snapshots)
        origin = torch.tensor(observation.grid.origin, dtype=torch.float64)
        return cls(observation.positions[0][labels[:, 0]] - origin, labels, None, observation.times, snapshots)

    @classmethod
    def of_table(cls, readings: Readings) -> Places:
        """The places of any readings: those at the same time are a snapshot, those at the same place a sensor."""
        times, counts = torch.unique_consecutive(readings.times[~readings.of_source], return_counts=True)
        num_of_source = readings.of_source.sum()[None]
        counts = torch.cat([counts, num_of_source]) if bool(num_of_source) else counts
        labels = torch.unique(readings.positions, dim=0, return_inverse=True)[1]
        return cls(readings.positions, labels[:, None], None, times, _slices(counts.numpy()), readings.cells)

    def pair_keys(self) -> Int[Tensor, "reading reading2"]:
        """A whole number for each pair of readings, the same where their displacement is."""
        if self.grid_shape is None:
            sensor = self.labels[:, 0]
            return sensor[:, None] * (int(sensor.max()) + 1) + sensor
        (ny, nx), (row, col) = self.grid_shape, self.labels.T
        return ((row[:, None] - row) % ny) * nx + (col[:, None] - col) % nx

    def only(self, chosen: Int[Tensor, " chosen"]) -> Places:
        """Those of some of the readings, which are in order; snapshots that have none are left out."""
        numbers = torch.cat([torch.full((here.stop - here.start,), t) for t, here in enumerate(self.snapshots)])
        present, counts = torch.unique(numbers[chosen], return_counts=True)
        return replace(
            self,
            positions=self.positions[chosen],
            labels=self.labels[chosen],
            times=self.times[present[present < len(self.times)]],  # the source has none
            snapshots=_slices(counts.numpy()),
            cells=None if self.cells is None else self.cells[chosen],
        )

    @property
    def num_snapshots(self) -> int:
        return len(self.snapshots)

    @cached_property
    def times_of_readings(self) -> Int[Tensor, " reading"]:
        """The number of each reading's snapshot."""
        counts = torch.tensor([here.stop - here.start for here in self.snapshots])
        return torch.repeat_interleave(torch.arange(len(counts)), counts)

    @property
    def is_scattered(self) -> bool:
        """Whether snapshots have a few readings each, so that they are better taken all at once."""
        return len(self.positions) < _FEW * self.num_snapshots

    @property
    def has_source(self) -> bool:
        """Whether the last snapshot is of the source."""
        return len(self.snapshots) > len(self.times)


def _slices(counts: np.ndarray) -> list[slice]:
    """Consecutive slices of some lengths."""
    ends = np.cumsum(counts).tolist()
    return [slice(start, stop) for start, stop in zip([0, *ends[:-1]], ends, strict=True)]
