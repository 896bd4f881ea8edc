"""Fields that people draw with a finger."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from latentpde.grid import Grid
from latentpde.web.models import Drawing, Stroke

_POINTS_AT_ONCE = 64


def drawn(drawing: Drawing, grid: Grid) -> Float[Tensor, "y x"]:
    """The sum of all strokes on a periodic unit square.

    >>> one = Stroke(points=[(0.5, 0.5)], width=0.1, height=2.0)
    >>> field = drawn(Drawing(strokes=[one, one]), Grid((3, 3)))
    >>> field[1, 1]
    tensor(4., dtype=torch.float64)
    """
    total = torch.zeros(grid.shape, dtype=torch.float64)
    for stroke in drawing.strokes:
        total += stroke.height * _brushed(stroke, grid)
    return total


def _brushed(stroke: Stroke, grid: Grid) -> Float[Tensor, "y x"]:
    """Between 0 and 1: a Gaussian of the distance to the nearest point of the stroke, around the edges too."""
    y, x = grid.coordinates()
    most = torch.zeros(grid.shape, dtype=torch.float64)
    for points in torch.tensor(_dense(stroke), dtype=torch.float64).split(_POINTS_AT_ONCE):
        squared = _apart(y, points[:, 0])[:, :, None] + _apart(x, points[:, 1])[:, None, :]
        most = torch.maximum(most, torch.exp(-squared.amin(0) / (2 * stroke.width**2)))
    return most


def _apart(cells: Tensor, points: Tensor) -> Float[Tensor, "point cell"]:
    """Squared distances along one axis of the periodic square."""
    distance = (cells - points[:, None]).abs()
    return torch.minimum(distance, 1 - distance) ** 2


def _dense(stroke: Stroke) -> list[tuple[float, float]]:
    """Points close enough to each other to make a line."""
    dense = [stroke.points[0]]
    for (y0, x0), (y1, x1) in zip(stroke.points, stroke.points[1:], strict=False):
        num = max(1, round(2 * max(abs(y1 - y0), abs(x1 - x0)) / stroke.width))
        dense += [(y0 + (y1 - y0) * i / num, x0 + (x1 - x0) * i / num) for i in range(1, num + 1)]
    return dense
