"""The cases that networks are trained on: simulated once and kept, and read anew, through new masks, every epoch.

What is read of case ``i`` in epoch ``e`` depends on the seed, the regime, ``e`` and ``i`` alone. So a run that was
interrupted meets the same readings, and processes that share the work need not talk about it.
"""

from __future__ import annotations

import json
import math
import zlib
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from latentpde.decoder import Decoder
from latentpde.errors import DataError
from latentpde.grid import Grid
from latentpde.io.tensors import read_tensors, write_tensors
from latentpde.latent import Latent
from latentpde.needs import require_memory
from latentpde.nn import Units
from latentpde.observation import Observation
from latentpde.progress import progress
from latentpde.simulation import Simulation
from latentpde.training.config import TrainingConfig

_CHUNK = 100


@dataclass(frozen=True, eq=False)
class RegimeData:
    """Simulated cases of one regime, of the training or the validation split, before anything is read of them.

    Args:
        simulation: the simulation that they come from.
        seed: seed of masks and noise.
        initial: coarse initial states.
        clean: solutions on the coarse grid, without noise.
        z: the simulator's raw latents.
        latent: their layout and bounds: the regime's own, or its family's.
        raw: whether networks see raw latents, and are not told of the prior (`latentpde.nn.units`).
        fine_initial: initial states on the fine grid, in half precision, for what learns whole fields.
    """

    simulation: Simulation
    seed: int
    initial: Float[Tensor, "case y x"]
    clean: Float[Tensor, "case time y x"]
    z: Float[Tensor, "case latent"]
    latent: Latent
    raw: bool = False
    fine_initial: Float[Tensor, "case fine_y fine_x"] | None = None

    def __len__(self) -> int:
        return len(self.initial)

    @property
    def decoder(self) -> Decoder:
        """The decoder of the cases' latents."""
        return Decoder(self.latent, self.simulation.extent)

    @property
    def units(self) -> Units:
        """The way between the cases' latents and a network's units."""
        return Units(self.latent, self.simulation.num_modes, raw=self.raw)

    @property
    def grid(self) -> Grid:
        """The coarse grid that readings are of."""
        return self.simulation.grid.coarsen(self.simulation.pooling)

    def read(self, indices: np.ndarray, epoch: int) -> Observation:
        """What is read of some cases in one epoch. Training cases have training masks of random sparsity, validation
        cases have evaluation masks.

        Args:
            indices: the cases.
            epoch: number of the epoch, which decides masks and noise.
        """
        clean = self.clean[torch.from_numpy(indices)].double()
        drawn = [self._draw(int(index), epoch) for index in indices]
        mask = torch.from_numpy(np.stack([mask for mask, _ in drawn])[:, None]).expand(clean.shape)
        noise = torch.from_numpy(np.stack([noise for _, noise in drawn]))
        noise_std = self.simulation.noise_std
        return Observation(
            values=torch.where(mask, clean + noise_std * noise, 0.0),
            mask=mask,
            noise_std=torch.full_like(clean, noise_std),
            times=torch.tensor(self.simulation.times, dtype=torch.float64),
            initial=self.initial[torch.from_numpy(indices)].double(),
            grid=self.grid,
            pooling=self.simulation.pooling,
        )

    def _draw(self, index: int, epoch: int) -> tuple[np.ndarray, np.ndarray]:
        rng = _generator(self.seed, self.name, self.simulation.split, epoch, index)
        _, mask = self.simulation.draw_mask(generator=rng)
        return mask, rng.standard_normal(self.clean.shape[1:])

    @property
    def name(self) -> str:
        """The name of the regime."""
        regime = self.simulation.regime
        return regime if isinstance(regime, str) else regime.name


