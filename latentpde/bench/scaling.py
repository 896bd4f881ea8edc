"""Time and memory of the exact posterior as the problem grows: readings, coarse grid, snapshots, output."""

from __future__ import annotations

import json
import multiprocessing
import resource
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from latentpde.bench.benchmark import Benchmark, Plan, benchmarks
from latentpde.bench.runs import Job, hardware
from latentpde.bench.tables import Table
from latentpde.progress import progress

SIZES: dict[str, list[dict[str, int]]] = {
    "coarse grid": [{"coarse": n, "readings": 51} for n in (32, 64, 128, 256)],
    "snapshots": [{"snapshots": n} for n in (1, 2, 4, 8)],
    "output": [{"output": n} for n in (128, 256, 512, 1024)],
    "readings": [{"coarse": 128, "readings": n} for n in (50, 100, 200, 400, 1000, 2000, 5000)],
}
_VARIED = {"coarse grid": "coarse", "snapshots": "snapshots", "output": "output", "readings": "readings"}


def cost(regime: str, *, coarse: int = 32, readings: int = 51, snapshots: int = 1, output: int = 128) -> dict[str, Any]:
    """One case, from the observation to 12 draws and the mean; memory beyond what the imports had taken."""
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
    posterior = reconstruct(observation, num_samples=12)
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
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


class Scaling(Benchmark):
    name = "scaling"
    title = "time and memory of the exact posterior as the problem grows"
    num = 7  # here the number of sizes, from the smallest on
    rows = ("exact",)
    regimes = ("balanced", "klein_gordon")

    def jobs(self, plan: Plan) -> list[Job]:
        return []

    def run(self, plan: Plan, *, workers: int, again: bool, show_progress: bool) -> None:
        """Each size in a process of its own, so that its peak memory is its own."""
        path = self._path(plan)
        if again:
            path.unlink(missing_ok=True)
        known = self._lines(plan)
        wanted = [
            {"varied": varied, "regime": regime, **size}
            for varied, sizes in SIZES.items()
            for regime in plan.regimes
            for size in sizes[: plan.num]
            if not any({"varied": varied, "regime": regime, **size}.items() <= line.items() for line in known)
        ]
        path.parent.mkdir(parents=True, exist_ok=True)
        with progress(self.name, len(wanted), show=show_progress) as advance:
            for size in wanted:
                arguments = {name: value for name, value in size.items() if name != "varied"}
                context = multiprocessing.get_context("spawn")
                with ProcessPoolExecutor(1, mp_context=context) as pool:
                    try:
                        found = pool.submit(cost, **arguments).result()
                    except Exception as error:  # out of memory ends the process and not this one
                        found = {"failed": f"{type(error).__name__}: {error}"[:200]}
                with path.open("a") as file:
                    file.write(json.dumps({**size, **found, "hardware": hardware()}) + "\n")
                advance(1)

    def show(self, plan: Plan) -> list:
        lines = self._lines(plan)
        shown = []
        for varied, name in _VARIED.items():
            here = [line for line in lines if line["varied"] == varied and line["regime"] in plan.regimes]
            rows = [
                (f"{line['regime']}, {line[name]}", line["failed"])
                if "failed" in line
                else (f"{line['regime']}, {line[name]}", f"{line['posterior_s']:.2f}", f"{line['decode_s']:.2f}",
                      str(line["memory_mb"]), f"{line['evaluations']:,}", "yes" if line["trusted"] else "no")
                for line in sorted(here, key=lambda line: (plan.regimes.index(line["regime"]), line[name]))
            ]  # fmt: skip
            heads = (f"regime, {varied}", "posterior, s", "decoding, s", "memory, MB", "evaluations", "trusted")
            shown.append(Table(f"Cost against {varied}", heads, tuple(rows)))
        return shown

    def _path(self, plan: Plan) -> Path:
        return plan.store.folder / "scaling.jsonl"

    def _lines(self, plan: Plan) -> list[dict[str, Any]]:
        path = self._path(plan)
        return [json.loads(line) for line in path.read_text().splitlines() if line] if path.exists() else []


benchmarks.register(Scaling.name, Scaling())
