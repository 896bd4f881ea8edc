"""The paper's ablations of its sampler: one option changed at a time."""

from __future__ import annotations

from typing import Any, ClassVar

from latentpde.bench import paper
from latentpde.bench.benchmark import Benchmark, Items, Plan
from latentpde.bench.jobs import ADVECTION_DIFFUSION, Job
from latentpde.bench.rows import Row, with_options
from latentpde.bench.store import failures
from latentpde.bench.tables import Table, mean_over_regimes, number
from latentpde.bench.variants import PAPER, TARGET


class Ablation(Benchmark):
    """RMSE over advection-diffusion with one option of the paper's sampler changed.

    The base is the paper's: a MAP estimate of 80 steps where the chain starts from one. It is taken of our networks
    with the paper's targets, which come with the package, and of the paper's own where those have been trained.
    """

    num = 60
    num_settings = 3
    regimes = ADVECTION_DIFFUSION
    rows = tuple(method + suffix for method in TARGET for suffix in (TARGET[method], PAPER))
    base: ClassVar[dict[str, dict[str, Any]]] = {"map_diffusion": {"map_steps": 80}}
    option: str
    printed: dict[str, dict]

    def variants(self, plan: Plan) -> list[tuple[Row, int | float, float]]:
        """Rows, the option's value in each, and the paper's figure."""
        return [
            (self._variant(some, value), value, printed)
            for some in plan.rows
            if some.method in self.printed
            for value, printed in self.printed[some.method].items()
        ]

    def _variant(self, some: Row, value: int | float) -> Row:
        options = {**self.base.get(some.method, {}), self.option: value}
        return with_options(some, name=f"{some.name}, {value:g}", **options)

    def jobs(self, plan: Plan) -> list[Job]:
        return plan.jobs_on([some for some, _, _ in self.variants(plan)], plan.regimes)

    def show(self, plan: Plan) -> Items:
        table, rows, first = plan.frame(self.jobs(plan)), [], {}
        notes = ("The base is the paper's: where the chain starts from MAP, 80 steps of it.", *failures(table))
        for some, _, printed in self.variants(plan):
            good = table[(table["row"] == some.name) & table["failed"].isna()]
            if good.empty:
                continue
            mean, error = mean_over_regimes(good, "rmse")
            base, base_printed = first.setdefault(some.name.split(",")[0], (mean, printed))
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
