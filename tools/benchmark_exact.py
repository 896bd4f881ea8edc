"""Simulation-based calibration and accuracy of `exact`, per regime and evaluation mask.

    python tools/benchmark_exact.py --part 0/2 & python tools/benchmark_exact.py --part 1/2 & wait
    python tools/benchmark_exact.py --summarise         # writes results/exact.json

A part appends one line per case to results/raw/exact-<seed>-<part>.jsonl and goes on where it stopped. With 39 draws
a rank has 40 equally likely values, and the 90 % and 50 % intervals are exact order statistics.
"""

import argparse
import json
import time
from pathlib import Path

import numpy as np
import torch

from latentpde.estimators import reconstruct
from latentpde.scores.metrics import coverage, crps, psd_log_error, rmse
from latentpde.simulation import EVALUATION_MASKS, PAPER_REGIMES, Simulation

RAW = Path("results/raw")
SEED, NUM_DRAWS, BATCH, SWEEP = 3000, 39, 8, 1024
POINTS = [(y, x) for y in (16, 48, 80, 112) for x in (40, 104)]


def run(part: int, parts: int, num: int) -> None:
    torch.set_num_threads(1)
    RAW.mkdir(parents=True, exist_ok=True)
    path = RAW / f"exact-{SEED}-{part}.jsonl"
    done = {(r["regime"], r["mask"], r["index"]) for r in _lines(path)}
    # Batches in an order that visits all regimes and masks early, so that an unfinished run is balanced.
    jobs = [(s, g, m) for s in range(0, num, BATCH) for g in PAPER_REGIMES for m in EVALUATION_MASKS]
    with path.open("a") as file:
        for start, regime, mask in jobs[part::parts]:
            if (regime, mask, start) in done:
                continue
            for record in _score(regime, mask, start, min(start + BATCH, num)):
                file.write(json.dumps(record) + "\n")
            file.flush()


def _score(regime: str, mask: str, start: int, stop: int) -> list[dict]:
    # truths do not depend on the mask, and each mask should see its own
    seed = SEED + EVALUATION_MASKS.index(mask)
    cases = Simulation(regime=regime, mask=mask, seed=seed).cases(start, stop)
    begin = time.perf_counter()
    posterior = reconstruct(cases, method="exact", num_draws=NUM_DRAWS, sweep=SWEEP)
    mean, draws = posterior.mean().values, posterior.draws().values
    seconds = (time.perf_counter() - begin) / (stop - start)
    truth = cases["truth/field"].values.astype(float)
    theta, true_theta = posterior.coefficients.values, cases["truth/coefficients"].values
    ranks = (theta < true_theta[:, None]).sum(1)
    ys, xs = np.array(POINTS).T
    point_ranks = (draws[:, :, ys, xs] < truth[:, None, ys, xs]).sum(1)
    columns = {
        "rmse": rmse(mean, truth),
        "psd": psd_log_error(mean, truth),
        "psd_of_draws": psd_log_error(draws[:, 0], truth),
        "crps": crps(draws, truth),
        "coverage90": coverage(draws, truth, 0.9),
        "coverage50": coverage(draws, truth, 0.5),
    }
    return [
        {
            "regime": regime,
            "mask": mask,
            "index": start + i,
            "kind": str(cases["truth/initial_kind"].values[i]),
            "ranks": ranks[i].tolist(),
            "point_ranks": point_ranks[i].tolist(),
            "seconds": round(seconds, 3),
            "evaluations": int(posterior.diagnostics["num_evaluations"][i]),
            "trusted": bool(posterior.diagnostics["trusted"][i]),
            **{name: round(float(values[i]), 5) for name, values in columns.items()},
        }
        for i in range(stop - start)
    ]


def summarise() -> None:
    from latentpde.scores.ranks import rank_uniformity

    records = [r for path in sorted(RAW.glob(f"exact-{SEED}-*.jsonl")) for r in _lines(path)]
    scores = ("rmse", "psd", "psd_of_draws", "crps", "coverage90", "coverage50", "trusted", "evaluations")
    table, tests = {}, []
    for regime in PAPER_REGIMES:
        here = [r for r in records if r["regime"] == regime]
        table[regime] = {"all": _means(here, scores)}
        for mask in EVALUATION_MASKS:
            some = [r for r in here if r["mask"] == mask]
            table[regime][mask] = _means(some, scores)
            for what in ("ranks", "point_ranks"):
                for j, ranks in enumerate(np.array([r[what] for r in some]).T):
                    p_value = rank_uniformity(ranks, NUM_DRAWS)
                    counts = np.bincount(ranks // 4, minlength=10).tolist()
                    tests.append(
                        {"regime": regime, "mask": mask, "what": f"{what}[{j}]", "p": p_value, "counts": counts}
                    )
        for kind in sorted({r["kind"] for r in here}):
            table[regime][f"initial: {kind}"] = _means([r for r in here if r["kind"] == kind], scores)
    smallest = min(tests, key=lambda t: t["p"])
    summary = {
        "settings": {"seed": SEED, "num_draws": NUM_DRAWS, "sweep": SWEEP, "sparsity": 0.05, "noise_std": 0.15},
        "scores": table,
        "calibration": {
            "num_tests": len(tests),
            "smallest_p": smallest["p"],
            "smallest_p_corrected": min(1.0, smallest["p"] * len(tests)),
            "tests": tests,
        },
    }
    Path("results/exact.json").write_text(json.dumps(summary, separators=(",", ":")) + "\n")
    for regime, rows in table.items():
        print(regime, rows["all"])
    print({k: v for k, v in summary["calibration"].items() if k != "tests"}, smallest)


def _means(records: list[dict], names: tuple[str, ...]) -> dict:
    return {"num": len(records), **{n: round(float(np.mean([r[n] for r in records])), 4) for n in names if records}}


def _lines(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--part", default="0/1")
    parser.add_argument("--num", type=int, default=256, help="cases per regime and mask")
    parser.add_argument("--summarise", action="store_true")
    options = parser.parse_args()
    if options.summarise:
        summarise()
    else:
        run(*map(int, options.part.split("/")), options.num)
