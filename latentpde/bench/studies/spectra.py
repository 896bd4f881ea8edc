"""At which scales a reconstruction has the power of the truth."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from latentpde.bench.benchmark import Benchmark, Drawing, Items, Plan
from latentpde.bench.figures import styles
from latentpde.bench.jobs import ADVECTION_DIFFUSION, Job, cases_of
from latentpde.bench.measurements import measurements
from latentpde.bench.rows import IN_FIGURES, Row
from latentpde.bench.solving import Solved
from latentpde.bench.tables import Frame
from latentpde.scores.metrics import PSD_FLOOR, radial_psd
from latentpde.simulation import EVALUATION_MASKS


def measure_spectra(solved: Solved) -> list[dict]:
    """Radial power spectra of the mean, of one draw and of the truth, in decades."""

    def decades(field: np.ndarray) -> list[float]:
        return [round(float(v), 2) for v in np.log10(np.maximum(radial_psd(field), PSD_FLOOR))]

    return [
        {
            "of_mean": decades(solved.mean[i]),
            "of_truth": decades(truth),
            **({} if solved.draws is None else {"of_draw": decades(solved.draws[i, 0])}),
        }
        for i, truth in enumerate(solved.truth)
    ]


measurements["spectra"] = measure_spectra


class Spectra(Benchmark):
    """Radial spectra of means and draws beside the truth's, for each regime and mask."""

    name = "psd"
    title = "radial power spectra over advection-diffusion's regimes and the evaluation masks"
    num = 16
    num_settings = len(EVALUATION_MASKS)
    regimes = ADVECTION_DIFFUSION
    rows = IN_FIGURES

    def jobs(self, plan: Plan) -> list[Job]:
        return [
            Job(row=row, simulation=cases_of(regime, mask=mask), measurement="spectra")
            for row in plan.rows
            for regime in plan.regimes
            for mask in EVALUATION_MASKS
        ]

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
        handles, labels = axes[0][0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), fontsize=8, edgecolor="none")
        return [Drawing(f"{self.title}; means over {plan.num} cases. Dashed: one draw.", figure)]

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
        ax.set_ylim(-12.5, None)
