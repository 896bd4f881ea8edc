"""Whether the intervals of `exact` cover what they say, over thousands of cases, for each regime and mask.

`latentpde.bench.studies.calibration` compares methods on a few cases; this is the long run that the claim rests on.
A case leaves nothing but its part in the means, so that a line stands for all cases of a regime and a mask.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from latentpde.bench.benchmark import Items, Plan, Study
from latentpde.bench.jobs import Job, Part
from latentpde.bench.lines import Line
from latentpde.bench.measurements import rounded
from latentpde.bench.rows import row, with_options
from latentpde.bench.solving import solve
from latentpde.bench.tables import NONE, Frame, Table
from latentpde.scores.calibration import compare
from latentpde.scores.metrics import crps, psd_log_error, rmse
from latentpde.scores.ranks import holm, rank_uniformity
from latentpde.simulation import EVALUATION_MASKS, Simulation

SEED = 3000  # of the first mask's cases; truths do not depend on the mask, and each mask should see its own
NUM_DRAWS = 39  # a rank has 40 values, and the ends of 50 % and 90 % intervals are draws
BATCH = 8
CELLS = np.array([(y, x) for y in (16, 48, 80, 112) for x in (40, 104)])
_BINS = 10  # of the ranks that are kept
_MEANS = ("rmse", "psd", "psd_of_draws", "crps", "coverage90", "coverage50", "trusted", "evaluations")


class Coverage(Study):
    """Simulation-based calibration of `exact`: means of scores, and ranks of coefficients and of the field."""

    name = "coverage"
    title = "coverage of the exact posterior's intervals over thousands of cases"
    num = 1024
    num_settings = len(EVALUATION_MASKS)
    in_all = False  # it takes hours
    timed = False

    def missing_tasks(self, plan: Plan) -> list[tuple[str, str, int]]:
        """Regime, mask and number of cases of each part that is not there with as many cases."""
        known = {(line["regime"], line["mask"]): line["num"] for line in self.lines(plan) if _of_mask(line)}
        wanted = [(regime, mask, plan.num) for regime in plan.regimes for mask in EVALUATION_MASKS]
        return [task for task in wanted if known.get(task[:2], 0) < plan.num]

    def run_task(self, task: tuple[str, str, int]) -> list[Line]:
        """A line for all cases, with ranks, and one for the cases of each kind of initial state."""
        regime, mask, num = task
        simulation = Simulation(regime=regime, mask=mask, seed=SEED + EVALUATION_MASKS.index(mask))
        job = Job(row=with_options(row("exact"), num_draws=NUM_DRAWS), simulation=simulation)
        scores, ranks = [], []
        for start in range(0, num, BATCH):
            some_scores, some_ranks = _measure(job, start, min(start + BATCH, num))
            scores.append(some_scores)
            ranks.append(some_ranks)
        table: Frame = pd.concat(scores)
        kinds = [
            {"regime": regime, "mask": mask, "initial": str(kind), **_means(some)}
            for kind, some in table.groupby("initial")
        ]
        return [{"regime": regime, "mask": mask, **_means(table), "ranks": _ranks(pd.concat(ranks))}, *kinds]

    def show(self, plan: Plan) -> Items:
        last = {(line["regime"], line.get("mask"), line.get("initial")): line for line in self.lines(plan)}
        lines = [line for line in last.values() if line["regime"] in plan.regimes]
        of_masks, of_kinds = [line for line in lines if _of_mask(line)], [line for line in lines if "initial" in line]
        p_values = [test["p"] for line in of_masks for test in line["ranks"].values()]
        corrected = f", {holm(p_values).min():.2g} corrected by Holm" if p_values else ""
        notes = (
            f"Share of the field inside central intervals of {NUM_DRAWS} draws, averaged over cases and cells.",
            f"Ranks: {len(p_values)} of Neyman's smooth tests, of each coefficient and of {len(CELLS)} cells, for each "
            f"regime and mask; smallest p {min(p_values, default=1.0):.2g}{corrected}.",
        )
        heads = ("regime", "cases", "RMSE", "CRPS", "PSD", "PSD of a draw", "50 %", "90 %", "trusted", "evaluations")
        digits = (".4f", ".4f", ".2f", ".2f", ".3f", ".3f", ".3f", ",.0f")
        names = ("rmse", "crps", "psd", "psd_of_draws", "coverage50", "coverage90", "trusted", "evaluations")
        rows = []
        for regime in plan.regimes:
            here = [line for line in of_masks if line["regime"] == regime]
            if here:
                cells = [format(_weighted(here, name), spec) for name, spec in zip(names, digits, strict=True)]
                rows.append((regime, f"{sum(line['num'] for line in here):,}", *cells))
        shown: Items = [Table(self.title, heads, tuple(rows), notes)]
        for what, some in (("mask", of_masks), ("initial", of_kinds)):
            kinds = list(dict.fromkeys(line[what] for line in some))
            if kinds:
                title = f"coverage of 90 % intervals by {'initial state' if what == 'initial' else what}"
                cells = [(regime, *(_cell(some, regime, what, kind) for kind in kinds)) for regime in plan.regimes]
                shown.append(Table(title, ("regime", *kinds), tuple(cells)))
        return shown


def _of_mask(line: Line) -> bool:
    """Whether a line stands for all cases of a regime and a mask."""
    return "initial" not in line


def _cell(lines: Iterable[Line], regime: str, what: str, kind: str) -> str:
    here = [line for line in lines if line["regime"] == regime and line[what] == kind]
    return f"{_weighted(here, 'coverage90'):.3f}" if here else NONE


def _weighted(lines: Sequence[Line], name: str) -> float:
    """The mean of a score over all cases of some lines."""
    return float(np.average([line[name] for line in lines], weights=[line["num"] for line in lines]))


def _measure(job: Job, start: int, stop: int) -> tuple[Frame, Frame]:
    """Scores of some cases, one row for each, and their ranks, one column for each quantity."""
    solved = solve(Part(job, start, stop))
    assert solved.draws is not None
    found = compare(solved.posterior, solved.cases, CELLS, (0.5, 0.9), start)
    diagnostics = solved.posterior.diagnostics
    scores = pd.DataFrame(
        {
            "initial": found["initial_kind"].values,
            "rmse": rmse(solved.mean, solved.truth),
            "psd": psd_log_error(solved.mean, solved.truth),
            "psd_of_draws": psd_log_error(solved.draws[:, 0], solved.truth),
            "crps": crps(solved.draws, solved.truth),
            "coverage90": found["coverage"].sel(level=0.9).values,
            "coverage50": found["coverage"].sel(level=0.5).values,
            "trusted": np.asarray(diagnostics["trusted"], dtype=float),
            "evaluations": np.asarray(diagnostics["num_evaluations"]),
        }
    )
    return scores, pd.DataFrame(found["rank"].values, columns=found["quantity"].values.astype(str))


def _means(table: Frame) -> dict[str, Any]:
    return {"num": len(table), **{name: round(float(table[name].mean()), 4) for name in _MEANS}}


def _ranks(table: Frame) -> dict[str, dict[str, Any]]:
    """For each quantity the p-value of uniform ranks, and how many ranks fall into each of ten bins."""
    return {
        name: {
            "p": rounded(rank_uniformity(values.to_numpy(), NUM_DRAWS)),
            "counts": np.bincount(values * _BINS // (NUM_DRAWS + 1), minlength=_BINS).tolist(),
        }
        for name, values in table.items()
    }
