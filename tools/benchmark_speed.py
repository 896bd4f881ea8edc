"""Time of one case, from the call to the arrays: `exact` (12 draws and the mean at 128 x 128) beside `map`.

    python tools/benchmark_speed.py [--num 20]      # writes results/speed.json

Both run in the same process, turn by turn, so that their ratio does not depend on what else the machine does.
"""

import argparse
import cProfile
import json
import pstats
import time
from pathlib import Path

import numpy as np
import torch

from latentpde.estimators import reconstruct
from latentpde.simulation import PAPER_REGIMES, simulate


def seconds(method: str, case) -> float:
    start = time.perf_counter()
    posterior = reconstruct(case, method=method, num_samples=12)
    _ = posterior.mean().values, posterior.draws().values
    return time.perf_counter() - start


def share_of_time(regime: str, num: int) -> dict[str, float]:
    """What `exact` spends its time on, in percent."""
    cases = simulate(regime, num=num, seed=3)
    profile = cProfile.Profile()
    profile.enable()
    for i in range(num):
        seconds("exact", cases.isel(sample=slice(i, i + 1)))
    profile.disable()
    stats = pstats.Stats(profile)
    total = stats.total_tt  # pyright: ignore[reportAttributeAccessIssue]
    wanted = {"log_likelihood": "likelihood", "fit": "mixture fits", "log_density": "mixture densities"}
    found = dict.fromkeys(wanted.values(), 0.0) | {"decoding": 0.0}
    for (file, _, name), (_, _, _, cumulative, _) in stats.stats.items():  # pyright: ignore[reportAttributeAccessIssue]
        if "latentpde" in file and name in wanted and "exact" not in file:
            found[wanted[name]] += cumulative
        elif name == "_map" and "posterior" in file:
            found["decoding"] += cumulative
    return {label: round(100 * spent / total, 1) for label, spent in found.items()}


def main(num: int) -> None:
    results: dict = {"threads": torch.get_num_threads(), "num": num, "regimes": {}}
    for regime in PAPER_REGIMES:
        cases = simulate(regime, num=num, seed=11)
        singles = [cases.isel(sample=slice(i, i + 1)) for i in range(num)]
        seconds("exact", singles[0])  # tables that are made once
        times = {method: np.array([seconds(method, case) for case in singles]) for method in ("map", "exact")}
        results["regimes"][regime] = {
            **{f"{m}_median": round(float(np.median(t)), 3) for m, t in times.items()},
            "exact_slowest": round(float(times["exact"].max()), 3),
            "exact_quickest": round(float(times["exact"].min()), 3),
            "ratio_of_medians": round(float(np.median(times["exact"]) / np.median(times["map"])), 3),
            "cases_slower_than_map": int((times["exact"] > times["map"]).sum()),
            "share_of_time": share_of_time(regime, min(num, 5)),
        }
        print(regime, results["regimes"][regime], flush=True)
    Path("results/speed.json").write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--num", type=int, default=20)
    main(parser.parse_args().num)
