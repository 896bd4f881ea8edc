r"""What is known on walls: a function that has the values and slopes there, so that what is left of the field has none.

With :math:`u = w + v` and an operator :math:`s(\partial)` of second order, :math:`v` vanishes on the walls, or has no
flux through them, and solves the same equation with the source

.. math:: f - s(\partial)\, w = f - s(0)\, w + s_y\, w_{yy} + s_x\, w_{xx}, \qquad s(k) = s(0) + s_y k_y^2 + s_x k_x^2 .

:math:`w` is as simple as the walls allow:

* one value on all walls, or two on walls that face each other while nothing else is known: linear in the place;
* slopes alone: a parabola along each axis, whose second derivative is the same everywhere;
* anything else: the function without a Laplacian that has these walls, for equations that know no direction
  (:math:`s_y = s_x`), so that again :math:`s(\partial) w = s(0) w`. With one wall at :math:`x = 0` of value 1, and 0 on
  the others, in a strip of height :math:`h` it is :math:`\tfrac{2}{\pi} \arctan(\sin \tfrac{\pi y}{h} / \sinh
  \tfrac{\pi x}{h})`, and a wall at the other end is met by images. For a slope the series
  :math:`\sum_{n\,\text{odd}} n^{-2} e^{-n \pi x / h} \sin \tfrac{n \pi y}{h}` takes its place, a dilogarithm.

The coefficients of :math:`w` in sines and cosines follow from Green's second identity: all that they need is what holds
on the walls.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import torch
from jaxtyping import Complex, Float
from torch import Tensor

from latentpde.errors import UsageError
from latentpde.grid import Grid, Mirror, Wavenumbers
from latentpde.grid.mirror import EVEN, ODD

if TYPE_CHECKING:
    from latentpde.domain import Domain
    from latentpde.pde import Family

NUM_MODES = 64  # of the source that a lift amounts to, along each axis: what they lack of the field falls as their cube
_GRIDS_KEPT = 8
_DIGITS = 36.0  # exponent at which images no longer count
_NEAR_ZERO = 1e-3  # wavenumber, times the longer side, at which a symbol's curvature is taken


@dataclass(frozen=True, eq=False)
class Lift:
    """A function that has what is known on the walls of a rectangle.

    >>> from latentpde import Domain
    >>> plates = Lift.of(Domain("dirichlet", "periodic", on_y=(20.0, 5.0)), (1.0, 1.0))
    >>> plates.at(torch.tensor([0.0, 0.25, 1.0]).double(), torch.tensor(0.3).double())
    tensor([20.0000, 16.2500,  5.0000], dtype=torch.float64)
    >>> box = Lift.of(Domain("dirichlet", "dirichlet", on_y=(1.0, 2.0), on_x=(3.0, 6.0)), (1.0, 1.0))
    >>> round(float(box.at(torch.tensor(0.5).double(), torch.tensor(0.5).double())), 9)  # the mean of all walls
    3.0

    Args:
        mirror: which axes have walls, and of which kind.
        extent: ``(height, width)`` of the rectangle.
        on_y, on_x: values, or slopes along the axis, at its lower and its upper end.
    """

    mirror: Mirror
    extent: tuple[float, float]
    on_y: tuple[float, float]
    on_x: tuple[float, float]

    @classmethod
    def of(cls, domain: Domain, extent: tuple[float, float]) -> Lift | None:
        """That of a rectangle; ``None`` where its walls hold nothing."""
        if domain == domain.without_values:
            return None
        return cls(domain.mirror, extent, domain.on_y, domain.on_x)

    def scaled(self, value: float, length: float) -> Lift:
        """The same with values and lengths that many times as large."""
        pairs = []
        for sign, (low, high) in zip(self._signs, self._on, strict=True):
            factor = value if sign == ODD else value / length
            pairs.append((low * factor, high * factor))
        height, width = self.extent
        return replace(self, extent=(height * length, width * length), on_y=pairs[0], on_x=pairs[1])

    @property
    def _signs(self) -> tuple[int, int]:
        return self.mirror.y, self.mirror.x

    @property
    def _on(self) -> tuple[tuple[float, float], tuple[float, float]]:
        return self.on_y, self.on_x

    @property
    def is_polynomial(self) -> bool:
        """Whether it is linear in the place, or a parabola along each axis."""
        if self._signs == (ODD, ODD):
            return len({*self.on_y, *self.on_x}) == 1
        return ODD not in self._signs or not any(self._on[1 - self._signs.index(ODD)])

    @property
    def curvatures(self) -> tuple[float, float]:
        """Second derivatives of a parabola along y and x; zero for other lifts."""
        if ODD in self._signs:
            return 0.0, 0.0
        along_y, along_x = ((on[1] - on[0]) / side for on, side in zip(self._on, self.extent, strict=True))
        return along_y, along_x

    def require(self, family: Family) -> None:
        """Raise `UsageError` where what is left of the field would not solve the family's equation with a source that
        is known."""
        where = f"walls that hold {self._words()}"
        if not _is_of_second_order(family):
            raise UsageError(f"{family.name} ({family.equation}) is not of second order in space; it takes no {where}")
        if not self.is_polynomial and (family.spacing is not None or not _has_no_direction(family)):
            raise UsageError(
                f"{family.name} ({family.equation}) is not alike in all directions, so it takes values that differ "
                "between two walls that face each other, while the other axis is periodic or has walls without flux, "
                f"or one value on all four; got {where}"
            )
        along_y, along_x = self.curvatures
        theta = torch.tensor([(c.lower + c.upper) / 2 for c in family.coefficients], dtype=torch.float64)
        if family.order == 0 and (along_y or along_x) and float(_terms(family, theta, self.extent)[0]) == 0:
            raise UsageError(
                f"{family.name} ({family.equation}) has no steady field between {where}: what enters must leave, so "
                "slopes on walls that face each other must be the same"
            )

    def _words(self) -> str:
        return " and ".join(
            f"{'values' if sign == ODD else 'slopes'} {on[0]:g}, {on[1]:g} along {axis}"
            for axis, sign, on in zip("yx", self._signs, self._on, strict=True)
            if sign
        )

    def at(self, y: Float[Tensor, "*#place"], x: Float[Tensor, "*#place"]) -> Float[Tensor, "*place"]:
        """The function at places relative to the lower corner; coordinates broadcast."""
        at_y, at_x = np.broadcast_arrays(y.numpy(), x.numpy())
        return torch.from_numpy(self._at(at_y.ravel(), at_x.ravel()).reshape(at_y.shape))

    def on_grid(self, grid: Grid, rows: range | None = None) -> Float[Tensor, "y x"]:
        """The function at the centres of a grid's cells, or in some rows of it."""
        if grid not in self._on_grids:
            y, x = (c - start for c, start in zip(grid.coordinates(), grid.origin, strict=True))
            if len(self._on_grids) == _GRIDS_KEPT:
                self._on_grids.clear()
            self._on_grids[grid] = self.at(y[:, None], x[None])
        whole = self._on_grids[grid]
        return whole if rows is None else whole[rows.start : rows.stop]

    @cached_property
    def _on_grids(self) -> dict[Grid, Tensor]:
        """The function on the grids that were asked for last: films ask for the same many times."""
        return {}

    def _at(self, y: np.ndarray, x: np.ndarray) -> np.ndarray:
        along = (y, x)
        if ODD not in self._signs:
            parts = zip(along, self._on, self.extent, strict=True)
            of_y, of_x = (_parabola(s, low, high, side) for s, (low, high), side in parts)
            return of_y + of_x
        if self._signs == (ODD, ODD):
            base = self.on_y[0]
            total = np.full_like(y, base)
            for axis in (0, 1):
                across, side, height = along[1 - axis], self.extent[axis], self.extent[1 - axis]
                for value, distance in zip(self._on[axis], (along[axis], side - along[axis]), strict=True):
                    if value != base:
                        total = total + (value - base) * _of_value(distance, across, side, height)
            return total
        axis = self._signs.index(ODD)  # the other has slopes, or no walls
        (low, high), height = self._on[axis], self.extent[axis]
        total = low + (high - low) * along[axis] / height
        distance, side = along[1 - axis], self.extent[1 - axis]
        for slope, own, sign in zip(self._on[1 - axis], (distance, side - distance), (1, -1), strict=True):
            if slope:
                total = total + sign * slope * _of_slope(own, along[axis], side, height)
        return total

    def coefficients(self, num: int) -> tuple[Float[Tensor, "n m"], Float[Tensor, "n m"]]:
        """Of the function, and of one, in sines and cosines of numbers below ``num``; both are constant along an axis
        without walls. The function's mean is left out where no wall fixes it."""
        ones, k, walls = [], [], []
        numbers = np.arange(num)
        for sign, (low, high), side in zip(self._signs, self._on, self.extent, strict=True):
            own, parity = np.pi * numbers / side, (-1.0) ** numbers
            constant = (numbers == 0).astype(float)
            if sign == ODD:
                ones.append((1 - parity) * 2 / (np.pi * np.maximum(numbers, 1)))
                walls.append(2 / side * own * (low - parity * high))
            else:
                ones.append(constant)
                share = np.where(numbers == 0, 1.0, 2.0) / side
                walls.append(share * (parity * high - low) if sign == EVEN else np.zeros(num))
            k.append(own)
        one = np.outer(*ones)
        flux = np.outer(walls[0], ones[1]) + np.outer(ones[0], walls[1]) - sum(self.curvatures) * one
        squared = k[0][:, None] ** 2 + k[1] ** 2
        squared[0, 0] = np.inf
        return torch.from_numpy(flux / squared), torch.from_numpy(one)

    def source_block(self, family: Family, theta: Float[Tensor, "*batch coefficient"]) -> Complex[Tensor, "*batch n m"]:
        """Fourier coefficients, on the rectangle with its images, of the source that it amounts to."""
        factors = self.source_factors(family, theta)
        of_function, of_one = self.coefficients(NUM_MODES)
        total = factors[0][..., None, None] * of_function + factors[1][..., None, None] * of_one
        if not self.mirror.y:  # rows of negative numbers
            total = torch.cat([total, torch.zeros_like(total)], dim=-2)
        return self.mirror.block(total)

    def drives(self, family: Family) -> bool:
        """Whether it amounts to a source, for some coefficients of a family."""
        ends = [torch.tensor([getattr(c, end) for c in family.coefficients]).double() for end in ("lower", "upper")]
        constant = any(float(_terms(family, theta, self.extent)[0].abs()) > 0 for theta in ends)
        return constant or any(self.curvatures)

    def source_factors(
        self, family: Family, theta: Float[Tensor, "*batch coefficient"]
    ) -> tuple[Float[Tensor, "*batch"], Float[Tensor, "*batch"]]:
        """The source that it amounts to is the first times the function, plus the second: see `coefficients`."""
        constant, along_y, along_x = _terms(family, theta, self.extent)
        in_y, in_x = self.curvatures
        return -constant, along_y * in_y + along_x * in_x


