"""The one training loop, for the encoder and the denoisers of a family.

Each epoch's data and randomness follow from the seed and the epoch's number; a checkpoint after each epoch holds the
rest. So a run that was interrupted and resumed ends with the same bits as one that was not, given the same machine and
number of processes. Weights are written after each epoch too, so that a run that is stopped early leaves a network that
can be used; its manifest says how many epochs it had. ``accelerate launch`` runs it on several GPUs, or several
machines: processes take turns through the batches of an epoch, and their gradients are averaged.
"""

from __future__ import annotations

import functools
import math
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import nn

from latentpde.errors import DataError, UsageError
from latentpde.io.files import make_folder
from latentpde.nn import InferenceEncoder
from latentpde.nn.neural_operator import OPERATOR_PRESETS
from latentpde.nn.weights import build, build_fields, load_weights, save_weights
from latentpde.pde import get_family
from latentpde.progress import Advance, progress
from latentpde.training.checkpoints import checkpoint_paths
from latentpde.training.config import Stage, StageTable, TrainingConfig, load_config
from latentpde.training.data import RegimeData, batches, load_or_simulate
from latentpde.training.field_task import FieldTask, field_statistics
from latentpde.training.log import TrainingLog
from latentpde.training.map_targets import map_targets
from latentpde.training.records import make_manifest, stage_settings
from latentpde.training.run import Run
from latentpde.training.tasks import DenoiserTask, EncoderTask, Task, encoder_targets, statistics_of, true_targets

if TYPE_CHECKING:
    from accelerate import Accelerator


def train(
    source: str | Path | TrainingConfig,
    *,
    resume: bool = False,
    stage: str | None = None,
    show_progress: bool = False,
) -> list[Path]:
    """Train a family's networks; returns the paths of the manifests beside their weights.

    Args:
        source: a configuration, its TOML file, or the name of a shipped one.
        resume: go on where an earlier run stopped; stages that it finished are left as they are.
        stage: the name of the only stage to train; by default all that the configuration has.
        show_progress: draw a bar on a terminal, print lines elsewhere.

    Example:
        >>> import tempfile
        >>> cases = {"num_per_regime": 2, "num_validation": 1, "shape": [16, 16], "num_modes": 2}
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     settings = {"family": "helmholtz", "output": folder, "data": cases, "encoder": {"epochs": 1}}
        ...     written = train(TrainingConfig.model_validate(settings))
        >>> [path.name for path in written]
        ['helmholtz-encoder.json']
    """
    config = source if isinstance(source, TrainingConfig) else load_config(source)
    if stage is not None and stage not in config.stages:
        raise UsageError(f"the configuration has no stage {stage!r}; it has: {', '.join(config.stages)}")
    stages: list[Stage] = config.stages if stage is None else [s for s in config.stages if s == stage]
    folder = Path(config.output)
    make_folder(folder)
    if not resume:
        for name in stages:
            _refuse_to_overwrite(folder, config.family, name)
    done = [_manifest_path(folder, config.family, name) for name in stages]
    for name in stages:
        if resume and _epochs_done(folder, config.family, name) >= getattr(config, name).epochs:
            continue
        _train_stage(config, name, folder, show_progress)
    return done


def _train_stage(config: TrainingConfig, stage: Stage, folder: Path, show_progress: bool) -> None:
    """One network, from its data to its weights."""
    table: StageTable = getattr(config, stage)
    accelerator = _accelerator(config.mixed_precision)
    show_progress = show_progress and accelerator.is_main_process
    sets, validation = _data(config, accelerator, show_progress)
    task, held_out = _tasks(config, stage, folder, accelerator, sets, validation, show_progress)
    units = sets[0].units
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(config.seed)
        if config.fundps is not None and stage == "fundps":
            network = build_fields(OPERATOR_PRESETS[config.preset], config.fundps.sigma_data)
        else:
            network = build(stage, config.size, units.size, units.num_prior)
    record = {**stage_settings(config, stage), "number of processes": accelerator.num_processes}
    if stage == "denoiser_enc":  # it learns what this encoder says, and one that was trained further says otherwise
        record["encoder"] = load_weights("encoder", get_family(config.family), folder).manifest.sha256
    run = Run.start(accelerator, network, table, record, folder / stage)
    log = TrainingLog(folder / stage / "log.jsonl", run.epoch, write=accelerator.is_main_process)

    steps_per_epoch = len(batches(sets, table.batch_size, config.seed, 0)) // accelerator.num_processes
    if not steps_per_epoch:
        raise UsageError(
            f"{accelerator.num_processes} processes need as many batches; lower batch_size or simulate more cases"
        )
    to_do = (table.epochs - run.epoch) * steps_per_epoch
    with progress(f"{config.family} {stage}", to_do, show=show_progress) as advance:
        while run.epoch < table.epochs:
            started = time.monotonic()
            order = batches(sets, table.batch_size, config.seed, run.epoch)
            own = order[accelerator.process_index :: accelerator.num_processes][:steps_per_epoch]
            means = _epoch(run, task, sets, own, advance)
            if not math.isfinite(means["loss"]):
                raise DataError(
                    f"the loss became {means['loss']} in epoch {run.epoch + 1}; lower learning_rate. The checkpoint of "
                    "the epoch before is kept"
                )
            run.epoch += 1
            if accelerator.is_main_process:
                scores = _validate(held_out, run.average, validation)
                log.add(run.epoch, means, scores, time.monotonic() - started)
                save_weights(folder, run.average.module.state_dict(), make_manifest(config, stage, task, sets, log))
                run.write(folder / stage)
            accelerator.wait_for_everyone()
    if accelerator.is_main_process:
        log.draw(folder / stage / "loss.png", f"{config.family}: {stage}")
    accelerator.wait_for_everyone()


