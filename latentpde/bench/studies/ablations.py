"""The paper's ablations of its sampler: one option changed at a time."""

from __future__ import annotations

from latentpde.bench import paper
from latentpde.bench.benchmark import Benchmark, Items, Plan
from latentpde.bench.jobs import ADVECTION_DIFFUSION, Job, jobs_on
from latentpde.bench.rows import PAPER, Row, row, with_options
from latentpde.bench.store import failures
from latentpde.bench.tables import Table, mean_over_regimes, number
from latentpde.estimators import methods


class Ablation(Benchmark):
    """RMSE over advection-diffusion with one option of the paper's sampler changed."""

    num = 60
    num_settings = 3
    regimes = ADVECTION_DIFFUSION
    option: str
    printed: dict[str, dict]

    def variants(self, plan: Plan) -> list[tuple[Row, int | float, float]]:
        """Rows, the option's value in each, and the paper's figure; only methods that there are."""
        there = [method for method in self.printed if method in methods]
        wanted = {some.method for some in plan.rows}
        return [
            (with_options(row(method + PAPER), name=f"{method}, {value:g}", **{self.option: value}), value, printed)
            for method in there
            if method in wanted
            for value, printed in self.printed[method].items()
        ]

    def jobs(self, plan: Plan) -> list[Job]:
        return jobs_on([some for some, _, _ in self.variants(plan)], plan.regimes)

    def show(self, plan: Plan) -> Items:
        absent = [method for method in self.printed if method not in methods]
        notes = (f"Not installed here, and so left out: {', '.join(absent)}.",) if absent else ()
        table, rows, first = plan.frame(self.jobs(plan)), [], {}
        notes += failures(table)
        for some, _, printed in self.variants(plan):
            good = table[(table["row"] == some.name) & table["failed"].isna()]
            if good.empty:
                continue
            mean, error = mean_over_regimes(good, "rmse")
            base, base_printed = first.setdefault(some.method, (mean, printed))
            change = [f"{value / reference - 1:+.1%}" for value, reference in ((mean, base), (printed, base_printed))]
            rows.append((some.name, number(mean, error), change[0], number(printed), change[1]))
        return [Table(self.title, (f"method, {self.option}", "RMSE", "change", "paper", "change"), tuple(rows), notes)]


class MapBudget(Ablation):
    """Fewer steps of the MAP estimate that the chain starts from."""

    name = "ablation-map-budget"
    title = "does LatentPDE-MAP need a converged start?"
    option = "map_steps"
    printed = paper.MAP_BUDGET


class GuidanceScale(Ablation):
    """Guidance of half the strength, and none at all."""

    name = "ablation-guidance"
    title = "what guidance by the readings is worth"
    option = "guidance_scale"
    printed = paper.GUIDANCE


class RefinementWeight(Ablation):
    """The chain with its refinement and without it."""

    name = "ablation-refinement"
    title = "what the final refinement is worth"
    num = 40
    num_settings = 2
    option = "refinement_weight"
    printed = paper.REFINEMENT
