"""The cases on which the paper compares with FunDPS."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from latentpde.bench import paper
from latentpde.bench.benchmark import Benchmark, Drawing, Items, Plan
from latentpde.bench.figures import field_grid, name_values, styles
from latentpde.bench.jobs import ADVECTION_DIFFUSION, Job, cases_of
from latentpde.bench.rows import CHOSEN
from latentpde.bench.tables import Frame, Table, mean_over_regimes, number
from latentpde.scores.metrics import PSD_FLOOR

MASKS = ("radial", "grid")


class FunDPS(Benchmark):
    """Our FunDPS beside methods with draws: scores, how errors are spread over cases, spectra and fields."""

    name = "fundps"
    title = "beside FunDPS on advection-diffusion, radial and grid masks"
    num = 26  # with four regimes the paper's hundred cases, and four
    num_settings = len(MASKS)
    regimes = ADVECTION_DIFFUSION
    rows = ("exact", CHOSEN, "fundps")

    def jobs(self, plan: Plan) -> list[Job]:
        return [*self._of(plan, "scores"), *self._of(plan, "spectra")]

    def _of(self, plan: Plan, measurement: str) -> list[Job]:
        return [
            Job(
                row=row,
                simulation=cases_of(regime, seed=plan.seed, mask=mask),
                measurement=measurement,
                drawn="mean" if measurement == "scores" else None,
            )
            for row in plan.rows
            for regime in plan.regimes
            for mask in MASKS
        ]

    def show(self, plan: Plan) -> Items:
        jobs = self._of(plan, "scores")
        table, spectra = (_good(plan.frame(some)) for some in (jobs, self._of(plan, "spectra")))
        rows = []
        for name, some in table.groupby("row", sort=False):
            scores = [number(*mean_over_regimes(some, score)) for score in ("rmse", "psd", "crps", "coverage90")]
            rows.append((str(name), *scores, number(float(some["seconds"].median())), f"{len(some)}"))
        seconds, size = paper.RUNTIME["fundps"]
        notes = (
            f"The paper prints {seconds} s on a GPU and {size} million parameters for FunDPS, and no errors. Ours has "
            "5.0 million and 12 members; it is given the fine initial state, as in the paper.",
        )
        heads = ("method", "RMSE", "PSD", "CRPS", "90 % cover", "seconds", "cases")
        shown: Items = [Table(self.title, heads, tuple(rows), notes)]
        if not table.empty:
            shown.append(Drawing("RMSE over cases, by regime; both masks.", self._errors(table, plan), "errors"))
        if not spectra.empty:
            caption = "Radial power spectra, means over cases. Dashed: one draw."
            shown.append(Drawing(caption, self._spectra(spectra, plan), "spectra"))
        by_mask = {
            f"{regime.replace('_', ' ')}, {mask}": [
                job for job in jobs if job.regime.name == regime and job.simulation.mask == mask
            ]
            for regime in plan.regimes
            for mask in MASKS
        }
        fields = field_grid(by_mask, plan.store)
        return shown if fields is None else [*shown, Drawing("A typical case of each.", fields, "fields")]

    def _errors(self, table: Frame, plan: Plan) -> Figure:
        figure = Figure((2.4 * len(plan.regimes) + 0.6, 3.2), layout="constrained")
        axes = figure.subplots(1, len(plan.regimes), squeeze=False, sharey=True)[0]
        rows = [row for row in plan.rows if (table["row"] == row.name).any()]
        for ax, regime in zip(axes, plan.regimes, strict=True):
            here = table[table["regime"] == regime]
            groups = [here[here["row"] == row.name]["rmse"] for row in rows]
            boxes = ax.boxplot(groups, widths=0.6, patch_artist=True, medianprops={"color": "black"},
                               flierprops={"markersize": 3})  # fmt: skip
            for box, (_, colour, _) in zip(boxes["boxes"], styles(rows), strict=True):
                box.set(facecolor=colour, alpha=0.6)
            names = [row.name for row in rows]
            ax.set_xticks(range(1, len(names) + 1), names, rotation=50, ha="right", rotation_mode="anchor", fontsize=8)
            ax.set_title(regime.replace("_", " "), fontsize=10.5)
            ax.grid(axis="y", color="#dddddd", linewidth=0.6)
        axes[0].set_ylabel("RMSE")
        axes[0].set_ylim(bottom=0)
        return figure

    def _spectra(self, table: Frame, plan: Plan) -> Figure:
        figure = Figure((2.6 * len(plan.regimes) + 0.6, 4.8), layout="constrained")
        axes = figure.subplots(len(MASKS), len(plan.regimes), squeeze=False, sharex=True, sharey=True)
        for line, mask in zip(axes, MASKS, strict=True):
            for ax, regime in zip(line, plan.regimes, strict=True):
                here = table[(table["regime"] == regime) & (table["mask"] == mask)]
                for row, colour, _ in styles(plan.rows):
                    some = here[here["row"] == row.name]
                    if not some.empty:
                        _curve(ax, some, "of_mean", color=colour, linewidth=1.2, label=row.name)
                        _curve(ax, some, "of_draw", color=colour, linewidth=0.9, linestyle="--")
                if not here.empty:
                    once = here.drop_duplicates("index")
                    _curve(ax, once, "of_truth", color="#cfcfcf", linewidth=5, label="truth", zorder=0.5)
                ax.grid(color="#e4e4e4", linewidth=0.5)
                ax.set_title(f"{regime.replace('_', ' ')}, {mask}", fontsize=9)
            line[0].set_ylabel("log10 power", fontsize=9)
        for ax in axes[-1]:
            ax.set_xlabel("mode number", fontsize=9)
            name_values(ax.xaxis)
        axes[0][0].set_ylim(bottom=np.log10(PSD_FLOOR) - 0.5)  # of all, now that all are drawn
        handles, labels = axes[0][0].get_legend_handles_labels()
        handles.append(Line2D([], [], color="#666666", linestyle="--", linewidth=0.9))
        labels.append("one draw")
        figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), fontsize=8, edgecolor="none")
        return figure


def _good(table: Frame) -> Frame:
    return table[table["failed"].isna()] if "failed" in table else table


def _curve(ax, table: Frame, column: str, **style) -> None:
    """The mean of a column of spectra."""
    if column in table and table[column].notna().all():
        mean = np.mean(list(table[column]), axis=0)
        ax.semilogx(np.arange(1, len(mean) + 1), mean, **style)
