r"""The four channels that networks see: :math:`[y, M, d(M), \rho(M)]`.

``y`` is zero where nothing was read; the mask ``M`` tells those zeros from measured ones. ``d`` is the
distance to the nearest reading, measured around the periodic domain in units of its shorter side, and
``rho`` the local share of observed cells under a periodic Gaussian window. Together they tell a network
what kind of gap it is looking at, also for mask shapes it never met.
"""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from latentpde.grid import Grid
from latentpde.observation import Observation

DENSITY_WIDTH = 1 / 16  # standard deviation of the density's window, in units of the shorter side


def conditioning(observation: Observation) -> Float[Tensor, "case time 4 y x"]:
    """The four channels of each snapshot. Readings at points are averaged into the cells that they fall in.

    Example:
        >>> values = torch.full((4, 4), torch.nan)
        >>> values[0, 0] = 2.0  # one reading, in a corner
        >>> y, mask, distance, density = conditioning(Observation.from_arrays(values, noise_std=0.1))[0, 0]
        >>> float(y[0, 0]), float(mask.sum()), float(distance[0, 1]), round(float(density.mean()), 4)
        (2.0, 1.0, 0.25, 0.0625)
    """
    values, mask = _on_cells(observation)
    grid = observation.grid
    return torch.stack(
        [values, mask.to(values), distance_to_observation(mask, grid), observation_density(mask, grid)], dim=2
    )


def distance_to_observation(mask: Bool[Tensor, "*batch y x"], grid: Grid) -> Float[Tensor, "*batch y x"]:
    """Distance of each cell to the nearest reading: Euclidean, between cell centres, around the periodic domain, in
    units of its shorter side. Where a snapshot has no reading it is the farthest that two cells can be apart.

    It is exact, one axis at a time: the squared distance along x to the nearest reading of the same row, then the least
    over rows of that plus the squared distance along y.

    Args:
        mask: true where a cell was read.
        grid: the grid of the cells.

    Example:
        >>> mask = torch.tensor([[True, False, False, False]])
        >>> distance_to_observation(mask, Grid((1, 4)))
        tensor([[0.0000, 0.2500, 0.5000, 0.2500]], dtype=torch.float64)
    """
    along_y, along_x = (_periodic_gaps(n, length) ** 2 for n, length in zip(grid.shape, grid.extent, strict=True))
    within_row = torch.where(mask[..., None, :], along_x, torch.inf).amin(-1)
    squared = (within_row.mT[..., None, :] + along_y).amin(-1).mT
    farthest = (grid.extent[0] ** 2 + grid.extent[1] ** 2) / 4
    return torch.sqrt(squared.clamp(max=farthest)) / min(grid.extent)


def observation_density(mask: Bool[Tensor, "*batch y x"], grid: Grid) -> Float[Tensor, "*batch y x"]:
    """Share of cells near each cell that were read, under a periodic Gaussian window whose standard deviation is a
    sixteenth of the domain's shorter side. Its mean over the domain is the share of all cells that were read.

    Args:
        mask: true where a cell was read.
        grid: the grid of the cells.

    Example:
        >>> density = observation_density(torch.eye(8, dtype=torch.bool), Grid((8, 8)))
        >>> round(float(density.mean()), 6)
        0.125
    """
    width = DENSITY_WIDTH * min(grid.extent)
    windows = []
    for n, length in zip(grid.shape, grid.extent, strict=True):
        window = torch.exp(-0.5 * (_periodic_gaps(n, length) / width) ** 2)
        windows.append(window / window.sum(-1, keepdim=True))
    return windows[0] @ mask.to(torch.float64) @ windows[1].mT


def _periodic_gaps(n: int, length: float) -> Float[Tensor, "n n"]:
    steps = torch.arange(n, dtype=torch.float64)
    apart = (steps[:, None] - steps).abs()
    return torch.minimum(apart, n - apart) * (length / n)


def _on_cells(observation: Observation) -> tuple[Tensor, Tensor]:
    if observation.positions is None:
        return observation.values, observation.mask
    grid = observation.grid
    size, low = torch.tensor(grid.spacing, dtype=torch.float64), torch.tensor(grid.origin, dtype=torch.float64)
    cell = ((observation.positions - low) / size).floor().long() % torch.tensor(grid.shape)
    flat = (cell[..., 0] * grid.shape[1] + cell[..., 1])[:, None].expand(observation.values.shape)
    empty = observation.values.new_zeros((*observation.values.shape[:2], grid.shape[0] * grid.shape[1]))
    totals = empty.scatter_add(-1, flat, observation.values * observation.mask)
    counts = empty.scatter_add(-1, flat, observation.mask.to(empty))
    return (totals / counts.clamp(min=1)).unflatten(-1, grid.shape), (counts > 0).unflatten(-1, grid.shape)
