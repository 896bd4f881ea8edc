"""`map` finds minima, and coefficients where data determine them."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from small_cases import KINDS, observation

from latentpde.decoder import Decoder
from latentpde.errors import UsageError
from latentpde.estimators import make_estimator, reconstruct
from latentpde.estimators.map import Map
from latentpde.grid import Grid, average_pool
from latentpde.latent import Latent
from latentpde.observation import Observation
from latentpde.operator import ObservationOperator
from latentpde.pde import families
from latentpde.posterior import LatentPosterior
from latentpde.simulation import simulate


def problem(regime="balanced", num_modes=2, **options):
    data = observation(regime=regime, **options)
    latent = Latent(families.get(data.family), source_prior_std=0.4, num_modes=num_modes, bounds=data.bounds)
    return ObservationOperator(data, Decoder(latent, data.grid.extent))


def loss(operator, z, weight):
    return operator.residual(z) + weight * z.square().sum(-1)


def gradient_norm(operator, z, weight):
    z = z.clone().requires_grad_(True)
    (gradient,) = torch.autograd.grad(loss(operator, z, weight).sum(), z)
    return gradient.norm(dim=-1)


@pytest.mark.parametrize("kind", KINDS)
def test_the_gradient_vanishes_where_it_ends(kind):
    operator = problem(observed=kind)
    start = Map(num_steps=1, num_restarts=2).minimise(operator, seed=0)
    end = Map(num_steps=120, num_restarts=2).minimise(operator, seed=0)
    assert (loss(operator, end, 0.01) < loss(operator, start, 0.01)).all()
    assert (gradient_norm(operator, end, 0.01) < 0.01 * gradient_norm(operator, start, 0.01)).all()


def test_more_steps_go_lower():
    operator = problem("klein_gordon")
    losses = torch.stack(
        [loss(operator, Map(num_steps=n, num_restarts=2).minimise(operator, seed=2), 0.01) for n in (1, 15, 45)]
    )
    assert (losses.diff(dim=0) < 0).all()


def test_a_heavier_penalty_gives_a_smaller_latent_and_a_larger_residual():
    operator = problem()
    light, heavy = (Map(weight=w, num_steps=60, num_restarts=2).minimise(operator, seed=0) for w in (0.001, 0.1))
    assert (heavy.norm(dim=-1) < light.norm(dim=-1)).all()
    assert (operator.residual(heavy) > operator.residual(light)).all()


def test_the_restart_of_lowest_residual_is_kept():
    data = observation(regime="klein_gordon")
    posterior = reconstruct(data, method="map", num_steps=15, num_restarts=4, num_modes=2, seed=0)
    assert isinstance(posterior, LatentPosterior)
    restarts = posterior.diagnostics["residual_of_restarts"]
    assert restarts.shape == (2, 4)
    assert (restarts.max(1) > restarts.min(1)).all()
    operator = ObservationOperator(data, posterior.decoder)
    kept = operator.residual(posterior.z)[:, 0].numpy()
    np.testing.assert_allclose(kept, restarts.min(1), rtol=1e-12)
    np.testing.assert_allclose(posterior.diagnostics["residual"], kept, rtol=1e-12)


def test_a_batch_fits_each_case_as_well_as_that_case_alone():
    """Starts differ, so latents may; with a penalty and steps enough the minimum does not."""
    data = observation()
    options = {"method": "map", "num_steps": 120, "num_restarts": 1, "num_modes": 1, "weight": 0.02}
    together = reconstruct(data, **options).diagnostics["residual"]
    alone = reconstruct(data[1:], **options).diagnostics["residual"]
    assert alone[0] == pytest.approx(together[1], rel=0.02)


def test_a_point_estimate_has_one_draw_and_no_false_certainty():
    posterior = reconstruct(observation(), method="map", num_steps=12, num_modes=2, num_draws=7)
    assert posterior.num_draws == 1
    assert not posterior.has_spread
    for spread in (posterior.std(8), posterior.source_std(8)):
        assert np.isnan(spread).all()


@pytest.mark.parametrize(("regime", "noise"), [("helmholtz", 0.001), ("diffusion", 0.01)])
def test_coefficients_are_recovered_where_the_data_determine_them(regime, noise):
    """Every cell read, hardly any noise, no source. The Cramér-Rao bound says how far an efficient estimate strays:
    the covariance is that of linear least squares, noise^2 (J' J)^-1, at the truth; we allow five standard deviations.
    """
    tree = simulate(
        regime, num=2, seed=11, shape=(64, 64), pooling=4, source=False, sparsity=1.0, mask="random", noise_std=noise
    )  # fmt: skip
    data = Observation.from_dataset(tree)
    assert data.num_readings.tolist() == [256] * 2
    posterior = reconstruct(data, method="map", num_modes=0, weight=0.0, learning_rate=0.2, num_steps=150, seed=0)
    assert isinstance(posterior, LatentPosterior)
    latent = posterior.decoder.latent
    truth = torch.from_numpy(tree["truth"]["coefficients"].values)
    for i in range(2):
        operator = ObservationOperator(data[i : i + 1], posterior.decoder)

        def readings(theta, operator=operator):
            return operator.predict(latent.pack(theta, theta[:0])[None, None]).flatten()

        jacobian = torch.autograd.functional.jacobian(readings, truth[i])
        std = noise * torch.linalg.inv(jacobian.mT @ jacobian).diagonal().sqrt()
        assert (std < 0.2 * latent.bounds.diff(dim=1)[:, 0]).all(), "the data do not determine this coefficient"
        error = torch.from_numpy(posterior.coefficients.values)[i, 0] - truth[i]
        assert (error.abs() < 5 * std).all()


def test_reconstruction_is_close_to_the_true_field_where_the_model_is_exact():
    """An initial state that the coarse grid resolves, no source, little noise: the fine field must come back."""
    coarse, factor = Grid((16, 16)), 4
    fine = coarse.refine(factor)
    family = families.get("klein_gordon")
    decoder = Decoder(Latent(family, num_modes=0))
    u0 = fine.synthesise(
        Grid((8, 8)).analyse(torch.randn((8, 8), dtype=torch.float64, generator=torch.Generator().manual_seed(0)))
    )
    z = torch.tensor([0.3, -0.5, 0.2], dtype=torch.float64)
    truth = decoder.decode(z, u0, [0.4], fine)[0]
    noise = 0.001 * torch.randn((16, 16), dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    for kind in ("lowres-solve", "pooled"):
        readings, initial = average_pool(truth, factor) + noise, average_pool(u0, factor)
        options = {"times": [0.4], "noise_std": 0.001, "observed": kind, "pooling": factor}
        data = Observation.from_arrays(readings, initial, **options)
        posterior = reconstruct(
            data, family, method="map", num_modes=0, weight=0.0, learning_rate=0.2, num_steps=80, seed=0
        )
        error = posterior.mean(64).values - truth.numpy()
        assert np.sqrt((error**2).mean()) < 0.01 * truth.std().item()


@pytest.mark.parametrize(
    "options",
    [
        {"num_steps": 0},
        {"num_restarts": 0},
        {"learning_rate": 0.0},
        {"weight": -0.1},
        {"start_std": -1.0},
        {"weight": float("nan")},
    ],
)
def test_impossible_options_are_refused(options):
    with pytest.raises(UsageError, match="of map must be"):
        make_estimator("map", **options)
