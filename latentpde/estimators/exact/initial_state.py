r"""What is known of a case's initial state: its coarse cells, exactly or with noise, and a prior below them.

The coarse state is Gaussian, :math:`c \sim N(\hat c, V)` with :math:`V` circulant (zero where the cells are exact);
given it, the fine state is drawn with the cells' averages right (`latentpde.estimators.exact.subgrid`). Where a fine
initial state was given, nothing is left to draw. Of noisy cells the prior's spectrum is fitted to what they deviate
from their mean by, and that mean has a flat prior: no level is more likely than another beforehand.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from jaxtyping import Complex, Float
from torch import Tensor

from latentpde.decoder import Decoder
from latentpde.errors import UsageError
from latentpde.estimators.exact.subgrid import Subgrid
from latentpde.grid import Grid, Mirror, mode_weights, pooling_attenuation, unpool_spectrum, wavenumbers
from latentpde.observation import Observation


@dataclass(frozen=True, eq=False)
class InitialState:
    """The initial state of one case, as far as it is known.

    Args:
        grid: the coarse grid.
        coarse: mean of the coarse cells.
        mean_hat: Fourier coefficients of the mean, in the sense in which the readings see the state.
        std: standard deviation of those coefficients; ``None`` where the cells are exact.
        subgrid: the prior below the cells; ``None`` for no structure there.
        pooling: samples per side that a cell averages.
        unpooled: whether ``mean_hat`` is of the field, rather than of its cell averages.
        fine_hat: Fourier coefficients of the fine state, where it is known.
    """

    grid: Grid
    coarse: Float[Tensor, "y x"]
    mean_hat: Complex[Tensor, "row col"]
    std: Float[Tensor, "row col"] | None
    subgrid: Subgrid | None
    pooling: int | None
    unpooled: bool
    fine_hat: Complex[Tensor, "fine_row fine_col"] | None = None

    @classmethod
    def of(cls, case: Observation, *, detail: bool, noise_std: float, mirror: Mirror | None = None) -> InitialState:
        """That of a single case on the torus; between walls, on the rectangle with its images."""
        if case.fine_initial is not None:
            return cls._of_fine(case, noise_std)
        grid, coarse = case.grid, case.require_initial()[0]
        subgrid = Subgrid.fit(coarse, grid, case.refinement, noise_power=noise_std**2 / coarse.numel())
        subgrid = replace(subgrid, mirror=mirror) if mirror else subgrid
        power = None
        if noise_std:
            prior_power = subgrid.coarse_power
            noise_power = noise_std**2 / coarse.numel()
            gain = prior_power / (prior_power + noise_power)
            power = prior_power * (1 - gain)
            # the spectrum says nothing of the field's level, which is the cells' own
            gain[0, 0], power[0, 0] = 1.0, noise_power
            coarse = torch.fft.irfft2(gain * torch.fft.rfft2(coarse), s=grid.shape)
        lowres = case.observed == "lowres-solve"
        mean_hat = grid.analyse(coarse) if lowres else unpool_spectrum(coarse, grid, case.pooling)
        std = None
        if power is not None:
            std = torch.sqrt(grid.block_of(power)) / (1.0 if lowres else pooling_attenuation(grid, case.pooling))
        return cls(grid, coarse, mean_hat, std, subgrid if detail else None, case.pooling, not lowres)

    @classmethod
    def _of_fine(cls, case: Observation, noise_std: float) -> InitialState:
        if noise_std:
            raise UsageError("a fine initial state is taken as exact; leave it out, or initial_noise_std at 0")
        assert case.initial is not None
        fine_hat, lowres = case.initial_spectrum()[0], case.observed == "lowres-solve"
        mean_hat = case.grid.analyse(case.initial[0]) if lowres else fine_hat
        return cls(case.grid, case.initial[0], mean_hat, None, None, case.pooling, not lowres, fine_hat)

    def mean(self, unknown: Complex[Tensor, "node mode"] | None = None) -> Complex[Tensor, "*node row col"]:
        """Fourier coefficients of the mean fine state, for each set of deviations of the coarse one if any."""
        if self.fine_hat is not None:
            return self.fine_hat
        coarse = self.coarse if unknown is None else self._coarse_states(unknown)
        if self.subgrid is None:
            return unpool_spectrum(coarse, self.grid, self.pooling)
        return self.subgrid.mean(coarse)

    @property
    def detail_power(self) -> Float[Tensor, "row col"] | None:
        """``E|u_k|^2`` of what the cells do not fix, on the fine grid's modes."""
        return None if self.subgrid is None else self.subgrid.conditional_power

    def draw(
        self, unknown: Complex[Tensor, "draw mode"] | None, num: int, *, seed: int
    ) -> Complex[Tensor, "draw row col"]:
        """Fine states; ``unknown`` are deviations of the coarse coefficients where they are uncertain."""
        if self.fine_hat is not None:
            return self.fine_hat.expand(num, *self.fine_hat.shape)
        coarse = self.coarse.expand(num, *self.coarse.shape) if unknown is None else self._coarse_states(unknown)
        if self.subgrid is None:
            return unpool_spectrum(coarse, self.grid, self.pooling)
        return self.subgrid.draw(coarse, generator=torch.Generator().manual_seed(seed))

    def _coarse_states(self, unknown: Complex[Tensor, "draw mode"]) -> Float[Tensor, "draw y x"]:
        block = unknown.unflatten(-1, self.grid.block_shape)
        if self.unpooled:
            block = block * pooling_attenuation(self.grid, self.pooling)
        return self.coarse + self.grid.synthesise(block)


def detail_variance(state: InitialState, case: Observation, decoder: Decoder) -> float:
    """Variance that structure below the coarse cell adds to a reading of the true field."""
    power = state.detail_power
    if case.observed == "lowres-solve" or power is None:
        return 0.0
    middle = decoder.latent.bounds.mean(-1)[None]
    k = wavenumbers((power.shape[-2], power.shape[-1]), decoder.extent)
    response = decoder.latent.family.state_response(k, case.times[-1:], middle).abs() ** 2
    weight = mode_weights(power.shape[-1])
    return float((weight * power * response.reshape(power.shape)).sum())
