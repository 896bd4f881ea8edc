"""Plumes over an open domain, from an independent code, with everything unknown: the PDE and tools without physics."""

from __future__ import annotations

from functools import lru_cache

from latentpde.bench.points.comparison import PointStudy, TaskSet
from latentpde.bench.points.model import Exact
from latentpde.bench.points.plumes import plume_task
from latentpde.bench.points.rivals import RIVALS
from latentpde.scores.points.task import Task


class Plumes(PointStudy):
    """The field at the last hour, from hourly readings of 36 stations."""

    name = "plumes"
    title = "plumes over an open domain, from an independent code"
    num = 20

    @property
    def sets(self) -> tuple[TaskSet, ...]:
        note = (
            "36 stations, 6 hourly readings each with noise of 0.4, a tenth missing; the truth is a finite-difference "
            "solution on a much larger domain, asked for at 40 x 64 cells of the observed one at the last hour."
        )
        return (
            TaskSet("plumes", _tasks, {"exact": Exact("advection_diffusion"), **RIVALS}, most=10_000, notes=(note,)),
        )


@lru_cache(maxsize=2)  # methods take turns on the same case
def _tasks(index: int) -> tuple[Task, ...]:
    return (plume_task(index),)
