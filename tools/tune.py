"""Choose settings that the paper leaves open, on the validation split.

    python tools/tune.py 3dvar [--num 16]      # or any other name that --help lists

Every trial goes to results/tuning/NAME.json, and a search that was stopped goes on from there. Cases are the paper's:
5 % of the cells, noise 0.15, evaluation masks; the baselines are given the fine initial state. Settings are chosen by
the geometric mean of the RMSE over regimes: over all for the defaults, which know nothing of the regime, and over each
family's for the benchmark, as the paper reports families. The winners of baselines go to latentpde/bench/tuned.json.

A search goes in stages, each around the best of the one before. The filter has too many settings for one grid:
amplitude, length, localisation and background come first, with the rest off; enkf-paper is without localisation or
inflation and meets the readings in the end. 3D-Var and EnKF are tried with the backgrounds of `map` and of `enc`, and
the better one is kept, as in the paper. The PINN takes minutes for a trial and goes one setting at a time, over all
regimes, and each family then takes the best of all trials.

``map`` finds the learning rate and the spread of the starts. ``branch`` chooses between the paper's two learned
methods in each regime, by RMSE over 500 cases, 125 with each of its four evaluation masks, and writes
latentpde/bench/branches.json. ``subgrid`` measures the coverage of propagated initial states for several slopes beyond
the coarse Nyquist.
"""

import argparse
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tuning import Settings, Trials, best, by_family, search

from latentpde.bench.branches import BRANCHES, branch_record
from latentpde.bench.variants import VARIANTS
from latentpde.estimators import make_estimator, reconstruct
from latentpde.estimators.assimilation.background import background_fields
from latentpde.estimators.exact.subgrid import Subgrid
from latentpde.grid import Grid, average_pool, wavenumbers
from latentpde.observation import Observation
from latentpde.pde import get_family
from latentpde.scores.metrics import rmse
from latentpde.simulation import EVALUATION_MASKS, PAPER_REGIMES, Simulation, draw_initial_condition, simulate
from latentpde.simulation import initial_conditions as kinds
from latentpde.simulation import regimes as known_regimes

ROOT = Path(__file__).resolve().parents[1]
RESULTS, PACKAGE = ROOT / "results" / "tuning", ROOT / "latentpde" / "bench"
SEED = 0
OFF = {"inflation": 1.0, "tempered": False, "post_length": 0.0, "correction": 0.0}
POST_LENGTHS = (0.0, 0.015, 0.03, 0.06)
BACKGROUNDS = ("map", "enc")
VAR3D = {
    "background_std": (0.02, 0.05, 0.1, 0.2, 0.4, 0.8),
    "length": (0.05, 0.1, 0.2, 0.4),
    "background": BACKGROUNDS,
}
PINN = (
    {"residual_weight": (1.0, 3.0, 10.0)},
    {"data_weight": (0.02, 0.05, 0.2)},
    {"initial_weight": (1.0, 5.0)},
    {"learning_rate": (1e-3, 3e-3, 1e-2)},
    {"num_steps": (500, 1000, 2000)},
)
#: As published it needs the readings to weigh more, and does worse with more steps, so its grid goes further there.
PINN_PAPER = (
    {"residual_weight": (1.0, 3.0, 10.0)},
    {"data_weight": (0.02, 0.05, 0.2, 0.5, 1.0)},
    {"initial_weight": (1.0, 5.0)},
    {"learning_rate": (1e-3, 3e-3, 1e-2)},
    {"num_steps": (250, 500, 1000, 2000)},
)
PINN_START = {
    "residual_weight": 3.0,
    "data_weight": 0.05,
    "initial_weight": 1.0,
    "learning_rate": 3e-3,
    "num_steps": 500,
}
PINN_REGIMES = ("advection", "balanced", "klein_gordon", "helmholtz")


@dataclass(frozen=True)
class Search:
    """What is searched for one method.

    Args:
        method: as registered.
        num: validation cases for each regime, where the user does not say.
        stages: values of settings, each stage around the best of the one before.
        start: settings of the first stage that it does not vary.
        regimes: names of the regimes.
        fine_initial: whether the method is given the fine initial state.
        each_family: whether each family has a search of its own, or takes the best of all trials.
        tuned: whether the winners go to the benchmark.
    """

    method: str
    num: int
    stages: tuple[Mapping[str, Sequence[Any]], ...]
    start: Settings = field(default_factory=dict)
    regimes: tuple[str, ...] = PAPER_REGIMES
    fine_initial: bool = True
    each_family: bool = True
    tuned: bool = True


