"""Choose the PINN's free settings on the validation split.

    python tools/tune_pinn.py [--num 8] [--steps 500] [--only num_harmonics ...]

The paper states the networks and nothing else. The search goes one setting at a time, in the order below, keeps the
best value of each and goes on from it: a full product would take days. The PINN gets what the paper gives it, the fine
initial state. Trials go to results/pinn_tuning.json, and are not repeated by a run that goes on; the best of them for
each family goes to latentpde/bench/tuned.json, where `latentpde bench` finds it.
"""

import argparse
import json
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from latentpde.estimators import reconstruct
from latentpde.estimators.pinn import Pinn
from latentpde.metrics import rmse
from latentpde.observation import Observation
from latentpde.simulation import regimes, simulate

TUNED = Path("latentpde/bench/tuned.json")
REGIMES = ("balanced", "klein_gordon", "helmholtz")
SEARCH = {
    "num_harmonics": (0, 1, 3, 6),
    "residual_weight": (0.1, 1.0, 10.0),
    "data_weight": (0.005, 0.02, 0.1),
    "coefficient_weight": (0.001, 0.01, 0.05),
    "source_weight": (0.02, 0.1, 0.5),
    "initial_weight": (1.0, 5.0),
    "learning_rate": (1e-3, 3e-3, 6e-3),
    "num_steps": (500, 1000, 2000),
}


def with_fine_initial(cases) -> Observation:
    fine = torch.from_numpy(cases["truth/initial"].values.astype(float))
    return replace(Observation.from_dataset(cases), fine_initial=fine)


def main(num: int, num_steps: int, path: Path, search: dict) -> None:
    cases = {regime: simulate(regime, num=num, seed=0, split="validation") for regime in REGIMES}
    readings = {regime: with_fine_initial(case) for regime, case in cases.items()}
    truths = {regime: case["truth/field"].values.astype(float) for regime, case in cases.items()}
    best = {name: getattr(Pinn(), name) for name in search} | {"num_steps": num_steps}
    record = {
        "split": "validation",
        "seed": 0,
        "num": num,
        "criterion": "geometric mean over the regimes of the mean RMSE",
        "rmse_of_zero": {regime: round(float(np.mean(rmse(0 * u, u))), 4) for regime, u in truths.items()},
        "search": {name: list(values) for name, values in search.items()},
        "trials": [],
    }
    if path.exists():
        earlier = json.loads(path.read_text())
        if all(earlier[name] == record[name] for name in ("split", "seed", "num")):
            record["trials"] = earlier["trials"]
    known = {json.dumps(t["settings"], sort_keys=True): t["score"] for t in record["trials"]}

    def trial(settings: dict) -> float:
        key = json.dumps(settings, sort_keys=True)
        if key not in known:
            start, errors, coefficients = time.process_time(), {}, {}
            for regime, data in readings.items():
                posterior = reconstruct(data, method="pinn", **settings)
                errors[regime] = round(float(np.mean(rmse(posterior.mean().values, truths[regime]))), 4)
                apart = np.abs(posterior.coefficients.values[:, 0] - cases[regime]["truth/coefficients"].values)
                coefficients[regime] = apart.mean(0).round(3).tolist()
            score = float(np.exp(np.mean(np.log(list(errors.values())))))
            seconds = (time.process_time() - start) / (num * len(readings))
            record["trials"].append(
                {
                    "settings": settings,
                    "rmse": errors,
                    "coefficient_error": coefficients,
                    "score": round(score, 4),
                    "cpu_seconds_per_case": round(seconds, 2),
                }
            )
            print(json.dumps(record["trials"][-1]), flush=True)
            known[key] = score
            path.write_text(json.dumps({**record, "best": best}, indent=1) + "\n")
        return known[key]

    for name, values in search.items():
        best[name] = min(values, key=lambda value, name=name: trial({**best, name: value}))
    path.write_text(json.dumps({**record, "best": best}, indent=1) + "\n")
    tuned = json.loads(TUNED.read_text())
    winners = {name: min(record["trials"], key=lambda trial, name=name: trial["rmse"][name]) for name in REGIMES}
    tuned["pinn"] = {regimes.get(name).family: trial["settings"] for name, trial in winners.items()}
    TUNED.write_text(json.dumps(tuned, indent=1) + "\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--num", type=int, default=8, help="cases per regime")
    parser.add_argument(
        "--steps", type=int, default=Pinn.num_steps, help="Adam steps of every trial before their own is searched"
    )
    parser.add_argument("--only", nargs="*", choices=SEARCH, default=list(SEARCH), help="settings to search")
    parser.add_argument("--output", type=Path, default=Path("results/pinn_tuning.json"))
    arguments = parser.parse_args()
    main(arguments.num, arguments.steps, arguments.output, {name: SEARCH[name] for name in arguments.only})
