"""The exact posterior's draws, its mean over many coefficients, and its spread over many draws."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Complex, Float
from scipy.special import chdtrc
from torch import Tensor

from latentpde.estimators.exact.initial_state import InitialState
from latentpde.grid import Grid, resample
from latentpde.posterior import CHUNK_VALUES, LatentPosterior
from latentpde.spread import Spread, spread_over_draws, std_over_draws

_NODES_AT_ONCE = 16  # small enough for caches
_UNLIKELY = 1e-5  # probability of a misfit


@dataclass(frozen=True, eq=False)
class DrawnStates:
    """Fine initial states, one for each draw; made anew when they are asked for, and the same every time.

    Args:
        states: what is known of the initial state of each case.
        deviations: of its coarse coefficients, for each draw; ``None`` where they are known.
        seeds: of its structure below the coarse cell.
        num_draws: of each case.
    """

    states: list[InitialState]
    deviations: list[Complex[Tensor, "draw mode"] | None]
    seeds: list[int]
    num_draws: int

    def __getitem__(self, cases: slice) -> Complex[Tensor, "case draw row col"]:
        chosen = zip(self.states[cases], self.deviations[cases], self.seeds[cases], strict=True)
        return torch.stack([state.draw(own, self.num_draws, seed=seed) for state, own, seed in chosen])


@dataclass(frozen=True, eq=False, kw_only=True)
class ExactPosterior(LatentPosterior):
    """Exact draws, a mean that averages over many more coefficients than there are draws, and a spread that is taken
    over more draws than are kept.

    Args:
        mean_z: conditional means of the latent, for each node that the mean averages over.
        mean_initial_hat: those of the initial state; one for all nodes where it is known.
        spread_z, spread_initial_hat: as ``z`` and ``initial_hat``, of the draws for the spread; ``None`` where so many
            draws are kept that these serve.
    """

    mean_z: Float[Tensor, "case node latent"]
    mean_initial_hat: list[Complex[Tensor, "*node row col"]]
    spread_z: Float[Tensor, "case spread_draw latent"] | None
    spread_initial_hat: DrawnStates | None

    @property
    def num_spread_draws(self) -> int:
        return self.num_draws if self.spread_z is None else self.spread_z.shape[1]

    @property
    def spread_thetas(self) -> Float[Tensor, "case draw coefficient"]:
        return self.thetas if self.spread_z is None else self.latent.theta(self.spread_z)

    def spreads(
        self,
        cases: slice,
        grid: Grid,
        times: Float[Tensor, " time"],
        levels: Sequence[float] = (),
        draws: Tensor | None = None,
    ) -> Spread:
        if self.spread_z is None or self.spread_initial_hat is None:
            return super().spreads(cases, grid, times, levels, draws)
        z, u0_hat = self.spread_z[cases], self.spread_initial_hat[cases]
        parts = [self._spread_at(z, u0_hat, grid, time, levels) for time in times.split(1)]
        return Spread(torch.stack([part.std for part in parts], 1), torch.stack([part.quantiles for part in parts], 2))

    def _spread_at(self, z: Tensor, u0_hat: Tensor, grid: Grid, time: Tensor, levels: Sequence[float]) -> Spread:
        """The spread at one time, a few rows of the grid after the other where it is large."""
        u_hat = self.decoder.spectrum(z, u0_hat, time)[:, :, 0]
        ny, nx = grid.shape
        at_once = max(1, CHUNK_VALUES // (u_hat.shape[0] * u_hat.shape[1] * nx))
        if ny <= at_once:
            return spread_over_draws(grid.synthesise(u_hat), levels)
        bands = [range(start, min(start + at_once, ny)) for start in range(0, ny, at_once)]
        parts = [spread_over_draws(grid.synthesise_rows(u_hat, band), levels) for band in bands]
        return Spread(torch.cat([part.std for part in parts], -2), torch.cat([part.quantiles for part in parts], -2))

    def source_stds(self, cases: slice, grid: Grid, draws: Tensor | None = None) -> Float[Tensor, "case y x"]:
        if self.spread_z is None:
            return super().source_stds(cases, grid, draws)
        # the square of a series of modes below M is one of modes below 2 M, so few samples tell its variance everywhere
        enough = 4 * self.latent.num_modes + 1
        coarser = grid.with_shape((min(enough, grid.shape[0]), min(enough, grid.shape[1])))
        if coarser.shape != (enough, enough):
            return std_over_draws(self.decoder.source(self.spread_z[cases], grid))
        variance = self.decoder.source(self.spread_z[cases], coarser).var(1)
        return torch.sqrt(resample(variance, coarser, grid).clamp(min=0))

    def means(
        self, cases: slice, grid: Grid, times: Float[Tensor, " time"], draws: Tensor | None = None
    ) -> Float[Tensor, "case time y x"]:
        spectra = [
            self._mean_spectrum(z, u0_hat, times)
            for z, u0_hat in zip(self.mean_z[cases], self.mean_initial_hat[cases], strict=True)
        ]
        return grid.synthesise(torch.stack(spectra))

    def _mean_spectrum(self, z: Tensor, u0_hat: Tensor, times: Tensor) -> Complex[Tensor, "time row col"]:
        states = u0_hat if u0_hat.ndim == 3 else u0_hat.expand(len(z), -1, -1)
        parts = zip(z.split(_NODES_AT_ONCE), states.split(_NODES_AT_ONCE), strict=True)
        return torch.stack([self.decoder.spectrum(*part, times).sum(0) for part in parts]).sum(0) / len(z)

    def warnings(self, case: int) -> list[str]:
        notes = {name: value[case] for name, value in self.diagnostics.items()}
        if notes["trusted"]:
            return []
        if not explained(float(notes["misfit"]), int(self.observation.mask[case].sum())):
            return [
                f"The readings are not explained: their misfit is {notes['misfit']:.1f} where 1 is expected. Either "
                "their noise is larger than stated, or another PDE is at work, or the bounds exclude the truth."
            ]
        return [
            f"The search for the coefficients did not settle: {notes['effective_sample_size']:.0f} effective samples, "
            f"log evidences {notes['evidence_gap']:.1f} apart. Narrow the bounds, or raise the option sweep."
        ]

    def source_means(self, cases: slice, grid: Grid, draws: Tensor | None = None) -> Float[Tensor, "case y x"]:
        # the source is linear in the latent
        return self.decoder.source(self.mean_z[cases].mean(1), grid)


def explained(misfit: float, num_readings: int) -> bool:
    """Readings that the best coefficients do not explain mean that noise is understated, that the PDE is another, or
    that the search found the wrong place: in each case the result is not to be trusted."""
    return bool(chdtrc(num_readings, misfit * num_readings) > _UNLIKELY)
