"""Checkpoints: where the training of a network stood after an epoch, as files to go on from.

A checkpoint is everything that the rest of a training depends on: parameters, their moving average, the optimiser's
moments and the number of epochs done. Data and random numbers follow from the seed and the epoch, so there is no state
of theirs to keep. Each checkpoint is one file of tensors (safetensors), written whole or not at all; the last two are
kept, and an older one is deleted only when a newer one is safely there.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from latentpde.errors import DataError
from latentpde.io.tensors import read_tensors, write_tensors

_KEEP = 2


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """The state of a training after some epochs.

    Args:
        epoch: number of epochs done.
        tensors: parameters, averages and moments, by names that begin with ``model.``, ``average.`` or
            ``optimiser.``.
        record: the settings that it was made with, as JSON has them; a training with others must not go on from it.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     for epoch in (1, 2, 3):
        ...         Checkpoint(epoch, {"model.weight": torch.zeros(2)}, {"seed": 0}).write(Path(folder))
        ...     kept = [path.name for path in checkpoint_paths(Path(folder))]
        ...     latest = Checkpoint.latest(Path(folder))
        >>> kept
        ['checkpoint-000002.safetensors', 'checkpoint-000003.safetensors']
        >>> latest.epoch, latest.record
        (3, {'seed': 0})
    """

    epoch: int
    tensors: dict[str, Tensor]
    record: dict[str, Any]

    def write(self, folder: Path) -> None:
        """Write it to a folder of checkpoints, then delete those that are no longer needed."""
        folder.mkdir(parents=True, exist_ok=True)
        metadata = {"epoch": str(self.epoch), "record": json.dumps(self.record)}
        write_tensors(folder / f"checkpoint-{self.epoch:06d}.safetensors", self.tensors, metadata)
        for old in checkpoint_paths(folder)[:-_KEEP]:
            old.unlink()

    @classmethod
    def read(cls, path: Path) -> Checkpoint:
        """Read one file; raises `DataError` where it is damaged or something else."""
        tensors, metadata = read_tensors(path)
        try:
            return cls(int(metadata["epoch"]), tensors, json.loads(metadata["record"]))
        except (KeyError, ValueError) as error:
            raise DataError(f"{path} is not a checkpoint of latentpde: {error}") from error

    @classmethod
    def latest(cls, folder: Path) -> Checkpoint | None:
        """The newest checkpoint of a folder that can be read, or None; damaged ones are passed over with a warning."""
        for path in reversed(checkpoint_paths(folder)):
            try:
                return cls.read(path)
            except DataError as error:
                print(f"warning: {error}; trying the one before", file=sys.stderr)
        return None


def checkpoint_paths(folder: Path) -> list[Path]:
    """The files of all checkpoints in a folder, the oldest first."""
    return sorted(folder.glob("checkpoint-*.safetensors"))


def optimiser_tensors(optimiser: torch.optim.Optimizer) -> dict[str, Tensor]:
    """The state of an optimiser, moments and step counts, by names that hold the number of their parameter."""
    state = optimiser.state_dict()["state"]
    return {f"optimiser.{number}.{key}": value for number, part in state.items() for key, value in part.items()}


def restore_optimiser(optimiser: torch.optim.Optimizer, tensors: dict[str, Tensor]) -> None:
    """Give an optimiser the state that `optimiser_tensors` took from another; other tensors are passed over."""
    state: dict[int, dict[str, Tensor]] = {}
    for name, value in tensors.items():
        if name.startswith("optimiser."):
            _, number, key = name.split(".")
            state.setdefault(int(number), {})[key] = value
    optimiser.load_state_dict({"state": state, "param_groups": optimiser.state_dict()["param_groups"]})


def with_prefix(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """The same tensors, each under a name that begins with ``prefix`` and a dot."""
    return {f"{prefix}.{name}": value for name, value in tensors.items()}


def without_prefix(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """The tensors whose names begin with ``prefix`` and a dot, under the rest of their names."""
    return {name[len(prefix) + 1 :]: value for name, value in tensors.items() if name.startswith(f"{prefix}.")}
