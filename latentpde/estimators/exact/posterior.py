"""The exact posterior's draws, its mean over many coefficients, and its spread over many draws."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import torch
from jaxtyping import Bool, Complex, Float
from torch import Tensor

from latentpde.domain import Domain
from latentpde.errors import UsageError
from latentpde.estimators.exact.drawn import MovedDraws
from latentpde.estimators.exact.left_out import left_out_table, set_aside_table
from latentpde.estimators.exact.model import Model
from latentpde.estimators.exact.samples import ParameterSamples
from latentpde.estimators.exact.warnings import warnings_of_comparisons, warnings_of_run
from latentpde.grid import Grid, average_pool, resample
from latentpde.latent import Latent
from latentpde.observation import Observation
from latentpde.posterior import CHUNK_VALUES, InitialStates, LatentPosterior
from latentpde.posterior.adequacy import EVERY_RUN, Check
from latentpde.posterior.spread import Spread, spread_over_draws, std_over_draws

if TYPE_CHECKING:
    import xarray as xr

_NODES_AT_ONCE = 16  # small enough for caches


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class ExactPosterior(LatentPosterior):
    """Exact draws, a mean that averages over many more coefficients than there are draws, and a spread that is taken
    over more draws than are kept.

    >>> import latentpde as lp
    >>> rng = np.random.default_rng(0)
    >>> y, x, t = rng.random(12), rng.random(12), np.repeat([0.0, 0.5, 1.0], 4)
    >>> observation = lp.Observation.from_table(np.sin(6 * (x - 0.2 * t)), y=y, x=x, t=t, sigma=0.1)
    >>> known = {"initial": lp.Matern(1.0, 0.5), "num_modes": 0, "fixed": {"vy": 0.0, "kappa": 0.01}}
    >>> posterior = lp.reconstruct(observation, "advection_diffusion", **known)
    >>> posterior.at([[0.5, 0.5], [0.2, 0.9]], times=0.7)["std"].shape
    (2,)

    Args:
        mean_z: conditional means of the latent, for each node that the mean averages over.
        mean_initial_hat: those of the initial state; one for all nodes where it is known.
        spread_z, spread_initial_hat: as ``z`` and ``initial_hat``, of the draws for the spread; ``None`` where so many
            draws are kept that these serve.
        trend: coefficients of what is added to the field, for each draw: none, a constant, or a constant and the slopes
            along y and x about the middle of the rectangle.
        mean_trend, spread_trend: as ``mean_z`` and ``spread_z``.
        level_names: what was inferred beside the coefficients.
        level_draws: draws of these.
        mean_levels: those of the nodes that the mean averages over.
        left_out: what all other readings predict for each of a case, mean and standard deviation; ``None`` for a case
            with very many.
        samples: of the parameters of each case, with weights; many more than there are draws.
        factors: of each case, what the variance of each reading's noise was multiplied by, above one for those set
            aside; ``None`` where outliers were not looked for.
        make_models, prior: what makes the model again, for questions that need it.
    """

    mean_z: Float[Tensor, "case node latent"]
    mean_initial_hat: list[Complex[Tensor, "*node row col"]]
    spread_z: Float[Tensor, "case spread_draw latent"] | MovedDraws | None
    spread_initial_hat: InitialStates | None
    trend: Float[Tensor, "case draw column"]
    mean_trend: Float[Tensor, "case node column"]
    spread_trend: Float[Tensor, "case spread_draw column"] | MovedDraws | None
    level_names: tuple[str, ...]
    level_draws: Float[Tensor, "case draw level"]
    mean_levels: Float[Tensor, "case node level"]
    left_out: list[tuple[Tensor, Tensor] | None]  # cases may differ in their number of readings
    samples: list[ParameterSamples]
    factors: list[Float[Tensor, " reading"] | None]
    make_models: Callable[[Observation, Latent], list[Model]]
    prior: Latent

    @cached_property
    def levels(self) -> xr.DataArray:
        """Draws of what was inferred beside the coefficients, axes ``(case, draw, level)``: the noise's standard
        deviation, and strengths and lengths of the priors of state and source."""
        import xarray as xr

        names = {"level": list(self.level_names)}
        array = xr.DataArray(self.level_draws.numpy(), dims=("case", "draw", "level"), coords=names, name="levels")
        return self._without_spare_case(array)

    def levels_of(self, case: int) -> dict[str, Float[np.ndarray, " draw"]]:
        return dict(zip(self.level_names, self.level_draws[case].T.numpy(), strict=True))

    def fields(self, cases: slice, grid: Grid, times: Float[Tensor, " time"]) -> Float[Tensor, "case draw time y x"]:
        fields = super().fields(cases, grid, times)
        return fields if not self.trend.shape[-1] else fields + self._on(grid, self.trend[cases])[:, :, None]

    def _on(self, grid: Grid, trend: Float[Tensor, "*batch column"]) -> Float[Tensor, "*batch #y #x"]:
        """A trend on a grid."""
        if trend.shape[-1] == 1:
            return trend[..., None]
        y, x = (
            c - start - length / 2
            for c, start, length in zip(grid.coordinates(), grid.origin, grid.extent, strict=True)
        )
        constant, along_y, along_x = trend[..., None, None].unbind(-3)
        return constant + along_y * y[:, None] + along_x * x

    @property
    def num_spread_draws(self) -> int:
        return self.num_draws if self.spread_z is None else self.spread_z.shape[1]

    @property
    def spread_thetas(self) -> Float[Tensor, "case draw coefficient"]:
        return self.thetas if self.spread_z is None else self.latent.theta(self.spread_z[:])

    def spread_fields(
        self, cases: slice, grid: Grid, times: Float[Tensor, " time"]
    ) -> Float[Tensor, "case draw time y x"]:
        if self.spread_z is None or self.spread_initial_hat is None:
            return self.fields(cases, grid, times)
        u_hat = self.decoder.spectrum(self.spread_z[cases], self.spread_initial_hat[cases], times)
        fields = self.decoder.on_grid(u_hat, grid)
        if self.spread_trend is None or not self.spread_trend.shape[-1]:
            return fields
        return fields + self._on(grid, self.spread_trend[cases])[:, :, None]

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
        if not isinstance(self.spread_z, MovedDraws):
            return self._own_spreads(cases, grid, times, levels)
        found = []
        for case in range(*cases.indices(self.spread_z.shape[0])):
            one, first = slice(case, case + 1), self.spread_z.first(case)
            asked = first, grid, tuple(times.tolist()), tuple(levels)
            if asked not in self._of_layouts:
                own = slice(first, first + 1)
                self._of_layouts.clear()
                self._of_layouts[asked] = self._own_spreads(own, grid, times, levels), self.means(own, grid, times)
            spread, mean = self._of_layouts[asked]
            moved = (self.means(one, grid, times) - mean)[:, None] if levels else 0.0
            found.append(Spread(spread.std, spread.quantiles + moved))
        return Spread(torch.cat([one.std for one in found]), torch.cat([one.quantiles for one in found]))

    @cached_property
    def _of_layouts(self) -> dict[tuple[int, Grid, tuple[float, ...], tuple[float, ...]], tuple[Spread, Tensor]]:
        """The spread that was asked for last, of the first case of a layout, with its mean."""
        return {}

    def _own_spreads(self, cases: slice, grid: Grid, times: Float[Tensor, " time"], levels: Sequence[float]) -> Spread:
        assert self.spread_z is not None
        assert self.spread_initial_hat is not None
        z, u0_hat = self.spread_z[cases], self.spread_initial_hat[cases]
        trend = None
        if self.spread_trend is not None and self.spread_trend.shape[-1]:
            trend = self._on(grid, self.spread_trend[cases])
        parts = [self._spread_at(z, u0_hat, trend, grid, time, levels) for time in times.split(1)]
        return Spread(torch.stack([part.std for part in parts], 1), torch.stack([part.quantiles for part in parts], 2))

    def _spread_at(
        self, z: Tensor, u0_hat: Tensor, trend: Tensor | None, grid: Grid, time: Tensor, levels: Sequence[float]
    ) -> Spread:
        """The spread at one time, a few rows of the grid after the other where it is large."""
        u_hat = self.decoder.spectrum(z, u0_hat, time)[:, :, 0]
        ny, nx = grid.shape
        at_once = max(1, CHUNK_VALUES // (u_hat.shape[0] * u_hat.shape[1] * nx))
        if ny <= at_once:
            fields = self.decoder.on_grid(u_hat, grid)
            return spread_over_draws(fields if trend is None else fields + trend, levels)
        parts = []
        for start in range(0, ny, at_once):
            band = range(start, min(start + at_once, ny))
            fields = self.decoder.on_grid(u_hat, grid, band)
            if trend is not None:
                fields = fields + (trend if trend.shape[-2] == 1 else trend[..., band.start : band.stop, :])
            parts.append(spread_over_draws(fields, levels))
        return Spread(torch.cat([part.std for part in parts], -2), torch.cat([part.quantiles for part in parts], -2))

    def source_stds(self, cases: slice, grid: Grid, draws: Tensor | None = None) -> Float[Tensor, "case y x"]:
        if self.spread_z is None:
            return super().source_stds(cases, grid, draws)
        if isinstance(self.spread_z, MovedDraws):
            firsts = [self.spread_z.first(case) for case in range(*cases.indices(self.spread_z.shape[0]))]
            own = {i: std_over_draws(self.decoder.source(self.spread_z[i : i + 1], grid))[0] for i in set(firsts)}
            return torch.stack([own[i] for i in firsts])
        # the square of a series of modes below M is one of modes below 2 M, so few samples tell its variance everywhere
        enough = 4 * self.latent.num_modes + 1
        coarser = grid.with_shape((min(enough, grid.shape[0]), min(enough, grid.shape[1])))
        if coarser.shape != (enough, enough) or grid.extent != self.decoder.extent:
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
        mean = self.decoder.on_grid(torch.stack(spectra), grid)
        return mean if not self.mean_trend.shape[-1] else mean + self._on(grid, self.mean_trend[cases].mean(1))[:, None]

    def _mean_spectrum(self, z: Tensor, u0_hat: Tensor, times: Tensor) -> Complex[Tensor, "time row col"]:
        states = u0_hat if u0_hat.ndim == 3 else u0_hat.expand(len(z), -1, -1)
        parts = zip(z.split(_NODES_AT_ONCE), states.split(_NODES_AT_ONCE), strict=True)
        return torch.stack([self.decoder.spectrum(*part, times).sum(0) for part in parts]).sum(0) / len(z)

    def predicted_readings(self, cases: slice) -> Float[Tensor, "case time *reading"]:
        return self.reading_draws(cases).mean(1)

    def reading_draws(self, cases: slice) -> Float[Tensor, "case draw time *reading"]:
        observation, torus = self.observation[cases], (self.observation.domain or Domain.periodic()).is_periodic
        coarse = observation.observed == "lowres-solve" and observation.has_whole_initial
        if coarse and torus and not self.decoder.moving:
            return super().reading_draws(cases)  # the coarse solve, which knows nothing below its cells
        if observation.observed == "pooled":
            fine = observation.fine_grid
            return average_pool(self.fields(cases, fine, observation.times), observation.refinement)
        return torch.stack([self._readings_of_case(case) for case in range(*cases.indices(len(self.observation)))])

    def _readings_of_case(self, case: int) -> Float[Tensor, "draw time *reading"]:
        """Draws at the sensors, or at the centres of the cells."""
        observation = self.observation
        if observation.positions is not None:
            places = observation.positions[case]
        else:
            places = torch.cartesian_prod(*observation.grid.coordinates())
        times = observation.times[:, None].expand(-1, len(places))
        if observation.reading_times is not None:
            times = observation.reading_times[case]
        points = places.expand(len(times), -1, -1).reshape(-1, 2)
        own = self.z[case], self.initial_hat[case : case + 1][0], self.trend[case]
        found = self._draws_at(*own, points, times.flatten()).reshape(-1, *observation.values.shape[1:])
        if observation.of_source is None:
            return found
        of_source = self.decoder.source_at_points(self.z[case], places, observation.grid.origin)[:, None]
        return torch.where(observation.of_source[case], of_source, found)

    def noise_stds(self, case: int, observation: Observation | None = None) -> Float[Tensor, " reading"]:
        observation = self.observation if observation is None else observation
        given = super().noise_stds(case, observation)
        if not bool(given.isnan().any()):
            return given
        found = dict(zip(self.level_names, self.level_draws[case].median(0).values.tolist(), strict=True))
        groups = observation.groups
        numbers = torch.zeros(len(given)) if groups is None else groups[case][observation.mask[case]]
        levels = [found.get(f"noise_std_{int(number)}", found.get("noise_std", torch.nan)) for number in numbers]
        return torch.where(given.isnan(), torch.tensor(levels, dtype=torch.float64), given)

    def leave_one_out(self, case: int = 0) -> xr.Dataset:
        """Each reading of a case beside what all others predict for it, in closed form.

        ``z`` is the difference in standard deviations, those of the reading's own noise included. It is about standard
        normal where the model is right; a reading far out is one that the others and the PDE do not expect.

        Args:
            case: its number, from 0.
        """
        self.observation.require_case(case)
        found = self.left_out[case]
        if found is None:
            raise UsageError("a case with so many readings is not checked one by one; take some of them")
        return left_out_table(self.observation, case, *found)

    def set_aside(self, case: int = 0) -> xr.Dataset:
        """The readings of a case that were taken for outliers and hardly count, with ``robust=True``: which they are
        (``reading``, as `leave_one_out` and the columns of the data number them), where and when, what they say, what
        the others predict, and by how many standard deviations of an ordinary reading they are off.

        >>> import latentpde as lp
        >>> observation = lp.read(lp.simulate("diffusion", num=1, seed=1, shape=(32, 32), num_modes=2, sparsity=0.5))
        >>> where = observation.mask.nonzero()[7]
        >>> observation.values[tuple(where)] += 6.0  # 40 standard deviations of the noise
        >>> found = lp.reconstruct(observation, robust=True).set_aside()
        >>> found["reading"].values.tolist(), bool(abs(found["z"][0]) > 10)
        ([7], True)

        Args:
            case: its number, from 0.
        """
        self.observation.require_case(case)
        factors, found = self.factors[case], self.left_out[case]
        if factors is None:
            raise UsageError("outliers were not looked for; give robust=True (on the command line --robust)")
        nothing = torch.full_like(factors, torch.nan)
        return set_aside_table(self.observation, case, *(found or (nothing, nothing)), factors)

    def at_places(self, case: int, points: Tensor, times: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        one = slice(case, case + 1)
        mean_state = self.mean_initial_hat[case]
        sets = [(self.mean_z[case], mean_state if mean_state.ndim == 3 else mean_state[None], self.mean_trend[case])]
        sets.append((self.z[case], self.initial_hat[one][0], self.trend[case]))
        if self.spread_z is not None and self.spread_initial_hat is not None and self.spread_trend is not None:
            sets.append((self.spread_z[one][0], self.spread_initial_hat[one][0], self.spread_trend[one][0]))
        found = [self._draws_at(*own, points, times) for own in sets]
        return found[0].mean(0), std_over_draws(found[-1][None])[0], found[1]

    def _draws_at(
        self, z: Tensor, u0_hat: Tensor, trend: Tensor, points: Tensor, times: Tensor
    ) -> Float[Tensor, "draw point"]:
        grid = self.observation.grid
        values = torch.empty((len(z), len(points)), dtype=torch.float64)
        for time in times.unique():
            here = times == time
            u_hat = self.decoder.spectrum(z, u0_hat, time[None])[:, 0]
            values[:, here] = self.decoder.at_points(u_hat, points[here], grid.origin)
        if not trend.shape[-1]:
            return values
        corner, length = (torch.tensor(pair, dtype=torch.float64) for pair in (grid.origin, grid.extent))
        columns = torch.cat([torch.ones((len(points), 1)), points - corner - length / 2], dim=1)
        return values + trend @ columns[:, : trend.shape[-1]].T

    def model(self, case: int = 0) -> Model:
        """The model of a case, made again: its likelihood, and the responses of readings to all that is unknown."""
        self.observation.require_case(case)
        model, factors = self.make_models(self.observation[case : case + 1], self.prior)[0], self.factors[case]
        return model if factors is None else model.with_factors(model.of_model(factors))

    def node_means(self, case: int, points: Tensor, times: Tensor, num: int) -> Float[Tensor, "node point"]:
        """Conditional means of the field of a case at places, each at its time on the user's clock, for some of the
        nodes that the mean averages over."""
        states, trend = self.mean_initial_hat[case], self.mean_trend[case][:num]
        states = states[:num] if states.ndim == 3 else states[None]
        with torch.no_grad():
            return self._draws_at(self.mean_z[case, :num], states, trend, points, times - self.observation.start)

    def node_parameters(self, case: int, num: int) -> Float[Tensor, "node parameter"]:
        """Coefficients and levels of the same nodes, in the user's units."""
        return torch.cat([self.latent.theta(self.mean_z[case, :num]), self.mean_levels[case, :num]], dim=-1)

    def of_nodes(self, case: int, chosen: Bool[np.ndarray, " node"]) -> ExactPosterior:
        """One case with its mean over some of the nodes alone, such as those of one mode."""
        one, states = slice(case, case + 1), self.mean_initial_hat[case]
        return replace(
            self,
            observation=self.observation[one],
            z=self.z[one],
            initial_hat=self.initial_hat[one],
            mean_z=self.mean_z[one, chosen],
            mean_initial_hat=[states[chosen] if states.ndim == 3 else states],
            mean_trend=self.mean_trend[one, chosen],
            spread_z=None if self.spread_z is None else self.spread_z[one],
            spread_initial_hat=None if self.spread_initial_hat is None else self.spread_initial_hat[one],
            spread_trend=None if self.spread_trend is None else self.spread_trend[one],
            trend=self.trend[one],
            level_draws=self.level_draws[one],
            mean_levels=self.mean_levels[one, chosen],
            left_out=self.left_out[one],
            samples=self.samples[one],
            factors=self.factors[one],
            diagnostics={name: value[one] for name, value in self.diagnostics.items()},
        )

    def checks(self, case: int = 0) -> dict[str, Check]:
        """Whether the readings of a case can have come from the model, check by check: see
        `latentpde.estimators.exact.checks`. They are combined in the diagnostic ``p_model``.

        Args:
            case: its number, from 0.
        """
        self.observation.require_case(case)
        notes = {name: value[case] for name, value in self.diagnostics.items()}
        worst = int(notes["worst_reading"])
        return {
            name: Check(float(notes[f"p_{name}"]), float(notes[f"found_{name}"]), worst if name == "reading" else -1)
            for name in EVERY_RUN
        }

    def warnings(self, case: int) -> list[str]:
        has_start = self.observation.initial is not None
        notes = {name: value[case] for name, value in self.diagnostics.items()}
        return [*warnings_of_comparisons(notes), *warnings_of_run(notes, lambda: self.checks(case), has_start)]

    def source_means(self, cases: slice, grid: Grid, draws: Tensor | None = None) -> Float[Tensor, "case y x"]:
        # the source is linear in the latent
        return self.decoder.source(self.mean_z[cases].mean(1), grid)
