"""On the rivals' own ground: the linear tasks that learned samplers report on, with the exact posterior beside them."""

from __future__ import annotations

import torch

from latentpde.bench.benchmark import Items, Plan, Study
from latentpde.bench.lines import Line
from latentpde.bench.measurements import rounded
from latentpde.bench.rivals.tables import TABLES
from latentpde.bench.rivals.tasks import key, measure, tasks


class Rivals(Study):
    """Poisson and Helmholtz as DiffusionPDE and FunDPS pose them, and heat between cold walls."""

    name = "rivals"
    title = "the linear tasks of DiffusionPDE, FunDPS and boundary-constrained Gaussian processes"
    num = 500
    in_all = False  # it wants a core to itself for a quarter of an hour

    def missing_tasks(self, plan: Plan) -> list[Line]:
        """Layouts of 50 fields, and heat cases, that were not measured."""
        known = [key(line) for line in self.lines(plan)]
        return [task for task in tasks(plan.num) if task not in known]

    def run_task(self, task: Line) -> list[Line]:
        threads = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            found = measure(task)
        finally:
            torch.set_num_threads(threads)
        return [{**task, **{name: rounded(float(value)) for name, value in found.items()}}]

    def show(self, plan: Plan) -> Items:
        lines = self.lines(plan)
        return [table(lines) for table in TABLES]
