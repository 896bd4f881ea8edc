r"""Advection-diffusion with something that no family here has, by an independent integrator.

.. math:: u_t = -v \cdot \nabla u + \nabla \cdot (\kappa(x) \nabla u) + f(x, t) - \gamma\, u\,|u|

on the unit torus: derivatives by Fourier, products on the grid with the upper third of the modes cut, time by the
classical method of Runge and Kutta. It shares no code with the decoder.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

_SAFE = 2.0  # of 2.78, up to which the method is stable on the negative real axis


@dataclass(frozen=True)
class Disturbance:
    """What is added to the PDE; nothing by default.

    Args:
        source_frequency: of a factor ``2 cos^2(pi frequency t / T)`` of the source, whose mean over time is one.
        source_factor: of the source, where it varies in time.
        variation: of the diffusivity, which is multiplied by ``1 + variation sin(2 pi x)``.
        nonlinearity: ``gamma``, per unit of time and of the field.
    """

    source_frequency: float = 0.0
    source_factor: float = 1.0
    variation: float = 0.0
    nonlinearity: float = 0.0


def integrate(
    initial: Float[np.ndarray, "y x"],
    source: Float[np.ndarray, "y x"],
    velocity: tuple[float, float],
    kappa: float,
    times: Sequence[float],
    disturbance: Disturbance,
) -> Float[np.ndarray, "time y x"]:
    """The field at some times, in rising order.

    >>> wave = np.cos(2 * np.pi * (np.arange(16) + 0.5) / 16)[None].repeat(16, 0)
    >>> (late,) = integrate(wave, 0 * wave, (0.0, 0.0), 0.05, [0.5], Disturbance())
    >>> bool(abs(late.max() / wave.max() - np.exp(-0.05 * 4 * np.pi**2 * 0.5)) < 1e-6)
    True

    Args:
        initial, source: on the same square grid, cell-centred.
        velocity: along y and along x.
        kappa: the diffusivity.
        times: after the start.
        disturbance: what else happens.
    """
    num = initial.shape[0]
    n = np.fft.fftfreq(num, 1 / num)
    ky, kx = 2 * np.pi * n[:, None], 2 * np.pi * np.fft.rfftfreq(num, 1 / num)[None]
    keep = (np.abs(n)[:, None] < num / 3) & (np.abs(kx) < 2 * np.pi * num / 3)
    x = (np.arange(num) + 0.5) / num
    diffusivity = kappa * (1 + disturbance.variation * np.sin(2 * np.pi * x))[None]
    last = float(times[-1])

    def slope(u_hat: np.ndarray, t: float) -> np.ndarray:
        by_y, by_x = (np.fft.irfft2(1j * k * u_hat, s=initial.shape) for k in (ky, kx))
        rest = -velocity[0] * by_y - velocity[1] * by_x
        factor = 1.0
        if disturbance.source_frequency:
            factor = 2 * disturbance.source_factor * np.cos(np.pi * disturbance.source_frequency * t / last) ** 2
        rest = rest + factor * source
        if disturbance.nonlinearity:
            u = np.fft.irfft2(u_hat, s=initial.shape)
            rest = rest - disturbance.nonlinearity * u * np.abs(u)
        flux_y, flux_x = np.fft.rfft2(diffusivity * by_y), np.fft.rfft2(diffusivity * by_x)
        return keep * (np.fft.rfft2(rest) + 1j * ky * flux_y + 1j * kx * flux_x)

    fastest = float(diffusivity.max()) * 2 * (2 * np.pi * num / 3) ** 2 + 2 * np.pi * num / 3 * float(
        np.abs(velocity).sum()
    )
    u_hat, t, found = keep * np.fft.rfft2(initial), 0.0, []
    for time in times:
        steps = max(1, int(np.ceil((time - t) * fastest / _SAFE)))
        dt = (time - t) / steps
        for _ in range(steps):
            a = slope(u_hat, t)
            b = slope(u_hat + dt / 2 * a, t + dt / 2)
            c = slope(u_hat + dt / 2 * b, t + dt / 2)
            d = slope(u_hat + dt * c, t + dt)
            u_hat, t = u_hat + dt / 6 * (a + 2 * b + 2 * c + d), t + dt
        found.append(np.fft.irfft2(u_hat, s=initial.shape))
    return np.stack(found)
