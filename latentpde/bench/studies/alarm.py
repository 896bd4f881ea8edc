"""How often the alarm of `exact` is false, and what it sees.

Right cases come from the prior that the method assumes. Wrong ones have another family, something wrong in the data, or
physics that no family has, by an independent integrator. Where the right model is at hand too, its evidence says
whether anything could have been seen: readings that suit both alike tell nothing against either.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import torch

from latentpde.bench.benchmark import Items, Plan, Study
from latentpde.bench.lines import Line
from latentpde.bench.measurements import rounded
from latentpde.bench.points.disturbed import Disturbance, integrate
from latentpde.bench.studies.evidence import NUM_MODES, REGIMES, simulation
from latentpde.bench.tables import NONE, Frame, Table
from latentpde.decoder import Decoder
from latentpde.errors import no_warnings
from latentpde.estimators import reconstruct
from latentpde.grid import Grid
from latentpde.observation import Observation
from latentpde.posterior.adequacy import EVERY_RUN, FALSE_ALARM
from latentpde.simulation import regimes

SEED = 5100  # checks were chosen on other cases
RIGHT = "nothing"
SPARSITY = 0.2  # 51 readings of 256 cells at each time, as many as the benchmark has
_RIGHT_PER_WRONG = 5  # cases with nothing wrong for each of a kind
#: Physics that no family has.
PHYSICS = {
    "source that changes": Disturbance(source_frequency=2.0, source_factor=8.0),
    "coefficient that varies": Disturbance(variation=0.9),
    "nonlinear term": Disturbance(nonlinearity=12.0),
}
#: Kinds of errors in data, and the wrong family.
DATA = ("family", "outliers", "units", "noise understated", "start transposed", "start shifted")
_COVERED = 0.5  # of the field by 90 % intervals: below, a case counts as badly wrong
_CLEAR = np.log(1 / FALSE_ALARM)  # log odds of the right model, from which a wrong one can be seen at this level


class Alarm(Study):
    """False alarms over cases with nothing wrong, and alarms over cases with something wrong."""

    name = "alarm"
    title = "is a wrong model noticed?"
    num = 200  # five regimes with nothing wrong: 1,000 cases
    in_all = False  # it takes half an hour
    timed = False

    def missing_tasks(self, plan: Plan) -> list[tuple[str, int]]:
        """What is wrong and the index of each case that was not run."""
        known = {(line["wrong"], line["index"]) for line in self.lines(plan)}
        wanted = []
        for index in range(plan.num):
            wanted += [(RIGHT, len(REGIMES) * index + i) for i in range(len(REGIMES))]
            if index % _RIGHT_PER_WRONG == 0:
                wanted += [(wrong, index // _RIGHT_PER_WRONG) for wrong in (*DATA, *PHYSICS)]
        return [task for task in wanted if task not in known]

    def run_task(self, task: tuple[str, int]) -> list[Line]:
        wrong, index = task
        return [{"wrong": wrong, "index": index, **measure(wrong, index)}]

    def show(self, plan: Plan) -> Items:
        lines: Frame = pd.DataFrame(self.lines(plan))
        if lines.empty:
            return []
        rows = [_row(lines, wrong) for wrong in (RIGHT, *DATA, *PHYSICS) if (lines["wrong"] == wrong).any()]
        some = lines[lines["wrong"] != RIGHT]
        rows.append(("anything", *_row(some, None)[1:]))
        notes = (
            f"Alarm: the share of cases with a combined p-value below {FALSE_ALARM}, which is the stated rate of false "
            f"alarms. Bad: cases in which 90 % intervals cover less than {_COVERED:.0%} of the field, and how many of "
            "them raise the alarm; then those of them that could be seen, for which the right model is at least "
            f"{1 / FALSE_ALARM:.0f} times as likely (where it was run). The last columns are the shares of cases that "
            f"each check flags by itself at {FALSE_ALARM / len(EVERY_RUN):.4f}.",
        )
        heads = ("wrong", "cases", "coverage", "alarm", "bad", "bad, alarm", "seen, alarm", *EVERY_RUN)
        return [Table(self.title, heads, tuple(rows), (*notes, *self.failures(plan)))]


def measure(wrong: str, index: int, seed: int = SEED) -> Line:
    """One case: its p-values, how much of the field is covered, and the odds of the right model.

    Args:
        wrong: what is wrong with it.
        index: of the case.
        seed: of the set of cases.
    """
    physics = PHYSICS.get(wrong)
    regime = "balanced" if physics else REGIMES[index % len(REGIMES)]
    snapshots = 3 if physics or index // len(REGIMES) % 2 else 1
    cases = simulation(regime, SPARSITY, snapshots, seed).cases(index, index + 1)
    observation, truth = Observation.from_dataset(cases), np.asarray(cases["truth/field"])[0]
    truth = truth if snapshots == 1 else truth[-1]
    right, family = observation, regime
    if physics:
        observation, truth = _disturbed(cases, observation, physics, np.random.default_rng([seed, index]))
    elif wrong == "family":
        others = [name for name in REGIMES if name != regime]
        family = others[index // len(REGIMES) % len(others)]
    elif wrong != RIGHT:
        observation = _changed(observation, wrong, np.random.default_rng([seed, index]))
    posterior = _solve(observation, family, index)
    low, high = posterior.quantiles([0.05, 0.95], resolution=truth.shape[0]).values[0]
    found = {name: float(posterior.diagnostics[f"p_{name}"][0]) for name in (*EVERY_RUN, "model")}
    line: Line = {
        "regime": regime,
        "snapshots": snapshots,
        "p": {name: rounded(p) for name, p in found.items() if np.isfinite(p)},
        "coverage": rounded(float(((truth >= low) & (truth <= high)).mean())),
        "trusted": bool(posterior.diagnostics["trusted"][0]),
    }
    if wrong in ("family", "start transposed", "start shifted"):
        odds = _solve(right, regime, index).diagnostics["log_evidence"] - posterior.diagnostics["log_evidence"]
        line["log_odds"] = rounded(float(odds[0]))
    return line


def _solve(observation: Observation, regime: str, seed: int) -> Any:
    assumed = regimes.get(regime)
    with no_warnings():
        return reconstruct(
            observation,
            assumed.family,
            seed=seed,
            bounds=torch.tensor(assumed.ranges, dtype=torch.float64),
            source_prior_std=assumed.source_prior_std,
            num_modes=NUM_MODES,
        )


def _changed(observation: Observation, wrong: str, rng: np.random.Generator) -> Observation:
    """The same readings with something wrong."""
    values, initial = observation.values.clone(), observation.require_initial()
    if wrong == "outliers":
        where = observation.mask.nonzero()
        for row in rng.choice(len(where), max(1, len(where) // 20), replace=False):
            values[tuple(where[row])] += float(rng.choice([-1.0, 1.0])) * 6 * 0.15
        return replace(observation, values=values)
    if wrong == "units":
        return replace(observation, values=values / 1000)
    if wrong == "noise understated":
        return replace(observation, noise_std=observation.noise_std / 2)
    if wrong == "start transposed":
        return replace(observation, initial=initial.mT.contiguous())
    return replace(observation, initial=initial.roll(initial.shape[-1] // 4, -1))


def _disturbed(
    cases: Any, observation: Observation, physics: Disturbance, rng: np.random.Generator
) -> tuple[Observation, np.ndarray]:
    """The same start, places and coefficients with other physics, and the field at the last time."""
    truth = cases["truth"]
    vx, vy, kappa = (float(v) for v in truth["coefficients"].values[0])
    grid = Grid((truth["field"].shape[-1],) * 2)
    latent = simulation("balanced", SPARSITY, 1).latent
    z = latent.pack(torch.tensor([[vx, vy, kappa]]).double(), torch.from_numpy(truth["source"].values[:1]).double())
    source = Decoder(latent, grid.extent).source(z[None], grid)[0, 0].numpy()
    times = observation.times.tolist()
    fields = integrate(truth["initial"].values[0].astype(float), source, (vy, vx), kappa, times, physics)
    cell = fields.shape[-1] // observation.grid.shape[-1]
    pooled = fields.reshape(len(times), observation.grid.shape[0], cell, observation.grid.shape[1], cell).mean((2, 4))
    noisy = torch.from_numpy(pooled + 0.15 * rng.standard_normal(pooled.shape))[None]
    return replace(observation, values=torch.where(observation.mask, noisy, 0.0), observed="pooled"), fields[-1]


def _row(lines: Frame, wrong: str | None) -> tuple[str, ...]:
    here = lines if wrong is None else lines[lines["wrong"] == wrong]
    table = pd.DataFrame(here["p"].tolist())
    alarm = (table["model"] < FALSE_ALARM).to_numpy()
    bad = (here["coverage"] < _COVERED).to_numpy()
    odds = here["log_odds"].to_numpy(dtype=float) if "log_odds" in here else np.full(len(here), np.nan)
    seen = bad & (odds > _CLEAR)
    error = np.sqrt(alarm.mean() * (1 - alarm.mean()) / len(alarm))
    each = [
        f"{(table[name].dropna() < FALSE_ALARM / len(EVERY_RUN)).mean():.3f}"
        if name in table and bool(table[name].notna().to_numpy().any())
        else NONE
        for name in EVERY_RUN
    ]
    return (
        str(wrong),
        f"{len(here)}",
        f"{here['coverage'].mean():.2f}",
        f"{alarm.mean():.3f} ± {error:.3f}",
        f"{bad.sum()}",
        f"{(alarm & bad).sum()}",
        f"{(alarm & seen).sum()} of {seen.sum()}" if np.isfinite(odds).any() else NONE,
        *each,
    )
