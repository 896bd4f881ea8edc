"""The readings' covariance without noise, from the responses of readings to modes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable

from latentpde.estimators.exact.fourier import as_wavenumbers, fold, phases
from latentpde.estimators.exact.responses import UnknownModes, UnknownPart, squared

# How many times the pairs of readings the pairs of displacements may be before modes are the cheaper way.
_DENSE_ENOUGH = 2.0


@runtime_checkable
class Signal(Protocol):
    """The readings' covariance without noise."""

    num_values: int

    def covariance(self, parameters: Tensor) -> Float[Tensor, "batch reading reading2"]: ...


def signal_of(unknown: UnknownModes | Signal) -> Signal:
    """The cheaper way to the readings' covariance: by displacements where few snapshots share their places, all see
    the same of a mode and there are no walls, else by modes."""
    if not isinstance(unknown, UnknownModes):
        return unknown
    if any(part.modes.mirror for part, _ in unknown.parts):
        return ModeProducts(unknown)
    places = unknown.places
    alike = places.cells is None or not bool(places.cells.any())
    num_places = len(torch.unique(places.positions, dim=0))
    by_displacement = (places.num_snapshots * num_places) ** 2 <= _DENSE_ENOUGH * len(places.positions) ** 2
    return DisplacementTable(unknown) if alike and by_displacement else ModeProducts(unknown)


class ModeProducts:
    """The readings' covariance without noise, as the product of their responses to all modes."""

    def __init__(self, unknown: UnknownModes):
        self._unknown = unknown
        self.num_values = 2 * unknown.waves.numel()

    def covariance(self, parameters: Tensor) -> Float[Tensor, "batch reading reading2"]:
        return _Products.apply(torch.view_as_real(self._unknown.heard(parameters)).flatten(-2))  # pyright: ignore[reportReturnType]


class _Products(torch.autograd.Function):
    """Products of rows with each other, whose derivative takes one product of matrices instead of two."""

    @staticmethod
    def forward(ctx, rows):  # pyright: ignore[reportIncompatibleMethodOverride]
        ctx.save_for_backward(rows)
        return rows @ rows.mT

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):  # pyright: ignore[reportIncompatibleMethodOverride]
        (rows,) = ctx.saved_tensors
        return (grad + grad.mT) @ rows


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
        for parts in _with_same_waves([part for part, _ in unknown.parts]):
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
        later, earlier = torch.tril_indices(len(snapshots), len(snapshots))
        cross = self._sum(parameters, lambda response: response[:, later] * response[:, earlier].conj())
        tables = cross.real @ self._cosines
        tables = tables - cross.imag @ self._sines if cross.is_complex() else tables
        num_readings = len(self._gather)
        whole = torch.empty((len(parameters), num_readings, num_readings), dtype=torch.float64)
        for pair, (a, b) in enumerate(zip(later.tolist(), earlier.tolist(), strict=True)):
            rows, cols = snapshots[a], snapshots[b]
            whole[:, rows, cols] = block = self._look_up(tables[:, pair], self._gather[rows, cols])
            if a != b:
                whole[:, cols, rows] = block.mT
        return whole

    def _sum(self, parameters: Tensor, function: Callable[[Tensor], Tensor]) -> Tensor:
        """Something quadratic in the responses, summed over fields that share waves, mode by mode."""
        found = []
        for parts in self._parts:
            responses = self._unknown.responses(parameters, parts).chunk(len(parts), dim=-1)
            first, *others = (function(response) for response in responses)
            found.append(sum(others, first))
        return torch.cat(found, dim=-1)

    @staticmethod
    def _look_up(table: Tensor, where: Tensor) -> Tensor:
        return table.gather(1, where.reshape(1, -1).expand(len(table), -1)).unflatten(1, where.shape)


def _with_same_waves(parts: list[UnknownPart]) -> list[list[UnknownPart]]:
    """Fields grouped by what they look like at the readings, mode by mode: their powers can be added up."""
    groups: list[list[UnknownPart]] = []
    for part in parts:
        for group in groups:
            same = torch.equal(group[0].modes.k, part.modes.k) and torch.allclose(
                group[0].scale, part.scale, rtol=1e-12
            )
            if same:
                group.append(part)
                break
        else:
            groups.append([part])
    return groups
