"""Whether the evidence finds the right family of PDEs, and whether its odds are worth what they say.

Odds can be calibrated only where cases come from the prior that they assume. So every family has the prior that its
cases are drawn from, the intervals and the source of its regime, and all families are read at the same times: that a
case has a certain time must not give its family away.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import torch

from latentpde.bench.benchmark import Items, Plan, Study
from latentpde.bench.lines import Line
from latentpde.bench.tables import NONE, Frame, Table
from latentpde.errors import no_warnings
from latentpde.estimators import reconstruct
from latentpde.observation import Observation
from latentpde.simulation import Simulation, regimes

SEED = 4000
#: A regime for each of five families; none of them contains another.
REGIMES = ("balanced", "klein_gordon", "helmholtz", "telegraph", "fractional_diffusion")
TIME = 0.5
SHAPE, NUM_MODES = (64, 64), 6  # a grid of 16 x 16 cells: thousands of searches are a matter of half an hour
#: Share of the cells that are read, and number of snapshots.
SETTINGS = ((0.05, 1), (0.15, 1), (0.05, 3), (0.15, 3))
_BINS = (0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99, 1.0)
_NO_DRAWS: dict[str, Any] = {"num_draws": 1, "num_spread_draws": 2, "num_mean_nodes": 2}


class Evidence(Study):
    """Every family on the cases of every other: which comes first, and how often odds are right."""

    name = "evidence"
    title = "is the right family of PDEs found by the evidence?"
    num = 400  # 100 of each setting
    num_settings = len(SETTINGS)
    regimes = REGIMES
    in_all = False  # it takes half an hour
    timed = False

    def missing_tasks(self, plan: Plan) -> list[tuple[str, float, int, int]]:
        """Regime, share of cells, number of snapshots and index of each case that was not run."""
        known = {(line["regime"], line["sparsity"], line["snapshots"], line["index"]) for line in self.lines(plan)}
        wanted = [(r, *setting, index) for index in range(plan.num) for setting in SETTINGS for r in plan.regimes]
        return [task for task in wanted if task not in known]

    def run_task(self, task: tuple[str, float, int, int]) -> list[Line]:
        regime, sparsity, snapshots, index = task
        found = log_evidences(simulation(regime, sparsity, snapshots), index)
        return [{"regime": regime, "sparsity": sparsity, "snapshots": snapshots, "index": index, **found}]

    def show(self, plan: Plan) -> Items:
        lines: Frame = pd.DataFrame([line for line in self.lines(plan) if line["index"] < plan.num])
        if lines.empty:
            return []
        odds = lines["log_evidence"].map(lambda found: _probabilities([found[name] for name in REGIMES]))
        lines = lines.assign(probability=odds)
        return [*(_confusion(lines, *setting) for setting in SETTINGS), _calibration(lines)]


def simulation(regime: str, sparsity: float, snapshots: int, seed: int = SEED) -> Simulation:
    """Cases of a regime as this study has them."""
    times = tuple(TIME * (i + 1) / snapshots for i in range(snapshots))
    return Simulation(
        regime=regime, seed=seed, sparsity=sparsity, times=times, shape=SHAPE, num_modes=NUM_MODES, noise_std=0.15
    )


def log_evidences(cases: Simulation, index: int) -> Line:
    """The log evidence of each family for one case, by the name of its regime, and the largest error among them."""
    observation = Observation.from_dataset(cases.cases(index, index + 1))
    evidences, errors = {}, []
    for name in REGIMES:
        regime = regimes.get(name)
        prior = {
            "bounds": torch.tensor(regime.ranges, dtype=torch.float64),
            "source_prior_std": regime.source_prior_std,
            "num_modes": NUM_MODES,
        }
        with no_warnings():
            posterior = reconstruct(observation, regime.family, seed=index, **prior, **_NO_DRAWS)
        evidences[name] = round(float(posterior.diagnostics["log_evidence"][0]), 3)
        errors.append(float(posterior.diagnostics["log_evidence_error"][0]))
    return {"log_evidence": evidences, "error": round(max(errors), 3)}


def _probabilities(log_evidence: list[float]) -> np.ndarray:
    share = np.exp(np.array(log_evidence) - max(log_evidence))
    return share / share.sum()


def _confusion(lines: Frame, sparsity: float, snapshots: int) -> Table:
    here, rows = lines[(lines["sparsity"] == sparsity) & (lines["snapshots"] == snapshots)], []
    for regime in REGIMES:
        own = here[here["regime"] == regime]
        if own.empty:
            continue
        table = np.stack(own["probability"].to_list())
        first = np.bincount(table.argmax(1), minlength=len(REGIMES))
        cells = [f"{share:.2f} ({count})" for share, count in zip(table.mean(0), first, strict=True)]
        marked = [f"[{c}]" if name == regime else c for name, c in zip(REGIMES, cells, strict=True)]
        rows.append((regime, *marked, f"{len(own)}"))
    what = f"{sparsity:.0%} of the cells, {snapshots} snapshot{'s' * (snapshots > 1)}"
    note = (
        "Mean posterior probability of each family, all alike beforehand, and in how many cases it comes first. In "
        "brackets the family that made the cases. Every family has the prior that its own cases are drawn from."
    )
    return Table(f"which PDE: {what}", ("cases of", *REGIMES, "cases"), tuple(rows), (note,))


def _calibration(lines: Frame) -> Table:
    """Of all families with odds in some interval, how many were right."""
    rows = []
    for low, high in pairwise(_BINS):
        cells = []
        for sparsity, snapshots in SETTINGS:
            here = lines[(lines["sparsity"] == sparsity) & (lines["snapshots"] == snapshots)]
            cells.append(_right_among(here, low, high))
        rows.append((f"{low:.0%} to {high:.0%}", *cells, _right_among(lines, low, high)))
    heads = ("odds", *(f"{s:.0%}, {n} snapshot{'s' * (n > 1)}" for s, n in SETTINGS), "all")
    note = (
        "Of families given odds in the interval: the mean of the odds, the share that made the case, and their number."
    )
    return Table("are the odds right?", heads, tuple(rows), (note,))


def _right_among(lines: Frame, low: float, high: float) -> str:
    if lines.empty:
        return NONE
    odds = np.concatenate(lines["probability"].to_list())
    right = np.concatenate([np.array(REGIMES) == regime for regime in lines["regime"]])
    inside = (odds >= low) & ((odds < high) | (high == 1))
    num = int(inside.sum())
    return f"{odds[inside].mean():.3f}: {right[inside].mean():.3f} of {num}" if num else NONE
