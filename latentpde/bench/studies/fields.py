"""The paper's pictures of fields: reconstructions, draws, and where the uncertainty lies."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby

import numpy as np
from matplotlib.figure import Figure

from latentpde.bench.benchmark import Benchmark, Drawing, Items, Plan, fewer
from latentpde.bench.figures import Tile, field_grid, name_values, styles, tile_grid
from latentpde.bench.jobs import ADVECTION_DIFFUSION, REPRESENTATIVES, Job
from latentpde.bench.rows import CHOSEN, IN_FIGURES
from latentpde.bench.solving import true_fields
from latentpde.bench.store import Store
from latentpde.bench.tables import Frame
from latentpde.estimators import methods
from latentpde.report.simulation import plot_initial_conditions, plot_masks


class Gallery(Benchmark):
    """What every method makes of the same readings."""

    name = "gallery"
    title = "reconstructions of one case of each family; the initial states and masks there are"
    num = 1
    rows = IN_FIGURES
    regimes = REPRESENTATIVES

    def jobs(self, plan: Plan) -> list[Job]:
        return plan.jobs_on(plan.rows, plan.regimes, drawn="mean")

    def show(self, plan: Plan) -> Items:
        jobs = {regime: plan.jobs_on(plan.rows, [regime]) for regime in plan.regimes}
        fields = field_grid(jobs, plan.store)
        caption = "Reconstructions from 5 % of the cells with noise 0.15."
        masks = "Masks at 5 %; the first row for training, the second for evaluation."
        return [
            *([] if fields is None else [Drawing(caption, fields, "fields")]),
            Drawing("Kinds of initial state.", plot_initial_conditions(), "initial-states"),
            Drawing(masks, plot_masks(), "masks"),
        ]


class PosteriorDraws(Benchmark):
    """A few draws of one case of every regime."""

    name = "posterior-draws"
    title = "draws from the posterior beside the truth"
    num = 1
    rows = ("exact", CHOSEN)

    def jobs(self, plan: Plan) -> list[Job]:
        return plan.jobs_on(plan.rows, plan.regimes, drawn="spread")

    def show(self, plan: Plan) -> Items:
        shown: Items = []
        for name, jobs in groupby(self.jobs(plan), key=lambda job: job.row.name):
            tiles = {job.regime.name.replace("_", " "): self._tiles(job, plan.store) for job in jobs}
            if any(tiles.values()):
                figure = tile_grid({label: row for label, row in tiles.items() if row})
                caption = f"{self.title}, method {name}; of its draws some that were picked at random."
                shown.append(Drawing(caption, figure, name))
        return shown

    def _tiles(self, job: Job, store: Store) -> list[Tile]:
        """Truth, mean and draws; nothing where they are not kept."""
        seen = store.picture(job)
        if seen is None:
            return []
        draws = [] if seen.draws is None else seen.draws
        truth = true_fields(job.simulation.cases(job.shown, job.shown + 1))[0]
        return [
            Tile("truth", truth),
            Tile("mean", seen.mean, sets_limits=False),
            *(Tile(f"draw {i + 1}", field, sets_limits=False) for i, field in enumerate(draws)),
        ]


class Uncertainty(Benchmark):
    """Maps of error beside maps of standard deviation, and the scatter of scores over cases."""

    name = "uncertainty"
    title = "where the uncertainty lies, and how errors are spread over cases"
    num = 500  # all of table 1
    an_hour = True
    regimes = ADVECTION_DIFFUSION
    rows = IN_FIGURES

    def jobs(self, plan: Plan) -> list[Job]:
        return [*plan.jobs_on(plan.rows, plan.regimes), *self._mapped(plan)]

    def show(self, plan: Plan) -> Items:
        shown: Items = []
        for name, jobs in groupby(self._mapped(plan), key=lambda job: job.row.name):
            if (maps := self._maps(jobs, plan.store)) is not None:
                shown.append(Drawing(f"Mean, error and standard deviation, method {name}.", maps, name))
        scatter = self._distributions(plan.frame(plan.jobs_on(plan.rows, plan.regimes)), plan)
        caption = f"RMSE and PSD log error of the mean over {plan.num} cases of each regime{fewer(plan)}."
        return [*shown, Drawing(caption, scatter, "distributions")]

    def _mapped(self, plan: Plan) -> list[Job]:
        """Jobs whose spread is shown in space."""
        spread = [row for row in plan.rows if methods.get(row.method).has_spread]
        rows = [row for row in spread if row.name in PosteriorDraws.rows] or spread[:1]
        return plan.jobs_on(rows, REPRESENTATIVES, drawn="spread")

    def _maps(self, jobs: Iterable[Job], store: Store) -> Figure | None:
        rows = {}
        for job in jobs:
            seen = store.picture(job)
            if seen is None or seen.std is None:
                continue
            truth = true_fields(job.simulation.cases(job.shown, job.shown + 1))[0]
            error = np.abs(seen.mean - truth)
            alike = np.corrcoef(error.ravel(), seen.std.ravel())[0, 1]
            rows[job.regime.name.replace("_", " ")] = [
                Tile("truth", truth),
                Tile("mean", seen.mean, sets_limits=False),
                Tile("absolute error", error, signed=False, scale="error"),
                Tile(f"standard deviation\ncorrelation {alike:.2f}", seen.std, signed=False, scale="error"),
            ]
        return tile_grid(rows) if rows else None

    def _distributions(self, table: Frame, plan: Plan) -> Figure:
        figure = Figure((2.6 * len(plan.regimes) + 0.6, 5.2), layout="constrained")
        axes = figure.subplots(2, len(plan.regimes), squeeze=False, sharex=True, sharey="row")
        good = table[table["failed"].isna()]
        for line, (score, label) in zip(axes, (("rmse", "RMSE"), ("psd", "PSD log error")), strict=True):
            for ax, regime in zip(line, plan.regimes, strict=True):
                groups = [good[(good["regime"] == regime) & (good["row"] == row.name)][score] for row in plan.rows]
                boxes = ax.boxplot(groups, widths=0.6, patch_artist=True, medianprops={"color": "black"},
                                   flierprops={"markersize": 3})  # fmt: skip
                for box, (_, colour, _) in zip(boxes["boxes"], styles(plan.rows), strict=True):
                    box.set(facecolor=colour, alpha=0.6)
                ax.grid(axis="y", color="#dddddd", linewidth=0.6)
            line[0].set_ylabel(label)
        axes[0][0].set_yscale("log")  # errors of one method differ by more than ten times
        name_values(axes[0][0].yaxis)
        axes[1][0].set_ylim(bottom=0)
        for top, bottom, regime in zip(*axes, plan.regimes, strict=True):
            top.set_title(regime.replace("_", " "), fontsize=10.5)
            names = [row.name for row in plan.rows]
            bottom.set_xticks(range(1, len(names) + 1), names, rotation=50, ha="right", rotation_mode="anchor",
                              fontsize=8)  # fmt: skip
        return figure
