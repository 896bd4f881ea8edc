"""How far each method is from the exact posterior, which is as good as the readings allow."""

from __future__ import annotations

import numpy as np

from latentpde.bench.benchmark import Benchmark, Items, Plan
from latentpde.bench.jobs import Job
from latentpde.bench.rows import row
from latentpde.bench.tables import Frame, Table, number

REFERENCE = "exact"


class Limit(Benchmark):
    """The runs of ``table1``, as ratios of errors on the same cases."""

    name = "limit"
    title = "errors as ratios to the exact posterior's on the same cases"
    num = 500
    an_hour = True

    def jobs(self, plan: Plan) -> list[Job]:
        return plan.jobs_on(dict.fromkeys((row(REFERENCE), *plan.rows)), plan.regimes)

    def show(self, plan: Plan) -> Items:
        table = plan.frame(self.jobs(plan))
        good = table[table["failed"].isna()]
        return [self._table(good, plan, score, label) for score, label in (("rmse", "RMSE"), ("crps", "CRPS"))]

    def _table(self, good: Frame, plan: Plan, score: str, label: str) -> Table:
        wide = good.pivot_table(index=["regime", "index"], columns="row", values=score, sort=False)
        rows = []
        for some in plan.rows:
            if some.name not in wide or REFERENCE not in wide:
                continue
            both = wide[[some.name, REFERENCE]].dropna() if some.name != REFERENCE else wide[[REFERENCE]].dropna()
            means = both.groupby(level="regime", sort=False).mean()
            ratios = means[some.name] / means[REFERENCE]
            rows.append((some.name, *(number(float(ratios.get(name, np.nan))) for name in plan.regimes)))
        note = "Mean over the cases that both solved, divided by the exact posterior's. CRPS of a point is its MAE."
        return Table(f"{label} as a ratio to the exact posterior's", ("method", *plan.regimes), tuple(rows), (note,))
