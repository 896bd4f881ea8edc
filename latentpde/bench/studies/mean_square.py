"""What the posterior mean promises: the least mean square error, which is not the least mean of root mean squares."""

from __future__ import annotations

import numpy as np

from latentpde.bench.benchmark import Benchmark, Items, Plan
from latentpde.bench.jobs import Job
from latentpde.bench.tables import Frame, Table, mean_and_error, number

REFERENCE = "exact"
NOISES = (0.30, 0.45)
_FEW = 20  # cases, as the sweep over noise has them


class MeanSquare(Benchmark):
    """Errors of `exact` and `map` on the same cases, by mean RMSE and by mean square error.

    The posterior mean has the least *mean square* error among all estimates, over cases drawn from the prior. Over few
    cases, or by the mean of a root, which counts rare large errors less, another estimate can come out ahead.
    """

    name = "mean-square"
    title = "mean RMSE and mean square error beside each other"
    num = 500 * len(NOISES)
    num_settings = len(NOISES)
    regimes = ("helmholtz",)
    rows = (REFERENCE, "map")

    def jobs(self, plan: Plan) -> list[Job]:
        return [job for noise in NOISES for job in plan.jobs_on(plan.rows, plan.regimes, noise_std=noise)]

    def show(self, plan: Plan) -> Items:
        return [self._table(plan, regime) for regime in plan.regimes]

    def _table(self, plan: Plan, regime: str) -> Table:
        rows = []
        for noise in NOISES:
            table = plan.frame(plan.jobs_on(plan.rows, [regime], noise_std=noise))
            wide = table[table["failed"].isna()].pivot_table(index="index", columns="row", values="rmse").dropna()
            rows += [self._row(wide, name, noise) for name in wide]
        heads = (
            "noise, method",
            "mean RMSE",
            "of the first 20",
            "root mean square",
            "worst 5 % of cases",
            "RMSE less exact's",
            "square less exact's, 1e-4",
            "cases",
        )
        notes = (
            "Over the cases that all solved; ± standard error. Worst 5 %: their share of the sum of squares. The last "
            "two: mean differences, case by case.",
        )
        return Table(f"{self.title}, {regime}", heads, tuple(rows), notes)

    def _row(self, wide: Frame, name: str, noise: float) -> tuple[str, ...]:
        errors = wide[name].to_numpy()
        squares = np.sort(errors**2)
        worst = squares[-max(1, len(squares) // 20) :].sum() / squares.sum()
        apart, apart_square = "-", "-"
        if REFERENCE in wide and name != REFERENCE:
            reference = wide[REFERENCE].to_numpy()
            apart = number(*mean_and_error(errors - reference))
            apart_square = number(*mean_and_error(1e4 * (errors**2 - reference**2)))
        return (
            f"{noise:.2f}, {name}",
            number(*mean_and_error(errors)),
            number(*mean_and_error(errors[:_FEW])),
            number(float(np.sqrt(squares.mean()))),
            f"{worst:.0%}",
            apart,
            apart_square,
            f"{len(errors)}",
        )
