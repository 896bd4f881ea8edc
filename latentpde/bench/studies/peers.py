"""Tools that anyone could reach for instead, on the same cases; they need the extra ``peers``.

General samplers, nautilus (nested) and NUTS (Hamiltonian), take the place of the search in `exact`: they get the very
likelihood, with the source integrated out, and everything after it is the same. So only the search for the coefficients
is compared, and not what integrating saves. nautilus stops at the effective sample size that ours reached, or later
where its exploration alone gives it more. Of NUTS two chains start at draws of the prior. Kriging (PyKrige) knows of no
PDE and interpolates the readings.
"""

from __future__ import annotations

import importlib.util
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from latentpde.bench.benchmark import Items, Plan, Study
from latentpde.bench.jobs import Job, Part, cases_of
from latentpde.bench.lines import Line
from latentpde.bench.measurements import rounded
from latentpde.bench.rows import Row, row
from latentpde.bench.solving import solve, true_fields
from latentpde.bench.tables import NONE, Table, number
from latentpde.estimators.exact.estimator import Exact
from latentpde.estimators.exact.likelihood import MarginalLikelihood
from latentpde.estimators.exact.search import WeightedSamples
from latentpde.observation import Observation
from latentpde.scores.metrics import score

#: What is compared, and the package it needs.
PEERS = {
    "nautilus, 500 live points": "nautilus",
    "nautilus, 2000 live points": "nautilus",
    "NUTS, 2 chains": "pyro",
    "kriging": "pykrige",
}
NUM_CHAINS, NUM_WARMUP, NUM_STEPS = 2, 250, 500

#: From the log-likelihood on the unit box and its dimension to samples there.
Tool = Callable[[Callable[[Tensor], Tensor], int], WeightedSamples]


class Peers(Study):
    """`exact` beside other tools, one case and one tool at a time."""

    name = "peers"
    title = "other tools on the same cases"
    num = 1
    regimes = ("diffusion", "advection", "klein_gordon", "helmholtz")
    in_all = False  # it needs an extra, and minutes for a case

    def missing_tasks(self, plan: Plan) -> list[tuple[str, int, str]]:
        """Regime, case and tool of each comparison, as far as the tools are installed."""
        wanted = [
            (regime, index, name)
            for regime in plan.regimes
            for index in range(plan.num)
            for name, package in PEERS.items()
            if importlib.util.find_spec(package)
        ]
        known = {(line["regime"], line["index"], line["peer"]) for line in self.lines(plan)}
        return [task for task in wanted if task not in known]

    def run_task(self, task: tuple[str, int, str]) -> list[Line]:
        return [compare(*task)]

    def show(self, plan: Plan) -> Items:
        lines = [line for line in self.lines(plan) if line["regime"] in plan.regimes and line["index"] < plan.num]
        lines.sort(key=lambda line: (plan.regimes.index(line["regime"]), line["index"], [*PEERS].index(line["peer"])))
        fields, searches = [], []
        for line in lines:
            name = (f"{line['regime']}, case {line['index']}", line["peer"])
            scores = [f"{number(line[s])} ({number(line[f'{s}_exact'])})" for s in ("rmse", "crps")]
            fields.append((*name, number(line["seconds"]), number(line["ratio"]), *scores))
            if "evaluations" in line:
                searches.append(
                    (
                        *name,
                        f"{line['evaluations']:,} ({line['evaluations_exact']:,})",
                        f"{line['effective_size']:.0f} ({line['effective_size_exact']:.0f})",
                        f"{_evidence(line['log_evidence'])} ({_evidence(line['log_evidence_exact'])})",
                        f"{line['apart']:.2f}",
                        number(line["r_hat"]),
                    )
                )
        there = {line["peer"] for line in lines}
        absent = sorted({p for name, p in PEERS.items() if name not in there and not importlib.util.find_spec(p)})
        notes = ["In brackets what `exact` has. Seconds: from the call to mean and draws at 128 x 128."]
        if absent:
            notes.append(f"Not installed: {', '.join(absent)}. pip install 'latentpde[peers]' brings them.")
        heads = ("case", "tool", "seconds", "times slower", "RMSE", "CRPS")
        search_heads = ("case", "sampler", "evaluations", "effective size", "log evidence", "apart", "R-hat")
        apart = "Apart: the largest difference of the coefficients' means, in standard deviations of `exact`."
        return [
            Table(self.title, heads, tuple(fields), (*notes, *self.failures(plan))),
            Table("their searches for the coefficients", search_heads, tuple(searches), (notes[0], apart)),
        ]


