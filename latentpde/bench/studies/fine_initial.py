"""What the fine initial state, which the paper gives its baselines, is worth to them."""

from __future__ import annotations

from latentpde.bench.benchmark import Benchmark, Items, Plan
from latentpde.bench.jobs import Job
from latentpde.bench.rows import COARSE, Row, chosen_rows
from latentpde.bench.store import failures
from latentpde.bench.tables import NONE, Table, mean_over_regimes, number


class FineInitial(Benchmark):
    """Each baseline with the fine initial state, and with the coarse one that a user has."""

    name = "fine-initial"
    title = "baselines with the fine initial state and with the coarse one"
    num = 20
    rows = ("3dvar", "enkf")

    def variants(self, plan: Plan) -> list[Row]:
        """Every row as it is, and with the coarse initial state."""
        names = [row.name.removesuffix(COARSE) for row in plan.rows]
        return list(chosen_rows(name for base in names for name in (base, base + COARSE)))

    def jobs(self, plan: Plan) -> list[Job]:
        return plan.jobs_on(self.variants(plan), plan.regimes)

    def show(self, plan: Plan) -> Items:
        table, rows = plan.frame(self.jobs(plan)), []
        families = list(dict.fromkeys(table["pde"]))
        for some in self.variants(plan):
            good = table[(table["row"] == some.name) & table["failed"].isna()]
            by_family = [good[good["pde"] == family] for family in families]
            rows.append((some.name, *(NONE if f.empty else number(*mean_over_regimes(f, "rmse")) for f in by_family)))
        heads = ("method", *(family.replace("_", "-") for family in families))
        notes = ("RMSE, means over regimes ± standard error.", *failures(table))
        return [Table(self.title, heads, tuple(rows), notes)]
