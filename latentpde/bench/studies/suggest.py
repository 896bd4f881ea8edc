"""Whether suggested sensors lower the true error more than those that other rules choose."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

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

SEED = 6000
REGIMES = ("balanced", "klein_gordon", "helmholtz")
NUM_FIRST, NUM_NEXT = 12, 5  # readings at random, then chosen ones
SHAPE, NUM_MODES = (64, 64), 6  # 16 x 16 cells: every cell that was not read is a candidate
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
        known = {(line["regime"], line["index"]) for line in self.lines(plan)}
        wanted = [(regime, index) for index in range(plan.num) for regime in plan.regimes]
        return [task for task in wanted if task not in known]

    def run_task(self, task: tuple[str, int]) -> list[Line]:
        return [{"regime": task[0], "index": task[1], "rmse": measure(*task)}]

    def show(self, plan: Plan) -> Items:
        lines: Frame = pd.DataFrame([line for line in self.lines(plan) if line["index"] < plan.num])
        if lines.empty:
            return []
        return [_table(lines[lines["regime"] == regime], regime) for regime in plan.regimes]


def measure(regime: str, index: int, seed: int = SEED) -> dict[str, float]:
    """RMSE of the field before, and with the readings that each rule chooses.

    Args:
        regime: where the case comes from.
        index: of the case.
        seed: of the set of cases.
    """
    cases = Simulation(regime=regime, seed=seed, sparsity=1.0, shape=SHAPE, num_modes=NUM_MODES)
    tree = cases.cases(index, index + 1)
    whole, truth = Observation.from_dataset(tree), np.asarray(tree["truth/field"])[0]
    rng = np.random.default_rng([seed, index])
    num_cells = whole.mask[0].numel()
    first = rng.choice(num_cells, NUM_FIRST, replace=False)

    def solve(read: np.ndarray) -> ExactPosterior:
        mask = torch.zeros(num_cells, dtype=torch.bool)
        mask[torch.from_numpy(read)] = True
        mask = mask.reshape(whole.mask.shape)
        with no_warnings():
            found = reconstruct(replace(whole, mask=mask, values=torch.where(mask, whole.values, 0.0)), seed=index)
        assert isinstance(found, ExactPosterior)
        return found

    def error(posterior: ExactPosterior) -> float:
        return rounded(float(np.sqrt(np.mean((posterior.mean(resolution=truth.shape[0]).values[0] - truth) ** 2))))

    before = solve(first)
    free = np.setdiff1d(np.arange(num_cells), first)
    y, x = (c.numpy() for c in whole.grid.coordinates())
    centres = np.stack(np.meshgrid(y, x, indexing="ij"), -1).reshape(-1, 2)
    found = {"before": error(before)}
    for name, rule in RULES.items():
        chosen = rule(before, centres, first, free, rng)
        if chosen is not None:
            found[name] = error(solve(np.concatenate([first, chosen])))
    return found


def _suggested(before: ExactPosterior, centres: np.ndarray, first: np.ndarray, free: np.ndarray, rng) -> np.ndarray:
    return free[suggest(before, NUM_NEXT, candidates=centres[free]).chosen]


def _random(before: ExactPosterior, centres: np.ndarray, first: np.ndarray, free: np.ndarray, rng) -> np.ndarray:
    return rng.choice(free, NUM_NEXT, replace=False)


def _farthest(before: ExactPosterior, centres: np.ndarray, first: np.ndarray, free: np.ndarray, rng) -> np.ndarray:
    """Each as far as can be from all others, on the torus."""
    chosen = list(first)
    for _ in range(NUM_NEXT):
        apart = np.abs(centres[free][:, None] - centres[chosen])
        distance = np.sqrt((np.minimum(apart, 1 - apart) ** 2).sum(-1)).min(1)
        chosen.append(int(free[distance.argmax()]))
    return np.array(chosen[len(first) :])


def _most_uncertain(
    before: ExactPosterior, centres: np.ndarray, first: np.ndarray, free: np.ndarray, rng
) -> np.ndarray:
    std = before.std(resolution=before.observation.grid.shape[0]).values.reshape(-1)
    return free[np.argsort(-std[free])[:NUM_NEXT]]


def _pysensors(
    before: ExactPosterior, centres: np.ndarray, first: np.ndarray, free: np.ndarray, rng
) -> np.ndarray | None:
    """QR pivots of an SVD basis of the posterior's draws, which are what PySensors can learn from."""
    try:
        from pysensors import SSPOR
        from pysensors.basis import SVD
    except ImportError:
        return None
    draws = before.fields(slice(0, 1), before.observation.grid, before.observation.times)[0, :, -1].flatten(1).numpy()
    draws = draws[:, free] - draws[:, free].mean(0)
    model = SSPOR(basis=SVD(n_basis_modes=min(NUM_NEXT, len(draws) - 1)), n_sensors=NUM_NEXT)
    model.fit(draws, quiet=True, prefit_basis=False)
    return free[np.asarray(model.get_selected_sensors())[:NUM_NEXT]]


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
    rows = []
    for name in table:
        ratio = NONE if name not in logs else number(*mean_and_error(pd.Series(logs[name])))
        better = NONE if name not in logs else f"{(table[OURS] < table[name]).mean():.0%}"
        p_values = (number(by_mean.get(name)), number(by_rank.get(name)))
        rows.append((name, number(*mean_and_error(table[name])), ratio, better, *p_values))
    heads = ("readings chosen by", "RMSE", "log of RMSE over suggested's", "suggested is better in", "p", "p by ranks")
    note = (
        f"{len(table)} cases with {NUM_FIRST} readings at random and {NUM_NEXT} chosen ones, of 16 x 16 cells. p: that "
        "the suggested readings do not leave the smaller error, by a paired t-test of the logarithms and by Wilcoxon's "
        "signed ranks, each corrected by Holm for the number of rivals. PySensors learns its basis from draws of the "
        "posterior."
    )
    return Table(f"five more readings, {regime}", heads, tuple(rows), (note,))
