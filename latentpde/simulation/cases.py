r"""Cases: observations with their truth beside them.

A case is an initial state, coefficients and a source drawn from a regime, the exact solution on the fine grid,
and what an instrument would have read of it. Case ``i`` of a split depends on the seed, the regime, the split and
``i`` alone, so any part of a set can be made again, in any order and batch size, and splits share nothing.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np
import torch

from latentpde.decoder import Decoder, as_times
from latentpde.errors import UsageError
from latentpde.grid import Grid, at_points, average_pool
from latentpde.latent import Latent
from latentpde.observation import Observed
from latentpde.operator import cell_averages
from latentpde.progress import progress
from latentpde.simulation.initial_conditions import draw_initial_condition, initial_conditions
from latentpde.simulation.masks import EVALUATION_MASKS, TRAINING_MASKS, draw_mask, masks
from latentpde.simulation.regimes import Regime, regimes

if TYPE_CHECKING:
    import xarray as xr

Split = Literal["train", "validation", "test"]
TRAINING_SPARSITY = (0.01, 0.15)
EVALUATION_SPARSITY = 0.05
_BATCH = 32


@dataclass(frozen=True, kw_only=True)
class Simulation:
    """How cases are made. Every default is the benchmark's.

    Args:
        regime: by name, or your own `Regime`.
        seed: of the whole set.
        split: training cases draw one of the training masks and a sparsity each; the others draw one of the
            evaluation masks.
        mask: one kind for all cases.
        sparsity: share of coarse cells that is observed, for all cases.
        noise_std: standard deviation of the readings' noise.
        source: whether there is a source.
        observed: ``lowres-solve``, ``pooled`` or ``point``, as in `latentpde.observation`. Points lie at random
            inside the cells that the mask chooses.
        shape: the fine grid.
        pooling: fine cells per coarse cell and side.
        extent: of the rectangle.
        times: of the snapshots; the family's default where left out.
        num_modes: of the source.
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

    def __post_init__(self):
        if isinstance(self.regime, str):
            object.__setattr__(self, "regime", regimes.get(self.regime))
        if self.mask is not None:
            masks.get(self.mask)
        for what, value, known in (("split", self.split, Split), ("observed", self.observed, Observed)):
            if value not in get_args(known):
                raise UsageError(f"{what} must be one of {', '.join(get_args(known))}; got {value!r}")
        if not (np.isfinite(self.noise_std) and self.noise_std > 0):
            raise UsageError(f"the noise's standard deviation must be positive, got {self.noise_std}")
        if self.sparsity is not None and not 0 < self.sparsity <= 1:
            raise UsageError(f"the sparsity is a share of cells, above 0 and at most 1; got {self.sparsity}")
        if self.seed < 0:
            raise UsageError(f"the seed must not be negative, got {self.seed}")
        if self.times is None:
            object.__setattr__(self, "times", (self._regime.time,))
        as_times(self.times or (), torch.zeros(0, dtype=torch.float64))
        self.grid.coarsen(self.pooling)
        _ = self.latent  # refuses what makes no prior

    @property
    def _regime(self) -> Regime:
        assert isinstance(self.regime, Regime)
        return self.regime

    @property
    def grid(self) -> Grid:
        return Grid(self.shape, self.extent)

    @property
    def latent(self) -> Latent:
        regime = self._regime
        bounds = torch.tensor(regime.ranges, dtype=torch.float64)
        return Latent(regime.pde, source_prior_std=regime.source_prior_std, num_modes=self.num_modes, bounds=bounds)

    def generator(self, index: int) -> np.random.Generator:
        """The randomness of one case."""
        key = (zlib.crc32(self._regime.name.encode()), get_args(Split).index(self.split), index)
        return np.random.Generator(np.random.PCG64(np.random.SeedSequence(self.seed, spawn_key=key)))

    def cases(self, start: int, stop: int) -> xr.DataTree:
        """Cases ``start`` to ``stop - 1`` of the set, as ``cases.nc`` holds them."""
        drawn = [self._draw(self.generator(i)) for i in range(start, stop)]
        columns = {name: np.stack([case[name] for case in drawn]) for name in drawn[0]}
        fine, coarse, latent = self.grid, self.grid.coarsen(self.pooling), self.latent
        decoder = Decoder(latent, self.extent)
        z, u0 = torch.from_numpy(columns["z"]), torch.from_numpy(columns["initial"])
        u0_coarse = average_pool(u0, self.pooling)
        with torch.no_grad():
            spectrum = decoder.spectrum(z, fine.analyse(u0), self.times or ())
            field = fine.synthesise(spectrum)
            if self.observed == "lowres-solve":
                clean = decoder.decode(z, u0_coarse, self.times or (), coarse)
            elif self.observed == "pooled":
                clean = cell_averages(spectrum, coarse, self.pooling)
            else:
                clean = at_points(spectrum, torch.from_numpy(columns["positions"])[:, None], self.extent)
        mask = columns["mask"][:, None] if self.observed != "point" else columns["sensors"][:, None]
        readings = np.where(mask, clean.numpy() + self.noise_std * columns["noise"], np.nan)
        theta, q = latent.theta(z).numpy(), latent.split(z)[1].numpy()
        return self._tree(start, readings, u0_coarse.numpy(), field.numpy(), u0.numpy(), theta, q, columns)

    def batches(self, num: int, *, size: int = _BATCH) -> Iterator[xr.DataTree]:
        """All cases, a few at a time."""
        if num < 1:
            raise UsageError(f"the number of cases must be at least 1, got {num}")
        for start in range(0, num, size):
            yield self.cases(start, min(start + size, num))

    def _draw(self, rng: np.random.Generator) -> dict[str, np.ndarray]:
        training = self.split == "train"
        kind = str(rng.choice(initial_conditions.names()))
        initial = draw_initial_condition(kind, self.grid, generator=rng)
        uniform = rng.random(self.latent.num_coefficients)
        q = rng.standard_normal(self.latent.num_source) * (self._regime.source_prior_std if self.source else 0.0)
        mask_kind = self.mask or str(rng.choice(TRAINING_MASKS if training else EVALUATION_MASKS))
        spread = rng.uniform(*TRAINING_SPARSITY) if training else EVALUATION_SPARSITY
        coarse = self.grid.coarsen(self.pooling)
        mask = draw_mask(mask_kind, coarse.shape, self.sparsity or spread, generator=rng)
        num_times = len(self.times or ())
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
        most = TRAINING_SPARSITY[1] if training else EVALUATION_SPARSITY
        num_sensors = max(1, int(np.floor((self.sparsity or most) * mask.size + 1e-9)))
        cells = rng.permutation(np.argwhere(mask))
        positions = np.zeros((num_sensors, 2))
        positions[: len(cells)] = (cells + rng.random(cells.shape)) * coarse.spacing
        case["positions"], case["sensors"] = positions, np.arange(num_sensors) < len(cells)
        return case | {"noise": rng.standard_normal((num_times, num_sensors))}

    def _tree(self, start, readings, initial_coarse, field, initial, theta, q, columns) -> xr.DataTree:
        import xarray as xr

        one_time = len(self.times or ()) == 1
        squeeze = (lambda a: a[:, 0]) if one_time else (lambda a: a)
        when = () if one_time else ("time",)
        fine, coarse = self.grid, self.grid.coarsen(self.pooling)
        reading_dims = ("sensor",) if self.observed == "point" else ("y_obs", "x_obs")
        latent = self.latent
        root = xr.Dataset(
            {
                "observed": (("case", *when, *reading_dims), squeeze(readings)),
                "initial": (("case", "y_obs", "x_obs"), initial_coarse),
            },
            coords={
                "case": np.arange(start, start + len(initial)),
                **{name: c.numpy() for name, c in zip(("y_obs", "x_obs"), coarse.coordinates(), strict=True)},
                **({} if one_time else {"time": list(self.times or ())}),
            },
            attrs=self._attributes(),
        )
        if self.observed == "point":
            root["sensor_y"] = ("case", "sensor"), columns["positions"][..., 0]
            root["sensor_x"] = ("case", "sensor"), columns["positions"][..., 1]
        truth = xr.Dataset(
            {
                "field": (("case", *when, "y", "x"), squeeze(field).astype(np.float32)),
                "initial": (("case", "y", "x"), initial.astype(np.float32)),
                "coefficients": (("case", "coefficient"), theta),
                "source": (("case", "latent"), q),
                "initial_kind": ("case", columns["initial_kind"].astype(object)),
                "mask_kind": ("case", columns["mask_kind"].astype(object)),
            },
            coords={
                "coefficient": list(latent.family.coefficient_names),
                **{name: c.numpy() for name, c in zip(("y", "x"), fine.coordinates(), strict=True)},
            },
        )
        return xr.DataTree.from_dict({"/": root, "/truth": truth})

    def _attributes(self) -> dict:
        regime = self._regime
        return {
            "family": regime.family,
            "regime": regime.name,
            "time": np.asarray(self.times) if len(self.times or ()) > 1 else float((self.times or (0.0,))[0]),
            "noise_std": self.noise_std,
            "observed_kind": self.observed,
            "pooling": self.pooling,
            "extent": np.asarray(self.extent),
            "coefficient_bounds": np.asarray(regime.ranges).ravel(),
            "source_prior_std": regime.source_prior_std if self.source else 0.0,
            **({"num_modes": self.num_modes} if self.num_modes else {}),
            "split": self.split,
            "seed": self.seed,
        }


def simulate(regime: str | Regime, *, num: int = 8, seed: int = 0, **options) -> xr.DataTree:
    """Simulated cases in memory: readings and coarse initial states, and a group ``truth``.

    Args:
        regime: one of ``latentpde list regimes``, or your own.
        num: how many cases.
        seed: of the set.
        options: fields of `Simulation`.
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
    """Stream any number of cases to a NetCDF file, holding one batch in memory."""
    from latentpde.io.streaming import append_cases

    with progress("simulate", num, show=show_progress) as advance:
        append_cases(simulation.batches(num), path, num, advance)
