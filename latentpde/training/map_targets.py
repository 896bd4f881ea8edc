"""MAP estimates as targets of a denoiser: made a few cases at a time and kept in files, so that the work can be
interrupted."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from latentpde.errors import DataError
from latentpde.estimators.map import CASES_AT_ONCE, Map
from latentpde.io.tensors import read_tensors, write_tensors
from latentpde.observation import Observation
from latentpde.progress import progress
from latentpde.training.config import DenoiserTable
from latentpde.training.data import RegimeData
from latentpde.training.tasks import Targets


def map_targets(
    folder: Path,
    table: DenoiserTable,
    sets: list[RegimeData],
    *,
    part: slice = slice(None),
    show_progress: bool = False,
) -> Targets:
    """Targets: MAP estimates for the first ``map_reading_sets`` sets of readings of each case.

    Args:
        folder: where estimates are kept, and looked for before they are made.
        table: how many sets of readings, and how many steps and restarts of `map`.
        sets: cases, one set for each regime.
        part: which of all files this process makes; others are left to other processes.
        show_progress: draw a bar on a terminal, print lines elsewhere.
    """
    folder.mkdir(parents=True, exist_ok=True)
    pieces = [
        (data, reading_set, start)
        for data in sets
        for reading_set in range(table.map_reading_sets)
        for start in range(0, len(data), CASES_AT_ONCE)
    ]
    own = [piece for piece in pieces[part] if not _path(folder, *piece).exists()]
    num_missing = sum(min(CASES_AT_ONCE, len(data) - start) for data, _, start in own)
    with progress("MAP targets", num_missing, show=show_progress) as advance:
        for data, reading_set, start in own:
            indices = np.arange(start, min(start + CASES_AT_ONCE, len(data)))
            observation = data.read(indices, reading_set)
            estimator = Map(num_steps=table.map_steps, num_restarts=table.map_restarts)
            found = estimator.estimate(observation, data.latent, num_draws=1, seed=data.seed)
            write_tensors(_path(folder, data, reading_set, start), {"z": found.z[:, 0]}, {"key": _key(table, data)})
            advance(len(indices))
    kept: dict[tuple[str, int], Tensor] = {}

    def targets(data: RegimeData, indices: np.ndarray, observation: Observation, reading_set: int) -> Tensor:
        name = (data.name, reading_set)
        if name not in kept:
            kept[name] = _read(folder, table, data, reading_set)
        return data.units.from_latent(kept[name][torch.from_numpy(indices)])

    return targets


def _read(folder: Path, table: DenoiserTable, data: RegimeData, reading_set: int) -> Tensor:
    parts = []
    for start in range(0, len(data), CASES_AT_ONCE):
        path = _path(folder, data, reading_set, start)
        tensors, metadata = read_tensors(path)
        if metadata.get("key") != _key(table, data):
            raise DataError(f"{path} was made with other settings; delete {folder} or choose another output folder")
        parts.append(tensors["z"])
    return torch.cat(parts)


def _key(table: DenoiserTable, data: RegimeData) -> str:
    made_with = [table.map_steps, table.map_restarts, data.seed, len(data), data.simulation.noise_std]
    if not torch.equal(data.latent.bounds, data.simulation.latent.bounds):
        made_with.append(data.latent.bounds.tolist())
    return json.dumps(made_with)


def _path(folder: Path, data: RegimeData, reading_set: int, start: int) -> Path:
    return folder / f"{data.name}-{reading_set}-{start:06d}.safetensors"
