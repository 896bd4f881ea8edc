r"""Families whose field solves differences on nodes instead of the PDE.

Five-point differences see of a wave :math:`e^{ikx}` the wavenumber :math:`\tfrac{2}{h} \sin \tfrac{kh}{2}` instead of
:math:`k`, so the solution of a discretised equation is closed form as well. It is for data that were made so: with it
the posterior is exact for them, and without it their discretisation error counts as noise that nobody stated.
"""

from __future__ import annotations

import torch

from latentpde.errors import UsageError
from latentpde.grid import Mirror, Wavenumbers
from latentpde.pde.base import Family


def discretised(family: Family, spacing: tuple[float, float], scheme: str = "five-point") -> Family:
    """A family on nodes.

    >>> from latentpde.grid import wavenumbers
    >>> from latentpde.pde import get_family
    >>> k, kappa = wavenumbers((2, 2), extent=(1.0, 1.0)), torch.tensor(1.0).double()
    >>> family = discretised(get_family("poisson"), spacing=(0.25, 0.25))
    >>> round(family.symbol(k, kappa)[0, 1].item(), 9)  # (2 - 2 cos k h) / h**2
    32.0

    Args:
        family: the PDE; it must have no odd derivatives, whose differences are others.
        spacing: ``(height, width)`` between nodes, of which a whole number fit the rectangle.
        scheme: ``five-point``.
    """
    if scheme != "five-point":
        raise UsageError(f"the scheme can be 'five-point', got {scheme!r}")
    if not (len(spacing) == 2 and all(h > 0 for h in spacing)):
        raise UsageError(f"the spacing of nodes is two positive numbers (height, width), got {spacing!r}")
    family.require_even(Mirror(1, 1))
    own: tuple[float, float] = (float(spacing[0]), float(spacing[1]))

    class Discretised(type(family)):
        spacing = own

        def symbol(self, k, *theta, **named):
            return super().symbol(_seen(k, own), *theta, **named)

        def damping(self, k, *theta, **named):
            return super().damping(_seen(k, own), *theta, **named)

        def in_units_of(self, length: float) -> Family:
            return discretised(family, (own[0] / length, own[1] / length), scheme)

    Discretised.equation = f"{family.equation} ({scheme} differences)"
    return Discretised()


def _seen(k: Wavenumbers, spacing: tuple[float, float]) -> Wavenumbers:
    y, x = (2 / h * torch.sin(part * (h / 2)) for part, h in zip((k.y, k.x), spacing, strict=True))
    return Wavenumbers(y, x)
