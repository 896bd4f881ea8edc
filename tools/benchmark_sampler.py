"""What batching is worth in the learned sampler; writes results/sampler.json.

The same sampler (`enc-diffusion` with the paper's target and schedule, 12 draws, guidance and refinement on) on one
case at 128 x 128, in turn: all draws as one batch with the case embedded once, and draws one by one with the case
embedded anew at every step, by the network alone and from the readings, which adds channels and probes.
Then the time of a whole reconstruction, from the call to the arrays, and how many cases a second a batch of 100 gives.
Run it while the machine does nothing else: python tools/benchmark_sampler.py [--weights FOLDER]
"""

import argparse
import copy
import json
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from latentpde.bench.provenance import hardware
from latentpde.estimators import make_estimator, reconstruct
from latentpde.estimators.learned.diffusion import EncDiffusion
from latentpde.nn import Conditions, Denoiser
from latentpde.nn.weights import SHIPPED, Trained, load_weights
from latentpde.observation import Observation
from latentpde.simulation import Simulation, simulate

REGIMES = ("balanced", "klein_gordon", "helmholtz")
NUM_DRAWS = 12


def forgetful(trained: Trained, see: Callable[[], Conditions]) -> Trained:
    """The same network, but it embeds the case anew at every step."""
    network = copy.copy(trained.network)
    assert isinstance(network, Denoiser)

    def denoise(noisy, step, embedding):
        return Denoiser.denoise(network, noisy, step, network.embed(see()))

    network.denoise = denoise
    return replace(trained, network=network)


def seconds(function: Callable[[], object]) -> float:
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def compare(regime: str, weights: str, repeats: int) -> dict:
    """Both ways in turn, a few times."""
    observation, latent = Observation.from_dataset(simulate(regime, num=1, seed=3)), Simulation(regime=regime).latent
    method = make_estimator("enc-diffusion", target="enc", weights=weights)
    assert isinstance(method, EncDiffusion)
    trained = load_weights("denoiser_enc", latent.family, weights)
    warm, _ = method.warm_start(observation, latent, seed=0, show_progress=False)
    starts = method.start_steps(trained.schedule, NUM_DRAWS)

    def together():
        with torch.no_grad():
            method.sample(trained, observation, latent, warm, starts, seed=0)

    def see() -> Conditions:
        assert isinstance(trained.network, Denoiser)
        return Conditions.of(observation, trained.units(latent), trained.network.case.num_probes)

    def one_by_one(see: Callable[[], Conditions]):
        with torch.no_grad():
            for start in starts:
                method.sample(forgetful(trained, see), observation, latent, warm, [start], seed=0)

    together()
    seen = see()
    ways = (together, lambda: one_by_one(lambda: seen), lambda: one_by_one(see))
    times = np.array([[seconds(way) for way in ways] for _ in range(repeats)])
    names = ("together", "one_by_one", "one_by_one_from_readings")
    return {
        "reverse_steps": starts[0] + 1,
        **{f"{name}_seconds": round(float(t), 3) for name, t in zip(names, np.median(times, axis=0), strict=True)},
        "ratio": round(float(np.median(times[:, 1] / times[:, 0])), 2),
        "ratio_from_readings": round(float(np.median(times[:, 2] / times[:, 0])), 2),
    }


def whole(regime: str, weights: str, repeats: int) -> dict:
    """From the call to mean and draws at 128 x 128."""

    def run(cases):
        posterior = reconstruct(cases, method="enc-diffusion", num_draws=NUM_DRAWS, weights=weights)
        return posterior.mean(128), posterior.draws(128)

    one, many = simulate(regime, num=1, seed=3), simulate(regime, num=100, seed=4)
    run(one)
    return {
        "one_case_seconds": round(float(np.median([seconds(lambda: run(one)) for _ in range(repeats)])), 3),
        "cases_per_second_of_100": round(100 / seconds(lambda: run(many)), 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weights", default=SHIPPED, help="folder of weights")
    parser.add_argument("--regimes", nargs="+", default=list(REGIMES))
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--output", type=Path, default=Path("results/sampler.json"))
    arguments = parser.parse_args()
    record = {"hardware": hardware(), "threads": torch.get_num_threads(), "paper_seconds": 33.12}
    for regime in arguments.regimes:
        how = regime, arguments.weights, arguments.repeats
        record[regime] = {**compare(*how), **whole(*how)}
        print(regime, record[regime], flush=True)
    arguments.output.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
