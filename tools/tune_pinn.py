"""Choose the PINN's free settings on the validation split.

    python tools/tune_pinn.py [--num 4] [--only num_harmonics ...]

The paper states the networks and nothing else. The search goes one setting at a time, in the order below, keeps the
best value of each and goes on from it: a full product would take days. The PINN gets what the paper gives it, the fine
initial state. Trials go to results/pinn_tuning.json, and are not repeated by a run that goes on; the best of them for
each family goes to latentpde/bench/tuned.json, where `latentpde bench` finds it.
"""

import argparse
import json
import time
from dataclasses import fields
from pathlib import Path

import numpy as np

from latentpde.estimators import reconstruct
from latentpde.estimators.pinn.estimator import Pinn
from latentpde.observation import Observation
from latentpde.scores.metrics import rmse
from latentpde.simulation import regimes, simulate

TUNED = Path("latentpde/bench/tuned.json")
REGIMES = ("advection", "balanced", "klein_gordon", "helmholtz")
START = {
    "residual_weight": 3.0,
    "data_weight": 0.05,
    "coefficient_weight": 0.01,
    "num_harmonics": 3,
    "initial_weight": 1.0,
}
SEARCH = {
    "residual_weight": (1.0, 3.0, 10.0),
    "data_weight": (0.02, 0.05, 0.2),
    "coefficient_weight": (0.003, 0.01, 0.05),
    "num_harmonics": (0, 3, 6),
    "initial_weight": (1.0, 5.0),
}


def by_family(errors: dict[str, float]) -> dict[str, float]:
    """The mean over a family's regimes."""
    families = {regimes.get(regime).family: [] for regime in errors}
    for regime, error in errors.items():
        families[regimes.get(regime).family].append(error)
    return {family: float(np.mean(values)) for family, values in families.items()}


def score(trial: dict) -> float:
    return float(np.exp(np.mean(np.log(list(by_family(trial["rmse"]).values())))))


def write(path: Path, record: dict, trials: list[dict], best: dict) -> None:
    """A line for each entry and each trial."""
    lines = [f"{json.dumps(name)}: {json.dumps(value)}," for name, value in (record | {"best": best}).items()]
    body = ",\n  ".join(json.dumps(trial) for trial in trials)
    path.write_text("\n ".join(["{", *lines, f'"trials": [\n  {body}\n ]']) + "\n}\n")


def main(num: int, path: Path, search: dict) -> None:
    cases = {regime: simulate(regime, num=num, seed=0, split="validation") for regime in REGIMES}
    readings = {
        regime: Observation.from_dataset(case, fine_initial=case["truth/initial"]) for regime, case in cases.items()
    }
    truths = {regime: case["truth/field"].values.astype(float) for regime, case in cases.items()}
    record = {
        "split": "validation",
        "seed": 0,
        "cases_per_regime": num,
        "criterion": "of a family, the mean RMSE over its regimes; overall, the geometric mean over the families",
        "others": {f.name: getattr(Pinn(), f.name) for f in fields(Pinn) if f.name not in START},
        "rmse_of_zero": {regime: round(float(np.mean(rmse(0 * u, u))), 4) for regime, u in truths.items()},
    }
    trials, best = [], dict(START)
    if path.exists():
        earlier = json.loads(path.read_text())
        if all(earlier.get(name) == value for name, value in record.items()):
            trials = earlier["trials"]

    def trial(settings: dict) -> float:
        known = next((t for t in trials if t["settings"] == settings), None)
        if known is None:
            start, errors = time.process_time(), {}
            for regime, data in readings.items():
                posterior = reconstruct(data, method="pinn", **settings)
                errors[regime] = round(float(np.mean(rmse(posterior.mean().values, truths[regime]))), 4)
            seconds = (time.process_time() - start) / (num * len(readings))
            known = {"settings": settings, "rmse": errors, "cpu_seconds_per_case": round(seconds, 1)}
            trials.append(known)
            print(json.dumps({**known, "score": round(score(known), 4)}), flush=True)
            write(path, record, trials, best)
        return score(known)

    for name, values in search.items():
        best[name] = min(values, key=lambda value, name=name: trial({**best, name: value}))
    best = min(trials, key=score)["settings"]
    write(path, record, trials, best)
    tuned = json.loads(TUNED.read_text())
    tuned["pinn"] = {}
    for family in by_family(record["rmse_of_zero"]):
        winner = min(trials, key=lambda t, family=family: by_family(t["rmse"])[family])
        tuned["pinn"][family] = {name: winner["settings"][name] for name in SEARCH}
    TUNED.write_text(json.dumps(tuned, indent=1) + "\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--num", type=int, default=4, help="cases per regime")
    parser.add_argument("--only", nargs="*", choices=SEARCH, default=list(SEARCH), help="settings to search")
    parser.add_argument("--output", type=Path, default=Path("results/pinn_tuning.json"))
    arguments = parser.parse_args()
    main(arguments.num, arguments.output, {name: SEARCH[name] for name in arguments.only})