SEARCHES = {
    "map": Search(
        "map", 32, ({"learning_rate": (0.05, 0.1, 0.2, 0.4), "start_std": (0.1, 1.0)},), fine_initial=False, tuned=False
    ),
    "3dvar": Search("3dvar", 16, ({**VAR3D, "edges": ("periodic", "neumann")},)),
    "3dvar-paper": Search("3dvar", 16, (VAR3D,), {"edges": "neumann"}),
    "enkf": Search(
        "enkf",
        12,
        (
            {
                "ensemble_std": (0.025, 0.05, 0.1, 0.2, 0.4),
                "length": (0.06, 0.12, 0.24),
                "localisation": (0.0, 0.3, 0.6, 1.2),
                "background": BACKGROUNDS,
            },
            {
                "inflation": (1.0, 1.2),
                "tempered": (False, True),
                "post_length": POST_LENGTHS,
                "correction": (0.0, 0.5),
            },
        ),
        OFF,
    ),
    "enkf-paper": Search(
        "enkf",
        12,
        (
            {
                "ensemble_std": (0.025, 0.05, 0.1, 0.2, 0.4),
                "length": (0.06, 0.12, 0.24),
                "background": BACKGROUNDS,
            },
            {"post_length": POST_LENGTHS},
        ),
        {"localisation": 0.0, "centred_noise": False, **OFF, "correction": 1.0},
    ),
    "kriging": Search(
        "kriging",
        48,
        ({"variogram": ("spherical", "exponential", "gaussian"), "nugget": ("noise", "fit"), "num_lags": (6, 12)},),
    ),
    "pinn": Search(
        "pinn",
        4,
        (*PINN, {"coefficient_weight": (0.003, 0.01, 0.05)}, {"num_harmonics": (0, 3, 6)}),
        {**PINN_START, "coefficient_weight": 0.01, "num_harmonics": 3},
        regimes=PINN_REGIMES,
        each_family=False,
    ),
    "pinn-paper": Search(
        "pinn",
        4,
        PINN_PAPER,
        {**PINN_START, **VARIANTS["pinn-paper"].options},
        regimes=PINN_REGIMES,
        each_family=False,
    ),
}


def header(num: int, **more: Any) -> dict[str, Any]:
    """What a record says of how it was made."""
    return {"split": "validation", "seed": SEED, "num": num, "criterion": "geometric mean RMSE", **more}


@cache
def validation_cases(regime: str, num: int, mask: str | None = None):
    return simulate(regime, num=num, seed=SEED, split="validation", mask=mask)


@cache
def background(regime: str, num: int, method: str):
    """The field of a method that 3D-Var and EnKF correct; it does not depend on their settings."""
    return background_fields(method, {}, _observation(regime, num, True), Simulation(regime=regime).latent, seed=SEED)


@cache
def _observation(regime: str, num: int, fine: bool) -> Observation:
    cases = validation_cases(regime, num)
    return Observation.from_dataset(cases, fine_initial=cases["truth/initial"] if fine else None)


def errors(method: str, settings: Settings, names: Sequence[str], num: int, fine_initial: bool) -> dict[str, float]:
    """The mean RMSE of a method over the validation cases of each of some regimes."""
    estimator, found = make_estimator(method, **settings), {}
    for name in names:
        observation, latent = _observation(name, num, fine_initial), Simulation(regime=name).latent
        if method in ("3dvar", "enkf"):
            field = background(name, num, settings.get("background", "map"))
            posterior = estimator.analyse(observation, field, num_draws=1, seed=SEED)
        else:
            posterior = estimator.estimate(observation, latent, num_draws=1, seed=SEED)
        found[name] = _mean_rmse(posterior, validation_cases(name, num))
    return found


def _mean_rmse(posterior, cases) -> float:
    return round(float(np.mean(rmse(posterior.mean().values, cases["truth/field"].values.astype(float)))), 5)


def tune(name: str, num: int | None, folder: Path, package: Path) -> None:
    """Search the settings of a method."""
    what = SEARCHES[name]
    num = num or what.num
    torch.set_num_threads(1)
    trials = Trials(
        folder / f"{name}.json",
        header(num, fine_initial=what.fine_initial),
        lambda settings, names: errors(what.method, settings, names, num, what.fine_initial),
    )
    groups, found = by_family(what.regimes), {}
    for group, names in groups.items():
        if what.each_family or group == "all":
            found[group] = search(trials, what.start, what.stages, names)
        else:
            found[group] = best(trials.made, names)
    truths = {name: validation_cases(name, num)["truth/field"].values.astype(float) for name in what.regimes}
    zero = {name: round(float(np.mean(rmse(0 * truth, truth))), 4) for name, truth in truths.items()}
    trials.write(best=found, rmse_of_zero=zero)
    if what.tuned:
        path = package / "tuned.json"
        tuned = json.loads(path.read_text())
        tuned[name] = {group: trial["settings"] for group, trial in found.items() if group != "all"}
        path.write_text(json.dumps(tuned, indent=1) + "\n")


