"""General samplers on the very likelihood that `exact` searches: nautilus (nested) and NUTS (Hamiltonian).

They need the extra ``peers``. Each gets the likelihood with the source integrated out, so that only the search for the
coefficients is compared, and not what integrating saves. nautilus stops at the effective sample size that ours
reached, or later where its exploration alone gives it more. Of NUTS two chains start at draws of the prior.
"""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

from latentpde.bench.benchmark import Plan, Study, benchmarks, cases_of
from latentpde.bench.lines import Line
from latentpde.bench.runs import short
from latentpde.bench.tables import NONE, Table, number
from latentpde.collapsed import CollapsedModel
from latentpde.estimators import make_estimator
from latentpde.estimators.base import decoder_for
from latentpde.initial_state import InitialState
from latentpde.observation import Observation

PEERS = {"nautilus, 500 live points": "nautilus", "nautilus, 2000 live points": "nautilus", "NUTS, 2 chains": "pyro"}
NUM_CHAINS, NUM_WARMUP, NUM_STEPS = 2, 250, 500


class Peers(Study):
    name = "peers"
    title = "general samplers on the same likelihood"
    num = 1
    regimes = ("diffusion", "advection", "klein_gordon", "helmholtz")
    in_all = False  # it needs an extra, and minutes for a case

    def missing(self, plan: Plan) -> list[tuple[str, int, list[str]]]:
        known = {(line["regime"], line["index"], line["peer"]) for line in self.lines(plan)}
        names = [name for name, package in PEERS.items() if importlib.util.find_spec(package)]
        tasks = [
            (regime, index, [name for name in names if (regime, index, name) not in known])
            for regime in plan.regimes
            for index in range(plan.num)
        ]
        return [task for task in tasks if task[2]]

    def measure(self, task: tuple[str, int, list[str]]) -> Iterator[Line]:
        return compare(*task)

    def show(self, plan: Plan) -> list:
        rows = [
            (
                f"{line['regime']}, case {line['index']}",
                line["peer"],
                number(line["seconds"]),
                number(line["ratio"]),
                f"{line['evaluations']:,}",
                f"{line['effective_size']:.0f} ({line['effective_size_exact']:.0f})",
                NONE if line["log_evidence"] is None else f"{line['log_evidence']:.2f}",
                f"{line['log_evidence_exact']:.2f}",
                f"{line['apart']:.2f}",
                NONE if line["r_hat"] is None else f"{line['r_hat']:.2f}",
            )
            for line in self.lines(plan)
            if line["regime"] in plan.regimes
        ]
        absent = sorted({package for package in PEERS.values() if not importlib.util.find_spec(package)})
        notes = [
            "Times slower: than `exact` on the same case, from the call to its 12 draws. Effective size: in brackets "
            "that of `exact`. Apart: the largest difference of the coefficients' means, in standard deviations."
        ]
        if absent:
            notes.append(f"Not installed: {', '.join(absent)}. pip install 'latentpde[peers]' brings them.")
        heads = ("case", "sampler", "seconds", "times slower", "evaluations", "effective size")
        heads += ("log evidence", "exact's", "apart", "R-hat")
        return [Table(self.title, heads, tuple(rows), tuple(notes))]


def compare(regime: str, index: int, names: list[str]) -> Iterator[Line]:
    """A line for each sampler on one case."""
    simulation = cases_of(regime)
    latent = simulation.latent
    observation = Observation.from_dataset(simulation.cases(index, index + 1))
    exact = make_estimator("exact")
    exact.estimate(observation, latent, num_samples=12, seed=0)  # tables that are made once
    start = time.perf_counter()
    posterior = exact.estimate(observation, latent, num_samples=12, seed=0)
    seconds = time.perf_counter() - start
    known = posterior.diagnostics
    mean, std = known["coefficient_mean"][0], known["coefficient_std"][0]
    state = InitialState.of(observation, detail=True, noise_std=0.0, prior=None)
    model = CollapsedModel(observation, decoder_for(observation, latent), state.mean_hat, state.std)
    lower, upper = latent.bounds.unbind(-1)

    def log_likelihood(unit: torch.Tensor) -> torch.Tensor:
        return model.log_likelihood(lower + (upper - lower) * unit)

    for name in names:
        begin = time.perf_counter()
        if name.startswith("nautilus"):
            found = _nautilus(
                log_likelihood, len(lower), int(name.split()[1]), float(known["effective_sample_size"][0])
            )
        else:
            found = _nuts(log_likelihood, len(lower))
        spent = time.perf_counter() - begin
        theta = found.pop("mean") * (upper - lower).numpy() + lower.numpy()
        yield {
            "regime": regime,
            "index": index,
            "peer": name,
            "seconds": short(spent),
            "seconds_exact": short(seconds),
            "ratio": short(spent / seconds),
            **found,
            "effective_size_exact": round(float(known["effective_sample_size"][0])),
            "evaluations_exact": int(known["num_evaluations"][0]),
            "log_evidence_exact": round(float(known["log_evidence"][0]), 3),
            "apart": short(np.max(np.abs(theta - mean) / std)),
        }


def _nautilus(log_likelihood, dim: int, num_live: int, wanted: float) -> dict[str, Any]:
    from nautilus import Sampler

    def batch(points: np.ndarray) -> np.ndarray:
        with torch.no_grad():
            return log_likelihood(torch.from_numpy(np.atleast_2d(points))).numpy()

    sampler: Any = Sampler(lambda x: x, batch, dim, num_live, vectorized=True, pass_dict=False, seed=0)
    sampler.run(n_eff=wanted)
    points, log_weights, _ = sampler.posterior()
    return {
        "evaluations": int(sampler.n_like),
        "effective_size": round(float(sampler.n_eff)),
        "log_evidence": round(float(sampler.log_z), 3),
        "r_hat": None,
        "mean": np.average(points, axis=0, weights=np.exp(log_weights)),
    }


def _nuts(log_likelihood, dim: int) -> dict[str, Any]:
    from pyro.infer import MCMC, NUTS
    from pyro.ops.stats import effective_sample_size, split_gelman_rubin

    num_evaluations = 0

    def potential(parameters: dict[str, torch.Tensor]) -> torch.Tensor:
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
    return {
        "evaluations": num_evaluations,
        "effective_size": round(float(effective_sample_size(stacked).min())),
        "log_evidence": None,
        "r_hat": short(float(split_gelman_rubin(stacked).max())),
        "mean": stacked.mean((0, 1)).numpy(),
    }


benchmarks.register(Peers.name, Peers())
