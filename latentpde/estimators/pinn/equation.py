r"""The differential equation behind a family's symbol, in the coordinates that a network sees.

A family states the symbol :math:`L(k)` of its spatial operator. Where that is a polynomial of at most second degree,

.. math:: L(k) = a + i\,(b_y k_y + b_x k_x) + c_{yy} k_y^2 + c_{xx} k_x^2 + c_{xy} k_y k_x ,

the operator is :math:`L u = a u + b \cdot \nabla u - c_{yy} u_{yy} - c_{xx} u_{xx} - c_{xy} u_{xy}`, and differences of
the symbol between neighbouring modes give its coefficients exactly and differentiably. So every family of that kind
has a residual, a user's own too, and it agrees with the decoder by construction. For the three families of Tsao,
Chaney and Veveakis it is the residual that they print.

Time and space run from 0 to 1 here, and an equation of order :math:`n` is multiplied by :math:`T^n`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from latentpde.errors import UsageError
from latentpde.estimators.pinn.network import Pair
from latentpde.grid import Wavenumbers
from latentpde.pde import Family, families

_FAR = (-3.0, 0.0, 2.0, 7.0)  # mode numbers where a symbol must agree with its polynomial


class Terms(NamedTuple):
    r"""Coefficients of :math:`D u + a u`, with :math:`D` as in `latentpde.estimators.pinn.network`.

    Attributes:
        zeroth: the factor of the field itself.
        first: those of its first derivatives along t, y and x; the last two are the drift, in domains per whole time.
        second: those of the second derivatives that `Equation.pairs` names.
    """

    zeroth: Float[Tensor, " case"]
    first: Float[Tensor, "case 3"]
    second: Float[Tensor, "case pair"]


@dataclass(frozen=True, eq=False)
class Equation:
    """The PDE of a family on a rectangle during a time, for coordinates that run from 0 to 1.

    Args:
        family: the PDE family; its symbol must be a polynomial of second degree, see `check_differential`.
        extent: ``(height, width)`` of the rectangle, in physical units.
        duration: ``T``, the PDE time that counts as 1, positive.

    Example:
        >>> equation = Equation(families.get("advection_diffusion"), extent=(1.0, 2.0), duration=0.5)
        >>> terms = equation.terms(torch.tensor([[1.0, -2.0, 0.1]], dtype=torch.float64))  # vx, vy, kappa
        >>> terms.first.tolist()  # of u_t, u_y and u_x: 1, T vy / height and T vx / width
        [[1.0, -1.0, 0.25]]
    """

    family: Family
    extent: tuple[float, float]
    duration: float

    @property
    def time_scale(self) -> float:
        """The factor ``T^n`` that the equation, of order ``n`` in time, is multiplied by."""
        return self.duration**self.family.order

    @property
    def directions(self) -> tuple[int, ...]:
        """The coordinates along which it has second derivatives: 0 for t, 1 for y, 2 for x."""
        return (0, 1, 2) if self.family.order == 2 else (1, 2)

    @cached_property
    def pairs(self) -> tuple[Pair, ...]:
        """The second derivatives that `Terms.second` multiplies, as pairs of positions in `directions`."""
        last = len(self.directions) - 1
        # not in the middle of the bounds, where a mixed derivative may happen to vanish
        lower, upper = self.family.bounds.unbind(-1)
        second = self._parts((lower + 0.3 * (upper - lower))[None])[2][0]
        mixed = second[2].abs() > 1e-9 * second.abs().max()
        return (*((i, i) for i in range(last + 1)), *([(last - 1, last)] if mixed else []))

    @cached_property
    def drift_coefficients(self) -> list[int]:
        """The positions of the coefficients that its drift in space depends on."""
        lower, upper = self.family.bounds.unbind(-1)
        near, far = lower + 0.3 * (upper - lower), lower + 0.7 * (upper - lower)
        each = torch.where(torch.eye(len(lower), dtype=torch.bool), far, near)
        drift = self._parts(torch.cat([near[None], each]))[1]
        return (drift[1:] != drift[0]).any(1).nonzero().flatten().tolist()

    def terms(self, theta: Float[Tensor, "case coefficient"]) -> Terms:
        """The equation's terms for the coefficients of each case."""
        zeroth, drift, second = (self.time_scale * part for part in self._parts(theta))
        rate = torch.zeros_like(zeroth)
        if self.family.order == 1:
            rate = rate + 1.0
        elif self.family.order == 2:
            damping = self.family.damping(_wavenumbers((0.0,), self.extent), *_split(theta))
            rate = rate if damping is None else rate + self.duration * damping.reshape(-1)
            second = torch.cat([torch.ones_like(second[:, :1]), second], 1)
        return Terms(zeroth, torch.cat([rate[:, None], drift], 1), second[:, : len(self.pairs)])

    def _parts(self, theta: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return _polynomial(self.family, _split(theta), self.extent)


def check_differential(family: Family) -> None:
    """Raise `UsageError` where a family is not a differential equation of at most second order."""
    if not is_differential(family):
        known = ", ".join(f.name for f in families if is_differential(f))
        raise UsageError(
            f"pinn cannot treat {family.name}: it needs a differential equation of at most second order in space, and "
            f"the same damping at all scales. It knows: {known}. Other methods, such as exact, take any family"
        )


def is_differential(family: Family) -> bool:
    """Whether a family's symbol is a polynomial of at most second degree, tried at some coefficients and wavenumbers.

    Example:
        >>> is_differential(families.get("helmholtz")), is_differential(families.get("fractional_diffusion"))
        (True, False)
    """
    extent = (1.0, 1.0)
    k = _wavenumbers(_FAR, extent)
    lower, upper = family.bounds.unbind(-1)
    for share in (0.2, 0.5, 0.9):
        values = _split((lower + share * (upper - lower))[None])
        zeroth, drift, second = (part[0] for part in _polynomial(family, values, extent))
        y, x = k.y / (2 * torch.pi), k.x / (2 * torch.pi)
        even = zeroth - (2 * torch.pi) ** 2 * (second[0] * y**2 + second[1] * x**2 + second[2] * y * x)
        polynomial = torch.complex(even, 2 * torch.pi * (drift[0] * y + drift[1] * x))
        symbol = family.symbol(k, *values)[0].expand(polynomial.shape).to(polynomial.dtype)
        if not torch.allclose(polynomial, symbol, rtol=1e-6, atol=1e-9 * float(symbol.abs().max())):
            return False
        damping = family.damping(k, *values)
        if damping is not None and not bool((damping == damping.flatten()[0]).all()):
            return False
    return True


def _polynomial(family: Family, values: list[Tensor], extent: tuple[float, float]) -> tuple[Tensor, Tensor, Tensor]:
    """Factors of u, of (u_y, u_x) and of (u_yy, u_xx, u_xy) in unit coordinates, from the nine lowest modes."""
    symbol = family.symbol(_wavenumbers((-1.0, 0.0, 1.0), extent), *values)
    symbol = symbol.expand(*symbol.shape[:-2], 3, 3)
    real = symbol.real if symbol.is_complex() else symbol
    imaginary = symbol.imag if symbol.is_complex() else torch.zeros_like(symbol)
    zeroth = real[..., 1, 1]
    drift = torch.stack([imaginary[..., 2, 1] - imaginary[..., 0, 1], imaginary[..., 1, 2] - imaginary[..., 1, 0]], -1)
    along_y, along_x = (
        (real[..., 2, 1] + real[..., 0, 1]) / 2 - zeroth,
        (real[..., 1, 2] + real[..., 1, 0]) / 2 - zeroth,
    )
    mixed = (real[..., 2, 2] - real[..., 2, 0] - real[..., 0, 2] + real[..., 0, 0]) / 4
    second = -torch.stack([along_y, along_x, mixed], -1)
    return zeroth, drift / (4 * torch.pi), second / (2 * torch.pi) ** 2


def _split(theta: Float[Tensor, "case coefficient"]) -> list[Tensor]:
    """The coefficients one by one, shaped to broadcast with wavenumbers ``(row, col)``."""
    return [c[:, None, None] for c in theta.unbind(-1)]


def _wavenumbers(numbers: tuple[float, ...], extent: tuple[float, float]) -> Wavenumbers:
    """The wavenumbers of some mode numbers, the same along y and x."""
    n = 2 * torch.pi * torch.tensor(numbers, dtype=torch.float64)
    return Wavenumbers(n[:, None] / extent[0], n[None, :] / extent[1])
