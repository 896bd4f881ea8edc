r"""What a coarse initial state leaves open.

Coarse cells fix averages of the initial state and nothing finer. Below the cell the state is given an isotropic
power-law prior, :math:`E|\hat u_k|^2 = A\,|k|^{-s}`, whose level and slope are fitted to the spectrum that the coarse
cells do resolve and which steepens a little beyond it; conditioning on the averages is then exact, with all aliases.
On the fine grid, with :math:`D` the averaging over cells and :math:`K` the prior's covariance,

.. math:: u = u' + K D^T (D K D^T)^{-1} (c - D u'), \qquad u' \sim N(0, K)

(Matheron's rule). Both :math:`K` and :math:`D K D^T` are diagonal in Fourier space: each coarse mode is the sum of
the fine modes that fold onto it, and is shared out among them again.

The fit maximises Whittle's likelihood :math:`-\sum_n (\log \lambda_n + |\hat c_n|^2 / \lambda_n)` of the coarse
coefficients, where :math:`\lambda_n` is what the prior gives *after* averaging and folding. It is the mean power that
it matches, so a spectrum of a few strong lines, as sharp fronts have, is not mistaken for a weak one, as it is by a
straight line through log powers. Only the upper half of the resolved modes is used: the fit is there to be continued.
Where the cells are noisy, :math:`\lambda_n` includes the noise and all modes but the mean are used, because the prior
then also decides how far each of them is believed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache

import torch
from jaxtyping import Complex, Float
from torch import Tensor

from latentpde.grid import (
    Grid,
    Mirror,
    average_pool,
    mode_numbers,
    pointwise_variance,
    pooling_attenuation,
    wavenumbers,
)

# Spectra of real states bend down: beyond the coarse Nyquist the slope is this much steeper than below it. With 1 the
# intervals of propagated detail cover 88 to 93 % for each kind of initial state; see results/tuning/subgrid.json.
STEEPENING = 1.0
_LEAST_LEVEL = 1e-100  # of a state without any structure
_SLOPES = torch.arange(1.0, 16.01, 0.25, dtype=torch.float64)


@dataclass(frozen=True, eq=False)
class Subgrid:
    """The power-law prior of one initial state.

    Args:
        grid: the coarse grid.
        factor: fine cells per coarse cell and side; the prior's modes end at the fine grid's Nyquist.
        level: ``A``, with wavenumbers in units of the fundamental of the longer side.
        slope: ``s``.
        steepening: how much steeper the slope is beyond the coarse Nyquist.
        mirror: the symmetry of states between walls, of which ``grid`` then has the images too.
    """

    grid: Grid
    factor: int
    level: float
    slope: float
    steepening: float = STEEPENING
    mirror: Mirror = field(default_factory=Mirror)

    @classmethod
    def fit(
        cls,
        coarse: Float[Tensor, "y x"],
        grid: Grid,
        factor: int,
        *,
        noise_power: float = 0.0,
        steepening: float = STEEPENING,
    ) -> Subgrid:
        """Level and slope for one coarse state, whose coefficients have noise of this power on them."""
        power = torch.fft.rfft2(coarse, norm="forward").abs() ** 2
        if noise_power:
            return cls._fit_noisy(power, grid, factor, noise_power, steepening)
        band = _fit_band(grid)
        expected = _coarse_powers(grid, factor, steepening)[:, band]
        if not bool(band.any()):
            return cls(grid, factor, _LEAST_LEVEL, float(_SLOPES[-1]), steepening)
        level = (power[band] / expected).mean(1).clamp(min=_LEAST_LEVEL)
        cost = torch.log(level) + torch.log(expected).mean(1)
        best = int(cost.argmin())
        return cls(grid, factor, float(level[best]), float(_SLOPES[best]), steepening)

    @classmethod
    def _fit_noisy(
        cls, power: Float[Tensor, "y half_x"], grid: Grid, factor: int, noise_power: float, steepening: float
    ) -> Subgrid:
        """The same with noise, to all modes but the mean: the upper ones may hold nothing else."""
        expected = _coarse_powers(grid, factor, steepening).flatten(1)[:, 1:]
        power = power.flatten()[1:]
        best = cls(grid, factor, _LEAST_LEVEL, float(_SLOPES[-1]), steepening)
        if not power.numel():
            return best
        least = torch.inf
        shares = torch.logspace(-6, 2, 161, dtype=torch.float64)  # of the mean power that the prior explains
        for slope, shape in zip(_SLOPES.tolist(), expected, strict=True):
            levels = shares * power.mean() / shape.mean()
            total = levels[:, None] * shape + noise_power
            cost = (torch.log(total) + power / total).mean(1)
            if cost.min() < least:
                least = float(cost.min())
                best = cls(grid, factor, max(float(levels[cost.argmin()]), _LEAST_LEVEL), slope, steepening)
        return best

    @classmethod
    def of_variance(cls, grid: Grid, factor: int, variance: float, slope: float) -> Subgrid:
        """The prior of a state with a given pointwise variance."""
        power = _power_law(grid, factor, slope, STEEPENING)
        return cls(grid, factor, variance / float(pointwise_variance(power)), slope)

    @property
    def conditional_power(self) -> Float[Tensor, "row col"]:
        """``E|u_k|^2`` of what is left of the prior once the averages are known."""
        attenuation, _, index = _folding(self.grid, self.factor)
        explained = self.power * attenuation**2 / self._coarse_power.flatten()[index]
        return self.power * (1 - explained).clamp(min=0)

    @property
    def fine(self) -> Grid:
        return self.grid.refine(self.factor)

    @property
    def power(self) -> Float[Tensor, "row col"]:
        """``E|u_k|^2`` of the fine grid's modes."""
        return self.level * _power_law(self.grid, self.factor, self.slope, self.steepening)

    @property
    def coarse_power(self) -> Float[Tensor, "y half_x"]:
        """The same of the coarse averages, as `torch.fft.rfft2` orders them."""
        return self._coarse_power[:, : self.grid.shape[1] // 2 + 1]

    @property
    def _coarse_power(self) -> Float[Tensor, "y x"]:
        return self.level * _coarse_power(self.grid, self.factor, self.slope, self.steepening)

    def draw(self, coarse: Float[Tensor, "draw y x"], *, generator: torch.Generator) -> Complex[Tensor, "draw row col"]:
        """Fine states whose averages are ``coarse``, one for each."""
        fine = self.fine
        white = torch.randn((len(coarse), *fine.shape), dtype=torch.float64, generator=generator)
        u_hat = self.mirror.fold(fine.analyse(white) * torch.sqrt(self.power * white[0].numel()))
        return u_hat + self.mean(coarse - average_pool(fine.synthesise(u_hat), self.factor))

    def mean(self, coarse: Float[Tensor, "*batch y x"]) -> Complex[Tensor, "*batch row col"]:
        """The mean fine state: each coarse coefficient is shared out among the modes that fold onto it."""
        attenuation, phase, index = _folding(self.grid, self.factor)
        coarse_hat = torch.fft.fft2(coarse, norm="forward") / self._coarse_power
        return self.power * attenuation * phase.conj() * coarse_hat.flatten(-2)[..., index]


@lru_cache(maxsize=256)
def _power_law(grid: Grid, factor: int, slope: float, steepening: float) -> Float[Tensor, "row col"]:
    """Power of the fine modes for level one."""
    block = grid.refine(factor).block_shape
    unit = 2 * torch.pi / max(grid.extent)
    size = torch.sqrt(wavenumbers(block, grid.extent).squared) / unit
    nyquist = torch.pi / max(grid.spacing) / unit
    power = size.clamp(min=1.0) ** -slope * (size / nyquist).clamp(min=1.0) ** -steepening
    power[block[0] // 2] = 0.0  # a block has this row for its shape's sake; no grid of it carries the mode
    return power


@lru_cache(maxsize=16)
def _folding(grid: Grid, factor: int) -> tuple[Tensor, Tensor, Tensor]:
    """For each fine mode: what averaging leaves of it, its phase at the first coarse centre, and the coarse mode
    (a flat index of the whole plane) that it folds onto."""
    block = grid.refine(factor).block_shape
    rows, cols = mode_numbers(block)
    ny, nx = grid.shape
    angle = torch.pi * (rows[:, None].to(torch.float64) / ny + cols.to(torch.float64) / nx)
    phase = torch.polar(torch.ones_like(angle), angle)
    return pooling_attenuation(grid, factor, block), phase, (rows[:, None] % ny) * nx + cols % nx


@lru_cache(maxsize=256)
def _coarse_power(grid: Grid, factor: int, slope: float, steepening: float) -> Float[Tensor, "y x"]:
    """Power of the coarse averages for level one: summed over the modes that fold together, in the whole plane."""
    attenuation, _, index = _folding(grid, factor)
    power = _power_law(grid, factor, slope, steepening) * attenuation**2
    flat = torch.zeros(grid.shape[0] * grid.shape[1], dtype=torch.float64)
    flat.index_add_(0, index.flatten(), power.flatten())
    half = flat.reshape(grid.shape).clone()
    # the columns with negative mode numbers are the mirror images of those with positive ones
    flat.zero_().index_add_(0, index[:, 1:].flatten(), power[:, 1:].flatten())
    return half + flat.reshape(grid.shape).roll((-1, -1), (0, 1)).flip(0, 1)


@lru_cache(maxsize=16)
def _coarse_powers(grid: Grid, factor: int, steepening: float) -> Float[Tensor, "slope y half_x"]:
    half = grid.shape[1] // 2 + 1
    return torch.stack([_coarse_power(grid, factor, float(slope), steepening)[:, :half] for slope in _SLOPES])


@lru_cache(maxsize=16)
def _fit_band(grid: Grid) -> Tensor:
    """Modes from half the coarse Nyquist up, in the coarser direction's measure."""
    ny, nx = grid.shape
    rows = torch.fft.fftfreq(ny, 1 / ny)[:, None] / ny
    cols = torch.fft.rfftfreq(nx, 1 / nx)[None, :] / nx
    radius = torch.sqrt(rows**2 + cols**2)
    band = (radius >= 0.25) & (radius < 0.5)
    return band if bool(band.any()) else radius > 0
