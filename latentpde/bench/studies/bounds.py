"""What it is worth to be told the regime's bounds in place of the family's."""

from __future__ import annotations

from latentpde.bench.benchmark import Benchmark, Items, Plan
from latentpde.bench.jobs import ADVECTION_DIFFUSION, Job
from latentpde.bench.rows import FAMILY_BOUNDS, Row, chosen_rows
from latentpde.bench.store import failures
from latentpde.bench.tables import NONE, Table, mean_and_error, number


class FamilyBounds(Benchmark):
    """Each method with the bounds of the regime, which the cases carry, and with those of the whole family.

    The regimes of advection-diffusion are parts of their family's ranges; the other families have one regime each,
    whose bounds are the family's.
    """

    name = "family-bounds"
    title = "methods told the regime's bounds, and the family's alone"
    num = 100
    rows = ("exact", "map", "3dvar", "enkf")
    regimes = ADVECTION_DIFFUSION

    def variants(self, plan: Plan) -> list[Row]:
        """Every row as it is, and with the bounds of the family."""
        names = [row.name.removesuffix(FAMILY_BOUNDS) for row in plan.rows]
        return list(chosen_rows(name for base in names for name in (base, base + FAMILY_BOUNDS)))

    def jobs(self, plan: Plan) -> list[Job]:
        return plan.jobs_on(self.variants(plan), plan.regimes)

    def show(self, plan: Plan) -> Items:
        table, rows = plan.frame(self.jobs(plan)), []
        for some in self.variants(plan):
            good = table[(table["row"] == some.name) & table["failed"].isna()]
            by_regime = [good[good["regime"] == regime]["rmse"] for regime in plan.regimes]
            rows.append((some.name, *(NONE if r.empty else number(*mean_and_error(r)) for r in by_regime)))
        notes = ("RMSE, means over cases ± standard error.", *failures(table))
        return [Table(self.title, ("method", *plan.regimes), tuple(rows), notes)]
