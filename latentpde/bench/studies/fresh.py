"""Whether errors on the usual test cases, which have been looked at many times, hold on cases that nobody has seen."""

from __future__ import annotations

from latentpde.bench.benchmark import Benchmark, Items, Plan
from latentpde.bench.jobs import SEED, Job, jobs_on
from latentpde.bench.rows import CHOSEN
from latentpde.bench.store import failures
from latentpde.bench.tables import NONE, Table, mean_over_regimes, number

FRESH = 71  # the seed of test cases that no choice was made on


class Fresh(Benchmark):
    """Each method on the first test cases, and on as many of another seed."""

    name = "fresh-cases"
    title = "methods on the usual test cases, and on others that no choice has seen"
    num = 100
    own_seeds = True
    rows = (CHOSEN, "exact", "map", "enc", "3dvar", "enkf", "kriging", "3dvar-paper", "enkf-paper")

    def jobs(self, plan: Plan) -> list[Job]:
        return [job for seed in (SEED, FRESH) for job in jobs_on(plan.rows, plan.regimes, seed=seed)]

    def show(self, plan: Plan) -> Items:
        table, rows = plan.frame(self.jobs(plan)), []
        good = table[table["failed"].isna()]
        families = list(dict.fromkeys(table["pde"]))
        for row in plan.rows:
            cells = [row.name]
            for family in families:
                of_family = good[(good["row"] == row.name) & (good["pde"] == family)]
                for seed in (SEED, FRESH):
                    some = of_family[of_family["seed"] == seed]
                    cells.append(NONE if some.empty else number(*mean_over_regimes(some, "rmse")))
            rows.append(tuple(cells))
        names = [family.replace("_", "-") for family in families]
        heads = ("method", *(text for name in names for text in (name, f"{name}, fresh")))
        notes = (f"RMSE, means over regimes ± standard error; fresh cases have the seed {FRESH}.", *failures(table))
        return [Table(self.title, heads, tuple(rows), notes)]
