"""The model under test, called as a user calls it: the readings, the family, and nothing else."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import latentpde as lp
from latentpde.scores.points.task import Prediction, Task

_CELLS = 32  # of the rectangle to reconstruct along its shorter side; predictions do not depend on it


@dataclass(frozen=True)
class Exact:
    """`exact` on a table of readings, with all that is not the family inferred.

    Args:
        family: name of the PDE.
        num_draws: posterior draws that scores are taken over.
    """

    family: str
    num_draws: int = 200

    def __call__(self, task: Task, *, seed: int) -> Prediction:
        readings, asked = task.readings, task.asked
        (y, x), cell = readings.points.T, min(task.extent) / _CELLS
        rectangle = lp.Grid((round(task.extent[0] / cell), round(task.extent[1] / cell)), task.extent, task.origin)
        observation = lp.Observation.from_table(readings.values, y=y, x=x, t=readings.times, grid=rectangle)
        posterior = lp.reconstruct(observation, self.family, num_draws=self.num_draws, seed=seed)
        mean, std, draws = predicted(posterior, asked.points, asked.times)
        names = posterior.coefficients["coefficient"].values.tolist()
        levels = posterior.levels.mean("draw")
        return Prediction(
            mean,
            std,
            float(levels.sel(level="noise_std")),
            draws,
            coefficients={name: posterior.coefficients.sel(coefficient=name).values for name in names},
            found={
                **{str(name): float(levels.sel(level=name)) for name in levels["level"].values},
                "trusted": bool(posterior.diagnostics["trusted"][0]),
                "evaluations": int(posterior.diagnostics["num_evaluations"][0]),
            },
        )


@dataclass(frozen=True)
class SnapshotBySnapshot:
    """`exact` of a steady family, which knows of no time, on the readings of each time by themselves.

    Args:
        model: on the readings of one time.
    """

    model: Exact

    def __call__(self, task: Task, *, seed: int) -> Prediction:
        num, asked, readings = len(task.asked), task.asked.times, task.readings
        mean, std, noise, draws = np.empty(num), np.empty(num), np.empty(num), np.empty((self.model.num_draws, num))
        for time in np.unique(asked):
            here = asked == time
            part = replace(task, readings=readings[readings.times == time], asked=task.asked[here])
            found = self.model(part, seed=seed)
            assert found.draws is not None
            mean[here], std[here], noise[here], draws[:, here] = found.mean, found.std, found.noise_std, found.draws
        return Prediction(mean, std, noise, draws)


def predicted(posterior: Any, points: np.ndarray, times: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mean and standard deviation ``(point,)`` and draws ``(draw, point)`` at places, each at its own time."""
    found = posterior.at(points, times)
    return found["mean"].values, found["std"].values, found["draws"].values
