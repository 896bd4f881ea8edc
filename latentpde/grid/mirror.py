r"""Walls by mirror images: sine and cosine series are the odd and the even Fourier series of twice the length.

A field that vanishes on the walls of an axis of length :math:`\ell` is a sum of :math:`\sin(\pi n x / \ell)`, and one
without flux through them a sum of :math:`\cos(\pi n x / \ell)`: on the periodic axis of length :math:`2\ell` they are
the fields that change sign under :math:`x \to -x`, and those that do not. So everything that is done with blocks of
Fourier coefficients (`latentpde.grid.grid`) holds between walls too, on the rectangle together with its images, and a
PDE whose symbol is even along the axis keeps the symmetry.

A stationary random field with the power :math:`P(k)` on the doubled rectangle has one with walls that looks like it
away from them: :math:`|G|^{-1/2} \sum_g s_g\, u(g x)`, over the group :math:`G` of reflections with their signs. Its
coefficients in sines and cosines are independent, with the variance :math:`4 P(k)` along each walled axis, or
:math:`2 P(k)` for the constant.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch
from jaxtyping import Complex, Float
from torch import Tensor

from latentpde.grid.grid import Grid

ODD, NONE, EVEN = -1, 0, 1


@dataclass(frozen=True)
class Mirror:
    """The symmetry of fields between walls, axis by axis.

    >>> mirror, grid = Mirror(y=NONE, x=ODD), Grid((4, 4))
    >>> ramp = grid.coordinates()[1].expand(4, 4)
    >>> mirror.extend(ramp)[0]
    tensor([ 0.1250,  0.3750,  0.6250,  0.8750, -0.8750, -0.6250, -0.3750, -0.1250],
           dtype=torch.float64)
    >>> mirror.grid(grid)
    Grid(shape=(4, 8), extent=(1.0, 2.0), origin=(0.0, 0.0))

    Args:
        y, x: -1 where fields change sign at the walls of the axis, so vanish there; 1 where they are the same on both
            sides, so have no flux; 0 for an axis without walls.
    """

    y: int = NONE
    x: int = NONE

    def __bool__(self) -> bool:
        """Whether any axis has walls."""
        return bool(self.y or self.x)

    @property
    def num_images(self) -> int:
        """Rectangles that the doubled one consists of."""
        return (2 if self.y else 1) * (2 if self.x else 1)

    def grid(self, grid: Grid) -> Grid:
        """The grid of a rectangle together with its images."""
        (ny, nx), (height, width) = grid.shape, grid.extent
        by_y, by_x = (2 if self.y else 1), (2 if self.x else 1)
        return replace(grid, shape=(by_y * ny, by_x * nx), extent=(by_y * height, by_x * width))

    def extend(self, u: Float[Tensor, "*batch y x"]) -> Float[Tensor, "*batch y2 x2"]:
        """Samples at cell centres, and those of the images after them."""
        if self.y:
            u = torch.cat([u, self.y * u.flip(-2)], dim=-2)
        return torch.cat([u, self.x * u.flip(-1)], dim=-1) if self.x else u

    def restrict(self, u: Float[Tensor, "*batch y2 x2"]) -> Float[Tensor, "*batch y x"]:
        """Undoes `extend`."""
        ny, nx = u.shape[-2] // (2 if self.y else 1), u.shape[-1] // (2 if self.x else 1)
        return u[..., :ny, :nx]

    def analyse(self, u: Float[Tensor, "*batch y x"], grid: Grid) -> Complex[Tensor, "*batch row col"]:
        """The block, on the doubled rectangle, of the field through samples on ``grid``."""
        return self.grid(grid).analyse(self.extend(u))

    def project(self, block: Complex[Tensor, "*batch row col"]) -> Complex[Tensor, "*batch row col"]:
        """The part of a real field that has the symmetry."""
        if self:  # the row of -M has no counterpart
            half, last = block.shape[-2] // 2, torch.zeros_like(block[..., :1, :])
            block = torch.cat([block[..., :half, :], last, block[..., half + 1 :, :]], dim=-2)
        if self.y:
            block = (block + self.y * flip_rows(block)) / 2
        # the reflection along x gives columns with negative numbers, which are conjugates of those of the block
        return (block + self.x * flip_rows(block).conj()) / 2 if self.x else block

    def fold(self, block: Complex[Tensor, "*batch row col"]) -> Complex[Tensor, "*batch row col"]:
        """A draw of a stationary random field, made a draw of its counterpart between walls."""
        return self.project(block) * math.sqrt(self.num_images) if self else block

    def coefficients(self, block: Complex[Tensor, "*batch row col"]) -> Complex[Tensor, "*batch n m"]:
        """Coefficients in sines and cosines of the walled axes, from wavenumber 0 up, of a block that has the symmetry.
        Along an axis without walls they are as they are in the block.

        >>> wave = torch.sin(torch.pi * Grid((8, 8)).coordinates()[0])[:, None].expand(8, 8)
        >>> mirror = Mirror(y=ODD, x=EVEN)
        >>> mirror.coefficients(mirror.analyse(3 * wave, Grid((8, 8))))[:3, :2].real.round(decimals=9).abs()
        tensor([[0., 0.],
                [3., 0.],
                [0., 0.]], dtype=torch.float64)
        """
        if self.y:
            half = block.shape[-2] // 2
            above, below = block[..., :half, :], flip_rows(block)[..., :half, :]
            block = (
                (above - below) * 1j
                if self.y == ODD
                else torch.cat([above[..., :1, :], (above + below)[..., 1:, :]], -2)
            )
        if self.x:
            block = 2j * block if self.x == ODD else torch.cat([block[..., :1], 2 * block[..., 1:]], -1)
        return block

    def block(self, coefficients: Tensor) -> Complex[Tensor, "*batch row col"]:
        """Undoes `coefficients`, for real or complex ones."""
        block = coefficients.to(torch.complex128)
        if self.x:
            block = block / 2j if self.x == ODD else torch.cat([block[..., :1], block[..., 1:] / 2], -1)
        if self.y:
            above = block / 2j if self.y == ODD else torch.cat([block[..., :1, :], block[..., 1:, :] / 2], -2)
            last = torch.zeros_like(above[..., :1, :])
            block = torch.cat([above, last, self.y * above[..., 1:, :].flip(-2)], dim=-2)
        if self.y == ODD:
            block[..., 0, :] = 0
        if self.x == ODD:
            block[..., 0] = 0
        return block


def flip_rows(block: Tensor) -> Tensor:
    """Rows of mode numbers ``n`` in the place of those of ``-n``; that of ``-M`` has no counterpart and is left out.

    >>> flip_rows(torch.tensor([[1.0], [2.0], [3.0], [4.0]])).T
    tensor([[1., 4., 0., 2.]])
    """
    half = block.shape[-2] // 2
    last = torch.zeros_like(block[..., :1, :])
    return torch.cat([block[..., :1, :], block[..., half + 1 :, :].flip(-2), last, block[..., 1:half, :].flip(-2)], -2)
