"""What accuracy costs: times, error against time, and how far each method is from the exact posterior."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from latentpde.bench import paper
from latentpde.bench.benchmark import Benchmark, Plan, benchmarks, jobs_on
from latentpde.bench.figures import looks
from latentpde.bench.jobs import Job, Solved, measures, take_scores
from latentpde.bench.rows import row
from latentpde.bench.schedule import BATCH
from latentpde.bench.tables import NONE, Frame, Table, mean_and_error, number
from latentpde.simulation import regimes

REFERENCE = "exact"


def take_time(solved: Solved) -> list[dict]:
    """Scores, and how many numbers a method had learned."""
    size = solved.posterior.diagnostics.get("num_parameters")
    return [{**line, **({} if size is None else {"parameters": int(size)})} for line in take_scores(solved)]


measures["time"] = take_time


class Runtime(Benchmark):
    name = "runtime"
    title = "time for one case, from the call to the arrays, and parameters"
    num = 40
    num_settings = 2  # alone and in a batch
    regimes = ("balanced",)

    def jobs(self, plan: Plan) -> list[Job]:
        return self._jobs(plan, alone=True) + self._jobs(plan, alone=False)

    def _jobs(self, plan: Plan, *, alone: bool) -> list[Job]:
        rows = [some for some in plan.rows if alone or some.count(plan.num) > 1]  # one case is no batch
        return jobs_on(rows, plan.regimes, measure="time", alone=alone)

    def show(self, plan: Plan) -> list:
        table, rows = plan.frame(self._jobs(plan, alone=True)), []
        batched = plan.frame(self._jobs(plan, alone=False))
        for some in plan.rows:
            good = table[(table["row"] == some.name) & table["failed"].isna()]
            if good.empty:
                continue
            many = batched[(batched["row"] == some.name) & batched["failed"].isna()]["seconds"]
            theirs, size = paper.RUNTIME.get(some.name, (None, None))
            ours = good["parameters"].max() if "parameters" in good else np.nan
            rows.append(
                (
                    some.name,
                    number(float(good["seconds"].median())),
                    number(float(good["seconds"].max())),
                    number(1 / many.mean()) if len(many) else NONE,
                    number(theirs),
                    NONE if np.isnan(ours) else f"{ours:,.0f}",
                    NONE if size is None else f"{size * 1e6:,.0f}",
                )
            )
        threads = ", ".join(sorted({str(v) for v in table["threads"]})) if "threads" in table else NONE
        machine = ", ".join(sorted({str(v) for v in table["hardware"]})) if "hardware" in table else NONE
        note = (
            f"On {machine}, {threads} thread(s); the paper: one A5000 GPU. Run it while the machine does nothing else. "
            f"A batch has {BATCH} cases; of methods that train for each case, a fifth."
        )
        heads = (
            "method",
            "seconds, median",
            "slowest",
            "cases/s in a batch",
            "paper's seconds",
            "parameters",
            "paper's",
        )
        return [Table(self.title, heads, tuple(rows), (note,))]


class Pareto(Benchmark):
    name = "pareto"
    title = "error against time, for all methods"

    def jobs(self, plan: Plan) -> list[Job]:
        return jobs_on(plan.rows, plan.regimes)

    def show(self, plan: Plan) -> list:
        table = plan.frame(self.jobs(plan))
        good = table[table["failed"].isna()]
        families = list(dict.fromkeys(regimes.get(name).family for name in plan.regimes))
        figure = Figure((3.7 * len(families) + 0.5, 3.9), layout="constrained")
        for ax, family in zip(np.atleast_1d(figure.subplots(1, len(families))), families, strict=True):
            for some, colour, marker in looks(plan.rows):
                here = good[(good["pde"] == family) & (good["row"] == some.name)]
                if here.empty:
                    continue
                mean, error = mean_and_error(here["rmse"])
                ax.errorbar(here["seconds"].median(), mean, np.nan_to_num(2 * error), color=colour, marker=marker,
                            capsize=3, linestyle="none", label=some.name)  # fmt: skip
            ax.set(xscale="log", xlabel="seconds per case, in batches", ylabel="RMSE", ylim=(0, None))
            ax.set_title(family.replace("_", " "), fontsize=10.5)
            ax.grid(color="#dddddd", linewidth=0.6)
        handles, labels = figure.axes[0].get_legend_handles_labels()
        figure.legend(
            handles, labels, loc="outside lower center", ncols=min(len(labels), 6), fontsize=8, edgecolor="none"
        )
        return [(f"{self.title}: lower left is better.", figure)]


class Limit(Benchmark):
    name = "limit"
    title = "errors as ratios to the exact posterior's on the same cases"

    def jobs(self, plan: Plan) -> list[Job]:
        return jobs_on(dict.fromkeys((row(REFERENCE), *plan.rows)), plan.regimes)

    def show(self, plan: Plan) -> list:
        table = plan.frame(self.jobs(plan))
        good = table[table["failed"].isna()]
        return [self._table(good, plan, score, label) for score, label in (("rmse", "RMSE"), ("crps", "CRPS"))]

    def _table(self, good: Frame, plan: Plan, score: str, label: str) -> Table:
        wide = good.pivot_table(index=["regime", "index"], columns="row", values=score, sort=False)
        rows = []
        for some in plan.rows:
            if some.name not in wide or REFERENCE not in wide:
                continue
            both = wide[[some.name, REFERENCE]].dropna() if some.name != REFERENCE else wide[[REFERENCE]].dropna()
            means = both.groupby(level="regime", sort=False).mean()
            ratios = means[some.name] / means[REFERENCE]
            rows.append((some.name, *(number(float(ratios.get(name, np.nan))) for name in plan.regimes)))
        note = "Mean over the cases that both solved, divided by the exact posterior's. CRPS of a point is its MAE."
        return Table(f"{label} as a ratio to the exact posterior's", ("method", *plan.regimes), tuple(rows), (note,))


for _benchmark in (Runtime(), Pareto(), Limit()):
    benchmarks.register(_benchmark.name, _benchmark)
