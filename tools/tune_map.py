"""Choose MAP's free settings on the validation split; writes results/map_tuning.json.

The paper fixes steps, restarts and the penalty's weight, and leaves Adam's learning rate and the spread of the
starts open. Run with: python tools/tune_map.py
"""

import itertools
import json
from pathlib import Path

import numpy as np

from latentpde.estimators import reconstruct
from latentpde.scores.metrics import rmse
from latentpde.simulation import PAPER_REGIMES, simulate

LEARNING_RATES = (0.05, 0.1, 0.2, 0.4)
START_STDS = (0.1, 1.0)


def main(num: int = 32, path: Path = Path("results/map_tuning.json")) -> None:
    cases = {regime: simulate(regime, num=num, seed=0, split="validation") for regime in PAPER_REGIMES}
    trials = []
    for learning_rate, start_std in itertools.product(LEARNING_RATES, START_STDS):
        errors = {}
        for regime, case in cases.items():
            posterior = reconstruct(case, method="map", learning_rate=learning_rate, start_std=start_std)
            error = rmse(posterior.mean().values, case["truth/field"].values.astype(float))
            errors[regime] = round(float(np.mean(error)), 4)
        trials.append({"learning_rate": learning_rate, "start_std": start_std, "rmse": errors})
        print(json.dumps(trials[-1]), flush=True)
    best = min(trials, key=lambda trial: np.mean(np.log(list(trial["rmse"].values()))))
    record = {"split": "validation", "seed": 0, "num": num, "criterion": "geometric mean RMSE", "trials": trials}
    path.write_text(json.dumps({**record, "best": best}, indent=1) + "\n")


if __name__ == "__main__":
    main()