def choose_branch(num: int | None, folder: Path, package: Path) -> None:
    """Choose between the paper's branches in each regime, by RMSE over the evaluation masks."""
    num = num or 500 // len(EVALUATION_MASKS)

    def evaluate(settings: Settings, names: Sequence[str]) -> dict[str, float]:
        found = {}
        for regime in names:
            cases = [validation_cases(regime, num, mask) for mask in EVALUATION_MASKS]
            means = [_mean_rmse(reconstruct(c, seed=SEED, **settings), c) for c in cases]
            found[regime] = round(float(np.mean(means)), 6)
        return found

    more = {"masks": EVALUATION_MASKS}
    trials = Trials(folder / "branch.json", header(num, **more), evaluate)
    by_regime = {
        regime: {branch: trials({"method": branch}, [regime])["rmse"][regime] for branch in BRANCHES}
        for regime in PAPER_REGIMES  # one at a time, as each is kept when it is done
    }
    record = branch_record(by_regime, split="validation", seed=SEED, num_per_mask=num, **more)
    (package / "branches.json").write_text(json.dumps(record, indent=1) + "\n")


LEVELS = {"90": 1.6449, "50": 0.6745}  # of central intervals, and their half-widths in standard deviations
OTHER_ERROR = 0.03  # an independent error, as the coefficients and the source leave it


def subgrid_coverage(settings: Settings, names: Sequence[str], num: int) -> dict[str, dict[str, float]]:
    """How much of propagated initial states of some kinds intervals cover, with a slope beyond the coarse Nyquist.

    They are propagated by Klein-Gordon, where fine scales never die, with random coefficients; the error of the
    conditional mean is compared with the standard deviation that the prior predicts.
    """
    fine = Grid((128, 128))
    coarse = fine.coarsen(4)
    k, family = wavenumbers(fine.block_shape, fine.extent), get_family("klein_gordon")
    lower, upper = np.array(known_regimes.get("klein_gordon").ranges).T
    found = {}
    for kind in names:
        covered = []
        for seed in range(num):
            rng = np.random.default_rng((seed, 1))
            u = torch.from_numpy(draw_initial_condition(kind, fine, generator=rng))
            theta = torch.from_numpy(rng.uniform(lower, upper))[None]
            response = family.state_response(k, torch.ones(1, dtype=torch.float64), theta)[0, 0]
            averages = average_pool(u, 4)
            prior = Subgrid.fit(averages, coarse, 4, **settings)
            error = fine.synthesise(response * (prior.mean(averages) - fine.analyse(u))).numpy()
            error = error + OTHER_ERROR * rng.standard_normal(error.shape)
            power = prior.conditional_power * response**2
            std = float(torch.sqrt(2 * power.sum() - power[:, 0].sum() + OTHER_ERROR**2))
            covered.append([np.mean(np.abs(error) < width * std) for width in LEVELS.values()])
        found[kind] = dict(zip(LEVELS, np.mean(covered, 0).round(3).tolist(), strict=True))
    return found


def tune_subgrid(num: int | None, folder: Path) -> None:
    """Measure the coverage for several slopes; the choice among them is made by eye."""
    num = num or 60
    said = {"num": num, "other_error": OTHER_ERROR}
    trials = Trials(folder / "subgrid.json", said, lambda s, names: subgrid_coverage(s, names, num), "coverage")
    for steepening in (0.0, 0.5, 1.0, 1.5, 2.0):
        trials({"steepening": steepening}, kinds.names())


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", choices=[*SEARCHES, "branch", "subgrid"], help="what to tune")
    parser.add_argument("--num", type=int, help="cases for each regime, or for each mask, or of each kind of state")
    parser.add_argument("--output", type=Path, default=RESULTS, help="folder of the trials")
    parser.add_argument("--package", type=Path, default=PACKAGE, help="folder of tuned.json and branches.json")
    given = parser.parse_args(arguments)
    if given.name == "branch":
        choose_branch(given.num, given.output, given.package)
    elif given.name == "subgrid":
        tune_subgrid(given.num, given.output)
    else:
        tune(given.name, given.num, given.output, given.package)


if __name__ == "__main__":
    main()
