"""What a training writes down of itself: in the manifest of its weights, and in checkpoints to be compared later."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from latentpde import __version__
from latentpde.nn import NetworkSize
from latentpde.nn.neural_operator import OPERATOR_PRESETS, OperatorSize
from latentpde.nn.weights import FORMAT, Manifest
from latentpde.pde import get_family
from latentpde.training.config import Stage, TrainingConfig
from latentpde.training.data import RegimeData
from latentpde.training.field_task import FieldTask
from latentpde.training.log import TrainingLog
from latentpde.training.tasks import DenoiserTask, Task


def stage_settings(config: TrainingConfig, stage: Stage) -> dict[str, Any]:
    """All settings that the weights of one stage depend on, as JSON has them.

    Example:
        >>> from latentpde.training.config import load_config
        >>> settings = stage_settings(load_config("helmholtz-compact"), "encoder")
        >>> settings["encoder"]["epochs"], settings["data"]["shape"]
        (8, [128, 128])
    """
    return {
        "preset": config.preset,
        "seed": config.seed,
        "mixed_precision": config.mixed_precision,
        "regimes": config.regime_names,
        "data": json.loads(config.data.model_dump_json()),
        stage: getattr(config, stage).model_dump(),
    }


def make_manifest(
    config: TrainingConfig, stage: Stage, task: Task, sets: list[RegimeData], log: TrainingLog
) -> Manifest:
    """The manifest of a stage's weights.

    Args:
        config: the configuration of the training.
        stage: the network that was trained.
        task: what it was trained for; a denoiser's holds the noise schedule and the normalisation.
        sets: the training cases, one set for each regime.
        log: losses of all epochs.
    """
    family, simulation = get_family(config.family), sets[0].simulation
    size: NetworkSize | OperatorSize = config.size
    statistics, power, schedule = None, None, None
    if isinstance(task, DenoiserTask):
        statistics, schedule = task.statistics, asdict(task.schedule)
    elif isinstance(task, FieldTask):
        size, statistics, power = OPERATOR_PRESETS[config.preset], task.statistics, task.statistics.power.tolist()
        schedule = {"sigma_data": task.table.sigma_data, "noise_length": task.table.noise_length}
    return Manifest(
        format=FORMAT,
        family=family.name,
        coefficients=list(family.coefficient_names),
        role=stage,
        size=asdict(size),
        num_modes=config.data.num_modes,
        mean=statistics.mean.tolist() if statistics else None,
        std=statistics.std.tolist() if statistics else None,
        power=power,
        schedule=schedule,
        training={"config": stage_settings(config, stage), **log.summary()},
        conditions={
            "grid": list(sets[0].grid.shape),
            "times": list(simulation.times or ()),
            "noise_std": config.data.noise_std,
            "regimes": config.regime_names,
            "prior": [data.units.prior.tolist() for data in sets],
        },
        latentpde=__version__,
    )
