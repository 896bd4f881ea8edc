"""Localisation: covariances of a small ensemble, tapered to zero with the distance between two places.

A covariance estimated from few members has sampling errors everywhere, also between places too far apart to have
anything to do with each other. Multiplying it by a correlation function of compact support removes those.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from latentpde.estimators.assimilation.readings import FieldReadings
from latentpde.grid import Grid


@dataclass(frozen=True, eq=False)
class Taper:
    """Factors on an ensemble's covariances, from 1 at the same place to 0 from a radius on.

    Args:
        state: the factors between readings and cells.
        reading: the factors between readings.
    """

    state: Float[Tensor, "snapshot reading cell"]
    reading: Float[Tensor, "snapshot reading reading2"]

    @classmethod
    def of(cls, readings: FieldReadings, radius: float) -> Taper:
        """The taper of Gaspari and Cohn on the periodic domain that reaches zero at ``radius``, in physical units."""
        where = readings.positions
        return cls(
            _to_cells(where, readings.grid, radius), gaspari_cohn(_distances(where, where, readings.grid), radius)
        )


def gaspari_cohn(distance: Float[Tensor, "*any"], radius: float) -> Float[Tensor, "*any"]:
    """The fifth-order piecewise rational function of Gaspari and Cohn (1999, equation 4.10).

    Args:
        distance: distances between places, not negative.
        radius: the distance from which on the function is zero, positive.

    Example:
        >>> gaspari_cohn(torch.tensor([0.0, 1.0, 2.0, 3.0]), radius=2.0)
        tensor([1.0000, 0.2083, 0.0000, 0.0000])
    """
    r = 2 * distance / radius
    near = 1 + r**2 * (-5 / 3 + r * (5 / 8 + r * (1 / 2 - r / 4)))
    safe = r.clamp(min=1.0)
    far = 4 - 5 * r + r**2 * (5 / 3 + r * (5 / 8 + r * (-1 / 2 + r / 12))) - 2 / (3 * safe)
    return torch.where(r <= 1, near, torch.where(r < 2, far, 0.0)).clamp(min=0.0)


def _to_cells(
    where: Float[Tensor, "snapshot reading 2"], grid: Grid, radius: float
) -> Float[Tensor, "snapshot reading cell"]:
    """The taper between readings and cells."""
    spacing = torch.tensor(grid.spacing, dtype=torch.float64)
    cells = torch.stack(torch.meshgrid(*map(torch.arange, grid.shape), indexing="ij"), -1).flatten(0, 1)
    place = where / spacing - 0.5
    whole = torch.floor(place + 1e-6)
    part = place - whole
    if float((part - part[0, 0]).abs().max()) > 1e-6:
        return gaspari_cohn(_distances(where, ((cells + 0.5) * spacing).expand(len(where), -1, 2), grid), radius)
    # All lie at the same place within their cells, as averages over coarse cells do: one table, moved to each.
    origin = (part[:1, :1] + 0.5) * spacing
    table = gaspari_cohn(_distances(origin, ((cells + 0.5) * spacing)[None], grid), radius)[0, 0]
    (ny, nx), (row, column) = grid.shape, whole.long().unbind(-1)
    rows = (torch.arange(ny) - row[..., None]) % ny
    columns = (torch.arange(nx) - column[..., None]) % nx
    return table[(rows[..., :, None] * nx + columns[..., None, :]).flatten(-2)]


def _distances(
    a: Float[Tensor, "snapshot from 2"], b: Float[Tensor, "snapshot to 2"], grid: Grid
) -> Float[Tensor, "snapshot from to"]:
    """Shortest distances between places on the periodic rectangle."""
    squared = torch.zeros((), dtype=torch.float64)
    for axis, extent in enumerate(grid.extent):
        apart = (a[:, :, None, axis] - b[:, None, :, axis]).abs() % extent
        squared = squared + torch.minimum(apart, extent - apart) ** 2
    return torch.sqrt(squared)
