"""The posterior of a method whose unknown is the field itself: draws on its own grid, at the snapshots' times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from latentpde.errors import UsageError
from latentpde.grid import Grid, resample
from latentpde.posterior import Posterior
from latentpde.posterior.spread import Spread, gaussian_quantiles


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class FieldPosterior(Posterior):
    """Draws of the field itself, at the snapshots' times: what a method has that knows no latent.

    There are no coefficients and no source, and between the snapshots nothing is known. Fields go to other
    resolutions as band-limited functions do, variances by linear interpolation, which keeps them positive. The law of a
    method that knows its variance is taken as Gaussian, so its quantiles do not depend on its draws.

    >>> import numpy as np
    >>> from latentpde.observation import Observation
    >>> observation = Observation.from_arrays(np.ones((4, 4)), noise_std=0.1)
    >>> draws = torch.tensor([1.0, 3.0]).reshape(1, 2, 1, 1, 1).expand(1, 2, 1, 8, 8)
    >>> posterior = FieldPosterior(observation=observation, method="mine", native=Grid((8, 8)), values=draws)
    >>> posterior.mean(resolution=16).max().item(), posterior.has_spread
    (2.0, True)

    Args:
        native: the grid that the method worked on.
        values: the draws there.
        mean_values: the mean, where the method knows it better than its draws do.
        variance: likewise the pointwise variance.
    """

    native: Grid
    values: Float[Tensor, "case draw time y x"]
    mean_values: Float[Tensor, "case time y x"] | None = None
    variance: Float[Tensor, "case time y x"] | None = None

    @property
    def num_draws(self) -> int:
        return self.values.shape[1]

    def fields(self, cases: slice, grid: Grid, times: Float[Tensor, " time"]) -> Float[Tensor, "case draw time y2 x2"]:
        return self._on(grid, self.values[cases][:, :, self._snapshots(times)])

    def means(
        self, cases: slice, grid: Grid, times: Float[Tensor, " time"], draws: Tensor | None = None
    ) -> Float[Tensor, "case time y2 x2"]:
        if self.mean_values is None:
            return super().means(cases, grid, times, draws)
        return self._on(grid, self.mean_values[cases][:, self._snapshots(times)])

    @property
    def has_spread(self) -> bool:
        return self.variance is not None or super().has_spread

    @property
    def has_spread_of_draws(self) -> bool:
        return self.variance is None and self.has_spread

    @property
    def quantiles_note(self) -> str:
        return super().quantiles_note if self.variance is None else "of the normal distribution that the method assumes"

    def spreads(
        self,
        cases: slice,
        grid: Grid,
        times: Float[Tensor, " time"],
        levels: Sequence[float] = (),
        draws: Tensor | None = None,
    ) -> Spread:
        if self.variance is None:
            return super().spreads(cases, grid, times, levels, draws)
        variance = self.variance[cases][:, self._snapshots(times)]
        std = torch.sqrt(variance if grid == self.native else _linear(_linear(variance, grid, 0), grid, 1))
        return Spread(std, gaussian_quantiles(self.means(cases, grid, times, draws), std, levels))

    def exceedances(
        self, cases: slice, grid: Grid, times: Float[Tensor, " time"], threshold: float
    ) -> Float[Tensor, "case time y2 x2"]:
        if self.variance is None:
            return super().exceedances(cases, grid, times, threshold)
        return torch.special.ndtr((self.means(cases, grid, times) - threshold) / self.spreads(cases, grid, times).std)

    def _on(self, grid: Grid, values: Tensor) -> Tensor:
        # samples on the method's own grid are kept as they are, what lies at its Nyquist included
        return values if grid == self.native else resample(values, self.native, grid)

    def _snapshots(self, times: Float[Tensor, " time"]) -> list[int]:
        known = self.observation.times
        apart = (times[:, None] - known).abs()
        if bool((apart.amin(1) > 1e-9 * (1 + known.abs().max())).any()):
            raise UsageError(
                f"{self.method} knows the field at the snapshots' times only: {', '.join(f'{t:g}' for t in known)}; "
                f"asked for {', '.join(f'{t:g}' for t in times)}. Methods that solve the PDE know it at any time"
            )
        return apart.argmin(1).tolist()


def _linear(values: Tensor, grid: Grid, axis: int) -> Tensor:
    """Periodic linear interpolation along y (0) or x (1) from cells that cover the same rectangle."""
    old, new, dim = values.shape[axis - 2], grid.shape[axis], axis - 2
    position = (torch.arange(new, dtype=values.dtype) + 0.5) * old / new - 0.5
    below = position.floor()
    share = (position - below).reshape(-1, *[1] * (1 - axis))
    index = below.long() % old
    return (1 - share) * values.index_select(dim, index) + share * values.index_select(dim, (index + 1) % old)
