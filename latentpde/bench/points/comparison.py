"""Methods compared on tasks at points: one line for each method and task, and a table for each set of tasks."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from latentpde.bench.benchmark import Items, Plan, Study
from latentpde.bench.lines import Line
from latentpde.bench.measurements import rounded
from latentpde.bench.tables import NONE, Frame, Table, mean_and_error, number
from latentpde.scores.points.task import Prediction, Predictor, Task, scores

REFERENCE = "gaussian process"


@dataclass(frozen=True, eq=False)
class TaskSet:
    """Tasks of one kind, and who takes part.

    Args:
        name: in lines and on top of its table.
        tasks: from an index to the tasks that belong together, such as the folds of one window.
        methods: by name.
        most: how many indices there are.
        pooled: whether the RMSE is that of all errors together, and not the mean over indices.
        absent: says how to install what the tasks need; None where it is there.
        notes: sentences below its table.
    """

    name: str
    tasks: Callable[[int], Sequence[Task]]
    methods: Mapping[str, Predictor]
    most: int
    pooled: bool = False
    absent: Callable[[], str | None] = lambda: None
    notes: tuple[str, ...] = field(default=())


class PointStudy(Study):
    """A study of some sets of tasks."""

    in_all = False  # it takes an hour
    timed = False

    @property
    @abstractmethod
    def sets(self) -> tuple[TaskSet, ...]:
        """What is compared."""

    def missing_tasks(self, plan: Plan) -> list[tuple[str, int, str]]:
        """Set, index and method of each comparison, as far as what the tasks need is installed."""
        known = {(line["set"], line["index"], line["method"]) for line in self.lines(plan)}
        wanted = [
            (some.name, index, method)
            for some in self.sets
            if some.absent() is None
            for index in range(min(plan.num, some.most))
            for method in some.methods
        ]
        return [task for task in wanted if task not in known]

    def run_task(self, task: tuple[str, int, str]) -> list[Line]:
        name, index, method = task
        (some,) = (some for some in self.sets if some.name == name)
        line: Line = {"set": name, "index": index, "method": method}
        try:
            found = compare(some.tasks(index), some.methods[method], seed=index)
        except Exception as error:
            found = {"failed": f"{type(error).__name__}: {error}"[:200]}
        return [{**line, **found}]

    def show(self, plan: Plan) -> Items:
        lines = pd.DataFrame([line for line in self.lines(plan) if line["index"] < plan.num])
        if lines.empty:
            return [Table(self.title, ("method",), (), self.failures(plan))]
        heads = ("method", "RMSE", "RMSE ratio", "MAE", "CRPS", "CRPS ratio", "90 %", "bias", "seconds", "tasks")
        note = f"Ratios are to the {REFERENCE}, over the tasks that both have. Seconds: the median of a task."
        shown: Items = []
        for some in self.sets:
            here: Frame = lines[lines["set"] == some.name]
            there = [method for method in some.methods if (here["method"] == method).any()]
            rows = tuple(_row(here, method, pooled=some.pooled) for method in there)
            shown.append(Table(some.name, heads, rows, (*some.notes, note, *filter(None, [some.absent()]))))
        failed = self.failures(plan)
        return [*shown, Table("tasks that failed", ("task",), tuple((text,) for text in failed))] if failed else shown


def compare(tasks: Sequence[Task], method: Predictor, *, seed: int) -> Line:
    """Scores of one method on tasks that belong together, as if they were one.

    Args:
        tasks: at least one.
        method: who predicts.
        seed: of its random numbers.
    """
    start = time.perf_counter()
    predictions = [method(task, seed=seed) for task in tasks]
    seconds = time.perf_counter() - start
    sizes = np.array([len(task.asked) for task in tasks])
    parts = [scores(*pair, seed=seed) for pair in zip(predictions, tasks, strict=True)]
    found = {name: float(np.average([part[name] for part in parts], weights=sizes)) for name in parts[0]}
    found["rmse"] = float(np.sqrt(np.average([part["rmse"] ** 2 for part in parts], weights=sizes)))
    line: Line = {name: rounded(value) for name, value in found.items()}
    line |= {"num": int(sizes.sum()), "seconds": rounded(seconds / len(tasks))}
    return line if len(tasks) > 1 else {**line, **_found(predictions[0], tasks[0])}


def _found(prediction: Prediction, task: Task) -> dict[str, Any]:
    """What else a prediction says, and where the true coefficients lie in their posteriors."""
    found = {name: rounded(value) if isinstance(value, float) else value for name, value in prediction.found.items()}
    if not prediction.coefficients:
        return found
    parts = {}
    for name, draws in prediction.coefficients.items():
        parts[name] = {"mean": rounded(float(draws.mean())), "std": rounded(float(draws.std(ddof=1)))}
        if name in task.truth:
            parts[name] |= {
                "true": rounded(task.truth[name]),
                "below": rounded(float(np.mean(draws < task.truth[name]))),
            }
    return {**found, "coefficients": parts}


def _row(lines: Frame, method: str, *, pooled: bool) -> tuple[str, ...]:
    here, reference = (lines[lines["method"] == name].set_index("index") for name in (method, REFERENCE))
    both = here.index.intersection(reference.index)

    def mean(some: Frame, score: str) -> float:
        if score == "rmse" and pooled:
            return float(np.sqrt(np.average(some["rmse"] ** 2, weights=some["num"])))
        return float(np.average(some[score], weights=some["num"] if pooled else None))

    def ratio(score: str) -> str:
        return NONE if both.empty else f"{mean(here.loc[both], score) / mean(reference.loc[both], score):.2f}"

    def cell(score: str) -> str:
        return number(mean(here, score)) if pooled else number(*mean_and_error(here[score]))

    errors = (cell("rmse"), ratio("rmse"), cell("mae"), cell("crps"), ratio("crps"))
    rest = (f"{mean(here, 'coverage90'):.3f}", f"{mean(here, 'bias'):.3g}", f"{here['seconds'].median():.1f}")
    return (method, *errors, *rest, f"{len(here)}")
