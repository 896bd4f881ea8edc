r"""The periodic rectangle that a case is solved on, and the modes of it that the readings can tell of.

An axis between walls is embedded together with its mirror image, and modes are the sines or cosines among those of the
doubled one.

An open axis is embedded in a longer one. What leaves through an edge must not come in again on the other side before
the last reading, so the padding is as long as the physics can carry something: velocity times time, and the length of
diffusion. State and source are unknown there like everywhere else.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import torch
from jaxtyping import Float
from torch import Tensor

from latentpde.domain import Domain
from latentpde.estimators.exact.fourier import Modes
from latentpde.grid import Grid, Mirror, Wavenumbers
from latentpde.observation import Observation
from latentpde.pde import Family

_LEAST_PADDING, _MOST_PADDING = 0.5, 2.0  # as a share of the axis
_FINEST = 2.0  # waves of the modes per typical distance of the readings
MOST_MODES = 400


@dataclass(frozen=True, eq=False)
class Embedding:
    """A periodic rectangle around the one that was observed, and modes of it.

    Args:
        extent: ``(height, width)``; its lower corner is that of the observed rectangle.
        num_modes: per half axis of the square block that holds the modes.
        finest: the largest wavenumber that the readings can tell of.
        modes: of the block.
        mirror: the symmetry of fields between walls.
    """

    extent: tuple[float, float]
    num_modes: int
    finest: float
    modes: Modes
    mirror: Mirror = field(default_factory=Mirror)

    @classmethod
    def of(
        cls,
        grid: Grid,
        domain: Domain,
        family: Family,
        bounds: Float[Tensor, "coefficient 2"],
        duration: float,
        distance: float,
        most_modes: int = MOST_MODES,
    ) -> Embedding:
        """The rectangle for a domain.

        Args:
            grid: what was observed.
            domain: its edges.
            family: the PDE.
            bounds: of its coefficients.
            duration: from the initial state to the last reading.
            distance: between neighbouring readings, typically.
            most_modes: of the rectangle; where the readings could tell of more, only the longer waves are taken.
        """
        reach = carried(family, bounds, duration, max(grid.extent))
        padding = [min(max(reach, _LEAST_PADDING * side), _MOST_PADDING * side) for side in grid.extent]
        edges = (domain.y, domain.x)
        height, width = (
            side + (pad if edge == "open" else 0.0) for side, pad, edge in zip(grid.extent, padding, edges, strict=True)
        )
        # A disc of radius k holds pi k^2 / (2 pi)^2 height width modes, of which half are a block's.
        finest = min(2 * math.pi / distance * _FINEST / 2, math.sqrt(8 * math.pi * most_modes / (height * width)))
        mirror = domain.mirror
        height, width = mirror.grid(Grid((1, 1), (height, width))).extent
        num_modes = max(2, math.ceil(finest * max(height, width) / (2 * math.pi)) + 1)
        modes = Modes.of_block((2 * num_modes, num_modes), (height, width), mirror)
        return cls((height, width), num_modes, finest, modes, mirror)

    @classmethod
    def of_torus(cls, case: Observation, num_modes: int, mirror: Mirror) -> Embedding:
        """The observed rectangle itself, or between walls that with its images, with all modes of a block and what the
        case's readings see of them."""
        modes = Modes.of((2 * num_modes, num_modes), case, mirror)
        return cls(case.grid.extent, num_modes, math.inf, modes, mirror)

    def up_to_the_finest(self) -> Modes:
        """Modes whose waves the readings can tell of."""
        inside = (self.modes.k**2).sum(-1) <= self.finest**2
        inside[self.modes.index // self.num_modes == self.num_modes] = False  # the row of -M has no counterpart
        return self.modes.select(inside)

    def within(self, num_modes: int) -> Modes:
        """Those of a smaller block."""
        rows, cols = self.modes.index // self.num_modes, self.modes.index % self.num_modes
        above, below = rows < num_modes, rows >= 2 * self.num_modes - num_modes
        return self.modes.select((above | below) & (cols < num_modes))

    def with_block(self, num_modes: int) -> Embedding:
        """The same in a larger block, so that those of several cases have the same shape."""
        modes = Modes.of_block((2 * num_modes, num_modes), self.extent, self.mirror)
        return replace(self, num_modes=num_modes, modes=modes)


def carried(family: Family, bounds: Float[Tensor, "coefficient 2"], duration: float, length: float) -> float:
    """How far a disturbance gets, at most: by waves or wind, and by spreading.

    >>> from latentpde.pde import get_family
    >>> family = get_family("advection_diffusion")
    >>> bounds = torch.tensor([[-3.0, 2.0], [0.0, 1.0], [0.0, 0.01]], dtype=torch.float64)
    >>> carried(family, bounds, duration=2.0, length=1.0)
    6.2

    Args:
        family: the PDE.
        bounds: of its coefficients.
        duration: in the unit of time of the coefficients.
        length: of the waves whose speed counts.
    """
    if family.order == 0:
        return 0.0
    corners = torch.cartesian_prod(*bounds).reshape(-1, len(bounds))
    wave = torch.tensor([[2 * math.pi / length]], dtype=torch.float64)
    speed, spread = 0.0, 0.0
    for k in (Wavenumbers(0 * wave, wave), Wavenumbers(wave, 0 * wave)):
        symbol = family.symbol(k, *(c[:, None, None] for c in corners.T))
        real = symbol.real.clamp(min=0) if symbol.is_complex() else symbol.clamp(min=0)
        if family.order == 1:
            speed = max(speed, float(symbol.imag.abs().max() / wave) if symbol.is_complex() else 0.0)
            spread = max(spread, float(torch.sqrt(2 * real * duration).max() / wave))
        else:
            speed = max(speed, float(torch.sqrt(real).max() / wave))
    return round(speed * duration + spread, 12)
