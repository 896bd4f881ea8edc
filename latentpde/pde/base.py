"""What a PDE family is: named coefficients, an order in time, and the symbol of its spatial operator."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from jaxtyping import Complex, Float
from torch import Tensor

from latentpde.errors import UsageError
from latentpde.grid import Mirror, Wavenumbers, pad_block, wavenumbers
from latentpde.pde.first_order import first_order_responses, solve_first_order
from latentpde.pde.transfer import source_response, state_response, velocity_response


@dataclass(frozen=True)
class Coefficient:
    """One named coefficient of a PDE.

    >>> Coefficient("kappa", 0.001, 0.35, "L²/T", "diffusivity").upper
    0.35

    Args:
        name: as the symbol's argument is called.
        lower, upper: the interval that the latent's sigmoid maps to.
        unit: in terms of length ``L``, time ``T`` and the field's unit ``U``.
        meaning: a few words for reports.
    """

    name: str
    lower: float
    upper: float
    unit: str
    meaning: str

    def __post_init__(self):
        if not -float("inf") < self.lower < self.upper < float("inf"):
            raise UsageError(
                f"coefficient {self.name!r} needs finite bounds lower < upper, got {self.lower}, {self.upper}"
            )


class Family(ABC):
    r"""A linear, constant-coefficient PDE on a periodic rectangle.

    A subclass states its equation, coefficients and `order`, and the symbol :math:`L(k)` of its spatial
    operator; the exact multipliers `G` and `H` follow (`latentpde.pde.transfer`):

    ===== ====================================== ====================================================
    order equation                               what ``u0`` is
    ===== ====================================== ====================================================
    0     ``L u = u0 + f``                       a given part of the right-hand side
    1     ``u_t + L u = f``                      the state at time 0
    2     ``u_tt + damping u_t + L u = f``       the state at time 0, at rest unless a velocity is given
    ===== ====================================== ====================================================

    >>> class Diffusion(Family):
    ...     name, equation, order = "diffusion", "u_t = κ Δu + f", 1
    ...     coefficients = (Coefficient("kappa", 0.01, 1.0, "L²/T", "diffusivity"),)
    ...
    ...     def symbol(self, k, kappa):
    ...         return kappa * k.squared
    >>> k = wavenumbers((2, 2), extent=(1.0, 1.0))
    >>> g, h = Diffusion().transfer(k, torch.tensor([0.25]), torch.tensor([0.1]))
    >>> g[0, 0]  # the mean stays, the longest wave along x decays
    tensor([1.0000, 0.3727], dtype=torch.float64)

    Attributes:
        name: as it is registered, in lower case with underscores.
        equation: for people to read, with ``u_t`` for a derivative.
        order: in time: 0, 1 or 2.
        coefficients: in the order in which `symbol` takes them.
        default_time: PDE time of a snapshot where the data do not say it.
    """

    name: ClassVar[str]
    equation: ClassVar[str]
    order: ClassVar[int]
    coefficients: ClassVar[tuple[Coefficient, ...]]
    default_time: ClassVar[float] = 1.0
    #: Whether ``symbol(ky, kx) = symbol(ky, 0) + symbol(0, kx)``; a family of order 1 that says so is solved faster.
    separable: ClassVar[bool] = False
    #: ``(height, width)`` between the nodes of a family that solves differences; see `latentpde.pde.schemes`.
    spacing: ClassVar[tuple[float, float] | None] = None

    @abstractmethod
    def symbol(self, k: Wavenumbers, *theta: Any, **named: Any) -> Tensor:
        """The spatial operator on the left-hand side, as a function of the angular wavenumbers.

        The coefficients come one by one in the order of `coefficients`, shaped to broadcast with ``k``.
        Real families give ``symbol(-k) = conj(symbol(k))``.
        """

    def damping(self, k: Wavenumbers, *theta: Any, **named: Any) -> Tensor | None:
        """The factor of ``u_t`` in a second-order equation; ``None`` where there is none."""
        return None

    def transfer(
        self, k: Wavenumbers, times: Float[Tensor, " time"], theta: Float[Tensor, "*batch coefficient"]
    ) -> tuple[Tensor, Tensor]:
        """``(G, H)`` of ``u_hat(t) = G u0_hat + H f_hat``; they broadcast to ``(*batch, time, row, col)``."""
        order, symbol, damping, t = self._terms(k, times, theta)
        if order == 1 and not times.requires_grad:
            return first_order_responses(symbol, t)
        return state_response(order, symbol, damping, t), source_response(order, symbol, damping, t)

    def state_response(
        self, k: Wavenumbers, times: Float[Tensor, " time"], theta: Float[Tensor, "*batch coefficient"]
    ) -> Tensor:
        """``G`` alone; broadcasts to ``(*batch, time, row, col)``."""
        return state_response(*self._terms(k, times, theta))

    def source_response(
        self, k: Wavenumbers, times: Float[Tensor, " time"], theta: Float[Tensor, "*batch coefficient"]
    ) -> Tensor:
        """``H`` alone; broadcasts to ``(*batch, time, row, col)``."""
        return source_response(*self._terms(k, times, theta))

    def velocity_response(
        self, k: Wavenumbers, times: Float[Tensor, " time"], theta: Float[Tensor, "*batch coefficient"]
    ) -> Tensor:
        """Of a family of order 2 to the initial velocity; broadcasts to ``(*batch, time, row, col)``."""
        return velocity_response(*self._terms(k, times, theta))

    def solve(
        self,
        k: Wavenumbers,
        times: Float[Tensor, " time"],
        theta: Float[Tensor, "*batch coefficient"],
        u0_hat: Complex[Tensor, "*batch0 row col"],
        f_hat: Complex[Tensor, "*batch1 row1 col1"],
    ) -> Complex[Tensor, "*batch2 #time row col"]:
        """Fourier coefficients of the solution, ``G u0_hat + H f_hat``.

        Args:
            k: wavenumbers of the initial state's block.
            times: PDE times, not negative.
            theta: coefficients.
            u0_hat: the initial state's block.
            f_hat: the source's block, no larger.
        """
        u0_hat, f_hat = u0_hat[..., None, :, :], f_hat[..., None, :, :]
        if self.order == 1 and not times.requires_grad:
            parts, values = k.axes if self.separable else (k,), self._values(theta)
            symbols = [self.symbol(part, *values) for part in parts]
            return solve_first_order(symbols, times[:, None, None], u0_hat, f_hat)
        order, symbol, damping, t = self._terms(k, times, theta)
        h, f_hat = source_response(order, symbol, damping, t), pad_block(f_hat, u0_hat.shape)
        if order == 0:
            return h * (u0_hat + f_hat)
        return u0_hat + h * (f_hat - symbol * u0_hat)  # G = 1 - L H: both sides obey the same equation

    def _terms(self, k: Wavenumbers, times: Tensor, theta: Tensor) -> tuple[int, Tensor, Tensor | None, Tensor]:
        values = self._values(theta)
        return self.order, self.symbol(k, *values), self.damping(k, *values), times[:, None, None]

    def _values(self, theta: Tensor) -> tuple[Tensor, ...]:
        """Coefficients one by one, shaped to broadcast to ``(*batch, time, row, col)``."""
        return theta[..., None, None, None].unbind(-4)

    def in_units_of(self, length: float) -> Family:
        """The family for lengths in another unit; only one that knows a length of its own is another."""
        return self

    def require_even(self, mirror: Mirror) -> None:
        """Raise `UsageError` where the family has odd derivatives along an axis with walls, which would carry the field
        through them."""
        for axis, sign in (("y", mirror.y), ("x", mirror.x)):
            if sign and not self._is_even_along(axis):
                raise UsageError(
                    f"{self.name} has odd derivatives along {axis} ({self.equation}), so it cannot run between walls "
                    f"there; make that axis periodic or open, or take a family without them, such as heat or telegraph"
                )

    def _is_even_along(self, axis: str) -> bool:
        shares = torch.tensor([0.17, 0.58, 0.83], dtype=torch.float64)[:, None, None]
        values = [c.lower + (c.upper - c.lower) * shares.roll(j, 0) for j, c in enumerate(self.coefficients)]
        k = wavenumbers((6, 3), (1.0, 1.3))
        flipped = Wavenumbers(-k.y, k.x) if axis == "y" else Wavenumbers(k.y, -k.x)
        for part in (self.symbol, self.damping):
            value, mirrored = part(k, *values), part(flipped, *values)
            if value is not None and mirrored is not None and not torch.allclose(value, mirrored):
                return False
        return True

    @property
    def bounds(self) -> Float[Tensor, "coefficient 2"]:
        """Lower and upper bound of each coefficient."""
        return torch.tensor([[c.lower, c.upper] for c in self.coefficients], dtype=torch.float64)

    @property
    def coefficient_names(self) -> tuple[str, ...]:
        """Names of the coefficients, in their order."""
        return tuple(c.name for c in self.coefficients)


def check_family(family: Family) -> None:
    """Raise `UsageError` where a family contradicts itself; run at registration."""
    if not isinstance(family, Family):
        raise UsageError(f"expected an instance of a Family subclass, got {family!r}")
    if family.order not in (0, 1, 2):
        raise UsageError(f"family {family.name!r}: order in time must be 0, 1 or 2, got {family.order}")
    if len(set(family.coefficient_names)) != len(family.coefficients) or not family.coefficients:
        raise UsageError(f"family {family.name!r} needs at least one coefficient, and distinct names")
    k = wavenumbers((6, 3), (1.0, 1.0))
    middle = [c[..., None, None] for c in family.bounds.mean(-1)]
    if family.separable:
        along_y, along_x = (family.symbol(axis, *middle) for axis in k.axes)
        if not torch.allclose(along_y + along_x, family.symbol(k, *middle)):
            raise UsageError(f"family {family.name!r}: symbol(ky, 0) + symbol(0, kx) must be symbol(ky, kx)")
    flipped = Wavenumbers(-k.y, -k.x)
    for part in (family.symbol, family.damping):
        values, mirrored = part(k, *middle), part(flipped, *middle)
        if values is None or mirrored is None:
            continue
        if not bool(torch.isfinite(values).all()):
            raise UsageError(f"family {family.name!r}: {part.__name__} is not finite in the middle of the bounds")
        if not torch.allclose(mirrored.expand(6, 3), values.conj().resolve_conj().expand(6, 3)):
            raise UsageError(
                f"family {family.name!r}: {part.__name__}(-k) must be the conjugate of {part.__name__}(k), "
                "or a real field would not stay real"
            )
        if family.order == 2 and values.is_complex():
            raise UsageError(f"family {family.name!r}: second-order families need a real {part.__name__}")
