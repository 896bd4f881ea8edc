"""Checkpoints of a training run, as safetensors.

A checkpoint is everything that the rest of a run depends on: parameters, their average, the optimiser's moments and
the number of epochs done. Data and randomness follow from the seed and the epoch, so there is no state of theirs to
keep. Each is one file, written whole or not at all; the one before it goes only when it is safely there.
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
    """Where a run stands after ``epoch`` epochs.

    Args:
        epoch: epochs done.
        tensors: by name: parameters, averages, moments.
        record: numbers that are not tensors: the settings it belongs to, the number of processes.
    """

    epoch: int
    tensors: dict[str, Tensor]
    record: dict[str, Any]

    def write(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        metadata = {"epoch": str(self.epoch), "record": json.dumps(self.record)}
        write_tensors(folder / f"checkpoint-{self.epoch:06d}.safetensors", self.tensors, metadata)
        for old in checkpoint_paths(folder)[:-_KEEP]:
            old.unlink()

    @classmethod
    def read(cls, path: Path) -> Checkpoint:
        tensors, metadata = read_tensors(path)
        try:
            return cls(int(metadata["epoch"]), tensors, json.loads(metadata["record"]))
        except (KeyError, ValueError) as error:
            raise DataError(f"{path} is not a checkpoint of latentpde: {error}") from error

    @classmethod
    def latest(cls, folder: Path) -> Checkpoint | None:
        """The newest that can be read; damaged ones are passed over, and said to be."""
        for path in reversed(checkpoint_paths(folder)):
            try:
                return cls.read(path)
            except DataError as error:
                print(f"warning: {error}; trying the one before", file=sys.stderr)
        return None


def checkpoint_paths(folder: Path) -> list[Path]:
    """Oldest first."""
    return sorted(folder.glob("checkpoint-*.safetensors"))


def optimiser_tensors(optimiser: torch.optim.Optimizer) -> dict[str, Tensor]:
    """Moments and step counts, by the number of their parameter."""
    state = optimiser.state_dict()["state"]
    return {f"optimiser.{number}.{key}": value for number, part in state.items() for key, value in part.items()}


def restore_optimiser(optimiser: torch.optim.Optimizer, tensors: dict[str, Tensor]) -> None:
    state: dict[int, dict[str, Tensor]] = {}
    for name, value in tensors.items():
        if name.startswith("optimiser."):
            _, number, key = name.split(".")
            state.setdefault(int(number), {})[key] = value
    optimiser.load_state_dict({"state": state, "param_groups": optimiser.state_dict()["param_groups"]})


def with_prefix(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {f"{prefix}.{name}": value for name, value in tensors.items()}


def without_prefix(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name[len(prefix) + 1 :]: value for name, value in tensors.items() if name.startswith(f"{prefix}.")}
