"""The readings' covariance without noise, from the responses of readings to modes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from latentpde.estimators.exact.fourier import as_wavenumbers, fold, phases
from latentpde.estimators.exact.products import ReadingProducts, SnapshotProducts, crossed, summed, with_same_waves
from latentpde.estimators.exact.responses import UnknownModes, squared

# How many times the pairs of readings the pairs of displacements may be before modes are the cheaper way.
_DENSE_ENOUGH = 2.0


@runtime_checkable
class Signal(Protocol):
    """The readings' covariance without noise."""

    num_values: int

    def covariance(self, parameters: Tensor) -> Float[Tensor, "batch reading reading2"]: ...


def signal_of(unknown: UnknownModes | Signal) -> Signal:
    """The cheapest way to the readings' covariance: by displacements where few snapshots share their places, all see
    the same of a mode and there are no walls, else by modes, of snapshots or of single readings."""
    if not isinstance(unknown, UnknownModes):
        return unknown
    places = unknown.places
    walls = any(part.modes.mirror for part, _ in unknown.parts)
    alike = places.cells is None or not bool(places.cells.any())
    num_places = len(torch.unique(places.positions, dim=0))
    by_displacement = (places.num_snapshots * num_places) ** 2 <= _DENSE_ENOUGH * len(places.positions) ** 2
    if by_displacement and alike and not walls:
        return DisplacementTable(unknown)
    return ReadingProducts(unknown) if places.is_scattered else SnapshotProducts(unknown)


class DisplacementTable:
    """The readings' covariance without noise, from cosines (and sines) of every distinct displacement."""

    def __init__(self, unknown: UnknownModes):
        self._unknown, places = unknown, unknown.places
        keys = places.pair_keys()
        if places.num_snapshots == 1:
            keys = torch.minimum(keys, keys.T)  # the cosine is even
        _, first, inverse = np.unique(keys.numpy().ravel(), return_index=True, return_inverse=True)
        self._gather = torch.from_numpy(inverse.reshape(keys.shape))
        row, col = np.unravel_index(first, keys.shape)
        displacements = places.positions[row] - places.positions[col]
        self._parts, tables = [], []
        for numbers in with_same_waves([part for part, _ in unknown.parts]):
            parts = [unknown.parts[number][0] for number in numbers]
            k, square = parts[0].modes.k, parts[0].scale ** 2
            table = square[:, None] * torch.exp(1j * phases(k, displacements))
            if unknown.even:
                k, table = fold(k, table)
            waves = as_wavenumbers(k)
            self._parts.append([(part, waves) for part in parts])
            tables.append(table)
        table = torch.cat(tables)
        self._cosines = table.real.contiguous()
        self._sines = table.imag.contiguous() if places.num_snapshots > 1 else torch.zeros(0, dtype=torch.float64)
        num_pairs = places.num_snapshots * (places.num_snapshots + 1) // 2
        self.num_values = num_pairs * len(displacements)

    def covariance(self, parameters: Tensor) -> Float[Tensor, "batch reading reading2"]:
        snapshots = self._unknown.places.snapshots
        if len(snapshots) == 1:
            power = self._sum(parameters, lambda response: squared(response[:, 0]))
            return self._look_up(power @ self._cosines, self._gather)
        pairs = torch.tril_indices(len(snapshots), len(snapshots))
        cross = self._sum(parameters, partial(crossed, pairs=pairs))
        tables = cross.real @ self._cosines
        tables = tables - cross.imag @ self._sines if cross.is_complex() else tables
        num_readings = len(self._gather)
        whole = torch.empty((len(parameters), num_readings, num_readings), dtype=torch.float64)
        for pair, (a, b) in enumerate(pairs.T.tolist()):
            rows, cols = snapshots[a], snapshots[b]
            whole[:, rows, cols] = block = self._look_up(tables[:, pair], self._gather[rows, cols])
            if a != b:
                whole[:, cols, rows] = block.mT
        return whole

    def _sum(self, parameters: Tensor, function: Callable[[Tensor], Tensor]) -> Tensor:
        """Something quadratic in the responses, summed over fields that share waves, mode by mode."""
        return torch.cat([summed(self._unknown, parts, parameters, function) for parts in self._parts], dim=-1)

    @staticmethod
    def _look_up(table: Tensor, where: Tensor) -> Tensor:
        return table.gather(1, where.reshape(1, -1).expand(len(table), -1)).unflatten(1, where.shape)
