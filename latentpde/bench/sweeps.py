"""One thing varied at a time: noise, mask, sparsity, snapshots; the paper's reconstructions beside the scores."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np
from matplotlib.figure import Figure

from latentpde.bench.benchmark import Benchmark, Plan, benchmarks, cases_of
from latentpde.bench.figures import colours_of, field_grid
from latentpde.bench.runs import Job
from latentpde.bench.tables import Frame, Table, mean_and_error, number
from latentpde.simulation import PAPER_REGIMES, Simulation, masks, regimes

ADVECTION_DIFFUSION = tuple(n for n in PAPER_REGIMES if regimes.get(n).family == "advection_diffusion")
REPRESENTATIVES = ("balanced", "klein_gordon", "helmholtz")  # one regime for each family, as the paper shows


class Sweep(Benchmark):
    """Scores against one setting of the simulation, and a figure of fields for each regime."""

    num: ClassVar[int] = 20
    regimes: ClassVar[tuple[str, ...]] = REPRESENTATIVES
    slow_methods: ClassVar[bool] = False
    of: ClassVar[str]  # what is varied, in words

    @abstractmethod
    def settings(self) -> dict[str, dict[str, Any]]:
        """Labels, and what each changes of the cases."""

    def simulation(self, regime: str, label: str) -> Simulation:
        return cases_of(regime, **self.settings()[label])

    def jobs(self, plan: Plan) -> list[Job]:
        return [job for regime in plan.regimes for label in self.settings() for job in self._jobs(plan, regime, label)]

    def _jobs(self, plan: Plan, regime: str, label: str) -> list[Job]:
        return [Job(row=row, simulation=self.simulation(regime, label)) for row in plan.rows]

    def show(self, plan: Plan) -> list:
        shown: list = []
        for regime in plan.regimes:
            tables = {label: plan.frame(self._jobs(plan, regime, label)) for label in self.settings()}
            shown.append(self._table(plan, regime, tables, "rmse", "RMSE"))
            shown.append((f"{self.title}: RMSE, {regime}.", self._curves(plan, tables, regime)))
            shown.append((f"{self.title}: one case of {regime}.", self._fields(plan, regime)))
        return shown

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
                     (f"Means over {plan.num} cases ± standard error.",))  # fmt: skip

    def _curves(self, plan: Plan, tables: dict[str, Frame], regime: str) -> Figure:
        figure = Figure((6.4, 3.6), layout="constrained")
        ax = figure.subplots()
        for row, (colour, marker) in zip(plan.rows, colours_of(len(plan.rows)), strict=True):
            points = [mean_and_error(table[table["row"] == row.name]["rmse"]) for table in tables.values()]
            means, errors = np.array(points).T
            ax.errorbar(range(len(points)), means, np.nan_to_num(2 * errors), marker=marker, color=colour,
                        capsize=3, linewidth=1.4, label=row.name)  # fmt: skip
        ax.set_xticks(range(len(tables)), list(tables))
        ax.set(xlabel=self.of, ylabel="RMSE", ylim=(0, None), title=regime.replace("_", " "))
        ax.grid(axis="y", color="#dddddd", linewidth=0.6)
        ax.legend(fontsize=8, ncols=2, edgecolor="none")
        return figure

    def _fields(self, plan: Plan, regime: str) -> Figure:
        jobs = {label: self._jobs(plan, regime, label) for label in self.settings()}
        return field_grid(jobs)


class Noise(Sweep):
    name = "noise"
    title = "reconstructions under more and more noise"
    of = "noise"

    def settings(self):
        return {f"{noise:.2f}": {"noise_std": noise} for noise in (0.15, 0.30, 0.45)}


class Masks(Sweep):
    name = "masks"
    title = "reconstructions from all eight masks"
    of = "mask"
    num = 12

    def settings(self):
        return {name: {"mask": name} for name in masks.names()}


class Sparsity(Sweep):
    name = "sparsity"
    title = "reconstructions from 1 to 5 % of the cells, in a single patch"
    of = "share of cells read"

    def settings(self):
        return {f"{share:.0%}": {"mask": "single_patch", "sparsity": share} for share in (0.01, 0.02, 0.03, 0.04, 0.05)}


class Snapshots(Sweep):
    name = "snapshots"
    title = "how each added snapshot narrows field and coefficients"
    of = "snapshots"
    num = 12
    rows = ("exact", "map")
    regimes = ("balanced", "klein_gordon")

    def settings(self):
        return {str(count): {"snapshots": count} for count in (1, 2, 3, 4)}

    def simulation(self, regime: str, label: str) -> Simulation:
        last, count = regimes.get(regime).time, int(label)
        return cases_of(regime, times=tuple(last * (i + 1) / count for i in range(count)))

    def show(self, plan: Plan) -> list:
        shown = super().show(plan)
        for regime in plan.regimes:
            tables = {label: plan.frame(self._jobs(plan, regime, label)) for label in self.settings()}
            for score, title in (("theta_error", "Error"), ("theta_std", "Posterior standard deviation")):
                for table in tables.values():
                    if score in table:
                        table[score] = [np.mean(v) if isinstance(v, list) else np.nan for v in table[score]]
                if all(score in table for table in tables.values()):
                    what = f"{title} of the coefficients, as a share of their intervals,"
                    shown.append(self._table(plan, regime, tables, score, what))
        return shown


for _benchmark in (Noise(), Masks(), Sparsity(), Snapshots()):
    benchmarks.register(_benchmark.name, _benchmark)
