"""Accuracy and speed of the classical baselines beside the paper's; writes results/baselines.json.

    python tools/benchmark_baselines.py [--num 100] [--methods 3dvar enkf ...]

Cases are the benchmark's: test split, 5 % of a 32 x 32 grid, noise 0.15, evaluation masks, truth at 128 x 128. Each
method runs with the fine initial state, as the paper's baselines do, and without it, as a user's would. Settings are
those that results/baselines_tuning.json found best for the family; without that file, the defaults. A run that is
interrupted goes on where it stopped; --again starts over.
"""

import argparse
import json
import time
from pathlib import Path

import numpy as np
import torch

from latentpde.estimators import methods, reconstruct
from latentpde.metrics import PSD_FLOOR, score
from latentpde.observation import Observation
from latentpde.simulation import PAPER_REGIMES, regimes, simulate

PATH, TUNING = Path("results/baselines.json"), Path("results/baselines_tuning.json")
SEED, NUM_DRAWS, NUM_PINN, NUM_TIMED = 7, 16, 20, 3
# Our rows: the method, and which of its tuned settings.
ROWS = {
    "3dvar": ("3dvar", "best"),
    "3dvar with spread": ("3dvar", "best"),
    "enkf": ("enkf", "best"),
    "enkf as in the paper": ("enkf", "best_as_paper"),
    "kriging": ("kriging", "best"),
    "pinn": ("pinn", "best"),
    "map": ("map", "best"),
}
# Table of the paper with a source, over its families, and its times per case for advection-diffusion on a GPU.
PAPER = {
    "advection_diffusion": {
        "enkf": {"rmse": 0.134, "psd": 10.819, "crps": 0.104},
        "3dvar": {"rmse": 0.112, "psd": 7.322, "mae": 0.104},
        "pinn": {"rmse": 0.170, "psd": 7.767, "mae": 0.137},
    },
    "klein_gordon": {
        "enkf": {"rmse": 0.626, "psd": 3.736, "crps": 0.484},
        "3dvar": {"rmse": 0.605, "psd": 3.554, "mae": 0.507},
        "pinn": {"rmse": 0.732, "psd": 6.113, "mae": 0.573},
    },
    "helmholtz": {
        "enkf": {"rmse": 0.044, "psd": 7.474, "crps": 0.031},
        "3dvar": {"rmse": 0.038, "psd": 4.265, "mae": 0.028},
        "pinn": {"rmse": 0.083, "psd": 5.662, "mae": 0.071},
    },
    "seconds": {"enkf": 3.15, "3dvar": 3.84, "pinn": 1.68},
}


def settings(row: str, family: str) -> dict:
    method, variant = ROWS[row]
    tuned = json.loads(TUNING.read_text()) if TUNING.exists() else {}
    options = tuned.get(method, {}).get(variant, {}).get(family, {}).get("options", {})
    if not tuned and row == "enkf as in the paper":
        options = {"localisation": 0.0, "correction": 1.0}
    return {**options, **({"spread": True} if row == "3dvar with spread" else {})}


def measure(row: str, regime: str, fine: bool, num: int) -> dict:
    """Scores with their standard errors, and times: alone, from the call to the arrays, and in a batch."""
    method, options = ROWS[row][0], settings(row, regimes.get(regime).family)
    tree = simulate(regime, num=num, seed=SEED)
    observation = Observation.from_dataset(tree, fine_initial=tree["truth/initial"] if fine else None)
    truth = tree["truth/field"].values.astype(float)

    def run(part: Observation):
        start = time.perf_counter()
        posterior = reconstruct(part, method=method, num_samples=NUM_DRAWS, **options)
        mean, draws = posterior.mean().values, posterior.draws().values if posterior.has_spread else None
        return mean, draws, time.perf_counter() - start

    mean, draws, seconds = run(observation)
    alone = [run(observation[i : i + 1])[2] for i in range(min(NUM_TIMED, num))]
    scores = {name: v for name, v in score(mean, truth, draws).items() if np.isfinite(v).all()}
    return {
        **{name: round(float(v.mean()), 4) for name, v in scores.items()},
        "errors": {name: round(float(v.std(ddof=1) / np.sqrt(num)), 4) for name, v in scores.items()},
        "num": num,
        "options": options,
        "seconds_alone": round(float(np.median(alone)), 3),
        "cases_per_second": round(num / seconds, 2),
    }


def summarise(results: dict) -> dict:
    """Means over each family's regimes, with the paper's beside them."""
    table: dict = {}
    for row, (method, _) in ROWS.items():
        for start, found in results.get(row, {}).items():
            for name, scores in found.items():
                family = regimes.get(name).family
                entry = table.setdefault(family, {}).setdefault(row, {}).setdefault(start, {"regimes": []})
                entry["regimes"].append(scores)
        for family in table:
            for entry in table[family].get(row, {}).values():
                parts = entry.pop("regimes", None)
                if parts:
                    shared = [k for k in ("rmse", "psd", "mae", "crps", "coverage90") if all(k in p for p in parts)]
                    entry |= {k: round(float(np.mean([p[k] for p in parts])), 4) for k in shared}
            if row in table[family] and method in PAPER[family]:
                table[family][row]["paper"] = PAPER[family][method]
    return table


def main(num: int, rows: list[str], again: bool, path: Path) -> None:
    record = json.loads(path.read_text()) if path.exists() and not again else {}
    results = record.get("results", {})
    for row in rows:
        if ROWS[row][0] not in methods:
            print(f"{ROWS[row][0]} is not registered, left out")
            continue
        for start in ("fine initial", "coarse initial"):
            done = results.setdefault(row, {}).setdefault(start, {})
            for regime in PAPER_REGIMES:
                wanted = min(num, NUM_PINN) if ROWS[row][0] == "pinn" else num
                if done.get(regime, {}).get("num") == wanted:
                    continue
                done[regime] = measure(row, regime, start == "fine initial", wanted)
                print(row, start, regime, json.dumps(done[regime]), flush=True)
                record = {
                    "settings": {"seed": SEED, "split": "test", "num_draws": NUM_DRAWS, "psd_floor": PSD_FLOOR,
                                 "sparsity": 0.05, "noise_std": 0.15, "threads": torch.get_num_threads(),
                                 "crps": "fair where there is a spread, else the MAE"},
                    "summary": summarise(results),
                    "paper_seconds": PAPER["seconds"],
                    "results": results,
                }  # fmt: skip
                path.write_text(json.dumps(record, indent=1) + "\n")
    print(json.dumps(record.get("summary", {}), indent=1))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--num", type=int, default=100, help="cases per regime; at most 20 for pinn")
    parser.add_argument("--methods", nargs="+", choices=list(ROWS), default=list(ROWS), metavar="ROW")
    parser.add_argument("--again", action="store_true", help="forget what was measured before")
    parser.add_argument("--output", type=Path, default=PATH)
    given = parser.parse_args()
    main(given.num, given.methods, given.again, given.output)
