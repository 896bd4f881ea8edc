"""A network on its way: its parameters, their moving average, the optimiser, and the checkpoint to go on from."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel

from latentpde.errors import UsageError
from latentpde.training.checkpoints import (
    Checkpoint,
    optimiser_tensors,
    restore_optimiser,
    with_prefix,
    without_prefix,
)
from latentpde.training.config import StageTable

if TYPE_CHECKING:
    from accelerate import Accelerator


@dataclass(eq=False)
class Run:
    """The training of one network, from its start or from a checkpoint.

    Args:
        accelerator: devices and processes that share the work.
        model: the network, as accelerate wraps it.
        average: moving average of its parameters, which becomes the weights.
        optimiser: AdamW, as accelerate wraps it.
        table: the stage's settings.
        record: settings that a checkpoint must have been made with, to be gone on from.
        epoch: number of epochs done.
    """

    accelerator: Accelerator
    model: nn.Module
    average: AveragedModel
    optimiser: Any
    table: StageTable
    record: dict[str, Any]
    epoch: int = 0

    @classmethod
    def start(
        cls, accelerator: Accelerator, network: nn.Module, table: StageTable, record: dict[str, Any], folder: Path
    ) -> Run:
        """Go on from the newest checkpoint in a folder; begin with the network as it is where there is none."""
        checkpoint = Checkpoint.latest(folder)
        if checkpoint is not None and checkpoint.record != record:
            changed = [key for key in record if checkpoint.record.get(key) != record[key]]
            raise UsageError(
                f"the checkpoints in {folder} were made with another {', '.join(changed)}; go on with what they "
                "were made with, or choose another output folder"
            )
        network = network.to(accelerator.device)
        average = AveragedModel(network, avg_fn=_averaging(table.ema_decay)).requires_grad_(False)
        optimiser = torch.optim.AdamW(network.parameters(), lr=table.learning_rate, weight_decay=table.weight_decay)
        if checkpoint is not None:
            network.load_state_dict(without_prefix("model", checkpoint.tensors))
            average.module.load_state_dict(without_prefix("average", checkpoint.tensors))
            restore_optimiser(optimiser, checkpoint.tensors)
        model, prepared = accelerator.prepare(network, optimiser)
        return cls(accelerator, model, average, prepared, table, record, checkpoint.epoch if checkpoint else 0)

    def step(self, losses: Callable[[nn.Module], dict[str, Tensor]], done: int, total: int) -> dict[str, Tensor]:
        """Take one step of the optimiser; returns the losses before it.

        Args:
            losses: of the network on this step's batch; ``loss`` is minimised.
            done: steps of the whole training that are done.
            total: steps of the whole training.
        """
        for group in self.optimiser.param_groups:
            group["lr"] = self.table.learning_rate * rate_factor(done / total, self.table.warmup)
        self.optimiser.zero_grad()
        parts = losses(self.model)
        self.accelerator.backward(parts["loss"])
        self.accelerator.clip_grad_norm_(self.model.parameters(), self.table.clip)
        self.optimiser.step()
        # The start counts as one, or the first step would be copied; so the count needs no place in checkpoints.
        self.average.n_averaged.fill_(1 + done)
        self.average.update_parameters(self.accelerator.unwrap_model(self.model))
        return {name: value.detach() for name, value in parts.items()}

    def write(self, folder: Path) -> None:
        """Write a checkpoint."""
        model = self.accelerator.unwrap_model(self.model)
        tensors = with_prefix("model", model.state_dict()) | with_prefix("average", self.average.module.state_dict())
        Checkpoint(self.epoch, tensors | optimiser_tensors(self.optimiser), self.record).write(folder)


def rate_factor(position: float, warmup: float) -> float:
    """Factor of the learning rate: up along a line, then down along half a cosine.

    Args:
        position: share of all steps that is done, from 0 to 1.
        warmup: share of all steps in which the rate rises.

    Example:
        >>> [round(rate_factor(position, warmup=0.2), 3) for position in (0.1, 0.2, 0.6, 1.0)]
        [0.5, 1.0, 0.5, 0.0]
    """
    if position < warmup:
        return max(position / warmup, 1e-3)
    return 0.5 * (1 + math.cos(math.pi * (position - warmup) / max(1 - warmup, 1e-9)))


def _averaging(longest_decay: float) -> Callable[[Tensor, Tensor, Tensor | int], Tensor]:
    """An exponential moving average with a decay that is short at first, to forget the random start."""

    def average(kept: Tensor, new: Tensor, num_averaged: Tensor | int) -> Tensor:
        num = int(num_averaged)
        return kept.lerp(new, 1 - min(longest_decay, num / (9 + num)))

    return average
