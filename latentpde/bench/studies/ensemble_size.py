"""How many draws, or members of an ensemble filter, are enough."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from latentpde.bench.benchmark import Benchmark, Drawing, Items, Plan
from latentpde.bench.figures import name_values, style
from latentpde.bench.jobs import REPRESENTATIVES, Job
from latentpde.bench.measurements import measurements, rounded
from latentpde.bench.rows import CHOSEN, Row, with_options
from latentpde.bench.solving import Solved, solve
from latentpde.bench.tables import Frame, Table, number
from latentpde.errors import UsageError
from latentpde.simulation import PAPER_REGIMES

SIZES = (2, 4, 8, 12, 16, 24, 32, 48, 64)
PILOT = 128
_SUBSETS = 8


def measure_subsets(solved: Solved) -> list[dict]:
    """How far the mean of some draws is from the pilot ensemble's, beside what their variance says."""
    if solved.draws is None:
        raise UsageError(f"{solved.job.row.name} has no spread")
    if solved.draws.shape[1] < PILOT:
        raise UsageError(f"{solved.job.row.name} gave {solved.draws.shape[1]} draws where the pilot has {PILOT}")
    rng, lines = np.random.default_rng(solved.start), []
    for draws in solved.draws:
        apart = {}
        for size in SIZES:
            chosen = [rng.permutation(len(draws))[:size] for _ in range(_SUBSETS)]
            apart[str(size)] = rounded(np.sqrt(np.mean([(draws[c].mean(0) - draws.mean(0)) ** 2 for c in chosen])))
        lines.append({"apart": apart, "variance": rounded(draws.var(0, ddof=1).mean())})
    return lines


def measure_members(solved: Solved) -> list[dict]:
    """How far the filter's mean with some members is from that with the pilot's number: the gain differs too."""
    apart = {}
    for size in SIZES:
        smaller = with_options(solved.job.row, num_draws=size, num_members=size)
        mean = solve(*(part._replace(job=replace(part.job, row=smaller)) for part in solved.parts)).mean
        apart[str(size)] = np.sqrt(np.mean((mean - solved.mean) ** 2, axis=(-2, -1)))
    assert solved.draws is not None
    return [
        {
            "apart": {size: rounded(values[i]) for size, values in apart.items()},
            "variance": rounded(draws.var(0, ddof=1).mean()),
        }
        for i, draws in enumerate(solved.draws)
    ]


measurements["subsets"], measurements["members"] = measure_subsets, measure_members


class EnsembleSize(Benchmark):
    """Means of some of a pilot ensemble's draws beside the mean of all of them."""

    name = "ensemble-size"
    title = "how the error of an ensemble mean falls with the number of draws"
    num = 50
    rows = ("exact", CHOSEN)
    regimes = REPRESENTATIVES
    measurement = "subsets"
    tolerance = 0.02  # the paper's

    def jobs(self, plan: Plan) -> list[Job]:
        return plan.jobs_on(map(self._pilot, plan.rows), plan.regimes, measurement=self.measurement)

    def _pilot(self, some: Row) -> Row:
        return with_options(some, num_draws=PILOT)

    def show(self, plan: Plan) -> Items:
        table = plan.frame(self.jobs(plan))
        good = table[table["failed"].isna()]
        rows = []
        for (name, regime), some in good.groupby(["row", "regime"], sort=False):
            apart: Frame = pd.DataFrame(list(some["apart"]))
            needed = int(np.ceil(some["variance"].max() / self.tolerance**2))
            rows.append((f"{name}, {regime}", *(number(float(apart[str(k)].mean())) for k in SIZES), str(needed)))
        heads = ("method, regime", *(f"K = {k}" for k in SIZES), f"K for {self.tolerance:g}")
        notes = (
            f"Root mean square distance of the mean of K from that of {PILOT}. Last column: the pilot-ensemble rule "
            "K >= tr(Sigma) / (d eps^2), by the case that needs most. The paper takes K = 12 for draws and 16 members "
            "for the filter.",
        )
        return [Table(self.title, heads, tuple(rows), notes), Drawing(f"{self.title}.", self._figure(good))]

    def _figure(self, table: Frame) -> Figure:
        figure = Figure((8.2, 4.2), layout="constrained")
        ax = figure.subplots()
        for place, ((name, regime), some) in enumerate(table.groupby(["row", "regime"], sort=False)):
            colour, marker = style(place)
            apart = pd.DataFrame(list(some["apart"])).mean()
            ax.loglog(
                SIZES, apart, marker=marker, color=colour, linewidth=1.4, label=f"{name}, {regime}".replace("_", " ")
            )
            ax.loglog(SIZES, np.sqrt(some["variance"].mean() / np.array(SIZES)), color=colour, linestyle=":")
        ax.axhline(self.tolerance, color="#888888", linestyle="--", linewidth=1)
        behind = {"facecolor": "white", "alpha": 0.8, "linewidth": 0, "pad": 1}
        where = {"ha": "right", "va": "bottom", "fontsize": 8, "color": "#555555", "bbox": behind}
        ax.text(SIZES[-1], self.tolerance, f"tolerance {self.tolerance:g}", **where)
        ax.set(xlabel="members K", ylabel="distance of the mean from the pilot's")
        ax.set_xticks(SIZES, [str(k) for k in SIZES], minor=False)
        ax.set_xticks([], minor=True)
        name_values(ax.yaxis)
        ax.grid(color="#dddddd", linewidth=0.6)
        figure.legend(loc="outside right upper", fontsize=8, edgecolor="none", title="dotted: by the variance",
                      title_fontsize=8)  # fmt: skip
        return figure


class EnKFEnsembleSize(EnsembleSize):
    """The filter run with fewer and fewer members."""

    name = "enkf-ensemble-size"
    title = "how the mean of the ensemble Kalman filter settles with its number of members"
    rows = ("enkf-paper",)
    regimes = PAPER_REGIMES
    measurement = "members"
    tolerance = 0.01

    def _pilot(self, some: Row) -> Row:
        return with_options(some, num_draws=PILOT, num_members=PILOT)
