"""How long one case takes with each method, and how many numbers it has learned."""

from __future__ import annotations

import numpy as np

from latentpde.bench import paper
from latentpde.bench.benchmark import Benchmark, Items, Plan
from latentpde.bench.jobs import Job
from latentpde.bench.queue import BATCH
from latentpde.bench.rows import Row, chosen_rows, every_method, published
from latentpde.bench.tables import NONE, Table, number


class Runtime(Benchmark):
    """Each method on cases one by one, as a user has them, and on a batch."""

    name = "runtime"
    title = "time for one case, from the call to the arrays, and parameters"
    num = 40
    num_settings = 2  # alone and in a batch
    regimes = ("balanced",)
    in_paper = ("map_diffusion-paper", "enc_diffusion-paper", "enkf-map", "enkf-enc", "3dvar-map", "3dvar-enc",
                "pinn-paper", "fundps")  # fmt: skip

    def default_rows(self) -> tuple[Row, ...]:
        return chosen_rows((*every_method(), *self.in_paper))

    def jobs(self, plan: Plan) -> list[Job]:
        return self._jobs(plan, alone=True) + self._jobs(plan, alone=False)

    def _jobs(self, plan: Plan, *, alone: bool) -> list[Job]:
        rows = [some for some in plan.rows if alone or some.count(plan.num) > 1]  # one case is no batch
        return plan.jobs_on(rows, plan.regimes, measurement="time", alone=alone)

    def show(self, plan: Plan) -> Items:
        table, rows = plan.frame(self._jobs(plan, alone=True)), []
        batched = plan.frame(self._jobs(plan, alone=False))
        for some in plan.rows:
            good = table[(table["row"] == some.name) & table["failed"].isna()]
            if good.empty:
                continue
            many = batched[(batched["row"] == some.name) & batched["failed"].isna()]["seconds"]
            theirs, size = paper.RUNTIME.get(published(some.name), (None, None))
            ours = good["parameters"].max() if "parameters" in good else np.nan
            rows.append(
                (
                    some.name,
                    number(float(good["seconds"].median())),
                    number(float(good["seconds"].max())),
                    number(1 / many.mean()) if len(many) else NONE,
                    number(theirs),
                    NONE if np.isnan(ours) else f"{ours:,.0f}",
                    NONE if size is None else f"{size * 1e6:,.0f}",
                )
            )
        threads = ", ".join(sorted({str(v) for v in table["threads"]})) if "threads" in table else NONE
        machine = ", ".join(sorted({str(v) for v in table["hardware"]})) if "hardware" in table else NONE
        note = (
            f"On {machine}, {threads} thread(s); the paper: one A5000 GPU. Run it while the machine does nothing else. "
            f"A batch has {BATCH} cases; of slow methods, a fifth. `-map` and `-enc` name the background, in the paper "
            "(MAP) and (Enc)."
        )
        heads = (
            "method",
            "seconds, median",
            "slowest",
            "cases/s in a batch",
            "paper's seconds",
            "parameters",
            "paper's",
        )
        return [Table(self.title, heads, tuple(rows), (note,))]
