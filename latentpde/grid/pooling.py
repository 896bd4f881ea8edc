"""Averages over cells, and what they leave of each Fourier mode."""

from __future__ import annotations

import torch
from jaxtyping import Complex, Float
from torch import Tensor

from latentpde.grid.grid import Grid, mode_numbers


def average_pool(u: Float[Tensor, "*batch y x"], factor: int) -> Float[Tensor, "*batch y2 x2"]:
    """Means over ``factor`` x ``factor`` cells; both sides must divide by it.

    >>> average_pool(torch.arange(8.0).reshape(2, 4), 2)
    tensor([[2.5000, 4.5000]])
    """
    ny, nx = u.shape[-2:]
    Grid((ny, nx)).coarsen(factor)
    return u.unflatten(-1, (nx // factor, factor)).unflatten(-3, (ny // factor, factor)).mean((-3, -1))


def pooling_attenuation(
    grid: Grid, factor: int | None, block_shape: tuple[int, int] | None = None
) -> Float[Tensor, "row col"]:
    r"""What averaging over one cell of ``grid`` multiplies each mode by.

    Averaging ``factor`` samples per side multiplies mode ``n`` of an ``N``-cell side by
    ``sin(phi) / (p sin(phi / p))`` with ``phi = pi n / N``; a true cell average (``factor=None``) by the
    limit ``sin(phi) / phi``; a point sample (``factor=1``) by one.

    >>> pooling_attenuation(Grid((4, 4)), factor=None)[0]
    tensor([1.0000, 0.9003], dtype=torch.float64)

    Args:
        grid: the cells that are averaged over.
        factor: samples per side of a cell.
        block_shape: of the modes; by default those that ``grid`` carries.
    """
    rows, cols = mode_numbers(block_shape or grid.block_shape)
    along_y, along_x = (
        _dirichlet(torch.pi * n.to(torch.float64) / num, factor)
        for n, num in zip((rows, cols), grid.shape, strict=True)
    )
    return along_y[:, None] * along_x[None, :]


def unpool_spectrum(
    u: Float[Tensor, "*batch y x"], grid: Grid, factor: int | None
) -> Complex[Tensor, "*batch row col"]:
    """Fourier coefficients of the field whose cell averages are ``u``, below the coarse Nyquist.

    What lies beyond the coarse Nyquist is unknown; it is absent from the block, and what of it folded
    into the averages stays in them. ``factor`` is that of `pooling_attenuation`.
    """
    return grid.analyse(u) / pooling_attenuation(grid, factor).to(u)


def _dirichlet(phi: Tensor, factor: int | None) -> Tensor:
    if factor is None:
        return torch.sinc(phi / torch.pi)
    return torch.sinc(phi / torch.pi) / torch.sinc(phi / torch.pi / factor)
