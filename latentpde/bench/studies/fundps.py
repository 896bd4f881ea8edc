"""The cases on which the paper compares with FunDPS."""

from __future__ import annotations

from latentpde.bench import paper
from latentpde.bench.benchmark import Benchmark, Items, Plan
from latentpde.bench.jobs import ADVECTION_DIFFUSION, Job, cases_of
from latentpde.bench.tables import Table, mean_over_regimes, number
from latentpde.estimators import methods


class FunDPS(Benchmark):
    """Methods with draws beside FunDPS, where a package has registered it."""

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

    def show(self, plan: Plan) -> Items:
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
