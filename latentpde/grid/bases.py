r"""Sines and cosines of another rectangle or other walls than those of the field, and the way from one to the other.

A source need not vanish where the field does. A prior of it may be stated in cosines while the field is a sum of sines:

.. math:: f(x) = \sum_c a_c\, \psi_c(x) \quad\to\quad \hat f_n = \frac{\langle \phi_n, f \rangle}{\langle \phi_n,
          \phi_n \rangle} = \sum_c M_{nc}\, a_c .

:math:`M` is the product of one matrix along y and one along x. Its integrals are taken by Gauss and Legendre's rule,
to rounding; for a field that solves differences on nodes, they are the sums over the nodes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Complex, Float
from torch import Tensor

from latentpde.grid.grid import on_part
from latentpde.grid.mirror import ODD, Mirror


@dataclass(frozen=True, eq=False)
class Basis:
    """Sines or cosines of a rectangle around that of the field, which has walls along both axes.

    >>> cosines, sines = Mirror(y=1, x=1), Mirror(y=-1, x=-1)
    >>> basis = Basis.around((1.0, 1.0), sines, cosines, margin=0.0, num_modes=2, num_field_modes=4)
    >>> (basis.along_y[:, 0] * torch.pi).round(decimals=4).abs()  # one, as a sum of sines: 4 / (n pi) for odd n
    tensor([0.0000, 4.0000, 0.0000, 1.3333], dtype=torch.float64)

    Args:
        mirror: its symmetry.
        extent: of the rectangle with its images.
        margin: how far the rectangle reaches beyond that of the field, on all sides.
        field: the symmetry of the field.
        along_y, along_x: coefficients of the field's functions, one column for each of the basis's.
    """

    mirror: Mirror
    extent: tuple[float, float]
    margin: float
    field: Mirror
    along_y: Float[Tensor, "field_n n"]
    along_x: Float[Tensor, "field_m m"]

    @classmethod
    def around(
        cls,
        rectangle: tuple[float, float],
        field: Mirror,
        mirror: Mirror,
        *,
        margin: float,
        num_modes: int,
        num_field_modes: int,
        spacing: tuple[float, float] | None = None,
    ) -> Basis:
        """The basis of a rectangle with a margin around that of the field.

        Args:
            rectangle: ``(height, width)`` of the field's.
            field: the symmetry of the field.
            mirror: that of the basis.
            margin: on all sides.
            num_modes: of the basis, along each axis, the constant among them.
            num_field_modes: of the field.
            spacing: of the nodes on which the field solves differences, if it does; a whole number fit the rectangle.
        """
        height, width = (side + 2 * margin for side in rectangle)
        matrices = []
        for axis in (0, 1):
            points, weights = _rule(rectangle[axis], num_modes + num_field_modes, spacing and spacing[axis])
            own = functions((mirror.y, mirror.x)[axis], (height, width)[axis], num_modes, points + margin)
            theirs = functions((field.y, field.x)[axis], rectangle[axis], num_field_modes, points)
            norms = (weights[:, None] * theirs**2).sum(0)
            # sines of number 0, and at the nodes' Nyquist, are zero
            inverse = torch.where(norms > 1e-9 * rectangle[axis], 1 / norms.clamp(min=1e-300), 0.0)
            matrices.append(inverse[:, None] * (theirs.T @ (weights[:, None] * own)))
        return cls(mirror, (2 * height, 2 * width), margin, field, *matrices)

    def scaled(self, factor: float) -> Basis:
        """The same with lengths that many times as large."""
        height, width = self.extent
        return replace(self, extent=(factor * height, factor * width), margin=factor * self.margin)

    def to_field(self, block: Complex[Tensor, "*batch row col"]) -> Complex[Tensor, "*batch row2 col2"]:
        """The block of the field's basis."""
        own = self.mirror.coefficients(block).real
        return self.field.block(self.along_y @ own @ self.along_x.T)

    def at(
        self, block: Complex[Tensor, "*batch row col"], y: Float[Tensor, " y"], x: Float[Tensor, " x"]
    ) -> Float[Tensor, "*batch y x"]:
        """A field of this basis at all pairs of coordinates, relative to the corner of the field's rectangle."""
        return on_part_between_walls(block, self.extent, self.mirror, y + self.margin, x + self.margin)


def on_part_between_walls(
    u_hat: Complex[Tensor, "*batch row col"],
    extent: tuple[float, float],
    mirror: Mirror,
    y: Float[Tensor, " y"],
    x: Float[Tensor, " x"],
) -> Float[Tensor, "*batch y x"]:
    """What `latentpde.grid.on_part` gives, by a quarter of the work where both axes have walls.

    Args:
        u_hat: a block of Fourier coefficients with the symmetry of the walls.
        extent: ``(height, width)`` of the rectangle with its images.
        mirror: the symmetry.
        y, x: coordinates relative to its lower corner.
    """
    if not (mirror.y and mirror.x):
        return on_part(u_hat, extent, y, x)
    own = mirror.coefficients(u_hat).real
    along_y = functions(mirror.y, extent[0] / 2, own.shape[-2], y)
    return along_y @ own @ functions(mirror.x, extent[1] / 2, own.shape[-1], x).T


def functions(sign: int, length: float, num: int, points: Float[Tensor, " point"]) -> Float[Tensor, "point n"]:
    """Sines (for the sign -1) or cosines, of numbers 0 to ``num - 1``, of an axis between walls.

    >>> functions(-1, 2.0, 3, torch.tensor([1.0]).double()).round(decimals=9).abs()
    tensor([[0., 1., 0.]], dtype=torch.float64)
    """
    phases = torch.pi / length * points[:, None] * torch.arange(num, dtype=torch.float64)
    return torch.sin(phases) if sign == ODD else torch.cos(phases)


def _rule(length: float, num_waves: int, spacing: float | None) -> tuple[Tensor, Tensor]:
    """Points of an axis and their weights: exact for products of that many half waves, or the trapezoidal rule."""
    if spacing is None:
        points, weights = np.polynomial.legendre.leggauss(2 * num_waves + 32)
        return torch.from_numpy((points + 1) * length / 2), torch.from_numpy(weights * length / 2)
    num = round(length / spacing)
    points = torch.arange(num + 1, dtype=torch.float64) * (length / num)
    weights = torch.full_like(points, length / num)
    weights[[0, -1]] /= 2
    return points, weights
