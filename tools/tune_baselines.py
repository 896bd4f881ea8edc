"""Choose the free settings of 3dvar, enkf and kriging on the validation split.

    python tools/tune_baselines.py [--num 32] [3dvar] [enkf] [kriging]

The paper's protocol: 5 % of the cells, noise 0.15, evaluation masks, the fine initial state given. The background is
computed once for each regime. Every trial goes to results/baselines_tuning.json, and the winner of each family to
latentpde/bench/tuned.json, where `latentpde bench` finds it. Methods may be tuned one by one.

Settings are chosen by the geometric mean of the RMSE over regimes: over all six for the defaults, which know nothing of
the regime, and over each family's for the benchmark, as the paper reports families. The filter has too many settings
for one grid: amplitude, length and localisation are searched first, with the rest off, then the rest around the best of
those; once freely, and once as the paper has it: without localisation or inflation, the readings met in the end.
"""

import argparse
import itertools
import json
import time
from pathlib import Path

import numpy as np
import torch

from latentpde.estimators import make_estimator
from latentpde.estimators.assimilation.background import background_fields
from latentpde.observation import Observation
from latentpde.scores.metrics import rmse
from latentpde.simulation import PAPER_REGIMES, Simulation, regimes, simulate

PATH, TUNED = Path("results/baselines_tuning.json"), Path("latentpde/bench/tuned.json")
# The benchmark's rows, and which entry of a method each takes its options from.
ROWS = {"best": "{}", "best_as_paper": "{}-paper"}
SEED = 0
GRIDS = {
    "3dvar": {
        "background_std": (0.02, 0.05, 0.1, 0.2, 0.4, 0.8),
        "length": (0.05, 0.1, 0.2, 0.4),
        "edges": ("periodic", "neumann"),
    },
    "enkf": {
        "ensemble_std": (0.025, 0.05, 0.1, 0.2, 0.4),
        "length": (0.06, 0.12, 0.24),
        "localisation": (0.0, 0.3, 0.6, 1.2),
    },
    "kriging": {
        "variogram": ("spherical", "exponential", "gaussian"),
        "nugget": ("noise", "fit"),
        "num_lags": (6, 12),
    },
}
ENKF_OFF = {"inflation": 1.0, "tempered": False, "post_length": 0.0, "correction": 0.0}
ENKF_REST = {
    "inflation": (1.0, 1.2),
    "tempered": (False, True),
    "post_length": (0.0, 0.015, 0.03, 0.06),
    "correction": (0.0, 0.5),
}
PAPER_REST = {"inflation": (1.0,), "tempered": (False,), "post_length": (0.0, 0.015, 0.03, 0.06), "correction": (1.0,)}


class Cases:
    """Observations, truths and backgrounds of every regime."""

    def __init__(self, num: int, with_background: bool):
        self.parts = {}
        for name in PAPER_REGIMES:
            tree = simulate(name, num=num, seed=SEED, split="validation")
            observation = Observation.from_dataset(tree, fine_initial=tree["truth/initial"])
            latent = Simulation(regime=name).latent
            background = background_fields("map", {}, observation, latent, seed=SEED) if with_background else None
            self.parts[name] = observation, latent, background, tree["truth/field"].values.astype(float)

    def errors(self, method: str, options: dict, names: tuple[str, ...]) -> dict[str, float]:
        estimator = make_estimator(method, **options)
        found = {}
        for name in names:
            observation, latent, background, truth = self.parts[name]
            if background is None:
                posterior = estimator.estimate(observation, latent, num_draws=1, seed=SEED)
            else:
                posterior = estimator.analyse(observation, background, num_draws=1, seed=SEED)
            found[name] = round(float(np.mean(rmse(posterior.mean().values, truth))), 5)
        return found


def families() -> dict[str, tuple[str, ...]]:
    """Regimes of each family, and all of them."""
    groups = {"all": tuple(PAPER_REGIMES)}
    for name in PAPER_REGIMES:
        family = regimes.get(name).family
        groups[family] = (*groups.get(family, ()), name)
    return groups


def search(cases: Cases, method: str, grid: dict, fixed: dict, names: tuple[str, ...]) -> list[dict]:
    trials = []
    for values in itertools.product(*grid.values()):
        options = {**fixed, **dict(zip(grid, values, strict=True))}
        trials.append({"options": options, "rmse": cases.errors(method, options, names)})
        print(method, json.dumps(trials[-1]), flush=True)
    return trials


def best(trials: list[dict], names: tuple[str, ...]) -> dict:
    able = [t for t in trials if set(names) <= set(t["rmse"])]
    return min(able, key=lambda t: np.mean(np.log([t["rmse"][name] for name in names])))


def tune(cases: Cases, method: str) -> dict:
    groups = families()
    trials = search(cases, method, GRIDS[method], ENKF_OFF if method == "enkf" else {}, groups["all"])
    if method != "enkf":
        return {"searched": GRIDS[method], "best": {g: best(trials, n) for g, n in groups.items()}, "trials": trials}
    found = {}
    for variant, allowed, rest in (("best", trials, ENKF_REST), ("best_as_paper", _global(trials), PAPER_REST)):
        found[variant] = {}
        for group, names in groups.items():
            start = best(allowed, names)["options"]
            later = search(cases, method, rest, {k: start[k] for k in GRIDS["enkf"]}, names)
            found[variant][group] = best(later, names)
    return {"searched": {**GRIDS["enkf"], **ENKF_REST}, **found, "trials": trials}


def _global(trials: list[dict]) -> list[dict]:
    return [t for t in trials if t["options"]["localisation"] == 0]


def main(num: int, chosen: list[str], path: Path) -> None:
    torch.set_num_threads(1)
    common = {
        "split": "validation",
        "seed": SEED,
        "num": num,
        "criterion": "geometric mean RMSE",
        "fine_initial": True,
    }
    for method in chosen:
        start = time.perf_counter()
        cases = Cases(num, with_background=method != "kriging")
        entry = tune(cases, method)
        record = json.loads(path.read_text()) if path.exists() else {}  # now: another run may have written since
        record[method] = {"seconds": round(time.perf_counter() - start), "num": num, **entry}
        path.write_text(json.dumps(record | common, indent=1) + "\n")
        tuned = json.loads(TUNED.read_text())
        for variant, row in ROWS.items():
            if variant in entry:
                won = {group: found["options"] for group, found in entry[variant].items() if group != "all"}
                tuned[row.format(method)] = won
        TUNED.write_text(json.dumps(tuned, indent=1) + "\n")
        for group in families():
            print(method, group, json.dumps(entry["best"][group]), flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("methods", nargs="*", default=[], help="3dvar, enkf, kriging; all by default")
    parser.add_argument("--num", type=int, default=32, help="cases per regime")
    parser.add_argument("--output", type=Path, default=PATH)
    given = parser.parse_args()
    main(given.num, given.methods or list(GRIDS), given.output)
