r"""Advection and diffusion by finite volumes, independent of the spectral solver that it is there to judge.

The equation :math:`u_t + v \cdot \nabla u = \kappa \Delta u + f` in flux form on cells of side :math:`h`: through the
face between the cells :math:`i` and :math:`i + 1` along an axis flows

.. math:: F_{i + 1/2} = v \, \frac{u_i + u_{i+1}}{2} - \kappa \, \frac{u_{i+1} - u_i}{h},

which is of second order, and what leaves one cell enters the next. Time steps are Heun's. What leaves the domain comes
in on the other side, so a domain must be large enough that none of it reaches what is looked at.
"""

from __future__ import annotations

import math

import numpy as np
from jaxtyping import Float

from latentpde.errors import UsageError

_SAFETY = 0.8  # of the largest stable step


def transport(
    initial: Float[np.ndarray, "y x"],
    source: Float[np.ndarray, "y x"],
    times: Float[np.ndarray, " time"],
    *,
    spacing: float,
    velocity: tuple[float, float],
    diffusivity: float,
) -> Float[np.ndarray, "time y x"]:
    """The field at some times, from its state at time 0 and a source that does not change.

    Args:
        initial: the state at cell centres.
        source: the right-hand side, in units of the field per time.
        times: not decreasing, from 0 on.
        spacing: side of a cell.
        velocity: along y and along x.
        diffusivity: positive.

    Example:
        >>> still = transport(np.zeros((4, 4)), np.ones((4, 4)), np.array([0.0, 2.0]), spacing=1.0, velocity=(1.0, 0.0),
        ...                   diffusivity=0.5)
        >>> still[:, 0, 0].round(12).tolist()
        [0.0, 2.0]
    """
    if diffusivity <= 0 or spacing <= 0:
        raise UsageError(f"spacing and diffusivity must be positive, got {spacing} and {diffusivity}")
    longest = stable_step(spacing, velocity, diffusivity)
    u, now, found = initial.astype(float), 0.0, []
    for time in times:
        if time < now:
            raise UsageError(f"times must not decrease, got {np.asarray(times).tolist()}")
        num_steps = math.ceil((time - now) / longest)
        step = (time - now) / max(num_steps, 1)
        for _ in range(num_steps):
            first = _tendency(u, spacing, velocity, diffusivity) + source
            second = _tendency(u + step * first, spacing, velocity, diffusivity) + source
            u = u + 0.5 * step * (first + second)
        now = time
        found.append(u)
    return np.stack(found)


def stable_step(spacing: float, velocity: tuple[float, float], diffusivity: float) -> float:
    """A time step at which every Fourier mode decays, both by diffusion and as it is carried along.

    Example:
        >>> stable_step(1.0, (0.0, 0.0), 1.0)
        0.2
    """
    speed = math.hypot(*velocity)
    by_diffusion = spacing**2 / (4 * diffusivity)
    by_advection = min(spacing / sum(map(abs, velocity)), 2 * diffusivity / speed**2) if speed else math.inf
    return _SAFETY * min(by_diffusion, by_advection)


def _tendency(
    u: Float[np.ndarray, "y x"], spacing: float, velocity: tuple[float, float], diffusivity: float
) -> Float[np.ndarray, "y x"]:
    """What flows into each cell less what flows out of it."""
    padded = np.pad(u, 1, mode="wrap")
    along_y, along_x = padded[:, 1:-1], padded[1:-1, :]
    found = np.zeros_like(u)
    for axis, values in enumerate((along_y, along_x)):
        low, high = (values[:-1], values[1:]) if axis == 0 else (values[:, :-1], values[:, 1:])
        # velocity (low + high) / 2 - diffusivity (high - low) / spacing
        flux = (0.5 * velocity[axis] + diffusivity / spacing) * low + (
            0.5 * velocity[axis] - diffusivity / spacing
        ) * high
        found -= np.diff(flux, axis=axis) / spacing
    return found
