"""Simulated cases: observations with their truth beside them.

A case is an initial state, coefficients and a source drawn from a regime, the exact solution on the fine grid,
and what an instrument would have read of it. Case ``i`` of a split depends on the seed, the regime, the split and
``i`` alone, so any part of a set can be made again, in any order and batch size, and splits share nothing.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
import torch
from jaxtyping import Bool

from latentpde.decoder import Decoder, as_times
from latentpde.domain import Domain
from latentpde.errors import UsageError
from latentpde.grid import Grid, average_pool
from latentpde.latent import Latent
from latentpde.lift import Lift
from latentpde.needs import require_disk, require_memory
from latentpde.observation import Observed
from latentpde.operator import cell_averages
from latentpde.progress import progress
from latentpde.simulation.initial_conditions import draw_initial_condition, initial_conditions
from latentpde.simulation.masks import EVALUATION_MASKS, TRAINING_MASKS, count_observed, draw_mask, masks
from latentpde.simulation.regimes import Regime, regimes
from latentpde.validation import Count, NumModes, Positive, Seed, Share, check_value

if TYPE_CHECKING:
    import xarray as xr

Split = Literal["train", "validation", "test"]
_TRAINING_SPARSITY = (0.01, 0.15)  # drawn uniformly from this interval
_EVALUATION_SPARSITY = 0.05
_CASES_AT_ONCE = 32
#: What fields of a `Simulation` may be, where the grid, the times and the prior do not check them.
_KINDS: dict[str, Any] = {
    "seed": Seed,
    "noise_std": Positive,
    "sparsity": Share,
    "source": bool,
    "pooling": Count,
    "num_modes": NumModes,
}


@dataclass(frozen=True, kw_only=True)
class Simulation:
    """The recipe of a set of cases; every default is the benchmark's.

    Args:
        regime: the name of a regime in `latentpde.simulation.regimes`, or a `Regime` of your own.
        seed: seed of the whole set, not negative.
        split: ``"train"``, ``"validation"`` or ``"test"``. Each training case draws one of the training masks and a
            sparsity between 0.01 and 0.15; cases of the other splits draw one of the evaluation masks and observe 5 %.
        mask: the kind of mask of all cases, a name in `latentpde.simulation.masks`, in place of a drawn one.
        sparsity: the share of coarse cells that is observed in all cases, in (0, 1], in place of the split's.
        noise_std: standard deviation of the readings' noise, in the field's units, positive.
        source: whether the PDE has a source; without one its Fourier coefficients are all zero.
        observed: ``"lowres-solve"``, ``"pooled"`` or ``"point"``, as in `latentpde.observation`. Points lie at random
            inside the cells that the mask chooses.
        shape: ``(ny, nx)`` of the fine grid, each divisible by ``pooling``.
        pooling: fine cells per coarse cell and side.
        extent: ``(height, width)`` of the rectangle, in physical units.
        times: PDE times of the snapshots, not negative; the family's default time where left out.
        num_modes: Fourier modes of the source per half axis; 0 for a PDE without a source.
        domain: the edges, periodic or walls, as `latentpde.Domain.parse` reads them.

    Example:
        >>> simulation = Simulation(regime="balanced", shape=(32, 32), mask="radial", sparsity=0.1)
        >>> cases = simulation.cases(0, 2)
        >>> cases["observed"].shape, cases["truth/field"].shape
        ((2, 8, 8), (2, 32, 32))
        >>> int(cases["observed"].notnull().sum("x_obs").sum("y_obs")[0])  # a tenth of 64 cells
        6
    """

    regime: str | Regime
    seed: int = 0
    split: Split = "test"
    mask: str | None = None
    sparsity: float | None = None
    noise_std: float = 0.15
    source: bool = True
    observed: Observed = "lowres-solve"
    shape: tuple[int, int] = (128, 128)
    pooling: int = 4
    extent: tuple[float, float] = (1.0, 1.0)
    times: tuple[float, ...] | None = None
    num_modes: int = 12
    domain: str = "periodic"

    def __post_init__(self):
        if not isinstance(self.regime, Regime):
            object.__setattr__(self, "regime", regimes.get(self.regime))
        if self.mask is not None:
            masks.get(self.mask)
        for what, value, known in (("split", self.split, Split), ("observed", self.observed, Observed)):
            if value not in get_args(known):
                raise UsageError(f"{what} must be one of {', '.join(get_args(known))}; got {value!r}")
        for name, kind in _KINDS.items():
            if getattr(self, name) is not None or name != "sparsity":
                check_value(kind, getattr(self, name), name)
        if self.sparsity is not None and not 0 < self.sparsity <= 1:
            raise UsageError(f"the sparsity is a share of cells, above 0 and at most 1; got {self.sparsity}")
        if self.times is None:
            object.__setattr__(self, "times", (self._regime.time,))
        as_times(self._times, torch.zeros(0, dtype=torch.float64))
        domain = Domain.parse(self.domain)
        if domain.is_open:
            raise UsageError(f"simulated cases have periodic edges or walls (dirichlet, neumann), got {self.domain!r}")
        self._regime.pde.require_even(domain.mirror)
        if (lift := Lift.of(domain, self.extent)) is not None:
            lift.require(self._regime.pde)
        _ = self._coarse_grid, self.latent  # refuse what makes no grid and no prior

    @property
    def _regime(self) -> Regime:
        assert isinstance(self.regime, Regime)
        return self.regime

    @property
    def _times(self) -> tuple[float, ...]:
        assert self.times is not None
        return self.times

    @property
    def grid(self) -> Grid:
        """The fine grid, on which truths are given."""
        return Grid(self.shape, self.extent)

    @property
    def _coarse_grid(self) -> Grid:
        return self.grid.coarsen(self.pooling)

    @property
    def latent(self) -> Latent:
        """The prior that the cases' coefficients and sources are drawn from."""
        regime = self._regime
        bounds = torch.tensor(regime.ranges, dtype=torch.float64)
        return Latent(regime.pde, source_prior_std=regime.source_prior_std, num_modes=self.num_modes, bounds=bounds)

    def generator(self, index: int) -> np.random.Generator:
        """The random numbers of case ``index``, which are that case's own."""
        key = (zlib.crc32(self._regime.name.encode()), get_args(Split).index(self.split), index)
        return np.random.Generator(np.random.PCG64(np.random.SeedSequence(self.seed, spawn_key=key)))

    def cases(self, start: int, stop: int) -> xr.DataTree:
        """Cases ``start`` to ``stop - 1`` of the set, in the layout of ``cases.nc``: a root and a group ``truth``."""
        drawn = [self._draw(self.generator(i)) for i in range(start, stop)]
        columns = {name: np.stack([case[name] for case in drawn]) for name in drawn[0]}
        fine, coarse, latent = self.grid, self._coarse_grid, self.latent
        domain = Domain.parse(self.domain)
        mirror, lift = domain.mirror, Lift.of(domain, self.extent)
        decoder = replace(Decoder.within(latent, self.extent, mirror), lift=lift)
        z, u0 = torch.from_numpy(columns["z"]), torch.from_numpy(columns["initial"])
        u0_coarse = average_pool(u0, self.pooling)
        with torch.no_grad():  # what is known on walls is added to all that a case has of the field
            spectrum = decoder.spectrum(z, mirror.analyse(u0, fine), self._times)
            field = decoder.on_grid(spectrum, fine)
            if self.observed == "lowres-solve":
                spectrum = decoder.spectrum(z, mirror.analyse(u0_coarse, coarse), self._times)
                clean = mirror.restrict(mirror.grid(coarse).synthesise(spectrum))
            elif self.observed == "pooled":
                clean = mirror.restrict(cell_averages(spectrum, mirror.grid(coarse), self.pooling))
            else:
                clean = decoder.at_points(spectrum, torch.from_numpy(columns["positions"])[:, None], fine.origin)
            if lift is not None:
                known = lift.on_grid(fine)
                pooled = average_pool(known, self.pooling)
                clean = clean if self.observed == "point" else clean + pooled
                if latent.family.order:
                    columns["initial"], u0_coarse = columns["initial"] + known.numpy(), u0_coarse + pooled
        is_read = columns["mask" if self.observed != "point" else "has_cell"][:, None]
        columns["readings"] = np.where(is_read, clean.numpy() + self.noise_std * columns["noise"], np.nan)
        columns["initial_coarse"], columns["field"] = u0_coarse.numpy(), field.numpy()
        columns["coefficients"], columns["source"] = latent.theta(z).numpy(), latent.split(z)[1].numpy()
        return self._tree(start, columns)

    def batches(self, num: int, *, size: int = _CASES_AT_ONCE) -> Iterator[xr.DataTree]:
        """The first ``num`` cases of the set, ``size`` at a time, which bounds the memory that they take."""
        check_value(Count, num, "the number of cases")
        cells = math.prod(self.shape) * (len(self._times) + 1)
        require_memory(
            80 * min(num, size) * (cells + self.latent.size),
            f"to simulate {min(num, size)} case(s) at once",
            "ask for a lower resolution or fewer cases",
        )
        for start in range(0, num, size):
            yield self.cases(start, min(start + size, num))

    def draw_mask(self, *, generator: np.random.Generator) -> tuple[str, Bool[np.ndarray, "y x"]]:
        """The kind of one case's mask and the mask itself on the coarse grid, both drawn as the split asks for."""
        training = self.split == "train"
        kind = self.mask or str(generator.choice(TRAINING_MASKS if training else EVALUATION_MASKS))
        drawn = generator.uniform(*_TRAINING_SPARSITY) if training else _EVALUATION_SPARSITY
        return kind, draw_mask(kind, self._coarse_grid.shape, self.sparsity or drawn, generator=generator)

    def _draw(self, rng: np.random.Generator) -> dict[str, np.ndarray]:
        """Everything random about one case, by name; the axes of all cases agree, so that they can be stacked."""
        kind = str(rng.choice(initial_conditions.names()))
        initial = draw_initial_condition(kind, self.grid, generator=rng)
        uniform = rng.random(self.latent.num_coefficients)
        q = rng.standard_normal(self.latent.num_source) * (self._regime.source_prior_std if self.source else 0.0)
        mask_kind, mask = self.draw_mask(generator=rng)
        coarse, num_times = self._coarse_grid, len(self._times)
        case = {
            "initial": initial,
            "z": np.concatenate([np.log(uniform) - np.log1p(-uniform), q]),
            "mask": mask,
            "initial_kind": np.array(kind),
            "mask_kind": np.array(mask_kind),
        }
        if self.observed != "point":
            return case | {"noise": rng.standard_normal((num_times, *coarse.shape))}
        # As many sensors as the densest case could have, so that cases stack; those without a cell stay unread.
        most = _TRAINING_SPARSITY[1] if self.split == "train" else _EVALUATION_SPARSITY
        num_sensors = count_observed(coarse.shape, self.sparsity or most)
        cells = rng.permutation(np.argwhere(mask))
        positions = np.zeros((num_sensors, 2))
        positions[: len(cells)] = (cells + rng.random(cells.shape)) * coarse.spacing
        case["positions"], case["has_cell"] = positions, np.arange(num_sensors) < len(cells)
        return case | {"noise": rng.standard_normal((num_times, num_sensors))}

    def _tree(self, start: int, columns: dict[str, np.ndarray]) -> xr.DataTree:
        """The layout of ``cases.nc`` for cases from number ``start`` on, whose arrays ``columns`` holds by name."""
        import xarray as xr

        one_time = len(self._times) == 1
        squeeze = (lambda a: a[:, 0]) if one_time else (lambda a: a)
        when = () if one_time else ("time",)
        fine, coarse = self.grid, self._coarse_grid
        reading_dims = ("sensor",) if self.observed == "point" else ("y_obs", "x_obs")
        root = xr.Dataset(
            {
                "observed": (("case", *when, *reading_dims), squeeze(columns["readings"])),
                "initial": (("case", "y_obs", "x_obs"), columns["initial_coarse"]),
            },
            coords={
                "case": start + np.arange(len(columns["initial"])),
                **{name: c.numpy() for name, c in zip(("y_obs", "x_obs"), coarse.coordinates(), strict=True)},
                **({} if one_time else {"time": list(self._times)}),
            },
            attrs=self._attributes(),
        )
        if self.observed == "point":
            root["sensor_y"] = ("case", "sensor"), columns["positions"][..., 0]
            root["sensor_x"] = ("case", "sensor"), columns["positions"][..., 1]
        truth = xr.Dataset(
            {
                "field": (("case", *when, "y", "x"), squeeze(columns["field"]).astype(np.float32)),
                "initial": (("case", "y", "x"), columns["initial"].astype(np.float32)),
                "coefficients": (("case", "coefficient"), columns["coefficients"]),
                "source": (("case", "latent"), columns["source"]),
                "initial_kind": ("case", columns["initial_kind"].astype(object)),
                "mask_kind": ("case", columns["mask_kind"].astype(object)),
            },
            coords={
                "coefficient": list(self._regime.pde.coefficient_names),
                **{name: c.numpy() for name, c in zip(("y", "x"), fine.coordinates(), strict=True)},
            },
        )
        return xr.DataTree.from_dict({"/": root, "/truth": truth})

    def _attributes(self) -> dict:
        regime, times = self._regime, np.asarray(self._times)
        return {
            "family": regime.family,
            "regime": regime.name,
            "time": times if times.size > 1 else float(times[0]),
            "noise_std": self.noise_std,
            "observed_kind": self.observed,
            "pooling": self.pooling,
            "extent": np.asarray(self.extent),
            "domain": Domain.parse(self.domain).describe(),
            "coefficient_bounds": np.asarray(regime.ranges).ravel(),
            "source_prior_std": regime.source_prior_std if self.source else 0.0,
            **({"num_modes": self.num_modes} if self.num_modes else {}),
            "split": self.split,
            "seed": self.seed,
        }


