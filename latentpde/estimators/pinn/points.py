"""Points of a PINN: triples ``(t, y, x)`` in units of the whole time and domain, so that each runs from 0 to 1."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor

from latentpde.grid import Grid
from latentpde.observation import Observation

_POINTS_AT_ONCE = 2**16


def cell_centres(grid: Grid) -> Float[Tensor, "place 2"]:
    """Places ``(y, x)`` of a grid's cell centres, row by row.

    Example:
        >>> cell_centres(Grid((1, 2), extent=(3.0, 8.0))).tolist()
        [[0.5, 0.25], [0.5, 0.75]]
    """
    y, x = ((torch.arange(n, dtype=torch.float64) + 0.5) / n for n in grid.shape)
    return torch.cartesian_prod(y, x)


def points_at(when: Float[Tensor, "*point"] | float, places: Float[Tensor, "point 2"]) -> Float[Tensor, "point 3"]:
    """The points at some places and at one time, or each at a time of its own."""
    times = torch.as_tensor(when, dtype=places.dtype).expand(len(places))
    return torch.cat([times[:, None], places], 1)


def carried(points: Float[Tensor, "*batch point 3"], drift: Float[Tensor, "case 2"]) -> Float[Tensor, "case point 3"]:
    """Where a drift carries points from time 0 until their own time, around the periodic domain.

    Args:
        points: the same for all cases, or with an axis of cases.
        drift: ``(y, x)`` of each case, in domains per whole time.

    Example:
        >>> carried(torch.tensor([[0.5, 0.75, 0.25]]), torch.tensor([[1.0, -0.25]])).tolist()
        [[[0.5, 0.25, 0.125]]]
    """
    when, places = points[..., :1], points[..., 1:]
    places = (places + when * drift[:, None].to(points.dtype)) % 1
    return torch.cat([when.expand(*places.shape[:-1], 1), places], -1)


def reading_nodes(observation: Observation, duration: float) -> Float[Tensor, "case reading node 3"]:
    """The points whose mean a network compares with each reading: one for a sensor, several for a cell's average.

    Args:
        observation: the readings; times and places that were not read have nodes too.
        duration: the time that counts as 1; infinite for a steady field, which has only time 0.
    """
    grid, num_cases, num_times = observation.grid, len(observation), len(observation.times)
    origin, extent = (torch.tensor(pair, dtype=torch.float64) for pair in (grid.origin, grid.extent))
    if observation.positions is None:
        nodes = (cell_centres(grid)[:, None] + _cell_nodes(grid, observation.pooling)).expand(num_cases, -1, -1, -1)
    else:
        nodes = ((observation.positions - origin) / extent)[:, :, None]
    num_places = nodes.shape[1]
    nodes = nodes[:, None].expand(-1, num_times, -1, -1, -1)
    when = (observation.times / duration)[None, :, None, None, None].expand(*nodes.shape[:-1], 1)
    return torch.cat([when, nodes], -1).reshape(num_cases, num_times * num_places, -1, 3)


def _cell_nodes(grid: Grid, pooling: int | None) -> Float[Tensor, "node 2"]:
    """Offsets from a cell's centre at which a field has the cell's average as its mean, up to fourth derivatives.

    Their variance is that of the places that the cell averages over.
    """
    if pooling == 1:
        return torch.zeros(1, 2, dtype=torch.float64)
    variance = (1 - (0.0 if pooling is None else 1 / pooling**2)) / 12
    signs = torch.tensor([[-1.0, -1.0], [-1.0, 1.0], [1.0, -1.0], [1.0, 1.0]], dtype=torch.float64)
    return math.sqrt(variance) * signs / torch.tensor(grid.shape)


def at_many_points(
    function: Callable[[Tensor], Tensor], points: Float[Tensor, "point 3"], num_cases: int
) -> Float[Tensor, "case point"]:
    """The values of a network at many points, some at a time to bound memory, and in double precision from here on.

    Args:
        function: from points to values ``(case, point)`` in single precision.
        points: where the values are wanted.
        num_cases: how many cases ``function`` treats at once.
    """
    step = max(1, _POINTS_AT_ONCE // num_cases)
    with torch.no_grad():
        return torch.cat([function(part.float()).double() for part in points.split(step)], 1)
