"""At which scales a reconstruction has the power of the truth."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from latentpde.bench.benchmark import Benchmark, Drawing, Items, Plan, fewer
from latentpde.bench.figures import name_values, styles
from latentpde.bench.jobs import ADVECTION_DIFFUSION, Job
from latentpde.bench.measurements import measurements
from latentpde.bench.rows import IN_FIGURES, Row
from latentpde.bench.solving import Solved
from latentpde.bench.tables import Frame, Table, mean_and_error, number
from latentpde.scores.metrics import PSD_FLOOR, radial_psd
from latentpde.simulation import EVALUATION_MASKS


def measure_spectra(solved: Solved) -> list[dict]:
    """Radial power spectra of the mean, of one draw and of the truth, in decades.

    The draw is picked at random: the first ones of a learned chain are those that started with the most noise.
    """
    rng = np.random.default_rng(solved.start)

    def decades(field: np.ndarray) -> list[float]:
        return [round(float(v), 2) for v in np.log10(np.maximum(radial_psd(field), PSD_FLOOR))]

    return [
        {
            "of_mean": decades(solved.mean[i]),
            "of_truth": decades(truth),
            **({} if solved.draws is None else {"of_draw": decades(rng.choice(solved.draws[i]))}),
        }
        for i, truth in enumerate(solved.truth)
    ]


measurements["spectra"] = measure_spectra


def _log_errors(table: Frame, kind: str) -> np.ndarray:
    """PSD log errors of spectra that lines hold, as `latentpde.scores.metrics` has them."""
    if kind not in table or table[kind].isna().any():
        return np.array([])
    found, truth = np.array(list(table[kind])), np.array(list(table["of_truth"]))
    return np.sqrt(np.mean((found - truth) ** 2, axis=1))


class Spectra(Benchmark):
    """Radial spectra of means and draws beside the truth's, for each regime and mask."""

    name = "psd"
    title = "radial power spectra over advection-diffusion's regimes and the evaluation masks"
    num = 500  # all of table 1, whose cases have one of the masks each
    an_hour = True
    regimes = ADVECTION_DIFFUSION
    rows = IN_FIGURES

    def jobs(self, plan: Plan) -> list[Job]:
        return plan.jobs_on(plan.rows, plan.regimes, measurement="spectra")

    def show(self, plan: Plan) -> Items:
        table = plan.frame(self.jobs(plan))
        table = table[table["failed"].isna()]
        size = (2.6 * len(EVALUATION_MASKS), 2.2 * len(plan.regimes) + 0.5)
        figure = Figure(size, layout="constrained")
        axes = figure.subplots(len(plan.regimes), len(EVALUATION_MASKS), squeeze=False, sharex=True, sharey=True)
        for regime, line in zip(plan.regimes, axes, strict=True):
            for mask, ax in zip(EVALUATION_MASKS, line, strict=True):
                here = table[(table["regime"] == regime) & (table["mask"] == mask)]
                if not here.empty:
                    self._curves(ax, here, plan.rows)
                ax.grid(color="#e4e4e4", linewidth=0.5)
                if regime == plan.regimes[0]:
                    ax.set_title(mask.replace("_", " "), fontsize=9)
                if mask == EVALUATION_MASKS[0]:
                    ax.set_ylabel(f"{regime}\nlog10 power", fontsize=9)
                if regime == plan.regimes[-1]:
                    ax.set_xlabel("mode number", fontsize=9)
                    name_values(ax.xaxis)
        axes[0][0].set_ylim(bottom=np.log10(PSD_FLOOR) - 0.5)  # of all, now that all are drawn
        handles, labels = axes[0][0].get_legend_handles_labels()
        handles.append(Line2D([], [], color="#666666", linestyle="--", linewidth=0.9))
        labels.append("one draw")
        figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), fontsize=8, edgecolor="none")
        caption = f"{self.title}; means over {plan.num} cases of each regime{fewer(plan)}. Dashed: one draw."
        return [self._table(table, plan), Drawing(caption, figure)]

    def _table(self, table: Frame, plan: Plan) -> Table:
        """PSD log errors of means and of single draws: a mean is smoother than what it is the mean of."""
        rows = []
        for row in plan.rows:
            some = table[table["row"] == row.name]
            if some.empty:
                continue
            cells = [number(*mean_and_error(_log_errors(some, kind))) for kind in ("of_mean", "of_draw")]
            rows.append((row.name, *cells, f"{len(some)}"))
        notes = (
            "Root mean square over wavenumbers of the difference to the truth's spectrum, in decades; means over cases "
            "± standard error. A posterior mean has less power than the truth wherever the readings leave doubt, so it "
            "must lose here to a single draw, which has the posterior's own spectrum.",
        )
        return Table("PSD log error of means and of draws", ("method", "mean", "one draw", "cases"), tuple(rows), notes)

    def _curves(self, ax, here: Frame, rows: tuple[Row, ...]) -> None:
        truth = np.mean(list(here.drop_duplicates("index")["of_truth"]), axis=0)
        modes = np.arange(1, len(truth) + 1)
        for row, colour, _ in styles(rows):
            some = here[here["row"] == row.name]
            if some.empty:
                continue
            ax.semilogx(modes, np.mean(list(some["of_mean"]), axis=0), color=colour, linewidth=1.2, label=row.name)
            if "of_draw" in some and some["of_draw"].notna().all():
                ax.semilogx(modes, np.mean(list(some["of_draw"]), axis=0), color=colour, linewidth=0.9, linestyle="--")
        ax.semilogx(modes, truth, color="#cfcfcf", linewidth=5, label="truth", zorder=0.5)
