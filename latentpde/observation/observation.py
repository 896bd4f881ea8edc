"""What was measured: readings of one or many cases, and nothing of the truth.

Readings come in snapshots, a grid or a set of sensors at common times, or as a table in which each has a place and a
time of its own. There are three kinds of reading:

``lowres-solve``
    cell ``i`` reads the solution of the PDE on the coarse grid, started from the coarse initial state;
``pooled``
    cell ``i`` reads the average of the true field over the cell;
``point``
    sensor ``i`` reads the field at its position, wherever that is.

What a candidate would have read, and how far that is from the readings, is `latentpde.operator`'s.
"""

from __future__ import annotations

import warnings
import zlib
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from jaxtyping import Bool, Complex, Float, Int
from torch import Tensor

from latentpde.domain import Domain
from latentpde.errors import DataError, LatentPDEWarning, UsageError
from latentpde.frame import Frame
from latentpde.grid import Grid, unpool_spectrum
from latentpde.observation.checks import (
    Observed,
    checked_averages,
    checked_grid,
    checked_kind,
    checked_mask,
    checked_noise,
    checked_positions,
    checked_readings,
    checked_states,
    checked_times,
    checked_velocity,
    range_of,
    some_of,
)
from latentpde.observation.fill_values import refuse_fill_values
from latentpde.observation.notebook import InNotebook
from latentpde.observation.tables import check_table
from latentpde.pde import get_family
from latentpde.settings import Settings
from latentpde.validation import MOST

if TYPE_CHECKING:
    import xarray as xr

