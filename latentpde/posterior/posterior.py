"""What an estimator returns: draws, decoded lazily at any resolution and time."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from latentpde.decoder import as_times
from latentpde.errors import UsageError
from latentpde.grid import Grid
from latentpde.needs import require_memory
from latentpde.observation import Observation, some_of
from latentpde.posterior.fit import fit_warnings, misfits, readings_of
from latentpde.posterior.notebook import InNotebook
from latentpde.posterior.spread import QUANTILES, Spread, interval_probability, spread_over_draws
from latentpde.validation import Real, check_value

if TYPE_CHECKING:
    import xarray as xr

Resolution: TypeAlias = int | tuple[int, int] | None

DEFAULT_RESOLUTION = 128
_CASES_SHOWN = 3  # by repr
CHUNK_VALUES = 2**24  # field values decoded at once: 128 MB


def output_grid(observation: Observation, resolution: Resolution = None) -> Grid:
    """Where a posterior is decoded: see `Posterior.grid`."""
    coarse = observation.grid
    return coarse.at_resolution(max(DEFAULT_RESOLUTION, min(coarse.shape)) if resolution is None else resolution)


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Posterior(InNotebook, ABC):
    """Draws of the field given an observation.

    Fields come back as `xarray.DataArray` with physical coordinates; the axes are ``(case, y, x)``, with
    ``time`` before ``y`` where several times are asked for, and without ``case`` where the observation
    had none. A method without a spread has one draw, and its `std` is NaN rather than a false zero. Where a method can
    tell standard deviation and quantiles better than the draws that are kept, it does, and how many are kept does not
    matter for them.

    >>> import latentpde as lp
    >>> posterior = lp.reconstruct(lp.simulate("diffusion", num=2), method="map", num_steps=5)
    >>> dict(posterior.mean(resolution=64).sizes)
    {'case': 2, 'y': 64, 'x': 64}
    >>> posterior.mean(resolution=64, times=[0.1, 0.2]).dims
    ('case', 'time', 'y', 'x')
    >>> posterior.coefficients.coefficient.values.tolist()
    ['vx', 'vy', 'kappa']

    Subclasses say in `fields` how draws are decoded, for some of the cases and as tensors; those that know the mean or
    the spread better than their draws do override `means`, and `spreads` with `num_spread_draws`. Everything else
    follows.

    Args:
        observation: what was conditioned on.
        method: name of the method.
        settings: its options and seed, for the record.
        diagnostics: what the method has to say about its own success; arrays are per case.
        call: what `latentpde.reconstruct` was called with beside the readings, to repeat it.
    """

    observation: Observation
    method: str
    settings: dict[str, Any] = field(default_factory=dict)
    diagnostics: dict[str, Any] = field(default_factory=dict)
    call: dict[str, Any] = field(default_factory=dict)

    @property
    @abstractmethod
    def num_draws(self) -> int:
        """Draws of each case; 1 for a point estimate."""

    @abstractmethod
    def fields(self, cases: slice, grid: Grid, times: Float[Tensor, " time"]) -> Float[Tensor, "case draw time y x"]:
        """Draws of the field for some of the cases; arguments as those of `means`."""

    def means(
        self, cases: slice, grid: Grid, times: Float[Tensor, " time"], draws: Tensor | None = None
    ) -> Float[Tensor, "case time y x"]:
        """The posterior mean for some of the cases.

        Args:
            cases: which ones.
            grid: where, on the observation's rectangle.
            times: when, in the PDE's unit of time.
            draws: what `fields` gives for the same arguments, where it is at hand; else it is decoded.
        """
        return (self.fields(cases, grid, times) if draws is None else draws).mean(1)

    def spreads(
        self,
        cases: slice,
        grid: Grid,
        times: Float[Tensor, " time"],
        levels: Sequence[float] = (),
        draws: Tensor | None = None,
    ) -> Spread:
        """Standard deviation and quantiles for some of the cases.

        Args:
            cases, grid, times, draws: as those of `means`.
            levels: of the quantiles, between 0 and 1.
        """
        return spread_over_draws(self.fields(cases, grid, times) if draws is None else draws, levels)

    def spread_fields(
        self, cases: slice, grid: Grid, times: Float[Tensor, " time"]
    ) -> Float[Tensor, "case draw time y x"]:
        """The draws that the spread is taken over, `num_spread_draws` of them; arguments as those of `means`."""
        return self.fields(cases, grid, times)

    def exceedances(
        self, cases: slice, grid: Grid, times: Float[Tensor, " time"], threshold: float
    ) -> Float[Tensor, "case time y x"]:
        """Probability that the field lies above a threshold; see `probability_above`, and `means` for arguments."""
        if not self.has_spread:
            return torch.full_like(self.means(cases, grid, times), torch.nan)
        parts = [(self.spread_fields(cases, grid, time) > threshold).double().mean(1) for time in times.split(1)]
        return torch.cat(parts, dim=1)

    @property
    def num_spread_draws(self) -> int:
        """Draws that standard deviation and quantiles are taken over: those that are kept, unless the method has more
        for this purpose."""
        return self.num_draws

    @property
    def has_spread_of_draws(self) -> bool:
        """Whether the spread is that of `spread_fields`, and not known in another way."""
        return self.has_spread

    @property
    def quantiles_note(self) -> str:
        """What quantiles are taken of, and what the interval between those at 0.05 and 0.95 is worth, in words."""
        held = interval_probability(self.num_spread_draws)
        return (
            f"of {self.num_spread_draws} draws; the interval from 0.05 to 0.95 holds {100 * held:.3g} % if calibrated"
        )

    def predicted_readings(self, cases: slice) -> Float[Tensor, "case time *reading"]:
        """What the mean predicts of the readings of some of the cases, also where nothing was read."""
        observation, fine = self.observation[cases], self.observation.fine_grid
        return readings_of(fine.analyse(self.means(cases, fine, observation.times)), observation)

    def reading_draws(self, cases: slice) -> Float[Tensor, "case draw time *reading"]:
        """What each draw predicts of the readings of some of the cases, without their noise, also where nothing was
        read."""
        observation, fine = self.observation[cases], self.observation.fine_grid
        draws = fine.analyse(self.fields(cases, fine, observation.times))
        return torch.stack([readings_of(draw, observation) for draw in draws.unbind(1)], dim=1)

    def misfits(self) -> Float[Tensor, " case"]:
        """How far the mean is from the readings, in variances of their noise; see `latentpde.posterior.fit`."""
        observation = self.observation
        with torch.no_grad():
            parts = self.parts(observation.fine_grid, len(observation.times))
            return torch.cat([misfits(observation[some], self.predicted_readings(some)) for some in parts])

    def warnings(self, case: int) -> list[str]:
        """What a reader of one case's result must know before trusting it, as sentences; mostly nothing.

        Every method that `latentpde.reconstruct` has run says here where its mean does not fit the readings (the
        diagnostic ``misfit``, by a test that a right field fails at most once in 100,000 cases), and some say more.
        """
        misfit = self.diagnostics.get("misfit")
        return [] if misfit is None else fit_warnings(float(misfit[case]), int(self.observation.num_readings[case]))

    def all_warnings(self) -> list[str]:
        """`warnings` of all cases, each with the cases that it is about, such as ``case 3: ...``."""
        about: dict[str, list[int]] = {}
        for case in range(self.observation.num_cases):
            for sentence in self.warnings(case):
                about.setdefault(sentence, []).append(case)
        return [f"case{'s' * (len(own) > 1)} {some_of(own)}: {sentence}" for sentence, own in about.items()]

    def __repr__(self) -> str:
        num_cases = self.observation.num_cases
        shown = [f"  case {case}: {self._describe(case)}" for case in range(min(num_cases, _CASES_SHOWN))]
        more = [f"  and {num_cases - len(shown)} more cases"] if num_cases > len(shown) else []
        draws = f"{self.num_draws} draw{'s' * (self.num_draws > 1)} of each case" if self.has_spread else "one estimate"
        head = f"{type(self).__name__} by {self.method}, {draws}, from the"
        return "\n".join([head, f"  {self.observation!r}", *shown, *more])

    def _describe(self, case: int) -> str:
        """One case in a line: whether it is to be trusted."""
        found = self.warnings(case)
        return f"not to be trusted. {found[0]}" if found else "trusted"

    def levels_of(self, case: int) -> dict[str, Float[np.ndarray, " draw"]]:
        """Draws of what was inferred beside the coefficients, such as the noise's level, by name; mostly nothing."""
        return {}

    def leave_one_out(self, case: int = 0) -> xr.Dataset:
        """Each reading of a case beside what all others predict for it; raises `UsageError` where a method cannot tell.

        Args:
            case: its number, from 0.
        """
        raise UsageError(f"{self.method} does not predict readings from the others; the method exact does")

    def set_aside(self, case: int = 0) -> xr.Dataset:
        """Readings of a case that were taken for outliers; raises `UsageError` where a method does not look for them.

        Args:
            case: its number, from 0.
        """
        raise UsageError(f"{self.method} does not look for outliers; the method exact with robust=True does")

    def noise_stds(self, case: int, observation: Observation | None = None) -> Float[Tensor, " reading"]:
        """Standard deviation of the noise of each reading of a case, as it was given or, by a method that infers it, as
        it was found.

        Args:
            case: its number, from 0.
            observation: other readings by the same instruments, such as held-out ones; by default its own.
        """
        observation = self.observation if observation is None else observation
        return observation.noise_std[case][observation.mask[case]]

    @property
    def has_spread(self) -> bool:
        """Whether there is more than a point estimate."""
        return self.num_spread_draws > 1

    def grid(self, resolution: Resolution = None) -> Grid:
        """The output grid: ``resolution`` cells along the shorter side, 128 or the coarse grid's own if finer."""
        return output_grid(self.observation, resolution)

    def parts(self, grid: Grid, num_times: int = 1, cases: range | None = None) -> Iterator[slice]:
        """Cases a few at a time, so that all draws of some of them fit into memory at once."""
        cases = range(self.observation.num_cases) if cases is None else cases
        num_values = num_times * grid.shape[0] * grid.shape[1]
        what = f"to decode {self.num_draws} draw(s) of a case"
        require_memory(32 * self.num_draws * num_values, what, "ask for a lower resolution")
        step = max(1, CHUNK_VALUES // (max(self.num_draws, self.num_spread_draws) * num_values))
        for start in range(cases.start, cases.stop, step):
            yield slice(start, min(start + step, cases.stop))

    def mean(self, resolution: Resolution = None, times: Sequence[float] | None = None) -> xr.DataArray:
        """The posterior mean.

        Args:
            resolution: cells along the shorter side, or ``(ny, nx)``; see `grid`.
            times: in the PDE's unit of time; by default the last one that was observed, without an axis ``time``.
        """
        return self._map("mean", self.means, resolution, times)

    def std(self, resolution: Resolution = None, times: Sequence[float] | None = None) -> xr.DataArray:
        """The posterior standard deviation, NaN for a point estimate; arguments as those of `mean`."""
        return self._map("std", lambda *args: self.spreads(*args).std, resolution, times)

    def draws(self, resolution: Resolution = None, times: Sequence[float] | None = None) -> xr.DataArray:
        """All draws, with an axis ``draw`` after ``case``; arguments as those of `mean`."""
        return self._map("draws", self.fields, resolution, times, ("draw",))

    def quantiles(
        self,
        levels: Sequence[float] = QUANTILES,
        resolution: Resolution = None,
        times: Sequence[float] | None = None,
    ) -> xr.DataArray:
        """Pointwise quantiles, with an axis ``quantile`` after ``case``; arguments as those of `mean`.

        They are taken over `num_spread_draws` draws. Below 19 of these an interval of 90 % is their whole range, and
        holds less: `latentpde.posterior.spread.interval_probability` says how much.
        """

        def decode(cases: slice, grid: Grid, when: Tensor) -> Tensor:
            return self.spreads(cases, grid, when, levels).quantiles

        return self._map("quantiles", decode, resolution, times, ("quantile",)).assign_coords(quantile=list(levels))

    def probability_above(
        self, threshold: float, resolution: Resolution = None, times: Sequence[float] | None = None
    ) -> xr.DataArray:
        """Probability that the field lies above a threshold, at each point by itself; NaN for a point estimate.

        Args:
            threshold: in the unit of the readings.
            resolution, times: as those of `mean`.
        """
        check_value(Real, threshold, "threshold")

        def decode(cases: slice, grid: Grid, when: Tensor) -> Tensor:
            return self.exceedances(cases, grid, when, threshold)

        array = self._map("probability_above", decode, resolution, times)
        return array.assign_attrs(threshold=threshold)

    def summary(self, resolution: Resolution = None, keep_draws: bool = False) -> xr.Dataset:
        """Everything that ``out.nc`` holds, decoded once.

        Args:
            resolution: as that of `mean`.
            keep_draws: whether every draw is there too, not only what is taken over them.
        """
        from latentpde.io.reconstructions import posterior_to_dataset

        return posterior_to_dataset(self, resolution, keep_draws)

    def to_netcdf(
        self, path: str | Path, resolution: Resolution = None, keep_draws: bool = False, command: str = ""
    ) -> None:
        """Write `summary` to a file, which is replaced only when the new one is complete.

        Args:
            path: of the file.
            resolution, keep_draws: as those of `summary`.
            command: for the file's attribute ``history``.
        """
        from latentpde.io.reconstructions import write_reconstruction

        dataset = self.summary(resolution, keep_draws).assign_attrs(history=command or "latentpde.reconstruct")
        write_reconstruction(dataset, self.observation, path)

    def report(self, path: str | Path, *, case: int | None = None, resolution: Resolution = None, **extras) -> None:
        """Write a self-contained page: summary, maps in time, coefficients, source, fit, assumptions.

        Args:
            path: of the page, which is replaced only when the new one is complete.
            case: the number of a single case, from 0; all of them by default.
            resolution: of the maps at most; as fine as a page can hold by default.
            extras: ``truth``, the true field ``([case,] [time,] y, x)`` on any grid, adds the error and scores;
                ``holdout`` the scores of held-out readings, which `latentpde.holdout` makes; ``threshold`` the
                probability of lying above it; ``command`` what made the result.
        """
        from latentpde.report.page import write_report

        write_report(self, path, case=case, resolution=resolution, **extras)

    def _map(
        self,
        name: str,
        function: Callable[[slice, Grid, Tensor], Tensor],
        resolution: Resolution,
        times: Sequence[float] | None,
        extra_dims: tuple[str, ...] = (),
    ) -> xr.DataArray:
        import xarray as xr

        grid = self.grid(resolution)
        start = self.observation.start
        when = self.observation.times[-1:] if times is None else as_times(times, self.observation.times, start)
        with torch.no_grad():
            chunks = [function(some, grid, when).numpy() for some in self.parts(grid, len(when))]
        y, x = (c.numpy() for c in grid.coordinates())
        dims = ("case", *extra_dims, "time", "y", "x")
        array = xr.DataArray(
            np.concatenate(chunks), dims=dims, coords={"time": when.numpy() + start, "y": y, "x": x}, name=name
        )
        return self._without_spare_case(array if times is not None else array.isel(time=-1))

    def _without_spare_case(self, array: xr.DataArray) -> xr.DataArray:
        return array if self.observation.batched else array.isel(case=0)
