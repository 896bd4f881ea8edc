"""What the core can do: how fast cases are simulated to disk, and how fast and how well `map` solves many at once."""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from latentpde.bench.benchmark import Items, Plan, Study
from latentpde.bench.execution import in_fresh_process
from latentpde.bench.jobs import cases_of
from latentpde.bench.lines import Line
from latentpde.bench.solving import true_fields
from latentpde.bench.tables import Table
from latentpde.errors import no_warnings
from latentpde.estimators import reconstruct
from latentpde.scores.metrics import score

SIMULATED = "balanced"  # the regime that is simulated to disk
_MOST_AT_ONCE = 64  # cases that map gets in one batch


class Core(Study):
    """The simulator, from the command to a file, and one large batch of `map` for each regime."""

    name = "core"
    title = "speed of the simulator and of map in a large batch"
    num = 5000  # simulated; map gets a batch of them
    in_all = False  # it wants the machine to itself

    def missing_tasks(self, plan: Plan) -> list[tuple[str, str, int]]:
        """What is measured, of which regime and of how many cases."""
        known = {(line["part"], line["regime"]): line["num"] for line in self.lines(plan)}
        batch = min(plan.num, _MOST_AT_ONCE)
        wanted = [("simulate", SIMULATED, plan.num), *(("map", regime, batch) for regime in plan.regimes)]
        return [task for task in wanted if known.get(task[:2], 0) < task[2]]

    def run_task(self, task: tuple[str, str, int]) -> list[Line]:
        part, regime, num = task
        found = in_fresh_process(simulate_to_disk, regime, num) if part == "simulate" else solve_at_once(regime, num)
        return [{"part": part, "regime": regime, "num": num, **found}]

    def show(self, plan: Plan) -> Items:
        lines = {(line["part"], line["regime"]): line for line in self.lines(plan)}
        shown: Items = []
        if (line := lines.get(("simulate", SIMULATED))) is not None:
            cells = (SIMULATED, f"{line['num']:,}", f"{line['seconds']:.1f}", f"{line['num'] / line['seconds']:.0f}",
                     f"{line['peak_mb']}", f"{line['file_mb']}")  # fmt: skip
            heads = ("regime", "cases", "seconds", "cases/s", "memory, MB", "file, MB")
            shown.append(Table("cases simulated to disk, from the command to the file", heads, (cells,)))
        rows = [
            (regime, f"{line['num']}", f"{line['rmse']:.4f} ± {line['rmse_error']:.4f}", f"{line['mae']:.4f}",
             f"{line['psd']:.2f}", f"{line['cases_per_second']:.1f}")
            for regime in plan.regimes
            if (line := lines.get(("map", regime))) is not None
        ]  # fmt: skip
        heads = ("regime", "cases", "RMSE", "MAE", "PSD", "cases/s")
        return [*shown, Table("map on one batch of cases", heads, tuple(rows))] if rows else shown


def simulate_to_disk(regime: str, num: int) -> dict[str, Any]:
    """Time, peak memory and size of the file of ``latentpde simulate``; to be called in a fresh process."""
    program = "from latentpde.cli import main; main()"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "cases.nc")
        start = time.perf_counter()
        command = [sys.executable, "-c", program, "simulate", regime, "--num", str(num), "--quiet", "--output", path]
        subprocess.run(command, check=True)
        seconds, size = time.perf_counter() - start, path.stat().st_size
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    return {"seconds": round(seconds, 1), "peak_mb": round(peak / 1024), "file_mb": round(size / 2**20)}


def solve_at_once(regime: str, num: int) -> dict[str, Any]:
    """Scores of `map` on the first test cases of a regime, all in one batch, and how many it solves in a second."""
    cases = cases_of(regime).cases(0, num)
    start = time.perf_counter()
    with no_warnings():
        mean = reconstruct(cases, method="map", num_draws=1).mean().values
    seconds = time.perf_counter() - start
    scores = score(mean, true_fields(cases))
    found = {name: round(float(np.mean(v)), 4) for name, v in scores.items() if np.isfinite(v).all()}
    found["rmse_error"] = round(float(np.std(scores["rmse"], ddof=1) / np.sqrt(num)), 4) if num > 1 else 0.0
    return {**found, "cases_per_second": round(num / seconds, 2)}
