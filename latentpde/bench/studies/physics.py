"""Whether a PDE beats a Gaussian process that knows none, where one holds and where none does.

Plumes obey advection-diffusion, by an independent code and with everything unknown. Fields of a space-time process at
the same stations and hours obey no PDE. Real air temperatures are for anybody to guess. The odds are those of
``latentpde reconstruct --check-model``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

import latentpde as lp
from latentpde.bench.benchmark import Items, Plan, Study
from latentpde.bench.lines import Line
from latentpde.bench.measurements import rounded
from latentpde.bench.points.measured import air_task, air_temperature, missing_data
from latentpde.bench.points.plumes import EXTENT, HOURS, MISSING, NOISE_STD, NUM_STATIONS, plume_task
from latentpde.bench.tables import Frame, Table
from latentpde.errors import no_warnings
from latentpde.posterior.adequacy import CLEAR, as_odds
from latentpde.questions.model_check import check_model
from latentpde.scores.points.task import Readings, Task

PLUMES, PROCESS, AIR = "plumes", "no PDE", "air temperature"
_SEED = 7000
_CELLS = 16  # of the rectangle along its shorter side; odds do not depend on it
_STD, _RANGE, _HOURS = 4.0, 6.0, 4.0  # of the process: spread, and ranges in km and hours


class Physics(Study):
    """The odds of advection-diffusion against a process without physics."""

    name = "physics"
    title = "does the PDE beat a Gaussian process that knows none?"
    num = 12
    in_all = False
    timed = False

    def missing_tasks(self, plan: Plan) -> list[tuple[str, int]]:
        """Kind and index of each case that was not run."""
        known = {(line["kind"], line["index"]) for line in self.lines(plan)}
        kinds = (PLUMES, PROCESS) if missing_data(air_temperature) else (PLUMES, PROCESS, AIR)
        return [task for task in ((kind, i) for i in range(plan.num) for kind in kinds) if task not in known]

    def run_task(self, task: tuple[str, int]) -> list[Line]:
        kind, index = task
        return [{"kind": kind, "index": index, **measure(kind, index)}]

    def show(self, plan: Plan) -> Items:
        lines: Frame = pd.DataFrame([line for line in self.lines(plan) if line["index"] < plan.num])
        if lines.empty:
            return []
        rows = [_row(lines[lines["kind"] == kind], kind) for kind in (PLUMES, PROCESS, AIR)]
        heads = ("readings of", "cases", "PDE beats it", "not decided", "process beats it", "odds of the PDE, median")
        note = (
            "advection_diffusion with noise, start, source and their levels unknown, against a space-time Gaussian "
            "process with its scales fitted. Beats: at odds of 10 to 1 or more. plumes: 36 stations, 6 hourly readings "
            "each, by an independent code; no PDE: a draw of a separable space-time process at such stations; air "
            "temperature: 60 cells over North America at six times, six hours apart."
        )
        return [Table(self.title, heads, tuple(row for row in rows if row), (note, *self.failures(plan)))]


def measure(kind: str, index: int) -> Line:
    """The log odds of one case, and whether the checks of the run itself raise an alarm.

    Args:
        kind: what the readings are of.
        index: of the case.
    """
    task = {PLUMES: plume_task, PROCESS: process_task, AIR: air_task}[kind](index)
    readings, cell = task.readings, min(task.extent) / _CELLS
    rectangle = lp.Grid((round(task.extent[0] / cell), round(task.extent[1] / cell)), task.extent, task.origin)
    (y, x), seen = readings.points.T, lp.Observation.from_table
    with no_warnings():
        observation = seen(readings.values, y=y, x=x, t=readings.times, grid=rectangle)
        posterior: Any = lp.reconstruct(observation, "advection_diffusion", num_draws=2, seed=index)
        found = check_model(posterior, seed=index)
    return {
        "log_odds": rounded(float(found.log_odds[0])),
        "p_model": rounded(float(posterior.diagnostics["p_model"][0])),
    }


def process_task(index: int) -> Task:
    """Readings of a separable space-time process, smooth in space and rough in time, at stations as the plumes have.

    Args:
        index: of the case, from 0; the same index gives the same case.
    """
    rng = np.random.default_rng([_SEED, index])
    stations = rng.uniform(0, EXTENT, (NUM_STATIONS, 2))
    apart = np.sqrt(3) * np.linalg.norm(stations[:, None] - stations, axis=-1) / _RANGE
    in_space = np.linalg.cholesky((1 + apart) * np.exp(-apart) + 1e-9 * np.eye(NUM_STATIONS))
    in_time = np.linalg.cholesky(np.exp(-np.abs(HOURS[:, None] - HOURS) / _HOURS))
    fields = 8.0 + _STD * in_time @ rng.standard_normal((len(HOURS), NUM_STATIONS)) @ in_space.T
    values = (fields + NOISE_STD * rng.standard_normal(fields.shape)).ravel()
    kept = rng.random(len(values)) >= MISSING
    names = np.tile(np.arange(NUM_STATIONS), len(HOURS))
    readings = Readings(stations[names], np.repeat(HOURS, NUM_STATIONS), values, names)
    return Task(f"no PDE {index}", readings[kept], readings[kept], (0.0, 0.0), EXTENT, noisy=True)


def _row(lines: Frame, kind: str) -> tuple[str, ...]:
    if lines.empty:
        return ()
    odds = lines["log_odds"].to_numpy(dtype=float)
    median = float(np.median(odds))
    words = as_odds(median) if median >= 0 else f"{as_odds(-median)} against"
    counts = (odds >= CLEAR, np.abs(odds) < CLEAR, odds <= -CLEAR)
    return (kind, f"{len(odds)}", *(f"{int(c.sum())}" for c in counts), words)