def load_or_simulate(
    config: TrainingConfig, split: str, *, make: bool = True, show_progress: bool = False
) -> list[RegimeData]:
    """The cases of each regime, one set for each; simulated where the output folder does not have them yet.

    Args:
        config: the configuration of the training.
        split: ``train`` or ``validation``.
        make: whether to simulate and write what is missing; false in processes that only read.
        show_progress: draw a bar on a terminal, print lines elsewhere.
    """
    num = config.data.num_per_regime if split == "train" else config.data.num_validation
    result = []
    for name in config.regime_names:
        simulation = Simulation(
            regime=name,
            seed=config.seed,
            split="train" if split == "train" else "validation",
            noise_std=config.data.noise_std,
            shape=config.data.shape,
            pooling=config.data.pooling,
            num_modes=config.data.num_modes,
        )
        path = Path(config.output) / "data" / f"{name}-{split}.safetensors"
        made_with = [config.seed, num, config.data.shape, config.data.pooling, config.data.num_modes]
        fine = config.fundps is not None
        latent = simulation.latent
        if config.data.bounds == "family":
            latent = replace(latent, bounds=latent.family.bounds)
            made_with.append("family's bounds")
        key = json.dumps([*made_with, "fine"] if fine else made_with)
        if make and not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            write_tensors(
                path, _simulate(simulation, latent, num, fine, f"{name} ({split})", show_progress), {"key": key}
            )
        tensors, metadata = read_tensors(path)
        if metadata.get("key") != key:
            raise DataError(f"{path} holds cases made with other settings; delete it or choose another output folder")
        raw = not config.size.told_prior
        result.append(RegimeData(simulation, config.seed, **tensors, latent=latent, raw=raw))
    return result


def batches(sets: list[RegimeData], batch_size: int, seed: int, epoch: int) -> list[tuple[int, np.ndarray]]:
    """The batches of one epoch, in random order, as the number of a set and the cases of it. What is left of a set
    and fills no batch is not visited in this epoch.

    Args:
        sets: cases, one set for each regime.
        batch_size: cases per batch; a smaller set is one batch.
        seed: seed of the order.
        epoch: number of the epoch.
    """
    rng = _generator(seed, "order", "train", epoch, 0)
    parts = []
    for number, data in enumerate(sets):
        order = rng.permutation(len(data))
        size = min(batch_size, len(data))
        parts += [(number, order[i : i + size]) for i in range(0, len(data) - size + 1, size)]
    return [parts[i] for i in rng.permutation(len(parts))]


def batch_generator(data: RegimeData, indices: np.ndarray, epoch: int, seed: int) -> torch.Generator:
    """Random numbers of one batch, which its regime, the epoch and its first case tell from others.

    Args:
        data: cases of one regime.
        indices: those of the batch.
        epoch: number of the epoch.
        seed: seed of the training.
    """
    key = (zlib.crc32(data.name.encode()), epoch, int(indices[0]))
    state = np.random.SeedSequence(seed, spawn_key=key).generate_state(1, np.uint64)
    return torch.Generator().manual_seed(int(state[0] >> 1))


def on_device(observation: Observation, device: torch.device) -> Observation:
    """The same readings on another device, where a network's outputs are."""
    if device.type == "cpu":
        return observation
    names = ("values", "mask", "noise_std", "times", "initial")
    return replace(observation, **{name: getattr(observation, name).to(device) for name in names})


def _simulate(
    simulation: Simulation, latent: Latent, num: int, fine: bool, label: str, show_progress: bool
) -> dict[str, Tensor]:
    coarse = simulation.grid.coarsen(simulation.pooling)
    cells = 2 * math.prod(coarse.shape) + (math.prod(simulation.shape) // 2 if fine else 0)
    require_memory(8 * num * (cells + latent.size), f"to hold {num} cases", "simulate fewer (num_per_regime)")
    decoder = Decoder(latent, simulation.extent)
    columns: dict[str, list[Tensor]] = {"initial": [], "clean": [], "z": []}
    with progress(label, num, show=show_progress) as advance, torch.no_grad():
        for tree in simulation.batches(num, size=_CHUNK):
            initial = torch.from_numpy(tree["initial"].values)
            theta, q = (torch.from_numpy(tree[f"truth/{name}"].values) for name in ("coefficients", "source"))
            z = latent.pack(theta, q)
            clean = decoder.decode(z, initial, simulation.times or (), coarse)
            for name, values in (("initial", initial), ("clean", clean), ("z", z)):
                columns[name].append(values.float())
            if fine:
                columns.setdefault("fine_initial", []).append(torch.from_numpy(tree["truth/initial"].values).half())
            advance(len(z))
    return {name: torch.cat(parts) for name, parts in columns.items()}


def _generator(seed: int, name: str, split: str, epoch: int, index: int) -> np.random.Generator:
    key = (zlib.crc32(f"{name}/{split}".encode()), epoch, index)
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=key)))
