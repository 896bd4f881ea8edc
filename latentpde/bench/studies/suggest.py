"""Whether suggested sensors lower the true error more than those that other rules choose.

So that the places matter, sensors read the field itself, with noise of a fraction of its spread, and nothing is unknown
that no sensor could tell: the initial state is known whole. The error that five readings leave depends on the one truth
and on their noise far more than on the rule that chose them, so it is averaged over several of both. Cases come from
the prior; given its first readings, the truth of a case is therefore distributed as a draw of the posterior, and such
draws, of a search of their own, serve as further truths that would have read the same. What the simulated truth alone
says is recorded beside.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import torch

from latentpde.bench.benchmark import Items, Plan, Study
from latentpde.bench.lines import Line
from latentpde.bench.measurements import rounded
from latentpde.bench.tables import NONE, Frame, Table, mean_and_error, number
from latentpde.errors import no_warnings
from latentpde.estimators import reconstruct
from latentpde.estimators.exact.posterior import ExactPosterior
from latentpde.observation import Observation
from latentpde.questions.design import suggest
from latentpde.scores.ranks import holm
from latentpde.simulation import Simulation

SEED = 9300
REGIMES = ("balanced", "klein_gordon", "helmholtz")
NUM_FIRST, NUM_NEXT = 12, 5  # readings at random, then chosen ones, of 256 places at random
SHAPE, NUM_MODES = (64, 64), 6
NOISE = 0.2  # of a reading, in standard deviations of the field: a reading is to tell something in every family
NUM_TRUTHS = 7  # with the same first readings, over which the squared error is averaged, each with a noise of its own
_NO_NOISE = 1e-9  # at first; it is added here
_NUM_DRAWS = 64  # of the posterior before, which PySensors learns from
_MEAN_ALONE = {"num_draws": 2, "num_spread_draws": 2, "num_mean_nodes": 400}
_SEED_OF_TRUTHS = 1_000_000  # added to that of a case: no rule has seen what they are drawn from
OURS = "suggested"


class Suggest(Study):
    """Five further readings by several rules, from the same twelve, and the error that they leave."""

    name = "suggest"
    title = "where to measure next: the error with five more readings"
    num = 100
    regimes = REGIMES
    in_all = False
    timed = False

    def missing_tasks(self, plan: Plan) -> list[tuple[str, int]]:
        """Regime and index of each case that was not run."""
        known = {(line["regime"], line["index"]) for line in self._own_lines(plan)}
        wanted = [(regime, index) for index in range(plan.num) for regime in plan.regimes]
        return [task for task in wanted if task not in known]

    def run_task(self, task: tuple[str, int]) -> list[Line]:
        return [{"regime": task[0], "index": task[1], "seed": SEED, **measure(*task)}]

    def show(self, plan: Plan) -> Items:
        lines: Frame = pd.DataFrame([line for line in self._own_lines(plan) if line["index"] < plan.num])
        if lines.empty:
            return []
        return [_table(lines[lines["regime"] == regime], regime) for regime in plan.regimes]

    def _own_lines(self, plan: Plan) -> list[Line]:
        """Those of these cases: earlier ones were of another seed."""
        return [line for line in self.lines(plan) if line.get("seed") == SEED]


def measure(regime: str, index: int, seed: int = SEED) -> dict[str, dict[str, float]]:
    """RMSE of the field before, and with the readings that each rule chooses: the root of the mean over truths with
    the same first readings (``rmse``), and for the simulated one alone (``rmse_of_simulated``). Truths and noises are
    the same for all rules.

    Args:
        regime: where the case comes from.
        index: of the case.
        seed: of the set of cases.
    """
    of_cases = {"shape": SHAPE, "num_modes": NUM_MODES, "sparsity": 1.0, "observed": "point", "noise_std": _NO_NOISE}
    tree = Simulation(regime=regime, seed=seed, **of_cases).cases(index, index + 1)
    whole = Observation.from_dataset(tree, fine_initial=tree["truth/initial"])
    simulated = np.asarray(tree["truth/field"])[0]
    assert whole.positions is not None
    places, noise_std = whole.positions[0].numpy(), NOISE * float(simulated.std())
    whole = replace(whole, noise_std=torch.full_like(whole.noise_std, noise_std))
    rng = np.random.default_rng([seed, index])
    first = rng.choice(len(places), NUM_FIRST, replace=False)
    noise = noise_std * rng.standard_normal((NUM_TRUTHS, len(places)))
    readings = whole.values.numpy().reshape(-1) + noise

    def solve(read: np.ndarray, values: np.ndarray, own_seed: int = index, **settings: Any) -> ExactPosterior:
        mask = torch.zeros(len(places), dtype=torch.bool)
        mask[torch.from_numpy(read)] = True
        read_values = torch.where(mask, torch.from_numpy(values), 0.0).expand_as(whole.values)
        with no_warnings():
            found = reconstruct(
                replace(whole, mask=mask.expand_as(read_values), values=read_values), seed=own_seed, **settings
            )
        assert isinstance(found, ExactPosterior)
        return found

    others = solve(first, readings[0], index + _SEED_OF_TRUTHS, num_draws=NUM_TRUTHS - 1)
    truths = np.concatenate([simulated[None], others.fields(slice(0, 1), whole.fine_grid, whole.times)[0, :, 0]])
    readings[1:] = _at(others, places)[2] + noise[1:]
    readings[:, first] = readings[0, first]  # what was read stays

    def squared(posterior: ExactPosterior, number: int) -> float:
        return float(np.mean((posterior.mean(resolution=simulated.shape[0]).values[0] - truths[number]) ** 2))

    before = solve(first, readings[0], num_draws=_NUM_DRAWS)
    free = np.setdiff1d(np.arange(len(places)), first)
    found = {"before": [squared(before, number) for number in range(NUM_TRUTHS)]}
    for name, rule in RULES.items():
        chosen = rule(before, places, first, free, rng)
        if chosen is not None:
            read = np.concatenate([first, chosen])
            found[name] = [squared(solve(read, own, **_MEAN_ALONE), number) for number, own in enumerate(readings)]
    return {
        "rmse": {name: rounded(float(np.mean(values)) ** 0.5) for name, values in found.items()},
        "rmse_of_simulated": {name: rounded(values[0] ** 0.5) for name, values in found.items()},
    }


def _suggested(before: ExactPosterior, places: np.ndarray, first: np.ndarray, free: np.ndarray, rng) -> np.ndarray:
    return free[suggest(before, NUM_NEXT, candidates=places[free]).chosen]


def _random(before: ExactPosterior, places: np.ndarray, first: np.ndarray, free: np.ndarray, rng) -> np.ndarray:
    return rng.choice(free, NUM_NEXT, replace=False)


def _farthest(before: ExactPosterior, places: np.ndarray, first: np.ndarray, free: np.ndarray, rng) -> np.ndarray:
    """Each as far as can be from all others, on the torus."""
    chosen = list(first)
    for _ in range(NUM_NEXT):
        apart = np.abs(places[free][:, None] - places[chosen])
        distance = np.sqrt((np.minimum(apart, 1 - apart) ** 2).sum(-1)).min(1)
        chosen.append(int(free[distance.argmax()]))
    return np.array(chosen[len(first) :])


def _most_uncertain(before: ExactPosterior, places: np.ndarray, first: np.ndarray, free: np.ndarray, rng) -> np.ndarray:
    _, std, _ = _at(before, places[free])
    return free[np.argsort(-std)[:NUM_NEXT]]


def _pysensors(
    before: ExactPosterior, places: np.ndarray, first: np.ndarray, free: np.ndarray, rng
) -> np.ndarray | None:
    """QR pivots of an SVD basis of the posterior's draws, which are what PySensors can learn from."""
    try:
        from pysensors import SSPOR
        from pysensors.basis import SVD
    except ImportError:
        return None
    _, _, draws = _at(before, places[free])
    model = SSPOR(basis=SVD(n_basis_modes=min(NUM_NEXT, len(draws) - 1)), n_sensors=NUM_NEXT)
    model.fit(draws - draws.mean(0), quiet=True, prefit_basis=False)
    return free[np.asarray(model.get_selected_sensors())[:NUM_NEXT]]


