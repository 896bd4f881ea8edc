r"""Random initial states: periodic, of zero mean and unit variance, the same function at any resolution.

A kind is a frozen dataclass whose fields are its parameters; lengths among them are shares of the domain. Calling it
draws a function of the relative coordinates ``(y / height, x / width)`` and returns its values at the cell centres of a
grid. What it draws does not depend on the grid, so the same seed gives the same function on 64, 128 or 256 cells, and
lengths stretch with the rectangle. `draw_initial_condition` then removes the Nyquist row and column and standardises.

The parameters were chosen on 400 draws at 128 x 128 by one number: the RMS of the Fourier modes from 16
upwards in either direction, which coarse observations of 32 x 32 cells cannot see. It averages about 0.05 for
``broadband`` and ``fronts``, 0.04 for ``multiscale`` and below 0.02 for ``dipoles``.

To add a kind, register an instance: ``initial_conditions.register("rough", Broadband(slope=2.0))``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float

from latentpde.errors import UsageError
from latentpde.grid import Grid
from latentpde.registry import Registry


@runtime_checkable
class InitialCondition(Protocol):
    """A kind of initial state: draws a periodic function and returns its values on a grid.

    Its mean may be anything, and its variance anything but zero: `draw_initial_condition` standardises it.
    """

    def __call__(self, grid: Grid, *, generator: np.random.Generator) -> Float[np.ndarray, "y x"]: ...


initial_conditions: Registry[InitialCondition] = Registry("initial condition", "initial conditions")


def draw_initial_condition(kind: str, grid: Grid, *, generator: np.random.Generator) -> Float[np.ndarray, "y x"]:
    """Draw an initial state in float64, of mean 0 and variance 1 over the grid and strictly below its Nyquist.

    Args:
        kind: a name in `initial_conditions`.
        grid: where its values are wanted, at least 3 cells a side; the function itself does not depend on the shape.
        generator: where all random numbers come from.

    Example:
        >>> u = draw_initial_condition("fronts", Grid((32, 48)), generator=np.random.default_rng(7))
        >>> u.shape, round(float(u.std()), 6)
        ((32, 48), 1.0)
    """
    values = initial_conditions.get(kind)(grid, generator=generator)
    # NumPy's transforms rather than the grid's: on fields this small, waiting for torch's threads takes longer.
    u_hat = np.fft.rfft2(values, norm="forward")
    ny, nx = grid.shape
    u_hat[0, 0] = 0
    if ny % 2 == 0:
        u_hat[ny // 2, :] = 0
    if nx % 2 == 0:
        u_hat[:, nx // 2] = 0
    u = np.fft.irfft2(u_hat, s=grid.shape, norm="forward")
    scale = u.std()
    if not scale > 1e-12 * np.abs(values).max():
        raise UsageError(f"a grid of shape {grid.shape} carries no mode besides the mean; use at least 3 cells a side")
    return u / scale


@dataclass(frozen=True)
class Broadband:
    r"""Random phases and Gaussian amplitudes at all scales, with a power-law spectrum.

    .. math:: \hat u_n \sim \mathcal{CN}\bigl(0, (1 + |n|^2 / n_0^2)^{-p}\bigr)

    Args:
        slope: ``p``, the decay of amplitudes at small scales.
        knee: ``n_0``, the mode number where the decay sets in.
        num_modes: Fourier modes below this number along each axis; a grid of twice as many cells holds them all.
    """

    slope: float = 2.7
    knee: float = 3.0
    num_modes: int = 32

    def __call__(self, grid: Grid, *, generator: np.random.Generator) -> Float[np.ndarray, "y x"]:
        return _fourier_field(grid, self.slope, self.knee, self.num_modes, generator)


@dataclass(frozen=True)
class Fronts:
    r"""Two-valued bands with sharp edges along wavy lines; the sum of a few sets of such bands.

    .. math:: u = \sum_j a_j \tanh \frac{\sin 2\pi(\xi + p_j(\eta)) - b_j}{\delta}

    with :math:`(\xi, \eta)` the two coordinates in random order and :math:`p_j` a random periodic line
    that winds -1, 0 or 1 times around the domain.

    Args:
        num_sets: terms of the sum.
        thickness: :math:`\delta`; a front is about ``thickness / pi`` of the domain wide.
        waviness: standard deviation of a line's displacement.
        num_waves: Fourier modes that displace a line, their amplitudes falling as ``1 / n``.
        level: largest :math:`|b|`; zero makes bands and gaps equally wide.
    """

    num_sets: int = 2
    thickness: float = 0.12
    waviness: float = 0.08
    num_waves: int = 4
    level: float = 0.5

    def __call__(self, grid: Grid, *, generator: np.random.Generator) -> Float[np.ndarray, "y x"]:
        y, x = _relative_coordinates(grid)
        u = np.zeros(grid.shape)
        for _ in range(self.num_sets):
            across_x = generator.random() < 0.5
            level, amplitude = generator.uniform((-self.level, 0.5), (self.level, 1.0))
            across, along = (x, y) if across_x else (y, x)
            phase = 2 * np.pi * self._line(along, generator)
            # sin(a + b) as two outer products spares a sine per cell.
            wave = np.outer(np.cos(phase), np.sin(2 * np.pi * across))
            wave += np.outer(np.sin(phase), np.cos(2 * np.pi * across))
            band = amplitude * np.tanh((wave - level) / self.thickness)
            u += band if across_x else band.T
        return u

    def _line(self, along: Float[np.ndarray, " n"], generator: np.random.Generator) -> Float[np.ndarray, " n"]:
        """A random periodic line ``p(eta)`` at the places ``along``."""
        n = np.arange(1, self.num_waves + 1)
        amplitudes = self.waviness / n * np.sqrt(2 / np.sum(1.0 / n**2))
        phases, start = generator.random(self.num_waves), generator.random()
        displacement = amplitudes @ np.sin(2 * np.pi * (n[:, None] * along + phases[:, None]))
        return start + generator.integers(-1, 2) * along + displacement


@dataclass(frozen=True)
class Dipoles:
    """A few vortex dipoles: pairs of opposite Gaussian blobs at random places and angles.

    Args:
        num_dipoles: fewest and most of them.
        width: narrowest and widest standard deviation of a blob.
        separation: distance of a pair's centres over its width.
    """

    num_dipoles: tuple[int, int] = (3, 6)
    width: tuple[float, float] = (0.025, 0.075)
    separation: float = 2.0

    def __call__(self, grid: Grid, *, generator: np.random.Generator) -> Float[np.ndarray, "y x"]:
        num = generator.integers(*self.num_dipoles, endpoint=True)
        width = generator.uniform(*self.width, num)
        strength = generator.uniform(0.5, 1.0, num)
        angle = generator.uniform(0, 2 * np.pi, num)
        half = 0.5 * self.separation * width * np.stack([np.sin(angle), np.cos(angle)])
        middle = generator.random((2, num))
        centres = np.concatenate([middle + half, middle - half], axis=1)
        return _blobs(grid, centres, np.tile(width, 2), np.concatenate([strength, -strength]))


@dataclass(frozen=True)
class Multiscale:
    """Gaussian blobs of several scales, more and weaker ones at finer scales, on top of long waves.

    Args:
        widths: standard deviation of the blobs at each scale.
        counts: number of blobs at each scale.
        amplitudes: typical height of the blobs at each scale.
        num_modes: Fourier modes below this number along each axis.
        fourier_amplitude: standard deviation of the long waves.
    """

    widths: tuple[float, ...] = (0.12, 0.06, 0.03, 0.015)
    counts: tuple[int, ...] = (2, 4, 8, 16)
    amplitudes: tuple[float, ...] = (1.0, 0.8, 0.7, 0.6)
    num_modes: int = 8
    fourier_amplitude: float = 0.3

    def __call__(self, grid: Grid, *, generator: np.random.Generator) -> Float[np.ndarray, "y x"]:
        widths, amplitudes = np.repeat(self.widths, self.counts), np.repeat(self.amplitudes, self.counts)
        centres = generator.random((2, len(widths)))
        blobs = _blobs(grid, centres, widths, amplitudes * generator.standard_normal(len(widths)))
        waves = _fourier_field(grid, slope=2.0, knee=3.0, num_modes=self.num_modes, generator=generator)
        return blobs + self.fourier_amplitude * waves


initial_conditions.register("broadband", Broadband())
initial_conditions.register("fronts", Fronts())
initial_conditions.register("dipoles", Dipoles())
initial_conditions.register("multiscale", Multiscale())


def _fourier_field(
    grid: Grid, slope: float, knee: float, num_modes: int, generator: np.random.Generator
) -> Float[np.ndarray, "y x"]:
    """A Gaussian field of unit pointwise variance and amplitudes ``(1 + |n|^2 / knee^2) ** (-slope / 2)``."""
    rows, cols = np.arange(-num_modes + 1, num_modes), np.arange(num_modes)
    std = (1 + (rows[:, None] ** 2 + cols**2) / knee**2) ** (-slope / 2)
    std[num_modes - 1, 0] = 0
    # Column 0 enters the real sum once, the others twice; each of its waves is there as n and as -n.
    std[:, 0] *= np.sqrt(2)
    power = 4 * np.sum(std[:, 1:] ** 2) + np.sum(std[:, 0] ** 2)
    noise = generator.standard_normal((2, *std.shape))
    ny, nx = grid.shape
    half_cell = np.outer(np.exp(1j * np.pi * rows / ny), np.exp(1j * np.pi * cols / nx))
    u_hat = std / np.sqrt(power) * (noise[0] + 1j * noise[1]) * half_cell
    kept_rows, kept_cols = np.abs(rows) < ny / 2, cols < nx / 2
    full = np.zeros((ny, nx // 2 + 1), dtype=complex)
    full[np.ix_(rows[kept_rows], cols[kept_cols])] = u_hat[np.ix_(kept_rows, kept_cols)]
    return np.fft.irfft2(full, s=grid.shape, norm="forward")


def _blobs(
    grid: Grid,
    centres: Float[np.ndarray, "2 blob"],
    widths: Float[np.ndarray, " blob"],
    heights: Float[np.ndarray, " blob"],
) -> Float[np.ndarray, "y x"]:
    r"""Periodic Gaussian blobs, :math:`\exp((\cos 2\pi d - 1) / (2\pi\sigma)^2)` along each axis.

    That is :math:`\exp(-d^2 / 2\sigma^2)` for small ``d``, but smooth across the seam without images.
    """
    along_y, along_x = (
        np.exp((np.cos(2 * np.pi * (axis[:, None] - centre)) - 1) / (2 * np.pi * widths) ** 2)
        for axis, centre in zip(_relative_coordinates(grid), centres, strict=True)
    )
    return (along_y * heights) @ along_x.T


def _relative_coordinates(grid: Grid) -> tuple[Float[np.ndarray, " y"], Float[np.ndarray, " x"]]:
    """Cell centres along ``y`` and ``x`` as shares of the domain's height and width."""
    y, x = ((np.arange(n) + 0.5) / n for n in grid.shape)
    return y, x