def _terms(family: Family, theta: Tensor, extent: tuple[float, float]) -> tuple[Tensor, Tensor, Tensor]:
    """``s(0)``, ``s_y`` and ``s_x`` of a symbol, in the shape of the coefficients' batch."""
    small = _NEAR_ZERO / max(extent)
    k = Wavenumbers(
        torch.tensor([[0.0, small, 0.0]], dtype=torch.float64), torch.tensor([[0.0, 0.0, small]], dtype=torch.float64)
    )
    values = torch.as_tensor(family.symbol(k, *(c[..., None, None] for c in theta.unbind(-1))))
    values = values.real.expand(*theta.shape[:-1], 1, 3)[..., 0, :]
    constant, along_y, along_x = values.unbind(-1)
    return constant, (along_y - constant) / small**2, (along_x - constant) / small**2


def _symbols(family: Family, ky: list[float], kx: list[float]) -> Float[Tensor, "theta k"]:
    """Symbols at some wavenumbers, for a few coefficients within their bounds."""
    shares = torch.tensor([0.0, 0.23, 0.61, 1.0], dtype=torch.float64)[:, None]
    lower, upper = (torch.tensor([getattr(c, end) for c in family.coefficients]).double() for end in ("lower", "upper"))
    shift = torch.arange(len(lower)) * 0.17  # so that coefficients are not alike
    theta = lower + (upper - lower) * ((shares + shift) % 1.0)
    k = Wavenumbers(torch.tensor([ky], dtype=torch.float64), torch.tensor([kx], dtype=torch.float64))
    values = torch.as_tensor(family.symbol(k, *(c[:, None, None] for c in theta.unbind(-1))))
    return values.real.expand(len(theta), 1, len(ky))[:, 0]


