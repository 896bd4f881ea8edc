"""Posteriors that know the PDE: its coefficients and its source."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Complex, Float
from torch import Tensor

from latentpde.decoder import Decoder
from latentpde.grid import Grid
from latentpde.latent import Latent
from latentpde.operator import ObservationOperator
from latentpde.posterior.posterior import Posterior, Resolution
from latentpde.posterior.spread import QUANTILES, Spread, spread_over_draws, std_over_draws

if TYPE_CHECKING:
    import xarray as xr


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class PDEPosterior(Posterior):
    """A posterior that also knows the PDE: its coefficients and its source."""

    @property
    @abstractmethod
    def latent(self) -> Latent:
        """The family, the coefficients' bounds and the prior."""

    @property
    @abstractmethod
    def thetas(self) -> Float[Tensor, "case draw coefficient"]:
        """Draws of the coefficients; `coefficients` has them with their names."""

    @abstractmethod
    def sources(self, cases: slice, grid: Grid) -> Float[Tensor, "case draw y x"]:
        """Draws of the source for some of the cases."""

    @property
    def spread_thetas(self) -> Float[Tensor, "case draw coefficient"]:
        """Draws of the coefficients to tell their mean and spread by; see `num_spread_draws`."""
        return self.thetas

    @cached_property
    def coefficients(self) -> xr.DataArray:
        """Draws of the PDE's coefficients, axes ``(case, draw, coefficient)``."""
        import xarray as xr

        names = list(self.latent.family.coefficient_names)
        array = xr.DataArray(
            self.thetas.numpy(),
            dims=("case", "draw", "coefficient"),
            coords={"coefficient": names},
            name="coefficients",
        )
        return self._without_spare_case(array)

    def coefficients_of(self, case: int) -> dict[str, np.ndarray]:
        return dict(zip(self.latent.family.coefficient_names, self.thetas[case].T.numpy(), strict=True))

    def _describe(self, case: int) -> str:
        names, theta = self.latent.family.coefficient_names, self.spread_thetas[case]
        stds = std_over_draws(theta[None])[0]
        values = [
            f"{name} {mean:.3g}" + (f" ± {std:.2g}" if self.has_spread else "")
            for name, mean, std in zip(names, theta.mean(0).tolist(), stds.tolist(), strict=True)
        ]
        return f"{', '.join(values)}; {super()._describe(case)}"

    def coefficient_spread(self) -> Spread:
        """Standard deviation and quantiles of the coefficients, at `latentpde.posterior.spread.QUANTILES`."""
        return spread_over_draws(self.spread_thetas, QUANTILES)

    def source_means(self, cases: slice, grid: Grid, draws: Tensor | None = None) -> Float[Tensor, "case y x"]:
        """The posterior mean of the source; as `means`, with ``draws`` what `sources` gives."""
        return (self.sources(cases, grid) if draws is None else draws).mean(1)

    def source_stds(self, cases: slice, grid: Grid, draws: Tensor | None = None) -> Float[Tensor, "case y x"]:
        """The standard deviation of the source, NaN for a point estimate; arguments as those of `source_means`."""
        return std_over_draws(self.sources(cases, grid) if draws is None else draws)

    def source(self, resolution: Resolution = None) -> xr.DataArray:
        """The posterior mean of the source term, in the unit of the PDE's right-hand side."""
        array = self._map("source_mean", lambda s, grid, _: self.source_means(s, grid)[:, None], resolution, None)
        return array.drop_vars("time")

    def source_std(self, resolution: Resolution = None) -> xr.DataArray:
        """The posterior standard deviation of the source term, NaN for a point estimate."""
        array = self._map("source_std", lambda s, grid, _: self.source_stds(s, grid)[:, None], resolution, None)
        return array.drop_vars("time")


@runtime_checkable
class InitialStates(Protocol):
    """Fourier coefficients of initial states of some of the cases, one for all draws or one for each; a tensor is one
    such."""

    def __getitem__(self, cases: slice, /) -> Complex[Tensor, "case draw row col"]: ...


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class LatentPosterior(PDEPosterior):
    """Draws of the latent; every field it gives solves the PDE exactly.

    >>> import latentpde as lp
    >>> cases = lp.simulate("diffusion", num=1, shape=(16, 16), num_modes=2, sparsity=0.5)
    >>> posterior = lp.reconstruct(cases, method="map", num_steps=5)
    >>> posterior.z.shape, posterior.mean(resolution=64).shape  # 3 coefficients, 16 numbers of the source
    (torch.Size([1, 1, 19]), (1, 64, 64))

    Args:
        decoder: turns latents into fields.
        z: the draws.
        initial_hat: Fourier coefficients of the initial states: a tensor ``(case, draw, row, col)`` with one draw where
            they are the same for all, or what makes them anew for some of the cases, because draws of fine states are
            large and cheap to make again.
    """

    decoder: Decoder
    z: Float[Tensor, "case draw latent"]
    initial_hat: InitialStates

    @property
    def num_draws(self) -> int:
        return self.z.shape[1]

    @property
    def latent(self) -> Latent:
        return self.decoder.latent

    @property
    def thetas(self) -> Float[Tensor, "case draw coefficient"]:
        return self.latent.theta(self.z)

    def fields(self, cases: slice, grid: Grid, times: Float[Tensor, " time"]) -> Float[Tensor, "case draw time y x"]:
        return self.decoder.on_grid(self.decoder.spectrum(self.z[cases], self.initial_hat[cases], times), grid)

    def sources(self, cases: slice, grid: Grid) -> Float[Tensor, "case draw y x"]:
        return self.decoder.source(self.z[cases], grid)

    def predicted_readings(self, cases: slice) -> Float[Tensor, "case time *reading"]:
        return self.reading_draws(cases).mean(1)

    def reading_draws(self, cases: slice) -> Float[Tensor, "case draw time *reading"]:
        # by the coarse solve, where readings are cells of one
        return ObservationOperator(self.observation[cases], self.decoder).predict(self.z[cases])
