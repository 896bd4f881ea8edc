"""Whether to believe a method's uncertainty: ranks of the truth, coverage of intervals, spread against error."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from latentpde.bench.benchmark import Benchmark, Drawing, Items, Plan
from latentpde.bench.figures import styles
from latentpde.bench.jobs import Job, jobs_on
from latentpde.bench.measurements import measurements, rounded
from latentpde.bench.rows import Row, with_options
from latentpde.bench.solving import Solved
from latentpde.bench.store import failures
from latentpde.bench.tables import Frame, Table, mean_over_regimes, number
from latentpde.errors import UsageError
from latentpde.estimators import methods
from latentpde.scores.calibration import LEVELS, compare
from latentpde.scores.ranks import ecdf_band, holm, rank_uniformity

NUM_DRAWS = 39  # the ends of 50 % and 90 % intervals are then draws
_EVERY = 32  # the field is ranked at cells this far apart


def measure_calibration(solved: Solved) -> list[dict]:
    """Ranks of the coefficients and of the field at 16 cells, coverage at ten levels, and spread and error."""
    if solved.draws is None:
        raise UsageError(f"{solved.job.row.name} has no spread")
    at = range(_EVERY // 2, solved.truth.shape[-1], _EVERY)
    cells = np.array([(row, column) for row in at for column in at])
    found = compare(solved.posterior, solved.cases, cells, LEVELS, solved.start)
    lines = []
    for _, case in found.groupby("case"):
        ranks = {kind: values["rank"].values.ravel().tolist() for kind, values in case.groupby("quantity_kind")}
        lines.append(
            {
                "ranks": ranks["field"],
                **({"theta_ranks": ranks["coefficient"]} if "coefficient" in ranks else {}),
                "coverage": [round(float(v), 3) for v in case["coverage"].values.ravel()],
                "spread": rounded(case["spread"].item()),
                "error": rounded(case["error"].item()),
            }
        )
    return lines


measurements["calibration"] = measure_calibration


class Calibration(Benchmark):
    """Every method that has a spread, on the same cases."""

    name = "calibration"
    title = "ranks, coverage, and spread against error of every method with a spread"
    num = 32

    def spread_rows(self, plan: Plan) -> list[Row]:
        """Rows that have a spread, with as many draws as the levels ask for, or as an ensemble has members."""
        named = [_with_spread(some) for some in plan.rows]
        return [
            some if some.method == "enkf" else with_options(some, num_draws=NUM_DRAWS)
            for some in named
            if methods.get(some.method).has_spread
        ]

    def jobs(self, plan: Plan) -> list[Job]:
        return jobs_on(self.spread_rows(plan), plan.regimes, measurement="calibration")

    def show(self, plan: Plan) -> Items:
        everything = plan.frame(self.jobs(plan))
        table = everything[everything["failed"].isna()].copy()
        if table.empty:
            return [Table(self.title, ("method",), (), failures(everything))]
        for level in (0.5, 0.9):
            table[f"coverage {level}"] = [curve[LEVELS.index(level)] for curve in table["coverage"]]
        rows = []
        for some in self.spread_rows(plan):
            here = table[table["row"] == some.name]
            if here.empty:
                continue
            p = holm(self._p_values(here, some.num_draws))
            ratio = np.sqrt((here["spread"] ** 2).mean() / (here["error"] ** 2).mean())
            cover = [number(*mean_over_regimes(here, f"coverage {level}")) for level in (0.5, 0.9)]
            most = (some.num_draws - 1) / (some.num_draws + 1)
            rows.append((some.name, str(some.num_draws), *cover, f"{min(0.9, most):.3f}", number(float(ratio)),
                         number(float(p.min())), str(len(p))))  # fmt: skip
        heads = ("method", "draws", "50 %", "90 %", "90 % reachable", "spread / error", "smallest p", "tests")
        note = (
            "Means over regimes of the share of the field inside central intervals. p: Neyman's smooth test of uniform "
            "ranks, of each coefficient and of 16 cells, regime by regime; the smallest, corrected by Holm."
        )
        return [
            Table(self.title, heads, tuple(rows), (note, *failures(everything))),
            Drawing(
                "Coverage of the field by central intervals, all regimes.", self._coverage(table, plan), "coverage"
            ),
            Drawing(
                "Ranks of the field at 16 cells less what is expected; grey: 99 % band.",
                self._ranks(table, plan),
                "ranks",
            ),
            Drawing("Spread against error, case by case.", self._spread(table, plan), "spread"),
        ]

    def _p_values(self, here: Frame, num_draws: int) -> list[float]:
        found = []
        for _, some in here.groupby("regime", sort=False):
            for what in ("ranks", "theta_ranks"):
                if what in some and some[what].notna().all():
                    found += [rank_uniformity(values, num_draws) for values in np.array(list(some[what])).T]
        return found

    def _coverage(self, table: Frame, plan: Plan) -> Figure:
        figure = Figure((5.0, 4.4), layout="constrained")
        ax = figure.subplots()
        ax.plot([0, 1], [0, 1], color="#888888", linestyle="--", linewidth=1)
        rows = self.spread_rows(plan)
        for some, colour, marker in styles(rows):
            here = table[table["row"] == some.name]
            if not here.empty:
                ax.plot(LEVELS, np.mean(list(here["coverage"]), axis=0), color=colour, marker=marker, label=some.name)
        ax.set(xlabel="nominal", ylabel="covered", xlim=(0, 1), ylim=(0, 1))
        ax.grid(color="#dddddd", linewidth=0.6)
        ax.legend(fontsize=8, edgecolor="none")
        return figure

    def _ranks(self, table: Frame, plan: Plan) -> Figure:
        rows = [some for some in self.spread_rows(plan) if (table["row"] == some.name).any()]
        figure = Figure((2.7 * len(rows) + 0.5, 2.9), layout="constrained")
        for ax, some in zip(np.atleast_1d(figure.subplots(1, len(rows), sharey=True)), rows, strict=True):
            values = np.array(list(table[table["row"] == some.name]["ranks"]))
            uniform = np.arange(1, some.num_draws + 2) / (some.num_draws + 1)
            low, high = ecdf_band(len(values), some.num_draws)
            ax.fill_between(uniform, low - uniform, high - uniform, color="#d9d9d9", linewidth=0)
            for cell in values.T:
                ecdf = np.cumsum(np.bincount(cell, minlength=some.num_draws + 1)) / len(cell)
                ax.plot(uniform, ecdf - uniform, color="#0072b2", linewidth=0.7, alpha=0.7)
            ax.set(title=some.name, xlabel="rank / draws")
            ax.axhline(0, color="#222222", linewidth=0.8)
        figure.axes[0].set_ylabel("ECDF less uniform")
        return figure

    def _spread(self, table: Frame, plan: Plan) -> Figure:
        figure = Figure((5.0, 4.4), layout="constrained")
        ax, rows = figure.subplots(), self.spread_rows(plan)
        for some, colour, marker in styles(rows):
            here = table[table["row"] == some.name]
            if not here.empty:
                ax.loglog(
                    here["error"], here["spread"], marker, color=colour, markersize=3.5, alpha=0.6, label=some.name
                )
        limits = (table[["error", "spread"]].min().min(), table[["error", "spread"]].max().max())
        ax.plot(limits, limits, color="#888888", linestyle="--", linewidth=1)
        ax.set(xlabel="error of the ensemble mean", ylabel="spread")
        ax.grid(color="#dddddd", linewidth=0.6)
        ax.legend(fontsize=8, edgecolor="none")
        return figure


def _with_spread(some: Row) -> Row:
    """The same row with a spread; 3D-Var has one on request."""
    return some if some.method != "3dvar" else with_options(some, name=some.name, spread=True)
