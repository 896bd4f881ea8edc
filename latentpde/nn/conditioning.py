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
    """The channels of each snapshot; point readings are averaged into the cells they fall in."""
    values, mask = _on_cells(observation)
    grid = observation.grid
    return torch.stack(
        [values, mask.to(values), distance_to_observation(mask, grid), observation_density(mask, grid)], dim=2
    )


def distance_to_observation(mask: Bool[Tensor, "*batch y x"], grid: Grid) -> Float[Tensor, "*batch y x"]:
    """Exact periodic Euclidean distance between cell centres, in units of the domain's shorter side.

    One axis at a time: the squared distance along x to the nearest reading of the same row, then the least
    over rows of that plus the squared distance along y.
    """
    along_y, along_x = (_periodic_gaps(n, length) ** 2 for n, length in zip(grid.shape, grid.extent, strict=True))
    within_row = torch.where(mask[..., None, :], along_x, torch.inf).amin(-1)
    squared = (within_row.mT[..., None, :] + along_y).amin(-1).mT
    farthest = (
        grid.extent[0] ** 2 + grid.extent[1] ** 2
    ) / 4  # what a snapshot without readings is taken to be from one
    return torch.sqrt(squared.clamp(max=farthest)) / min(grid.extent)


def observation_density(mask: Bool[Tensor, "*batch y x"], grid: Grid) -> Float[Tensor, "*batch y x"]:
    """Share of observed cells nearby; its mean is the sparsity."""
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
