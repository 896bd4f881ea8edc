"""Coefficients from the exact posterior, against Hamiltonian Monte Carlo on the model with nothing integrated out.

Nothing is shared but the decoder and the prior: the reference walks through all 579 latents of the benchmark's problem
(32 x 32 cells, 5 % of them read, 12 modes a side), where the exact method integrates 576 of them in closed form.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch

from latentpde.decoder import Decoder
from latentpde.estimators.base import make_estimator
from latentpde.observation import Observation
from latentpde.operator import ObservationOperator
from latentpde.simulation import Simulation

# Its own dependencies may warn of what they will deprecate; that is not what is tested.
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:::pyro"),
    pytest.mark.filterwarnings("ignore:::torch"),
]

NUM_CHAINS, NUM_WARMUP, NUM_DRAWS = 2, 250, 500


def chain(observation, latent, seed):
    """Coefficients along one chain of the no-U-turn sampler, started at a draw of the prior."""
    mcmc = pytest.importorskip("pyro.infer", reason="pip install pyro-ppl")
    operator = ObservationOperator(observation, Decoder(latent, observation.grid.extent))
    mask = observation.mask[0]
    values, noise = observation.values[0][mask], observation.noise_std[0][mask]
    scale = torch.ones(latent.size, dtype=torch.float64)
    scale[latent.num_coefficients :] = latent.source_prior_std

    def potential(parameters):
        z = scale * parameters["white"]
        misfit = (operator.predict(z[None, None])[0, 0][mask] - values) / noise
        return 0.5 * (misfit**2).sum() - latent.log_prior(z)

    start = latent.draw(1, generator=torch.Generator().manual_seed(seed))[0] / scale
    run = mcmc.MCMC(
        mcmc.NUTS(potential_fn=potential, max_tree_depth=8),
        num_samples=NUM_DRAWS,
        warmup_steps=NUM_WARMUP,
        initial_params={"white": start},
        disable_progbar=True,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        run.run()
    return latent.theta(scale * run.get_samples()["white"])


@pytest.mark.parametrize("regime", ["diffusion", "helmholtz"])
def test_coefficients_agree_with_nuts_on_the_uncollapsed_model(regime):
    stats = pytest.importorskip("pyro.ops.stats", reason="pip install pyro-ppl")
    simulation = Simulation(regime=regime, seed=11, sparsity=0.05)
    observation, latent = Observation.from_dataset(simulation.cases(0, 1)), simulation.latent
    assert tuple(observation.grid.shape) == (32, 32)
    assert (latent.num_modes, int(observation.num_readings)) == (12, 51)

    chains = torch.stack([chain(observation, latent, seed) for seed in range(NUM_CHAINS)])
    assert (stats.split_gelman_rubin(chains) < 1.05).all(), (
        "the reference has not converged; there is nothing to compare"
    )
    deviation = (chains - chains.mean((0, 1))) ** 2
    mean, variance = chains.mean((0, 1)).numpy(), deviation.mean((0, 1)).numpy()
    mean_error = np.sqrt(variance / stats.effective_sample_size(chains).numpy())
    # of the variance, as of any mean: the spread of its terms over their effective number
    spread = deviation.flatten(0, 1).var(0).numpy()
    variance_error = np.sqrt(spread / stats.effective_sample_size(deviation).numpy())

    found = make_estimator("exact", target=4000.0).estimate(observation, latent, num_draws=2, seed=0).diagnostics
    assert found["trusted"].all()
    std, size = found["coefficient_std"][0], found["effective_sample_size"][0]
    print(f"\n{regime}: NUTS {mean} ± {np.sqrt(variance)}, exact {found['coefficient_mean'][0]} ± {std}")
    mean_error = np.hypot(mean_error, std / np.sqrt(size))
    variance_error = np.hypot(variance_error, np.sqrt(spread / size))
    assert (np.abs(found["coefficient_mean"][0] - mean) < 4 * mean_error).all()
    assert (np.abs(std**2 - variance) < 4 * variance_error).all()
    # and the comparison has the power to tell: errors are small against the posterior's own width
    assert (mean_error < 0.15 * std).all()
    assert (variance_error < 0.3 * std**2).all()
