"""Real measurements that nobody here made: cells and stations that are hidden, predicted from the others."""

from __future__ import annotations

from functools import lru_cache

from latentpde.bench.points.comparison import PointStudy, TaskSet
from latentpde.bench.points.left_out import gaussian_process_left_out, kriging_left_out
from latentpde.bench.points.measured import (
    NUM_WINDOWS,
    air_task,
    air_temperature,
    missing_data,
    pm10,
    pm10_tasks,
    pm10_whole,
)
from latentpde.bench.points.model import Exact, SnapshotBySnapshot
from latentpde.bench.points.rivals import RIVALS
from latentpde.scores.points.task import Task

_AIR = (
    "Temperatures in K of 60 cells of 2.5 degrees at six times, six hours apart, a tenth missing; all other cells are "
    "asked for at the last of them."
)
_PM10 = (
    "Daily means in µg/m³ of five days; a tenth of the stations is left out, ten times over, and methods are fitted "
    "anew each time. Errors of all stations and days together. Day by day: the screened Poisson equation, each day a "
    "case of its own."
)
_VIGNETTE = (
    "One station after another left out, with parameters that were fitted to all of them. Of the whole year, which is "
    "73 windows, gstat's vignette has an RMSE of 6.05 and an MAE of 4.04 for its best space-time kriging, and 6.10 and "
    "4.07 for kriging day by day."
)


class Real(PointStudy):
    """Air temperature over North America, and PM10 at rural stations in Germany."""

    name = "real"
    title = "real measurements: hidden cells and stations"
    num = 12  # of each set

    @property
    def sets(self) -> tuple[TaskSet, ...]:
        methods = {"exact": Exact("advection_diffusion"), **RIVALS}
        by_day = {"exact, day by day": SnapshotBySnapshot(Exact("screened_poisson")), **methods}
        left_out = {"gaussian process": gaussian_process_left_out, "kriging": kriging_left_out}
        return (
            TaskSet("air temperature", _air_tasks, methods, most=10_000, absent=_without_air, notes=(_AIR,)),
            TaskSet("PM10", pm10_tasks, by_day, most=NUM_WINDOWS, pooled=True, absent=_without_pm10, notes=(_PM10,)),
            TaskSet("PM10, one station left out", lambda i: [pm10_whole(i)], left_out, most=NUM_WINDOWS, pooled=True,
                    absent=_without_pm10, notes=(_VIGNETTE,)),
        )  # fmt: skip


@lru_cache(maxsize=2)  # methods take turns on the same task
def _air_tasks(index: int) -> tuple[Task, ...]:
    return (air_task(index),)


def _without_air() -> str | None:
    return missing_data(air_temperature)


def _without_pm10() -> str | None:
    return missing_data(pm10)
