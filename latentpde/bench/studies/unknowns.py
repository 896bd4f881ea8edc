"""What it costs not to know something: each unknown by itself and all together, and whether the posterior says so.

Cases are drawn from the prior, so coefficients, levels and field must have uniform ranks among the posterior's draws,
and 90 % intervals must cover 90 %. The price is the ratio of the error to that on the same cases with all of it known.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

import latentpde as lp
from latentpde.bench.benchmark import Items, Plan, Study
from latentpde.bench.lines import Line
from latentpde.bench.measurements import rounded
from latentpde.bench.points.model import predicted
from latentpde.bench.points.prior_draws import BOUNDS, LEVELS, NUM_CELLS, PriorCase, prior_case
from latentpde.bench.tables import NONE, Frame, Table, mean_and_error, number
from latentpde.scores.points.task import Prediction, scores
from latentpde.scores.ranks import holm, rank_uniformity, ranks

NUM_DRAWS = 39  # a rank has 40 values, and the ends of 90 % intervals are draws
_CELLS = [(NUM_CELLS * row // 4) * NUM_CELLS + NUM_CELLS * column // 2 for row in (1, 3) for column in (0, 1)]
KNOWN = "nothing"


@dataclass(frozen=True)
class Unknown:
    """What of a case is not told.

    Args:
        noise: the noise's standard deviation.
        state: strength and length of the initial state's prior.
        source: those of the source's.
        trend: what is added to the field: ``none``, a ``constant``, or a ``linear`` function of the place.
        edges: whether the domain goes on beyond its edges.
    """

    noise: bool = False
    state: bool = False
    source: bool = False
    trend: str = "none"
    edges: bool = False

    def case(self, index: int) -> PriorCase:
        """A case that has what is not told."""
        return prior_case(index, open_edges=self.edges, constant=self.trend != "none", slopes=self.trend == "linear")

    def posterior(self, case: PriorCase, seed: int) -> Any:
        """What `exact` makes of a case, told the rest."""
        readings, levels = case.task.readings, case.levels
        (y, x), edge = readings.points.T, "open" if self.edges else "periodic"
        observation = lp.Observation.from_table(
            readings.values,
            y=y,
            x=x,
            t=readings.times,
            sigma=None if self.noise else levels["noise_std"],
            grid=lp.Grid((NUM_CELLS, NUM_CELLS)),
            domain=lp.Domain(y=edge, x=edge),
        )

        def spectrum(name: str, unknown: bool) -> Any:
            told = LEVELS if unknown else levels
            return lp.Matern(std=told[f"{name}_prior_std"], length=told[f"{name}_prior_length"])

        return lp.reconstruct(
            observation,
            "advection_diffusion",
            num_draws=NUM_DRAWS,
            seed=seed,
            noise_std=LEVELS["noise_std"] if self.noise else None,
            bounds=BOUNDS,
            initial=spectrum("initial", self.state),
            source=spectrum("source", self.source),
            trend=self.trend,
        )


UNKNOWNS = {
    KNOWN: Unknown(),
    "noise": Unknown(noise=True),
    "state's levels": Unknown(state=True),
    "source's levels": Unknown(source=True),
    "constant": Unknown(trend="constant"),
    "slopes": Unknown(trend="linear"),
    "open edges": Unknown(edges=True),
    "everything": Unknown(noise=True, state=True, source=True, trend="constant", edges=True),
}


class Unknowns(Study):
    """Simulation-based calibration of what is inferred, one unknown after another."""

    name = "unknowns"
    title = "what it costs not to know something, and whether intervals say so"
    num = 256
    in_all = False  # it takes hours
    timed = False

    def missing_tasks(self, plan: Plan) -> list[tuple[str, int]]:
        """Unknown and index of each case that was not run."""
        known = {(line["unknown"], line["index"]) for line in self.lines(plan)}
        wanted = [(name, index) for index in range(plan.num) for name in UNKNOWNS]
        return [task for task in wanted if task not in known]

    def run_task(self, task: tuple[str, int]) -> list[Line]:
        name, index = task
        line: Line = {"unknown": name, "index": index}
        try:
            found = measure(UNKNOWNS[name], index)
        except Exception as error:
            found = {"failed": f"{type(error).__name__}: {error}"[:200]}
        return [{**line, **found}]

    def show(self, plan: Plan) -> Items:
        lines: Frame = pd.DataFrame([line for line in self.lines(plan) if line["index"] < plan.num])
        rows = [] if lines.empty else [_row(lines, name) for name in UNKNOWNS if (lines["unknown"] == name).any()]
        heads = (
            "not known",
            "cases",
            "RMSE",
            "price",
            "CRPS",
            "field",
            "coefficients",
            "levels",
            "smallest p",
            "seconds",
        )
        notes = (
            "Price: the RMSE over that with nothing unknown, on cases of the same coefficients, levels and stations; "
            "with open edges the field itself goes on beyond them, and is another. Field, coefficients "
            f"and levels: the share that 90 % intervals of {NUM_DRAWS} draws cover. p: Neyman's smooth test of uniform "
            "ranks, of each coefficient, each level and the field at four cells; the smallest, corrected by Holm.",
        )
        return [Table(self.title, heads, tuple(rows), (*notes, *self.failures(plan)))]


def measure(unknown: Unknown, index: int) -> Line:
    """Scores of one case, and ranks of all that was drawn.

    Args:
        unknown: what is not told.
        index: of the case.
    """
    case, start = unknown.case(index), time.perf_counter()
    posterior = unknown.posterior(case, seed=index)
    mean, std, draws = predicted(posterior, case.task.asked.points, case.task.asked.times)
    seconds = time.perf_counter() - start
    found = scores(Prediction(mean, std, 0.0, draws), case.task, seed=index)
    truths = {f"u[{cell}]": case.task.asked.values[cell] for cell in _CELLS} | case.task.truth
    drawn = {f"u[{cell}]": draws[:, cell] for cell in _CELLS}
    for array, axis in ((posterior.coefficients, "coefficient"), (posterior.levels, "level")):
        for name in array[axis].values.tolist():
            drawn[name] = array.sel({axis: name}).values
    truths |= {name: value for name, value in case.levels.items() if name in drawn}
    found_ranks = ranks(np.stack([drawn[name] for name in truths]), np.array([*truths.values()]), seed=index)
    scored = {name: rounded(value) for name, value in found.items()}
    trusted = bool(posterior.diagnostics["trusted"][0])
    return {
        **scored,
        "seconds": rounded(seconds),
        "trusted": trusted,
        "ranks": dict(zip(truths, found_ranks.tolist(), strict=True)),
    }


def _row(lines: Frame, name: str) -> tuple[str, ...]:
    here, known = (lines[lines["unknown"] == some].set_index("index") for some in (name, KNOWN))
    both = here.index.intersection(known.index)
    table = pd.DataFrame(here["ranks"].tolist())
    inside = (table >= 2) & (table <= NUM_DRAWS - 2)  # of 40 ranks, 36

    def covered(wanted: Callable[[str], bool]) -> str:
        names = [column for column in table if wanted(str(column))]
        return f"{inside[names].to_numpy().mean():.3f}" if names else NONE

    price = NONE if both.empty else f"{here['rmse'][both].mean() / known['rmse'][both].mean():.3f}"
    p = holm([rank_uniformity(table[column].to_numpy(), NUM_DRAWS) for column in table]).min()
    errors = (number(*mean_and_error(here["rmse"])), price, number(*mean_and_error(here["crps"])))
    coverage = (f"{here['coverage90'].mean():.3f}", covered(BOUNDS.__contains__), covered(LEVELS.__contains__))
    return (name, f"{len(here)}", *errors, *coverage, number(float(p)), f"{here['seconds'].median():.1f}")
