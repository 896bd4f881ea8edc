"""Accuracy and speed of the core; writes results/core.json.

    python tools/benchmark_core.py            # everything
    python tools/benchmark_core.py map        # one part: simulate, map or exact

Cases are the benchmark's: 5 % of a 32 x 32 grid, noise 0.15, evaluation masks, truth at 128 x 128.
"""

import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import torch

from latentpde.estimators import reconstruct
from latentpde.scores.metrics import coverage, psd_log_error, score
from latentpde.simulation import PAPER_REGIMES, simulate

PATH = Path("results/core.json")
SEED = 7


def measure_simulation(num: int = 5000) -> dict:
    """Stream cases of a regime to disk in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        command = [
            str(Path(sys.executable).parent / "latentpde"),
            "simulate",
            "balanced",
            "--num",
            str(num),
            "-q",
            "-o",
        ]
        start = time.perf_counter()
        subprocess.run([*command, f"{folder}/cases.nc"], check=True)
        seconds = time.perf_counter() - start
        size = Path(folder, "cases.nc").stat().st_size
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    return {"num": num, "seconds": round(seconds, 1), "peak_mb": round(peak / 1024), "file_mb": round(size / 2**20)}


def measure_method(method: str, regime: str, num: int, num_draws: int) -> dict:
    cases = simulate(regime, num=num, seed=SEED)
    truth = cases["truth/field"].values.astype(float)
    start = time.perf_counter()
    posterior = reconstruct(cases, method=method, num_draws=num_draws)
    mean = posterior.mean().values
    seconds = time.perf_counter() - start
    draws = posterior.draws().values if posterior.has_spread else None
    scores = {
        name: round(float(np.mean(v)), 4) for name, v in score(mean, truth, draws).items() if np.isfinite(v).all()
    }
    scores["rmse_error"] = round(float(np.std(score(mean, truth)["rmse"], ddof=1) / np.sqrt(num)), 4)
    if draws is not None:
        scores["coverage50"] = round(float(np.mean(coverage(draws, truth, 0.5))), 4)
        scores["psd_of_draws"] = round(float(np.mean(psd_log_error(draws[:, 0], truth))), 4)
        scores["trusted"] = float(np.mean(posterior.diagnostics["trusted"]))
    return {**scores, "num": num, "cases_per_second": round(num / seconds, 2)}


def main(parts: list[str]) -> None:
    results = json.loads(PATH.read_text()) if PATH.exists() else {}
    results["machine"] = {"threads": torch.get_num_threads(), "torch": torch.__version__, "seed": SEED}
    for part in parts or ["simulate", "map", "exact"]:
        if part == "simulate":
            results["simulate"] = measure_simulation()
        else:
            num, num_draws = (64, 1) if part == "map" else (100, 40)
            results[part] = {regime: measure_method(part, regime, num, num_draws) for regime in PAPER_REGIMES}
        print(part, json.dumps(results[part], indent=1), flush=True)
        PATH.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