def _epoch(
    run: Run, task: Task, sets: list[RegimeData], own: list[tuple[int, np.ndarray]], advance: Advance
) -> dict[str, float]:
    """This process's batches of one epoch; returns mean losses over all processes."""
    history = []
    for number, (which, indices) in enumerate(own):
        losses = functools.partial(task.losses, data=sets[which], indices=indices, epoch=run.epoch)
        history.append(run.step(losses, run.epoch * len(own) + number, run.table.epochs * len(own)))
        advance(1)
    means = {name: torch.stack([parts[name] for parts in history]).mean() for name in history[0]}
    reduced: Any = run.accelerator.reduce(means, "mean")
    return {name: float(value) for name, value in reduced.items()}


def _validate(task: Task, network: nn.Module, sets: list[RegimeData]) -> dict[str, float]:
    """Mean losses over the validation cases, each regime counted alike."""
    with torch.no_grad():
        parts = [task.losses(network.eval(), data, np.arange(len(data)), 0) for data in sets]
    return {name: float(torch.stack([part[name] for part in parts]).mean()) for name in parts[0]}


def _tasks(
    config: TrainingConfig,
    stage: Stage,
    folder: Path,
    accelerator: Accelerator,
    sets: list[RegimeData],
    validation: list[RegimeData],
    show_progress: bool,
) -> tuple[Task, Task]:
    """The tasks of training and of validation, which has targets of its own and drops no conditioning."""
    device, num_probes = accelerator.device, config.size.num_probes
    if stage == "encoder":
        assert config.encoder is not None
        task = EncoderTask(device, num_probes, config.encoder)
        return task, task
    if stage == "fundps":
        assert config.fundps is not None
        task = FieldTask(device, 0, config.fundps, field_statistics(sets, config.fundps), config.seed)
        return task, task
    table = getattr(config, stage)
    num_reading_sets = 0
    if stage == "denoiser_true":
        targets = held_out = true_targets
    elif stage == "denoiser_enc":
        encoder = load_weights("encoder", get_family(config.family), folder).network.to(device)
        assert isinstance(encoder, InferenceEncoder)
        targets = held_out = encoder_targets(encoder, device)
    else:
        num_reading_sets = table.map_reading_sets
        once = table.model_copy(update={"map_reading_sets": 1})
        turns = slice(accelerator.process_index, None, accelerator.num_processes)
        targets = map_targets(folder / "map", table, sets, part=turns, show_progress=show_progress)
        held_out = map_targets(folder / "map-validation", once, validation, part=turns, show_progress=show_progress)
        accelerator.wait_for_everyone()
    statistics = statistics_of(targets, sets)
    return (
        DenoiserTask(device, num_probes, table, statistics, targets, num_reading_sets, config.seed),
        DenoiserTask(device, num_probes, table.model_copy(update={"drop": 0.0}), statistics, held_out, 1, config.seed),
    )


def _data(
    config: TrainingConfig, accelerator: Accelerator, show_progress: bool
) -> tuple[list[RegimeData], list[RegimeData]]:
    """Cases for training and for validation; one process simulates what is missing, and all read it."""
    if accelerator.is_main_process:
        for split in ("train", "validation"):
            load_or_simulate(config, split, show_progress=show_progress)
    accelerator.wait_for_everyone()
    return load_or_simulate(config, "train", make=False), load_or_simulate(config, "validation", make=False)


def _refuse_to_overwrite(folder: Path, family: str, stage: Stage) -> None:
    if checkpoint_paths(folder / stage) or _manifest_path(folder, family, stage).exists():
        raise UsageError(
            f"{folder} holds a run of {stage} already; go on with it by --resume, or choose another output folder"
        )


def _epochs_done(folder: Path, family: str, stage: Stage) -> int:
    """Epochs of the weights that there are; 0 where there are none."""
    path = _manifest_path(folder, family, stage)
    return load_weights(stage, get_family(family), folder).manifest.training["epochs"] if path.exists() else 0


def _manifest_path(folder: Path, family: str, stage: Stage) -> Path:
    return folder / f"{family}-{stage}.json"


def _accelerator(mixed_precision: str) -> Accelerator:
    try:
        from accelerate import Accelerator
    except ImportError as error:
        raise UsageError("training needs accelerate; install it with: pip install 'latentpde[train]'") from error
    try:
        return Accelerator(mixed_precision=mixed_precision)
    except ValueError as error:  # hardware without it, or another precision earlier in the same process
        raise UsageError(f"cannot train with mixed_precision = {mixed_precision!r}: {error}") from error
