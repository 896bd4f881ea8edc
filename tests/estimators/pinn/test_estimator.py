"""The PINN as a method: training, what it returns and refuses, and recovery of what data determine."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from pinn_problem import DIFFERENTIAL, QUICK, Mixed, cases, generator, problem

from latentpde.decoder import Decoder
from latentpde.errors import DataError, UsageError
from latentpde.estimators import make_estimator, reconstruct
from latentpde.estimators.pinn.equation import Equation
from latentpde.estimators.pinn.estimator import Pinn, PinnPosterior
from latentpde.estimators.pinn.network import Features
from latentpde.estimators.pinn.problem import Problem
from latentpde.grid import Grid
from latentpde.latent import Latent
from latentpde.observation import Observation
from latentpde.pde import Coefficient, Family, families


def test_the_drift_is_found_that_carries_the_field_to_the_readings():
    trial = problem(num_harmonics=2, moving_frame=True)
    networks = trial.networks(generator=generator())
    networks.raw.copy_(torch.tensor([[1.4, -0.9, 0.0], [-0.3, 2.0, 0.0]]))
    drift = trial.theta(networks.raw)[:, :2].clone()
    places = trial.readings.flatten(1, 2)
    carried = trial.field(networks, places).unflatten(1, trial.readings.shape[1:3]).mean(-1)
    trial = replace(trial, values=trial.centre[:, None] + trial.scale[:, None] * carried)
    networks.raw.zero_()
    trial.find_drift(networks)
    assert (trial.theta(networks.raw)[:, :2] - drift).abs().max() < 0.25
    assert (networks.raw[:, 2] == 0).all()


def test_only_families_of_first_order_move():
    assert problem("balanced", moving_frame=True).moving_frame
    assert not problem("klein_gordon", moving_frame=True).moving_frame
    assert not problem("helmholtz", moving_frame=True).moving_frame
    drifting = {name: Equation(families.get(name), (1.0, 1.0), 0.3).drift_coefficients for name in DIFFERENTIAL}
    assert {name: which for name, which in drifting.items() if which} == {
        "advection_diffusion": [0, 1],
        "advection_diffusion_decay": [0, 1],
    }
    assert Equation(Mixed(), (1.0, 1.0), 0.3).drift_coefficients == [0]


def test_without_a_drift_none_is_looked_for():
    class Diffusion(Family):
        name = "plain_diffusion"
        equation = "u_t = k Δu + f"
        order = 1
        coefficients = (Coefficient("k", 0.01, 0.1, "L²/T", "diffusivity"),)

        def symbol(self, k, kappa):
            return kappa * k.squared

    data = Observation.from_dataset(cases())
    trial = Problem.of(data, Latent(Diffusion(), num_modes=2), Features(), moving_frame=True)
    networks, diverged = Pinn(num_steps=4, num_collocation=8, num_initial=8).train(trial, seed=0)
    assert not diverged.any()
    assert (networks.raw != 0).all()


def test_a_case_comes_out_the_same_alone_and_in_a_batch():
    tree = cases(num=3)
    together = reconstruct(tree, **(QUICK | {"num_steps": 20}))
    alone = reconstruct(tree.isel(case=slice(1, 2)), **(QUICK | {"num_steps": 20}))
    assert isinstance(together, PinnPosterior)
    assert isinstance(alone, PinnPosterior)
    np.testing.assert_allclose(alone.mean(8)[0], together.mean(8)[1], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(alone.coefficients[0], together.coefficients[1], rtol=1e-4)


@pytest.mark.parametrize("regime", ["balanced", "klein_gordon", "helmholtz", "telegraph"])
def test_training_lowers_the_loss(regime):
    trial, method = problem(regime, num_harmonics=1), Pinn(num_steps=60, num_collocation=64, num_initial=64)
    before = trial.losses(trial.networks(generator=generator(0)), 256, 256, generator=generator(9))
    networks, diverged = method.train(trial, seed=0)
    after = trial.losses(networks, 256, 256, generator=generator(9))
    assert not diverged.any()
    assert (method.total(after) < method.total(before)).all()


def test_a_case_that_diverges_keeps_its_best_state_and_says_so():
    tree = cases(num=2)
    tree["initial"][0] = 1e30 * tree["initial"][0]
    tree["observed"][0] = 1e-30 * tree["observed"][0]
    with np.errstate(over="ignore"):
        data = Observation.from_dataset(tree, keep_outliers=True)
        posterior = reconstruct(data, learning_rate=1e30, **QUICK)
    assert posterior.diagnostics["diverged"].all()
    assert np.isfinite(posterior.mean(8)).all()


def test_a_fine_initial_state_is_used_where_there_is_one():
    tree = cases()
    fine = tree["truth/initial"].values.astype(float)
    coarse = Observation.from_dataset(tree)
    latent = Latent(families.get("advection_diffusion"))
    given = Observation.from_arrays(
        coarse.values.numpy(), coarse.initial.numpy(), times=coarse.times, noise_std=0.1, mask=coarse.mask, pooling=4,
        fine_initial=fine,
    )  # fmt: skip
    known = Problem.of(given, latent, Features())
    assert torch.allclose(known.initial, torch.from_numpy(fine).flatten(1), atol=1e-4)
    assert not torch.allclose(Problem.of(coarse, latent, Features()).initial, known.initial, atol=0.05)


def test_a_point_estimate_has_one_draw_and_writes_what_it_knows(tmp_path):
    posterior = reconstruct(cases(), num_draws=7, **QUICK)
    assert isinstance(posterior, PinnPosterior)
    assert posterior.num_draws == 1
    assert np.isnan(posterior.std(8)).all()
    assert np.isnan(posterior.source_std(8)).all()
    assert posterior.source(8).shape == (2, 8, 8)
    summary = posterior.summary(16)
    assert summary["coefficients"].shape == (2, 1, 3)
    assert summary.attrs["family"] == "advection_diffusion"
    assert {"diagnostic_data_loss", "diagnostic_initial_loss", "diagnostic_residual_loss"} <= set(summary)
    posterior.report(tmp_path / "page.html", resolution=16)
    assert "advection diffusion" in (tmp_path / "page.html").read_text().lower()


def test_without_a_source_there_is_no_network_for_it():
    posterior = reconstruct(cases(source=False), num_harmonics=0, **QUICK)
    assert isinstance(posterior, PinnPosterior)
    assert posterior.diagnostics["num_parameters"] == 50_177 + 3
    assert (posterior.source(8) == 0).all()


def test_a_steady_field_is_the_same_at_all_times():
    posterior = reconstruct(cases("helmholtz"), **QUICK)
    early, late = posterior.mean(8, times=[0.0, 2.0]).values.swapaxes(0, 1)
    np.testing.assert_array_equal(early, late)


def test_an_initial_state_is_needed():
    with pytest.raises(DataError, match="initial state"):
        reconstruct(Observation.from_arrays(np.ones((4, 4)), noise_std=0.1), "helmholtz", **QUICK)


@pytest.mark.parametrize(
    "options",
    [
        {"num_steps": 0},
        {"learning_rate": 0.0},
        {"coefficient_rate": math.inf},
        {"data_weight": -1.0},
        {"residual_weight": math.nan},
        {"num_collocation": 0},
        {"num_initial": 0},
        {"num_harmonics": -1},
        {"warm_up": 1.0},
    ],
)
def test_impossible_options_are_refused(options):
    with pytest.raises(UsageError, match="of pinn must be"):
        make_estimator("pinn", **options)


# Recovery


def manufactured(family, theta, modes, times, num_cells=16, noise=0.002):
    """A few Fourier modes without a source, read in every cell at several times."""
    latent = Latent(families.get(family), num_modes=0)
    grid = Grid((num_cells, num_cells))
    y, x = grid.coordinates()
    u0 = sum(a * torch.cos(2 * torch.pi * (ny * y[:, None] + nx * x) + p) for ny, nx, a, p in modes)
    z = latent.pack(torch.tensor(theta, dtype=torch.float64), torch.zeros(0, dtype=torch.float64))
    clean = Decoder(latent).decode(z, u0, times, grid)
    readings = clean + noise * torch.randn(clean.shape, dtype=torch.float64, generator=generator(4))
    data = Observation.from_arrays(readings, u0, times=times, noise_std=noise, pooling=1, observed="pooled")
    return data, lambda fine, when: Decoder(latent).decode(z, u0, when, fine)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("family", "theta", "times"),
    [
        ("advection_diffusion", (0.9, -0.6, 0.05), (0.1, 0.2, 0.3)),
        ("helmholtz", (0.2, 0.1, 1.8), (1.0,)),
    ],
)
def test_a_manufactured_solution_and_its_coefficients_are_recovered(family, theta, times):
    modes = ((0, 0, 1.0, 0.0), (0, 1, 1.0, 0.3), (1, 0, 0.8, 1.1), (1, 1, 0.5, -0.4))
    data, solution = manufactured(family, theta, modes, times)
    # Data determine everything here, so the prior's pull on the coefficients is switched off.
    weights = {"residual_weight": 5.0, "coefficient_weight": 0.0}
    points = {"num_collocation": 128, "num_initial": 128, "num_harmonics": 1}
    options = {"num_steps": 1500, "learning_rate": 5e-3, **weights, **points}
    posterior = reconstruct(data, family, method="pinn", num_modes=0, seed=0, **options)
    assert isinstance(posterior, PinnPosterior)
    truth = solution(Grid((32, 32)), times[-1:])[0].numpy()
    error = np.sqrt(((posterior.mean(32).values - truth) ** 2).mean())
    assert error < 0.03 * truth.std()
    np.testing.assert_allclose(posterior.coefficients.values.ravel(), theta, rtol=0.05)
