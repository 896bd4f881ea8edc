"""Tensors on disk: safetensors with JSON beside or inside them, never pickle, and never half a file.

A checkpoint is everything that the rest of a run depends on: parameters, their average, the optimiser's moments and
the number of epochs done. Data and randomness follow from the seed and the epoch, so there is no state of theirs to
keep. Each is one file, written whole or not at all; the one before it goes only when it is safely there.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from latentpde.errors import DataError, UsageError
from latentpde.io import atomic_path

_KEEP = 2


def write_tensors(path: Path, tensors: dict[str, Tensor], metadata: dict[str, str] | None = None) -> None:
    write_bytes(path, save({name: t.detach().cpu().contiguous() for name, t in tensors.items()}, metadata))


def write_bytes(path: Path, content: bytes) -> None:
    """Whole or not at all; what was there before stays where it fails."""
    with atomic_path(path) as temporary:
        try:
            with temporary.open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise DataError(
                f"cannot write {path}: {error.strerror or error}; what was there before is unchanged. "
                "Make room and go on with --resume"
            ) from error


def read_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Tensors and metadata of a file."""
    if not path.exists():
        raise UsageError(f"there is no file {path}")
    try:
        with safe_open(path, framework="pt") as file:
            return {name: file.get_tensor(name) for name in file.keys()}, file.metadata() or {}  # noqa: SIM118
    except (SafetensorError, OSError) as error:
        raise DataError(f"cannot read {path}: {error}; it may be truncated or damaged") from error


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