_DEFAULT_REFINEMENT = 4  # fine cells per coarse cell and side, where the data do not say


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Observation(InNotebook):
    """Readings of one or many cases. Build one with `from_arrays` or `from_dataset`, which check it.

    >>> import numpy as np
    >>> readings = np.full((8, 8), np.nan)  # NaN where nothing was read
    >>> readings[2, 3], readings[6, 1] = 0.7, -0.2
    >>> observation = Observation.from_arrays(readings, np.zeros((8, 8)), times=[0.25], noise_std=0.1)
    >>> observation.num_readings
    tensor([2])
    >>> observation.grid.spacing  # the unit square, because nothing else was said
    (0.125, 0.125)

    Args:
        values: readings, in the field's unit; zero where there is none. Cells have axes ``(case, time, y, x)``, points
            ``(case, time, sensor)``.
        mask: where there is a reading.
        noise_std: standard deviation of each reading's noise, in the field's unit; NaN where it is not known.
        times: PDE times of the snapshots, counted from the initial state; of a table, that of its last reading.
        initial: the coarse initial state, a cell average per cell of ``grid``, NaN where it has a gap; ``None`` if
            unknown.
        grid: the coarse grid.
        observed: the kind of reading.
        positions: ``(y, x)`` of each sensor, for points.
        pooling: how many samples per side a coarse cell averages; ``None`` for a true average, 1 for a sample.
        family, bounds, source_prior_std, num_modes: what is known of the PDE beforehand, where the data say so.
        regime: the simulator's name for that.
        batched: whether results keep their case axis.
        fine_initial: samples of the initial state on a whole-number refinement of ``grid``, where somebody knows it
            that well; methods then decode from it, and take ``initial`` only for what the coarse solve sees.
        initial_velocity: how fast the field changes at time 0, a cell average per cell of ``grid``, for families of
            order 2; ``None`` for a field at rest.
        domain: the edges of the rectangle; ``None`` where nobody says what they are.
        reading_times: PDE time of each reading, for a table; readings are then on the axis of sensors, and the axis
            ``time`` has length one.
        groups: number of the noise group of each reading, for a table; ``None`` for a single one.
        of_source: whether each reading is of the source instead of the field, for a table; ``None`` where none is.
        start: the user's time that is PDE time 0.
        frame: the user's coordinates, dates and units, which results go out in; ``None`` where they are the plane's.
        settings: what else the data say of the model.
    """

    values: Float[Tensor, "case time *reading"]
    mask: Bool[Tensor, "case time *reading"]
    noise_std: Float[Tensor, "case time *reading"]
    times: Float[Tensor, " time"]
    initial: Float[Tensor, "case y x"] | None
    grid: Grid
    observed: Observed = "lowres-solve"
    positions: Float[Tensor, "case sensor 2"] | None = None
    pooling: int | None = None
    family: str | None = None
    bounds: Float[Tensor, "coefficient 2"] | None = None
    source_prior_std: float | None = None
    num_modes: int | None = None
    regime: str | None = None
    batched: bool = True
    fine_initial: Float[Tensor, "case fine_y fine_x"] | None = None
    initial_velocity: Float[Tensor, "case y x"] | None = None
    domain: Domain | None = None
    reading_times: Float[Tensor, "case time sensor"] | None = None
    groups: Int[Tensor, "case time sensor"] | None = None
    of_source: Bool[Tensor, "case time sensor"] | None = None
    start: float = 0.0
    frame: Frame | None = None
    settings: Settings = field(default_factory=Settings)

    @classmethod
    def from_arrays(
        cls,
        values,
        initial=None,
        *,
        times=None,
        noise_std: Any,
        mask=None,
        grid: Grid | None = None,
        positions=None,
        observed: Observed | None = None,
        fine_initial=None,
        initial_velocity=None,
        domain: Domain | str | None = None,
        pooling: int | None = None,
        family: str | None = None,
        bounds: Float[Tensor, "coefficient 2"] | None = None,
        source_prior_std: float | None = None,
        num_modes: int | None = None,
        regime: str | None = None,
        settings: Settings | None = None,
        keep_outliers: bool = False,
    ) -> Observation:
        """Check plain arrays and make an observation of them.

        Args:
            values: ``([case,] [time,] y, x)`` for cells, ``([case,] [time,] sensor)`` for points; the time
                axis may be left out where there is one snapshot. NaN means no reading.
            initial: ``([case,] y, x)``.
            times: one per snapshot, not negative. Without any, time 1 is assumed, with a warning unless ``family`` is
                of order 0 and knows no time.
            noise_std: one positive number, or one per reading: shaped as the readings, with or without case and time;
                ``None`` where it is not known, and a method is to infer it.
            mask: true where a reading counts, shaped likewise; all finite readings by default.
            grid: the coarse grid; by default the unit square with the shape of ``initial`` or of the cells.
            positions: ``([case,] sensor, 2)`` as ``(y, x)``; makes the readings points.
            observed: the kind of reading; by default ``point`` with positions, else ``lowres-solve``.
            fine_initial: ``([case,] y, x)``, a whole number of times as many cells as ``initial`` along each side.
            initial_velocity: ``([case,] y, x)``, like ``initial``.
            pooling, family, bounds, source_prior_std, num_modes, regime, domain, settings: as in the class.
            keep_outliers: take values as they are that look like gaps written as a number, such as -9999.
        """
        kind = checked_kind(observed, positions)
        if times is None and (family is None or get_family(family).order):
            warnings.warn(
                "no times were given: the readings are taken to be of one snapshot at time 1; pass times",
                LatentPDEWarning,
                stacklevel=2,
            )
        times = checked_times((1.0,) if times is None else times)
        values, batched = checked_readings(values, len(times), kind)
        mask = checked_mask(mask, values)
        noise_std = checked_noise(noise_std, values, mask)
        coarse = None if initial is None else checked_states(initial, len(values), "initial state", gaps=True)
        grid = checked_grid(grid, values, coarse, kind)
        fine = None if fine_initial is None else checked_states(fine_initial, len(values), "fine initial state")
        if pooling is not None and not (isinstance(pooling, int) and 1 <= pooling <= MOST):
            raise DataError(f"pooling must be a whole number of samples per side, at least 1, or None; got {pooling}")
        if not keep_outliers:
            for array, what in ((values[mask], "readings"), (coarse, "initial values"), (fine, "fine initial values")):
                if array is not None:
                    refuse_fill_values(array.numpy(), what)
        return cls(
            values=torch.where(mask, values, 0.0),
            mask=mask,
            noise_std=noise_std,
            times=times,
            initial=coarse if fine is None else checked_averages(fine, coarse, grid),
            grid=grid,
            observed=kind,
            positions=None if positions is None else checked_positions(positions, values, grid),
            pooling=pooling,
            family=family,
            bounds=bounds,
            source_prior_std=source_prior_std,
            num_modes=num_modes,
            regime=regime,
            batched=batched,
            fine_initial=fine,
            initial_velocity=None
            if initial_velocity is None
            else checked_velocity(initial_velocity, len(values), grid),
            domain=None if domain is None else Domain.parse(domain),
            settings=settings or Settings(),
        )

    @classmethod
    def from_dataset(cls, dataset: xr.Dataset | xr.DataTree | str | Path, **overrides) -> Observation:
        """Take the readings from a dataset in the layout of ``cases.nc``; a group of truths is not looked at.

        >>> import latentpde as lp
        >>> cases = lp.simulate("balanced", num=2, shape=(32, 32))
        >>> Observation.from_dataset(cases).values.shape
        torch.Size([2, 1, 8, 8])

        Args:
            dataset: variables, axes and attributes as the guide describes them; or the path of a NetCDF file.
            overrides: what wins over the dataset; see `latentpde.io.observations.observation_from_dataset`.
        """
        from latentpde.io.observations import observation_from_dataset

        return observation_from_dataset(dataset, **overrides)

    @classmethod
    def read(cls, data, **options) -> Observation:
        """Take readings from whatever somebody has: see `latentpde.read`."""
        from latentpde.io.read import read

        return read(data, **options)

    @classmethod
    def from_table(
        cls,
        value,
        *,
        y,
        x,
        t=None,
        sigma=None,
        group=None,
        reads=None,
        start: float | None = None,
        grid: Grid | None = None,
        domain: Domain | str | None = None,
        family: str | None = None,
    ) -> Observation:
        """Readings in a long table, each with a place and a time of its own.

        >>> ship = Observation.from_table([2.1, 1.7, 0.4], y=[3.0, 3.5, 4.0], x=[10.0, 12.0, 14.0], t=[0.0, 0.5, 1.0])
        >>> ship.num_readings, ship.domain
        (tensor([3]), Domain(y='open', x='open'))

        Args:
            value: readings, in any unit; NaN for one that is missing. With two axes, ``(case, reading)``, they are of
                several cases at the same places.
            y, x: where each was taken, in one unit of length.
            t: when, in any unit of time; left out, they are all of one time.
            sigma: standard deviation of each reading's noise, or one for all; NaN, or left out, where it is not known.
            group: the instrument of each reading, or the like: those of a group share an unknown level of noise.
            reads: ``"field"`` or ``"source"`` for each reading, or one for all; by default all are of the field.
            start: the time at which the state is unknown but for its prior; by default that of the first reading.
            grid: the rectangle to reconstruct; by default that of the readings with a margin of half their distance.
            domain: its edges, also in words such as ``"y=open,x=periodic"``; open by default.
            family: the PDE, where it is known beforehand.
        """
        table = check_table(value, y, x, t, sigma, group, start, grid, reads)
        return cls(**table, domain=Domain() if domain is None else Domain.parse(domain), family=family)

    @property
    def num_cases(self) -> int:
        return self.values.shape[0]

    @property
    def num_readings(self) -> Tensor:
        """How many readings each case has."""
        return self.mask.flatten(1).sum(1)

    @property
    def distinct_times(self) -> Float[Tensor, " moment"]:
        """The times at which the field was read, each once, on the user's clock."""
        times = self.times
        if self.reading_times is not None:
            of_field = self.mask if self.of_source is None else self.mask & ~self.of_source
            times = torch.unique(self.reading_times[of_field]) if bool(of_field.any()) else times
        return times + self.start

    @property
    def fingerprints(self) -> list[int]:
        """A number for each case that follows from its readings, to tell whether something belongs to them."""
        return [zlib.crc32(values.numpy().tobytes()) for values in self.values]

    @property
    def typical_variance(self) -> Float[Tensor, " case"]:
        """One variance that stands for all of a case's noise: the harmonic mean over its readings."""
        return self.num_readings.double() / (self.mask / self.noise_std**2).flatten(1).sum(1)

    @property
    def refinement(self) -> int:
        """Fine cells per coarse cell and side: the fine initial state's, else the pooling, else 4."""
        if self.fine_initial is not None:
            return self.fine_initial.shape[-1] // self.grid.shape[1]
        return self.pooling if self.pooling and self.pooling > 1 else _DEFAULT_REFINEMENT

    @property
    def fine_grid(self) -> Grid:
        """The grid that methods without a decoder work on."""
        return self.grid.refine(self.refinement)

    def require_initial(self) -> Float[Tensor, "case y x"]:
        """The coarse initial state; raises `DataError` where it is unknown, for methods that cannot do without."""
        if self.initial is None:
            raise DataError("this method needs the initial state; give one (a coarse one will do)")
        if not self.has_whole_initial:
            gaps = int(self.initial.isnan().sum())
            raise DataError(f"the initial state has {gaps} NaN values; fill them, or take the method exact")
        return self.initial

    @property
    def has_whole_initial(self) -> bool:
        """Whether there is an initial state, without a gap."""
        return self.initial is not None and not bool(self.initial.isnan().any())

    def require_benchmark(self, method: str, walls: bool = False) -> None:
        """Raise `DataError` where a method that knows the paper's problem alone cannot take these data."""
        if self.reading_times is not None:
            raise DataError(f"{method} takes readings in snapshots; for a table of readings take the method exact")
        domain = self.domain or Domain.periodic()
        if not (domain.is_periodic or (walls and not domain.is_open)):
            known = "periodic edges and walls" if walls else "periodic edges"
            others = "exact" if walls or domain.is_open else "exact or map"
            raise DataError(f"{method} knows {known} only; for {domain.describe()} take the method {others}")
        if self.initial_velocity is not None or self.settings.velocity not in (None, "zero"):
            raise DataError(f"{method} starts from a state at rest; for an initial velocity take the method exact")
        if self.of_source is not None:
            raise DataError(f"{method} takes no readings of the source; take the method exact")
        if bool(self.noise_std[self.mask].isnan().any()):
            raise DataError(f"{method} needs the noise of the readings (noise_std); the method exact can infer it")

    def require_case(self, case: int) -> None:
        """Raise `UsageError` where there is no case of this number, counted from 0."""
        if not isinstance(case, int) or not 0 <= case < self.num_cases:
            raise UsageError(f"there is no case {case!r}; the cases are 0 to {self.num_cases - 1}")

    def initial_spectrum(self) -> Complex[Tensor, "case row col"]:
        """Fourier coefficients of the initial state as well as it is known: the fine one's, else the coarse one's."""
        if self.fine_initial is not None:
            return self.fine_grid.analyse(self.fine_initial)
        return unpool_spectrum(self.require_initial(), self.grid, self.pooling)

    def velocity_spectrum(self, seen: bool = False) -> Complex[Tensor, "case row col"]:
        """Fourier coefficients of the initial velocity.

        Args:
            seen: as readings see it: a coarse solve takes averages over cells for the field itself.
        """
        assert self.initial_velocity is not None
        if seen and self.observed == "lowres-solve":
            return self.grid.analyse(self.initial_velocity)
        return unpool_spectrum(self.initial_velocity, self.grid, self.pooling)

    def __repr__(self) -> str:
        counts, noise = self.num_readings, self.noise_std[self.mask]
        (ny, nx), (height, width) = self.grid.shape, self.grid.extent
        cases = f"{self.num_cases} case{'s' * (self.num_cases > 1)}" if self.batched else "one case"
        initial = "no initial state" if self.initial is None else "an initial state"
        return (
            f"Observation of {cases}: {range_of(counts)} {self.observed} readings at time "
            f"{some_of([f'{t:g}' for t in self.times])}, noise {range_of(noise)}, {initial}, "
            f"{ny} x {nx} cells on {height:g} x {width:g} (y, x)"
        )

    def __len__(self) -> int:
        return self.num_cases

    def __getitem__(self, index: slice | int) -> Observation:
        """Some of the cases."""
        if isinstance(index, int):
            return self[range(len(self))[index] : range(len(self))[index] + 1]
        per_case = (
            "values",
            "mask",
            "noise_std",
            "initial",
            "positions",
            "fine_initial",
            "initial_velocity",
            "reading_times",
            "groups",
            "of_source",
        )
        chosen = {name: getattr(self, name)[index] for name in per_case if getattr(self, name) is not None}
        return replace(self, **chosen)
