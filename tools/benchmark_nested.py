"""`exact`'s search for the coefficients beside a general nested sampler, nautilus, on the same likelihood.

    pip install -c constraints.txt nautilus-sampler
    python tools/benchmark_nested.py [--num 2]      # writes results/nested.json

Both see the same function. nautilus stops at the effective sample size that ours reached, or later where exploration
alone gives it more; it runs with its default of 2,000 live points and with 500, which is quicker and finds less.
"""

import argparse
import json
import time
from pathlib import Path

import numpy as np
import torch
from nautilus import Sampler

from latentpde.collapsed import CollapsedModel
from latentpde.estimators.base import decoder_for
from latentpde.estimators.exact import Exact, _Prior
from latentpde.initial_state import InitialState
from latentpde.latent import Latent
from latentpde.observation import Observation
from latentpde.pde import get_family
from latentpde.simulation import simulate


def compare(regime: str, index: int) -> dict:
    observation = Observation.from_dataset(simulate(regime, num=index + 1, seed=11))[index : index + 1]
    latent = Latent(get_family(observation.family or ""), observation.forcing_std or 0.0, 12, observation.bounds)
    state = InitialState.of(observation, detail=True, noise_std=0.0, prior=None)
    model = CollapsedModel(observation, decoder_for(observation, latent), state.mean_hat, state.std)
    prior = _Prior.of(latent, {}, {})

    def log_likelihood(points: np.ndarray) -> np.ndarray:
        with torch.no_grad():
            return model.log_likelihood(prior.theta(np.atleast_2d(points))).numpy()

    start = time.perf_counter()
    ours = Exact()._sample(model, prior, np.random.default_rng(0))
    seconds = time.perf_counter() - start
    record: dict = {"regime": regime, "index": index}
    record["exact"] = _numbers(seconds, ours.num_evaluations, ours.effective_size, ours.log_evidence)
    for num_live in (500, 2000):
        start = time.perf_counter()
        sampler = Sampler(lambda x: x, log_likelihood, 3, num_live, vectorized=True, pass_dict=False, seed=0)
        sampler.run(n_eff=ours.effective_size)
        nested = time.perf_counter() - start
        found = _numbers(nested, sampler.n_like, sampler.n_eff, sampler.log_z)
        record[f"nautilus, {num_live} live points"] = {**found, "times_slower": round(nested / seconds, 1)}
    return record


def _numbers(seconds: float, evaluations, effective_size, log_evidence) -> dict:
    return {
        "seconds": round(seconds, 2),
        "evaluations": int(evaluations),
        "effective_size": round(float(effective_size)),
        "log_evidence": round(float(log_evidence), 3),
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--num", type=int, default=2, help="cases per regime")
    num, records = parser.parse_args().num, []
    for regime in ("diffusion", "advection", "klein_gordon", "helmholtz"):
        for index in range(num):
            records.append(compare(regime, index))
            print(records[-1], flush=True)
            Path("results/nested.json").write_text(json.dumps(records, indent=1) + "\n")
