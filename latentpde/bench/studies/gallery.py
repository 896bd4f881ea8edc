"""The paper's pictures: reconstructions, spectra, draws, and where the uncertainty lies."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby

import numpy as np
from matplotlib.figure import Figure

from latentpde.bench import paper
from latentpde.bench.benchmark import Benchmark, Plan, benchmarks, cases_of, jobs_on
from latentpde.bench.figures import Panel, field_grid, looks, panel_grid
from latentpde.bench.jobs import Job, Solved, measures, picture, true_fields
from latentpde.bench.rows import Row
from latentpde.bench.store import Store
from latentpde.bench.studies.sweeps import ADVECTION_DIFFUSION, REPRESENTATIVES
from latentpde.bench.tables import Frame, Table, mean_over_regimes, number
from latentpde.estimators import methods
from latentpde.report.simulation import plot_initial_conditions, plot_masks
from latentpde.scores.metrics import PSD_FLOOR, radial_psd
from latentpde.simulation import EVALUATION_MASKS


class Gallery(Benchmark):
    name = "gallery"
    title = "reconstructions of one case of each family; the initial states and masks there are"
    num = 1
    regimes = REPRESENTATIVES

    def jobs(self, plan: Plan) -> list[Job]:
        return jobs_on(plan.rows, plan.regimes, drawn="mean")

    def show(self, plan: Plan) -> list:
        jobs = {regime: jobs_on(plan.rows, [regime]) for regime in plan.regimes}
        return [
            ("Reconstructions from 5 % of the cells with noise 0.15.", field_grid(jobs, plan.store)),
            ("Kinds of initial state.", plot_initial_conditions()),
            ("Masks at 5 %; the first row for training, the second for evaluation.", plot_masks()),
        ]  # fmt: skip


def take_spectra(solved: Solved) -> list[dict]:
    """Radial spectra of mean, one draw and truth, in decades."""

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


measures["spectra"] = take_spectra


class Spectra(Benchmark):
    name = "psd"
    title = "radial power spectra over advection-diffusion's regimes and the evaluation masks"
    num = 16
    num_settings = len(EVALUATION_MASKS)
    regimes = ADVECTION_DIFFUSION
    slow_methods = False

    def jobs(self, plan: Plan) -> list[Job]:
        return [
            Job(row=row, simulation=cases_of(regime, mask=mask), measure="spectra")
            for row in plan.rows
            for regime in plan.regimes
            for mask in EVALUATION_MASKS
        ]

    def show(self, plan: Plan) -> list:
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
        return [(f"{self.title}; means over {plan.num} cases. Dashed: one draw.", figure)]

    def _curves(self, ax, here: Frame, rows: tuple[Row, ...]) -> None:
        truth = np.mean(list(here.drop_duplicates("index")["of_truth"]), axis=0)
        modes = np.arange(1, len(truth) + 1)
        for row, colour, _ in looks(rows):
            some = here[here["row"] == row.name]
            if some.empty:
                continue
            ax.semilogx(modes, np.mean(list(some["of_mean"]), axis=0), color=colour, linewidth=1.2, label=row.name)
            if "of_draw" in some and some["of_draw"].notna().all():
                ax.semilogx(modes, np.mean(list(some["of_draw"]), axis=0), color=colour, linewidth=0.9, linestyle="--")
        ax.semilogx(modes, truth, color="#cfcfcf", linewidth=5, label="truth", zorder=0.5)
        ax.set_ylim(-12.5, None)


class PosteriorSamples(Benchmark):
    name = "posterior-samples"
    title = "draws from the posterior beside the truth"
    num = 1
    rows = ("exact", "enc_diffusion")

    def jobs(self, plan: Plan) -> list[Job]:
        return jobs_on(plan.rows, plan.regimes, drawn="spread")

    def show(self, plan: Plan) -> list:
        return [
            (
                f"{self.title}, method {row.name}.",
                panel_grid({job.regime.name.replace("_", " "): self._panels(job, plan.store) for job in jobs}),
            )
            for row, jobs in groupby(self.jobs(plan), key=lambda job: job.row)
        ]

    def _panels(self, job: Job, store: Store) -> list[Panel]:
        seen, truth = picture(job, store), Panel("truth", true_fields(job.simulation.cases(0, 1))[0])
        if seen is None or seen.draws is None:
            return [truth, Panel("mean", None if seen is None else seen.mean)]
        draws = [Panel(f"draw {i + 1}", field) for i, field in enumerate(seen.draws)]
        return [truth, Panel("mean", seen.mean), *draws]


class Uncertainty(Benchmark):
    name = "uncertainty"
    title = "where the uncertainty lies, and how errors are spread over cases"
    num = 20
    regimes = ADVECTION_DIFFUSION
    slow_methods = False

    def jobs(self, plan: Plan) -> list[Job]:
        return [*jobs_on(plan.rows, plan.regimes), *self._mapped(plan)]

    def show(self, plan: Plan) -> list:
        table = plan.frame(jobs_on(plan.rows, plan.regimes))
        maps = groupby(self._mapped(plan), key=lambda job: job.row)
        return [
            *(
                (f"Mean, error and standard deviation, method {row.name}.", self._maps(jobs, plan.store))
                for row, jobs in maps
            ),
            (f"RMSE and PSD log error over {plan.num} cases of each regime.", self._distributions(table, plan)),
        ]

    def _mapped(self, plan: Plan) -> list[Job]:
        """Whose spread is shown in space."""
        spread = [row for row in plan.rows if methods.get(row.method).has_spread]
        rows = [row for row in spread if row.name in PosteriorSamples.rows] or spread[:1]
        return jobs_on(rows, REPRESENTATIVES, drawn="spread")

    def _maps(self, jobs: Iterable[Job], store: Store) -> Figure:
        rows = {}
        for job in jobs:
            seen, truth = picture(job, store), true_fields(job.simulation.cases(0, 1))[0]
            if seen is None or seen.std is None:
                continue
            error = np.abs(seen.mean - truth)
            alike = np.corrcoef(error.ravel(), seen.std.ravel())[0, 1]
            rows[job.regime.name.replace("_", " ")] = [
                Panel("truth", truth),
                Panel("mean", seen.mean),
                Panel("absolute error", error, signed=False, scale="error"),
                Panel(f"standard deviation\ncorrelation {alike:.2f}", seen.std, signed=False, scale="error"),
            ]
        return panel_grid(rows)

    def _distributions(self, table: Frame, plan: Plan) -> Figure:
        figure = Figure((2.6 * len(plan.regimes) + 0.6, 5.2), layout="constrained")
        axes = figure.subplots(2, len(plan.regimes), squeeze=False, sharex=True, sharey="row")
        good = table[table["failed"].isna()]
        for line, (score, label) in zip(axes, (("rmse", "RMSE"), ("psd", "PSD log error")), strict=True):
            for ax, regime in zip(line, plan.regimes, strict=True):
                groups = [good[(good["regime"] == regime) & (good["row"] == row.name)][score] for row in plan.rows]
                boxes = ax.boxplot(groups, widths=0.6, patch_artist=True, medianprops={"color": "black"},
                                   flierprops={"markersize": 3})  # fmt: skip
                for box, (_, colour, _) in zip(boxes["boxes"], looks(plan.rows), strict=True):
                    box.set(facecolor=colour, alpha=0.6)
                ax.grid(axis="y", color="#dddddd", linewidth=0.6)
            line[0].set_ylabel(label)
            line[0].set_ylim(bottom=0)
        for top, bottom, regime in zip(*axes, plan.regimes, strict=True):
            top.set_title(regime.replace("_", " "), fontsize=10.5)
            names = [row.name for row in plan.rows]
            bottom.set_xticks(range(1, len(names) + 1), names, rotation=50, ha="right", rotation_mode="anchor",
                              fontsize=8)  # fmt: skip
        return figure


class FunDPS(Benchmark):
    name = "fundps"
    title = "beside FunDPS on advection-diffusion, radial and grid masks"
    num = 40
    num_settings = 2
    regimes = ADVECTION_DIFFUSION
    compared = ("exact", "map_diffusion", "enc_diffusion", "fundps")

    def jobs(self, plan: Plan) -> list[Job]:
        return [
            Job(row=row, simulation=cases_of(regime, mask=mask))
            for row in plan.rows
            if row.method in self.compared
            for regime in plan.regimes
            for mask in ("radial", "grid")
        ]

    def show(self, plan: Plan) -> list:
        table, rows = plan.frame(self.jobs(plan)), []
        for name, some in table[table["failed"].isna()].groupby("row", sort=False):
            scores = [number(*mean_over_regimes(some, score)) for score in ("rmse", "psd", "crps")]
            rows.append((str(name), *scores, number(float(some["seconds"].median()))))
        seconds, size = paper.RUNTIME["fundps"]
        notes = [f"The paper prints {seconds} s on a GPU and {size} million parameters for FunDPS, and no errors."]
        if "fundps" not in methods:
            notes.append("No method named fundps is installed: a package that registers one appears here by itself.")
        heads = ("method", "RMSE", "PSD", "CRPS", "seconds")
        return [Table(self.title, heads, tuple(rows), tuple(notes))]


for _benchmark in (Gallery(), Spectra(), PosteriorSamples(), Uncertainty(), FunDPS()):
    benchmarks.register(_benchmark.name, _benchmark)