def _at(posterior: ExactPosterior, places: np.ndarray) -> tuple[np.ndarray, ...]:
    """Mean, standard deviation and draws of the field at places."""
    points = torch.from_numpy(places)
    return tuple(
        found.numpy() for found in posterior.at_places(0, points, posterior.observation.times.expand(len(points)))
    )


Rule = Callable[[ExactPosterior, np.ndarray, np.ndarray, np.ndarray, np.random.Generator], np.ndarray | None]
RULES: dict[str, Rule] = {
    OURS: _suggested,
    "random": _random,
    "farthest point": _farthest,
    "highest variance": _most_uncertain,
    "PySensors": _pysensors,
}


def _table(lines: Frame, regime: str) -> Table:
    from scipy.stats import ttest_1samp, wilcoxon

    table = pd.DataFrame(lines["rmse"].tolist())
    rivals = [name for name in RULES if name != OURS and name in table]
    logs = {name: np.log(table[name].to_numpy() / table[OURS].to_numpy()) for name in rivals}
    by_mean, by_rank = {}, {}
    if len(table) > 1:
        means = [float(np.asarray(ttest_1samp(logs[name], 0, alternative="greater"))[1]) for name in rivals]
        ranks = [float(np.asarray(wilcoxon(logs[name], alternative="greater"))[1]) for name in rivals]
        by_mean = dict(zip(rivals, holm(means).tolist(), strict=True))
        by_rank = dict(zip(rivals, holm(ranks).tolist(), strict=True))
    rows, alone = [], pd.DataFrame(lines["rmse_of_simulated"].tolist())
    for name in table:
        ratio = NONE if name not in logs else number(*mean_and_error(pd.Series(logs[name])))
        better = NONE if name not in logs else f"{(table[OURS] < table[name]).mean():.0%}"
        p_values = (number(by_mean.get(name)), number(by_rank.get(name)))
        of_simulated = number(*mean_and_error(alone[name]))
        rows.append((name, number(*mean_and_error(table[name])), ratio, better, *p_values, of_simulated))
    heads = ("readings chosen by", "RMSE", "log of RMSE over suggested's", "suggested is better in", "p", "p by ranks")
    note = (
        f"{len(table)} cases with {NUM_FIRST} readings at random and {NUM_NEXT} chosen ones, of 256 places at random; "
        f"the initial state is known whole, and a reading's noise is {NOISE:g} of the field's standard deviation. "
        f"Squared errors are averaged over {NUM_TRUTHS} truths, the same for all rules, each with a noise of the "
        "chosen readings: the simulated one, and draws of the posterior given the first readings, as which the "
        "simulated one is distributed; the last column is of the simulated one alone. p: that the suggested readings "
        "do not leave the smaller error, by a paired t-test of the logarithms and by Wilcoxon's signed ranks, each "
        "corrected by Holm for the number of rivals. PySensors learns its basis from draws of the posterior."
    )
    return Table(f"five more readings, {regime}", (*heads, "RMSE of the simulated truth"), tuple(rows), (note,))
