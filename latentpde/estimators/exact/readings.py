"""All readings of one case as a long table, the initial state's cells among them."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from latentpde.errors import DataError
from latentpde.observation import Observation

_EXACT = 1e-3  # noise of an initial state that is said to be exact, as a share of its standard deviation


@dataclass(frozen=True, eq=False)
class Readings:
    """Readings one after another, in the order of their times.

    Args:
        values: what was read.
        positions: ``(y, x)`` relative to the lower corner of the rectangle.
        times: PDE time of each.
        noise_std: of each; NaN where it is not known.
        groups: number of the group that shares an unknown level of noise.
        cells: ``(height, width)`` of what each is the average over; zero for a point.
        order: number of each among the readings of the case; -1 for a cell of the initial state.
        of_source: whether each is of the source, not of the field; those come last.
    """

    values: Float[Tensor, " reading"]
    positions: Float[Tensor, "reading 2"]
    times: Float[Tensor, " reading"]
    noise_std: Float[Tensor, " reading"]
    groups: Int[Tensor, " reading"]
    cells: Float[Tensor, "reading 2"]
    order: Int[Tensor, " reading"]
    of_source: Bool[Tensor, " reading"]

    @classmethod
    def of(cls, case: Observation, initial_noise_std: float = 0.0) -> Readings:
        """The table of a single case. An initial state, where there is one, is a snapshot at time 0 like any other.

        >>> cells = torch.tensor([[1.0, torch.nan], [3.0, 4.0]])
        >>> table = Readings.of(Observation.from_arrays(cells, cells.nan_to_num(), times=[0.5], noise_std=0.1))
        >>> len(table), table.times.tolist()
        (7, [0.0, 0.0, 0.0, 0.0, 0.5, 0.5, 0.5])
        """
        if len(case) != 1:
            raise DataError(f"a table of readings is of one case at a time, got {len(case)}")
        mask = case.mask[0]
        where = mask.nonzero()
        spacing = torch.tensor(case.grid.spacing, dtype=torch.float64)
        if case.positions is None:
            positions = (where[:, 1:] + 0.5) * spacing
        else:
            positions = case.positions[0][where[:, 1]] - torch.tensor(case.grid.origin, dtype=torch.float64)
        times = case.times[where[:, 0]] if case.reading_times is None else case.reading_times[0][mask]
        groups = torch.zeros_like(where[:, 0]) if case.groups is None else case.groups[0][mask]
        cells = spacing * (case.observed == "pooled") * torch.ones_like(positions)
        of_source = torch.zeros_like(groups, dtype=torch.bool) if case.of_source is None else case.of_source[0][mask]
        values, noise_std, order = case.values[0][mask], case.noise_std[0][mask], torch.arange(len(where))
        parts: list[tuple[Tensor, ...]] = [(values, positions, times, noise_std, groups, cells, order, of_source)]
        if case.initial is not None:
            parts.append(_initial_cells(case, case.initial[0], initial_noise_std))
        columns = [torch.cat(column) for column in zip(*parts, strict=True)]
        values, places, times, of_source = (columns[i].numpy() for i in (0, 1, 2, 7))
        # by time, then by place and value: the order in which somebody wrote them down does not matter
        in_order = torch.from_numpy(np.lexsort((values, places[:, 1], places[:, 0], times, of_source)))
        return cls(*(column[in_order] for column in columns))

    def __len__(self) -> int:
        return len(self.values)

    def only(self, chosen: Bool[Tensor, " reading"]) -> Readings:
        """Some of them."""
        return Readings(*(getattr(self, column.name)[chosen] for column in fields(self)))


def _initial_cells(case: Observation, initial: Tensor, noise_std: float) -> tuple[Tensor, ...]:
    """The cells of an initial state as readings at time 0; NaN is a gap."""
    there = torch.isfinite(initial)
    where, values = there.nonzero(), initial[there]
    spacing = torch.tensor(case.grid.spacing, dtype=torch.float64)
    std = noise_std or _EXACT * float(values.std(correction=0)) or _EXACT
    positions = (where + 0.5) * spacing
    cells = spacing * (case.pooling != 1) * torch.ones_like(positions)
    zeros = torch.zeros(len(values), dtype=torch.long)
    return values, positions, zeros.double(), torch.full_like(values, std), zeros, cells, zeros - 1, zeros.bool()
