"""Whether to believe a method's uncertainty: ranks of the truth, coverage of intervals, spread against error."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from latentpde.bench.benchmark import Benchmark, Drawing, Items, Plan
from latentpde.bench.figures import styles
from latentpde.bench.jobs import Job
from latentpde.bench.measurements import measurements, rounded
from latentpde.bench.rows import Row, with_options
from latentpde.bench.solving import Solved
from latentpde.bench.store import failures
from latentpde.bench.tables import Frame, Table, mean_over_regimes, number
from latentpde.errors import UsageError
from latentpde.estimators import methods
from latentpde.report.calibration import coverage_figure, draw_rank_ecdf, spread_error_figure
from latentpde.report.style import figure_of_panels, name_panel
from latentpde.scores.calibration import LEVELS, compare
from latentpde.scores.ranks import holm, rank_uniformity

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
        return plan.jobs_on(self.spread_rows(plan), plan.regimes, measurement="calibration")

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
            *self._drawings(table, plan),
        ]

    def _p_values(self, here: Frame, num_draws: int) -> list[float]:
        found = []
        for _, some in here.groupby("regime", sort=False):
            for what in ("ranks", "theta_ranks"):
                if what in some and some[what].notna().all():
                    found += [rank_uniformity(values, num_draws) for values in np.array(list(some[what])).T]
        return found

    def _drawings(self, table: Frame, plan: Plan) -> list[Drawing]:
        """Coverage, ranks, and spread against error, method by method."""
        rows = [some for some in self.spread_rows(plan) if (table["row"] == some.name).any()]
        marks = {row.name: (colour, marker) for row, colour, marker in styles(rows)}
        cases = {row.name: table[table["row"] == row.name] for row in rows}
        coverage = {name: np.array(list(some["coverage"])) for name, some in cases.items()}
        spread_error = {name: (some["spread"].to_numpy(), some["error"].to_numpy()) for name, some in cases.items()}
        return [
            Drawing(
                "Coverage of the field by central intervals, all regimes.",
                coverage_figure(coverage, LEVELS, marks),
                "coverage",
            ),
            Drawing(
                "Ranks of the field at 16 cells less what is expected; grey: 99 % band, which orange curves leave.",
                self._ranks(rows, cases),
                "ranks",
            ),
            Drawing("Spread against error, case by case.", spread_error_figure(spread_error, marks), "spread"),
        ]

    def _ranks(self, rows: list[Row], cases: dict[str, Frame]) -> Figure:
        figure, axes = figure_of_panels(len(rows), len(rows), 2.7, 2.9)
        for ax, row in zip(axes, rows, strict=True):
            cells = np.array(list(cases[row.name]["ranks"])).T
            draw_rank_ecdf(ax, {f"cell {i}": ranks for i, ranks in enumerate(cells)}, row.num_draws, told_apart=False)
            name_panel(ax, row.name)
        limits = np.array([ax.get_ylim() for ax in axes])
        for ax in axes:
            ax.set_ylim(limits.min(), limits.max())
            ax.label_outer()
        return figure


def _with_spread(some: Row) -> Row:
    """The same row with a spread; 3D-Var has one on request."""
    return some if some.method != "3dvar" else with_options(some, name=some.name, spread=True)
