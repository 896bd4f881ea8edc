"""Time of one case, from the call to the arrays: `exact` (12 draws and the mean at 128 x 128) beside `map`.

    python tools/benchmark_speed.py [--num 100] [--num-map 20]      # writes results/speed.json

Both run in the same process, turn by turn, so that their ratio does not depend on what else the machine does. `map`,
whose time does not depend on the case, runs on the first of the cases only.
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
    posterior = reconstruct(case, method=method, num_draws=12)
    _ = posterior.mean().values, posterior.draws().values
    return time.perf_counter() - start


def share_of_time(regime: str, num: int) -> dict[str, float]:
    """What `exact` spends its time on, in percent, on one thread: the profiler sees no other."""
    cases, threads = simulate(regime, num=num, seed=3), torch.get_num_threads()
    torch.set_num_threads(1)
    profile = cProfile.Profile()
    profile.enable()
    for i in range(num):
        seconds("exact", cases.isel(case=slice(i, i + 1)))
    profile.disable()
    torch.set_num_threads(threads)
    stats = pstats.Stats(profile)
    total = stats.total_tt  # pyright: ignore[reportAttributeAccessIssue]
    wanted = {
        ("collapsed", "log_likelihood"): "likelihood",
        ("collapsed", "<lambda>"): "scouting",
        ("mixture", "fit"): "mixture fits",
        ("mixture", "log_density"): "mixture densities",
        ("mixture", "peaks"): "peaks",
    }
    found = dict.fromkeys(wanted.values(), 0.0) | {"decoding": 0.0}
    for (file, _, name), (_, _, _, cumulative, _) in stats.stats.items():  # pyright: ignore[reportAttributeAccessIssue]
        if (label := wanted.get((Path(file).stem, name))) is not None:
            found[label] += cumulative
        elif name == "_map" and Path(file).stem == "posterior":
            found["decoding"] += cumulative
    return {label: round(100 * spent / total, 1) for label, spent in found.items()}


def main(num: int, num_map: int) -> None:
    results: dict = {"threads": torch.get_num_threads(), "num": num, "num_map": num_map, "regimes": {}}
    for regime in PAPER_REGIMES:
        cases = simulate(regime, num=num, seed=11)
        singles = [cases.isel(case=slice(i, i + 1)) for i in range(num)]
        seconds("exact", singles[0])  # tables that are made once
        of_map, of_exact = [], []
        for i, case in enumerate(singles):
            if i < num_map:
                of_map.append(seconds("map", case))
            of_exact.append(seconds("exact", case))
        quantiles = np.quantile(of_exact, [0, 0.1, 0.5, 0.9, 1]).round(3).tolist()
        results["regimes"][regime] = {
            "map_median": round(float(np.median(of_map)), 3),
            "exact": dict(zip(("quickest", "10 %", "median", "90 %", "slowest"), quantiles, strict=True)),
            "ratio_of_medians": round(float(np.median(of_exact[:num_map]) / np.median(of_map)), 3),
            "slower_than_map": int((np.array(of_exact[:num_map]) > np.array(of_map)).sum()),
            "share_of_time": share_of_time(regime, min(num, 5)),
        }
        print(regime, results["regimes"][regime], flush=True)
    Path("results/speed.json").write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--num", type=int, default=100)
    parser.add_argument("--num-map", type=int, default=20)
    main(**vars(parser.parse_args()))