def _is_of_second_order(family: Family) -> bool:
    if family.spacing is not None:  # differences that stand for such an equation
        return True
    zero, one, two = _symbols(family, [0.0, 0.6, 1.2], [0.0, 1.1, 2.2]).unbind(-1)
    return torch.allclose(two - zero, 4 * (one - zero), rtol=1e-9)


def _has_no_direction(family: Family) -> bool:
    along_y, along_x, between = _symbols(family, [5.0, 0.0, 3.0], [0.0, 5.0, 4.0]).unbind(-1)
    return torch.allclose(along_y, along_x, rtol=1e-9) and torch.allclose(along_y, between, rtol=1e-9)


def _parabola(s: np.ndarray, low: float, high: float, side: float) -> np.ndarray:
    """With these slopes at both ends, and mean zero."""
    return low * (s - side / 2) + (high - low) * (s**2 / (2 * side) - side / 6)


def _of_value(distance: np.ndarray, across: np.ndarray, side: float, height: float) -> np.ndarray:
    """One on a wall, zero on the others, and without a Laplacian between; of the distance from the wall, and the place
    along it."""

    def strip(x: np.ndarray) -> np.ndarray:
        decay = np.exp(-np.pi * x / height)
        return 2 / np.pi * np.arctan2(2 * decay * np.sin(np.pi * across / height), 1 - decay**2)

    total = np.zeros_like(distance)
    for m in _images(side, height):
        total = total + strip(distance + 2 * m * side) - strip(2 * (m + 1) * side - distance)
    return total


def _of_slope(distance: np.ndarray, across: np.ndarray, side: float, height: float) -> np.ndarray:
    """Slope one, away from the wall, on a wall, none on the one that faces it, zero on those between."""
    from scipy.special import spence

    def strip(x: np.ndarray) -> np.ndarray:
        z = np.exp(np.pi * (1j * across - x) / height)
        return np.imag(spence(1 - z) - spence(1 + z)) / 2

    total = np.zeros_like(distance)
    for m in _images(side, height):
        total = total + strip(distance + 2 * m * side) + strip(2 * (m + 1) * side - distance)
    return -4 * height / np.pi**2 * total


def _images(side: float, height: float) -> range:
    return range(1 + math.ceil(_DIGITS * height / (2 * np.pi * side)))
