"""The paper's comparison of methods over families, with and without a source."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from latentpde.bench import paper
from latentpde.bench.benchmark import Benchmark, Drawing, Items, Plan
from latentpde.bench.branches import BRANCHES
from latentpde.bench.jobs import Job
from latentpde.bench.rows import CHOSEN, Row, chosen_rows, every_method, published
from latentpde.bench.store import failures
from latentpde.bench.tables import NONE, Frame, Table, mean_over_regimes, number
from latentpde.bench.variants import VARIANTS
from latentpde.report.style import PALETTE
from latentpde.scores.metrics import PSD_FLOOR

OURS, THEIRS = PALETTE[:2]


class Table1(Benchmark):
    """Every method on the cases of every regime, beside what the paper prints."""

    name = "table1"
    title = "all methods over the three families, with a source (table 1 of the paper)"
    num = 500
    an_hour = True
    theirs = paper.TABLE_1
    source = True

    def default_rows(self) -> tuple[Row, ...]:
        compared = (name for name, variant in VARIANTS.items() if variant.comparable)
        return chosen_rows((CHOSEN, *every_method(), *compared))

    def jobs(self, plan: Plan) -> list[Job]:
        return plan.jobs_on(plan.rows, plan.regimes, source=self.source)

    def show(self, plan: Plan) -> Items:
        table = plan.frame(self.jobs(plan))
        families = list(dict.fromkeys(table["pde"]))
        names = [row.name for row in plan.rows if (table["row"] == row.name).any()]
        return [
            *(self._family(family, table[table["pde"] == family], names) for family in families),
            Drawing(
                "RMSE of each method with two standard errors, and what the paper prints. Dashed: predicting zero.",
                self._figure(table, names),
            ),
        ]

    def _family(self, family: str, table: Frame, names: list[str]) -> Table:
        rows = []
        for name in names:
            some = table[table["row"] == name]
            if some.empty:
                continue
            theirs = self._printed(family, name)
            good, failed = some[some["failed"].isna()], int(some["failed"].notna().sum())
            cells = [name]
            for score in ("rmse", "psd", "crps"):
                printed = theirs.get(score)
                if score == "crps" and theirs.get("mae") is not None:
                    printed = theirs["mae"]
                cells += [NONE if good.empty else number(*mean_over_regimes(good, score)), number(printed)]
            if good["coverage90"].isna().all() and not good.empty:
                cells[5] += " *"
            seconds = NONE if good.empty else number(float(good["seconds"].median()))
            rows.append((*cells, seconds, f"{len(some)}" + (f", {failed} failed" if failed else "")))
        zero = table.groupby("regime")["rms_of_truth"].mean().mean()
        notes = (
            f"Means over regimes ± standard error. PSD: log error in decades, floor {PSD_FLOOR:g}. CRPS: the fair "
            "estimator; * of a method without a spread, whose CRPS is its MAE (the paper's figure too). "
            f"Predicting zero has the RMSE {zero:.3f}. Seconds: median per case, in batches.",
            *failures(table),
        )
        title = f"{family.replace('_', '-')}, {'with source' if self.source else 'no source'}"
        return Table(
            title, ("method", "RMSE", "paper", "PSD", "paper", "CRPS", "paper", "seconds", "cases"), tuple(rows), notes
        )

    def _printed(self, family: str, name: str) -> dict:
        """The scores that the paper prints for a row."""
        theirs = self.theirs.get(family, {})
        if name == CHOSEN and theirs:
            return min((theirs[branch] for branch in BRANCHES), key=lambda scores: scores["rmse"] or math.inf)
        return theirs.get(published(name), {})

    def _figure(self, table: Frame, names: list[str]) -> Figure:
        families = list(dict.fromkeys(table["pde"]))
        figure = Figure((3.4 * len(families) + 1, 0.34 * len(names) + 1.3), layout="constrained")
        axes = np.atleast_1d(figure.subplots(1, len(families), sharey=True))
        good = table[table["failed"].isna()]
        for ax, family in zip(axes, families, strict=True):
            for y, name in enumerate(names):
                some = good[(good["pde"] == family) & (good["row"] == name)]
                if not some.empty:
                    mean, error = mean_over_regimes(some, "rmse")
                    ax.errorbar(mean, y, xerr=2 * error if np.isfinite(error) else None, fmt="o", color=OURS, capsize=3)
                theirs = self._printed(family, name).get("rmse")
                if theirs is not None:
                    ax.plot(theirs, y, "D", markerfacecolor="none", markeredgecolor=THEIRS, markersize=7)
            zero = good[good["pde"] == family].groupby("regime")["rms_of_truth"].mean().mean()
            ax.axvline(zero, color="#888888", linestyle="--", linewidth=1)
            above = {"transform": ax.get_xaxis_transform(), "ha": "center", "fontsize": 8, "color": "#666666"}
            ax.text(zero, 1.01, "predicting zero", **above)
            ax.set(xlabel="RMSE", xlim=(0, None), ylim=(len(names) - 0.5, -0.5))
            ax.set_title(family.replace("_", "-"), fontsize=10.5, pad=14)
            ax.grid(axis="x", color="#dddddd", linewidth=0.6)
            ax.set_axisbelow(True)
        axes[0].set_yticks(range(len(names)), names)
        alone: dict[str, Any] = {"linestyle": "none"}
        marks = [
            Line2D([], [], marker="o", color=OURS, label="here, two standard errors", **alone),
            Line2D([], [], marker="D", markerfacecolor="none", markeredgecolor=THEIRS, label="in the paper", **alone),
        ]
        figure.legend(handles=marks, loc="outside lower center", ncols=2, fontsize=9, edgecolor="none")
        return figure


class TableNoSource(Table1):
    """The same on cases that have no source. Methods are told so: the files say a strength of zero, and then nothing
    has a source to infer. `kriging` and what 3D-Var and EnKF add to their background know of no source anyway."""

    name = "table-no-source"
    title = "all methods over the three families, without a source"
    theirs = paper.TABLE_NO_SOURCE
    source = False
