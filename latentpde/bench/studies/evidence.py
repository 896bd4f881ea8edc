"""Whether the evidence finds the right family of PDEs."""

from __future__ import annotations

import numpy as np

from latentpde.bench.benchmark import Benchmark, Items, Plan
from latentpde.bench.jobs import Job, cases_of
from latentpde.bench.rows import Row
from latentpde.bench.tables import Table
from latentpde.simulation import regimes

#: Those of its regimes; none of them contains another.
FAMILIES = ("advection_diffusion", "klein_gordon", "helmholtz", "telegraph", "fractional_diffusion")


class Evidence(Benchmark):
    """Every family on the cases of every regime, and which of them the evidence prefers."""

    name = "evidence"
    title = "is the right family of PDEs found by the evidence?"
    num = 60
    num_settings = len(FAMILIES)
    rows = ("exact",)
    regimes = ("balanced", "klein_gordon", "helmholtz", "telegraph", "fractional_diffusion")

    def jobs(self, plan: Plan) -> list[Job]:
        return [
            Job(row=some, simulation=cases_of(regime), family=family)
            for some in plan.rows
            for regime in plan.regimes
            for family in FAMILIES
        ]

    def show(self, plan: Plan) -> Items:
        return [self._table(plan, some) for some in plan.rows]

    def _table(self, plan: Plan, some: Row) -> Table:
        table = plan.frame([job for job in self.jobs(plan) if job.row == some])
        names, rows = list(FAMILIES), []
        for regime in plan.regimes:
            here = table[(table["regime"] == regime) & table["failed"].isna()]
            if here.empty or "log_evidence" not in here:
                continue
            wide = (
                here.pivot_table(index="index", columns="family", values="log_evidence").reindex(columns=names).dropna()
            )
            share = np.exp(wide.sub(wide.max(axis=1), axis=0))
            share = share.div(share.sum(axis=1), axis=0).mean()
            first = wide.idxmax(axis=1).value_counts()
            own = regimes.get(regime).family
            cells = [f"{share[name]:.2f} ({first.get(name, 0)})" for name in names]
            rows.append(
                (regime, *(f"[{c}]" if n == own else c for n, c in zip(names, cells, strict=True)), f"{len(wide)}")
            )
        note = (
            "Mean posterior probability of each family, all alike beforehand, and in how many cases it comes first. "
            "In brackets the family that made the cases. Each has its own default bounds and a source of 0.5: what the "
            "user would know is not given away."
        )
        return Table(f"{self.title} Method {some.name}.", ("cases of", *names, "cases"), tuple(rows), (note,))
