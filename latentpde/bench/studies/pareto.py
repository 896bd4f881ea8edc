"""What accuracy costs: the error of each method against its time."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from latentpde.bench.benchmark import Benchmark, Drawing, Items, Plan
from latentpde.bench.figures import nested, styles
from latentpde.bench.jobs import Job
from latentpde.bench.tables import mean_and_error
from latentpde.simulation import regimes


class Pareto(Benchmark):
    """The runs of ``table1``, as points of error and time."""

    name = "pareto"
    title = "error against time, for all methods"
    num = 500
    an_hour = True

    def jobs(self, plan: Plan) -> list[Job]:
        return plan.jobs_on(plan.rows, plan.regimes)

    def show(self, plan: Plan) -> Items:
        table = plan.frame(self.jobs(plan))
        good = table[table["failed"].isna()]
        families = list(dict.fromkeys(regimes.get(name).family for name in plan.regimes))
        figure = Figure((3.7 * len(families) + 0.5, 3.9), layout="constrained")
        for ax, family in zip(np.atleast_1d(figure.subplots(1, len(families))), families, strict=True):
            for i, (some, colour, marker) in enumerate(styles(plan.rows)):
                here = good[(good["pde"] == family) & (good["row"] == some.name)]
                if here.empty:
                    continue
                mean, error = mean_and_error(here["rmse"])
                ax.errorbar(here["seconds"].median(), mean, np.nan_to_num(2 * error), color=colour, marker=marker,
                            capsize=3, linestyle="none", label=some.name, **nested(i, len(plan.rows)))  # fmt: skip
            ax.set(xscale="log", xlabel="seconds per case, in batches", ylabel="RMSE", ylim=(0, None))
            ax.set_title(family.replace("_", "-"), fontsize=10.5)
            ax.grid(color="#dddddd", linewidth=0.6)
        handles, labels = figure.axes[0].get_legend_handles_labels()
        figure.legend(
            handles, labels, loc="outside lower center", ncols=min(len(labels), 6), fontsize=8, edgecolor="none"
        )
        return [Drawing(f"{self.title}: lower left is better.", figure)]