def simulate(regime: str | Regime, *, num: int = 8, seed: int = 0, **options) -> xr.DataTree:
    """Simulate cases in memory: readings and coarse initial states, and a group ``truth``.

    Args:
        regime: a name of ``latentpde list regimes``, or a `Regime` of your own.
        num: how many cases, at least 1.
        seed: seed of the whole set, not negative; the same seed gives the same cases.
        options: further fields of `Simulation`, such as ``mask``, ``sparsity`` and ``noise_std``.

    Returns:
        A tree in the layout of ``cases.nc``, which `latentpde.reconstruct` takes as it is.

    Example:
        >>> cases = simulate("klein_gordon", num=3, seed=7, shape=(32, 32))
        >>> cases["observed"].sizes["case"], cases.attrs["family"]
        (3, 'klein_gordon')
        >>> [str(name) for name in cases["truth/coefficients"].coefficient.values]
        ['cx', 'cy', 'm']
    """
    import xarray as xr

    simulation = Simulation(regime=regime, seed=seed, **options)
    parts = list(simulation.batches(num))
    nodes = {"/": [part.root for part in parts], "/truth": [part.children["truth"] for part in parts]}
    groups = {
        path: xr.concat([node.to_dataset(inherit=False) for node in group], "case", data_vars="minimal")
        for path, group in nodes.items()
    }
    return xr.DataTree.from_dict(groups)


def simulate_to_file(simulation: Simulation, path: str | Path, num: int, *, show_progress: bool = False) -> None:
    """Write the first ``num`` cases of a simulation to a NetCDF file, with only a few in memory at a time.

    >>> import tempfile
    >>> from latentpde import open_cases
    >>> path = Path(tempfile.mkdtemp()) / "cases.nc"
    >>> simulate_to_file(Simulation(regime="diffusion", shape=(16, 16)), path, num=3)
    >>> open_cases(path).sizes["case"]
    3

    Args:
        simulation: how cases are made.
        path: the file, replaced where it exists once all cases are written.
        num: how many cases, at least 1.
        show_progress: draw a bar on a terminal, print lines elsewhere.
    """
    from latentpde.io.files import check_writable
    from latentpde.io.streaming import append_cases

    check_writable(path)
    size = 4 * math.prod(simulation.shape) * (len(simulation.times or ()) + 1) + 8 * simulation.latent.size
    require_disk(num * size, path, "ask for fewer cases or a lower resolution")
    with progress("simulate", num, show=show_progress) as advance:
        append_cases(simulation.batches(num), path, num, advance)
