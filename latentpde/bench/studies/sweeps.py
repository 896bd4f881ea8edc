"""One thing varied at a time: noise, mask, sparsity, snapshots; the paper's reconstructions beside the scores."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np
from matplotlib.figure import Figure

from latentpde.bench.benchmark import Benchmark, Drawing, Items, Plan, fewer
from latentpde.bench.figures import field_grid, name_values, nested, styles
from latentpde.bench.jobs import REPRESENTATIVES, Job
from latentpde.bench.rows import IN_FIGURES
from latentpde.bench.tables import Frame, Table, mean_and_error, number
from latentpde.simulation import masks, regimes

LINES = ("-", "--", "-.", ":")


class Sweep(Benchmark):
    """Scores against one setting of the simulation, and a figure of fields for each regime."""

    regimes: ClassVar[tuple[str, ...]] = REPRESENTATIVES
    rows: ClassVar[tuple[str, ...]] = IN_FIGURES
    of: ClassVar[str]  # what is varied, in words
    ordered: ClassVar[bool] = True  # whether there is anything between two settings

    @abstractmethod
    def settings(self, regime: str) -> dict[str, dict[str, Any]]:
        """Labels, and what each changes of the regime's cases."""

    def jobs(self, plan: Plan) -> list[Job]:
        return [job for regime in plan.regimes for jobs in self._jobs(plan, regime).values() for job in jobs]

    def _jobs(self, plan: Plan, regime: str) -> dict[str, list[Job]]:
        """Jobs of one regime by the label of their setting."""
        settings = self.settings(regime)
        return {
            label: plan.jobs_on(plan.rows, [regime], drawn="mean", **setting) for label, setting in settings.items()
        }

    def show(self, plan: Plan) -> Items:
        shown: Items = []
        for regime in plan.regimes:
            jobs = self._jobs(plan, regime)
            tables = {label: plan.frame(some) for label, some in jobs.items()}
            shown += self._tables(plan, regime, tables)
            shown.append(
                Drawing(f"{self.title}: RMSE, {regime}.", self._curves(plan, tables, regime), f"{regime}-rmse")
            )
            labelled = {f"{self.of} {label}" if self.ordered else label: some for label, some in jobs.items()}
            if (fields := field_grid(labelled, plan.store)) is not None:
                shown.append(Drawing(f"{self.title}: one case of {regime}.", fields, f"{regime}-fields"))
        return shown

    def _tables(self, plan: Plan, regime: str, tables: dict[str, Frame]) -> list[Table]:
        return [self._table(plan, regime, tables, "rmse", "RMSE")]

    def _table(self, plan: Plan, regime: str, tables: dict[str, Frame], score: str, title: str) -> Table:
        rows = []
        for row in plan.rows:
            cells = [row.name]
            for table in tables.values():
                some = table[table["row"] == row.name]
                failed = int(some["failed"].notna().sum())
                cells.append(number(*mean_and_error(some[score])) + (f" ({failed} failed)" if failed else ""))
            rows.append(tuple(cells))
        return Table(f"{title} against {self.of}, {regime}", ("method", *tables), tuple(rows),
                     (f"Means over {plan.num} cases{fewer(plan)} ± standard error.",))  # fmt: skip

    def _curves(self, plan: Plan, tables: dict[str, Frame], regime: str) -> Figure:
        figure = Figure((8.0, 3.6), layout="constrained")
        ax = figure.subplots()
        labels, num = list(tables), len(plan.rows)
        places = np.array([_number(label) for label in labels] if self.ordered else range(len(labels)), dtype=float)
        for i, (row, colour, marker) in enumerate(styles(plan.rows)):
            points = [mean_and_error(table[table["row"] == row.name]["rmse"]) for table in tables.values()]
            means, errors = np.array(points).T
            if np.isnan(means).all():
                continue
            # kinds have no places between them, so that methods can stand side by side; values have their own place
            aside = 0.0 if self.ordered else 0.7 * ((i + 0.5) / num - 0.5)
            marks: dict[str, Any] = nested(i, num) if self.ordered else {"markersize": 5}
            ax.errorbar(places + aside, means, np.nan_to_num(2 * errors), marker=marker, color=colour, capsize=2,
                        linewidth=1.0 if self.ordered else 0, linestyle=LINES[i % len(LINES)], elinewidth=0.8,
                        label=row.name, **marks)  # fmt: skip
        ax.set_xticks(places, [label.replace("_", " ") for label in labels])
        ax.set(xlabel=self.of, ylabel="RMSE", title=regime.replace("_", " "))
        ax.set_yscale("log", nonpositive="clip")  # errors of methods differ by more than ten times
        name_values(ax.yaxis)
        ax.grid(axis="y", color="#dddddd", linewidth=0.6)
        figure.legend(loc="outside right upper", fontsize=8, edgecolor="none", title="bars: 2 standard errors",
                      title_fontsize=7)  # fmt: skip
        return figure


def _number(label: str) -> float:
    """The value that a label of an ordered setting stands for.

    >>> _number("5%"), _number("0.15")
    (5.0, 0.15)
    """
    return float(label.rstrip("%"))


class Noise(Sweep):
    """Readings with more and more noise."""

    name = "noise"
    title = "reconstructions under more and more noise"
    of = "noise"
    num = 60
    num_settings = 3

    def settings(self, regime):
        return {f"{noise:.2f}": {"noise_std": noise} for noise in (0.15, 0.30, 0.45)}


class Masks(Sweep):
    """Readings in all the places that masks leave."""

    name = "masks"
    title = "reconstructions from all eight masks"
    of = "mask"
    num = 96
    num_settings = len(masks.names())
    ordered = False

    def settings(self, regime):
        return {name: {"mask": name} for name in masks.names()}


class Sparsity(Sweep):
    """Fewer and fewer readings, all in one patch."""

    name = "sparsity"
    title = "reconstructions from 1 to 5 % of the cells, in a single patch"
    of = "cells read"
    num_settings = 5

    def settings(self, regime):
        return {f"{share:.0%}": {"mask": "single_patch", "sparsity": share} for share in (0.01, 0.02, 0.03, 0.04, 0.05)}


class Snapshots(Sweep):
    """Readings at more and more times."""

    name = "snapshots"
    title = "how each added snapshot narrows field and coefficients"
    of = "snapshots"
    num = 48
    num_settings = 4
    rows = ("exact", "map")
    regimes = ("balanced", "klein_gordon")

    def settings(self, regime):
        last = regimes.get(regime).time
        return {str(n): {"times": tuple(last * (i + 1) / n for i in range(n))} for n in (1, 2, 3, 4)}

    def _tables(self, plan: Plan, regime: str, tables: dict[str, Frame]) -> list[Table]:
        found = super()._tables(plan, regime, tables)
        for score, title in (("theta_error", "Error"), ("theta_std", "Posterior standard deviation")):
            if all(score in table for table in tables.values()):
                means = {label: table.assign(**{score: table[score].map(np.mean)}) for label, table in tables.items()}
                what = f"{title} of the coefficients, as a share of their intervals,"
                found.append(self._table(plan, regime, means, score, what))
        return found