def compare(regime: str, index: int, name: str) -> Line:
    """What one tool and `exact` make of one case.

    Args:
        regime: of the case.
        index: of the case.
        name: of the tool, a key of `PEERS`.
    """
    simulation = cases_of(regime)
    cases = simulation.cases(index, index + 1)
    observation, truth = Observation.from_dataset(cases), true_fields(cases)

    def solved(estimator: Exact) -> tuple[dict[str, Any], dict[str, np.ndarray], float]:
        start = time.perf_counter()
        posterior = estimator.estimate(observation, simulation.latent, num_draws=12, seed=0)
        scores = score(posterior.mean(128).values, truth, posterior.draws(128).values)
        return scores, posterior.diagnostics, time.perf_counter() - start

    solved(Exact())  # makes tables that are made once
    exact_scores, exact, exact_seconds = solved(Exact())
    line: Line = {"regime": regime, "index": index, "peer": name}
    if name == "kriging":
        scores, seconds = _interpolate(row("kriging"), regime, index)
    else:
        wanted = float(exact["effective_sample_size"][0])
        tool = _nuts if name.startswith("NUTS") else partial(_nautilus, int(name.split()[1]), wanted)
        scores, found, seconds = solved(Searched(tool=tool))
        evidence = float(found["log_evidence"][0])
        apart = np.abs(found["coefficient_mean"] - exact["coefficient_mean"]) / exact["coefficient_std"]
        line |= {
            "evaluations": int(found["num_evaluations"][0]),
            "evaluations_exact": int(exact["num_evaluations"][0]),
            "effective_size": round(float(found["effective_sample_size"][0])),
            "effective_size_exact": round(wanted),
            "log_evidence": round(evidence, 3) if math.isfinite(evidence) else None,
            "log_evidence_exact": round(float(exact["log_evidence"][0]), 3),
            "apart": rounded(float(apart.max())),
            "r_hat": rounded(float(found["evidence_gap"][0])) if tool is _nuts else None,
        }
    for which, values in (("", scores), ("_exact", exact_scores)):
        line |= {f"{s}{which}": rounded(float(values[s][0])) for s in ("rmse", "crps")}
    times = {"seconds": seconds, "seconds_exact": exact_seconds, "ratio": seconds / exact_seconds}
    return {**line, **{what: rounded(value) for what, value in times.items()}}


def _evidence(value: float | None) -> str:
    return NONE if value is None else f"{value:.2f}"


def _interpolate(some: Row, regime: str, index: int) -> tuple[dict[str, Any], float]:
    start = time.perf_counter()
    solved = solve(Part(Job(row=some, simulation=cases_of(regime)), index, index + 1))
    return score(solved.mean, solved.truth, solved.draws), time.perf_counter() - start


@dataclass(frozen=True, kw_only=True)
class Searched(Exact):
    """`exact` with another tool for its search."""

    tool: Tool

    def search(self, likelihood: MarginalLikelihood, parameters, rng, inspect=None) -> WeightedSamples:
        def log_likelihood(unit: Tensor) -> Tensor:
            return likelihood.log_likelihood(parameters.of_box(unit))

        return self.tool(log_likelihood, parameters.num_free)


def _nautilus(num_live: int, wanted: float, log_likelihood: Callable[[Tensor], Tensor], dim: int) -> WeightedSamples:
    from nautilus import Sampler

    def batch(points: np.ndarray) -> np.ndarray:
        with torch.no_grad():
            return log_likelihood(torch.from_numpy(np.atleast_2d(points))).numpy()

    sampler: Any = Sampler(lambda x: x, batch, dim, num_live, vectorized=True, pass_dict=False, seed=0)
    sampler.run(n_eff=wanted)
    points, log_weights, _ = sampler.posterior()
    log_weights -= np.logaddexp.reduce(log_weights)
    return WeightedSamples(
        points, log_weights, sampler.log_z, math.nan, sampler.n_eff, math.nan, sampler.n_like, 1, True
    )


def _nuts(log_likelihood: Callable[[Tensor], Tensor], dim: int) -> WeightedSamples:
    """In place of a gap between evidences, which it does not have, R-hat."""
    from pyro.infer import MCMC, NUTS
    from pyro.ops.stats import effective_sample_size, split_gelman_rubin

    num_evaluations = 0

    def potential(parameters: dict[str, Tensor]) -> Tensor:
        nonlocal num_evaluations
        num_evaluations += 1
        raw = parameters["raw"]
        log_prior = (torch.nn.functional.logsigmoid(raw) + torch.nn.functional.logsigmoid(-raw)).sum()
        return -log_likelihood(torch.sigmoid(raw)[None])[0] - log_prior

    chains = []
    for seed in range(NUM_CHAINS):
        uniform = torch.rand(dim, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
        run = MCMC(
            NUTS(potential_fn=potential, max_tree_depth=8),
            num_samples=NUM_STEPS,
            warmup_steps=NUM_WARMUP,
            initial_params={"raw": torch.logit(uniform)},
            disable_progbar=True,
        )
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            run.run()
        chains.append(torch.sigmoid(run.get_samples()["raw"]))
    stacked = torch.stack(chains)
    points = stacked.flatten(0, 1).numpy()
    size, r_hat = float(effective_sample_size(stacked).min()), float(split_gelman_rubin(stacked).max())
    log_weights = np.full(len(points), -math.log(len(points)))
    return WeightedSamples(points, log_weights, math.nan, math.nan, size, r_hat, num_evaluations, 1, True)
