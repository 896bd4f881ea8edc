"""Time and memory of the exact posterior as the problem grows: readings, coarse grid, snapshots, output."""

from __future__ import annotations

import resource
import time
from typing import Any

from latentpde.bench.benchmark import Items, Plan, Study
from latentpde.bench.execution import in_fresh_process
from latentpde.bench.lines import Line
from latentpde.bench.tables import Table

SIZES: dict[str, list[dict[str, int]]] = {
    "coarse grid": [{"coarse": n, "readings": 51} for n in (32, 64, 128, 256)],
    "snapshots": [{"snapshots": n} for n in (1, 2, 4, 8)],
    "output": [{"output": n} for n in (128, 256, 512, 1024)],
    "readings": [{"coarse": 128, "readings": n} for n in (50, 100, 200, 400, 1000, 2000, 5000)],
}
_VARIED = {"coarse grid": "coarse", "snapshots": "snapshots", "output": "output", "readings": "readings"}


def cost(regime: str, *, coarse: int = 32, readings: int = 51, snapshots: int = 1, output: int = 128) -> dict[str, Any]:
    """What one case costs, from the observation to 12 draws and the mean; memory beyond what the imports had taken.

    Args:
        regime: of the case.
        coarse: cells of the coarse grid along an axis; the fine grid has four times as many.
        readings: how many cells are read.
        snapshots: at how many times.
        output: cells of the output along an axis.
    """
    from latentpde.errors import no_warnings
    from latentpde.estimators import reconstruct
    from latentpde.observation import Observation
    from latentpde.simulation import regimes, simulate

    last = regimes.get(regime).time
    times = tuple(last * (i + 1) / snapshots for i in range(snapshots))
    cases = simulate(
        regime, num=1, seed=5, mask="radial", sparsity=readings / coarse**2, shape=(4 * coarse,) * 2, times=times
    )
    observation = Observation.from_dataset(cases)
    before, start = _peak(), time.perf_counter()
    with no_warnings():
        posterior = reconstruct(observation, num_draws=12)
    middle = time.perf_counter()
    _ = posterior.mean(output).values, posterior.draws(output).values
    end = time.perf_counter()
    return {
        "num_readings": int(observation.mask.sum()),
        "posterior_s": round(middle - start, 2),
        "decode_s": round(end - middle, 2),
        "memory_mb": round(_peak() - before),
        "evaluations": int(posterior.diagnostics["num_evaluations"][0]),
        "trusted": bool(posterior.diagnostics["trusted"][0]),
    }


def _peak() -> float:
    """The most memory that this process has had, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


class Scaling(Study):
    """One case of `exact`, with one of its sizes varied at a time."""

    name = "scaling"
    title = "time and memory of the exact posterior as the problem grows"
    num = 28  # over four quantities, each from its smallest on
    num_settings = len(_VARIED)
    regimes = ("balanced", "klein_gordon")

    def missing_tasks(self, plan: Plan) -> list[Line]:
        wanted = [
            {"varied": varied, "regime": regime, **size}
            for varied, sizes in SIZES.items()
            for regime in plan.regimes
            for size in sizes[: plan.num]
        ]
        known = self.lines(plan)
        return [size for size in wanted if not any(size.items() <= line.items() for line in known)]

    def run_task(self, task: Line) -> list[Line]:
        """Measure one size in a process of its own: so is its peak memory, and running out of it ends nothing else."""
        arguments = {name: value for name, value in task.items() if name != "varied"}
        try:
            found = in_fresh_process(cost, **arguments)
        except Exception as error:
            found = {"failed": f"{type(error).__name__}: {error}"[:200]}
        return [{**task, **found}]

    def show(self, plan: Plan) -> Items:
        shown: Items = []
        for varied, name in _VARIED.items():
            here = [line for line in self.lines(plan) if line["varied"] == varied and line["regime"] in plan.regimes]
            rows = [
                (f"{line['regime']}, {line[name]}", f"{line['posterior_s']:.2f}", f"{line['decode_s']:.2f}",
                 str(line["memory_mb"]), f"{line['evaluations']:,}", "yes" if line["trusted"] else "no")
                for line in sorted(here, key=lambda line: (plan.regimes.index(line["regime"]), line[name]))
            ]  # fmt: skip
            heads = (f"regime, {varied}", "posterior, s", "decoding, s", "memory, MB", "evaluations", "trusted")
            notes = self.failures(plan) if varied == "readings" else ()
            shown.append(Table(f"Cost against {varied}", heads, tuple(rows), notes))
        return shown
