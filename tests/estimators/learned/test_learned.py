"""`enc`, `map-diffusion` and `enc-diffusion`, with networks of random values: what holds whatever they have learnt."""

from __future__ import annotations

import functools

import numpy as np
import pytest
import torch
from tiny_weights import tiny_weights

from latentpde.decoder import Decoder
from latentpde.errors import DataError, UsageError
from latentpde.estimators import make_estimator, reconstruct
from latentpde.estimators.learned.diffusion import EncDiffusion
from latentpde.estimators.learned.posterior import LearnedPosterior
from latentpde.latent import Latent
from latentpde.nn import Denoiser
from latentpde.nn.weights import load_weights
from latentpde.observation import Observation
from latentpde.operator import ObservationOperator
from latentpde.pde import families
from latentpde.simulation import simulate

LEARNED = ("enc", "map-diffusion", "enc-diffusion")
BARE = {"guidance_scale": 0.0, "refinement_steps": 0}


@functools.cache
def observation(**options):
    known = {"num": 3, "seed": 3, "shape": (32, 32), "pooling": 4, "num_modes": 2, "sparsity": 0.3}
    return Observation.from_dataset(simulate("balanced", **{**known, **options}))


def run(method="enc-diffusion", data=None, **options):
    if method == "map-diffusion":
        options = {"map_steps": 5, "map_restarts": 1, **options}
    data = observation() if data is None else data
    found = reconstruct(
        data, method=method, **{"num_draws": 4, "seed": 1, "num_modes": 2, "weights": tiny_weights(), **options}
    )
    assert isinstance(found, LearnedPosterior)
    return found


@pytest.mark.parametrize("method", LEARNED)
def test_a_case_comes_out_the_same_alone_and_in_a_batch(method):
    data = observation()
    together, alone = run(method).z[1:2], run(method, data[1:2]).z
    torch.testing.assert_close(together, alone, rtol=1e-4, atol=1e-4)


def test_cases_do_not_share_their_noise():
    z = run(**BARE).z
    spread = (z - z.mean(1, keepdim=True)).flatten(1)
    assert abs(float(torch.corrcoef(spread[:2])[0, 1])) < 0.5


@pytest.mark.parametrize("method", LEARNED)
def test_weights_that_are_not_there_are_asked_for(method):
    with pytest.raises(UsageError, match="latentpde train"):
        run(method, weights="/nowhere/at/all")


@pytest.mark.parametrize("method", LEARNED)
def test_an_initial_state_is_needed(method):
    bare = Observation.from_arrays(np.ones((8, 8)), noise_std=0.1)
    with pytest.raises(DataError, match="initial state"):
        reconstruct(bare, "helmholtz", method=method, weights=tiny_weights())


def test_enc_is_the_network_s_latent_and_takes_any_number_of_modes():
    found = run("enc")
    assert found.num_draws == 1
    for num_modes in (0, 1, 5):
        other = run("enc", num_modes=num_modes)
        assert other.z.shape[-1] == 3 + 4 * num_modes**2
        assert np.isfinite(other.mean(16)).all()


@pytest.mark.parametrize("num_modes", [0, 1, 5])
def test_chains_take_any_number_of_modes(num_modes):
    found = run(num_modes=num_modes)
    assert found.z.shape == (3, 4, 3 + 4 * num_modes**2)
    assert torch.isfinite(found.z).all()
    assert (found.std(16) > 0).all()


def test_guidance_and_refinement_bring_draws_closer_to_the_readings():
    plain = run(**BARE).diagnostics["residual"]
    guided = run(refinement_steps=0, guidance_scale=10.0).diagnostics["residual"]
    refined = run(guidance_scale=0.0).diagnostics["residual"]
    assert (guided < plain).all()
    assert (refined < plain).all()


def test_a_weight_of_zero_turns_refinement_off_as_in_the_paper():
    assert torch.equal(run(refinement_weight=0.0).z, run(refinement_steps=0).z)


def test_every_knob_does_something():
    base = run().z
    for option, value in {
        "target": "map",
        "start": "noise",
        "sigma_min": 0.5,
        "sigma_max": 0.5,
        "num_steps": 3,
        "stochasticity": 0.0,
        "condition_scale": 2.0,
        "guidance_scale": 40.0,
        "guidance_rate": 0.01,
        "guidance_steps": 1,
        "guidance_clip": 0.001,
        "guidance_below": 0.2,
        "refinement_steps": 2,
        "refinement_weight": 1.0,
        "refinement_rate": 0.1,
    }.items():
        assert not torch.equal(run(**{option: value}).z, base), option
    long = {"guidance_scale": 1000.0}
    assert not torch.equal(run(guidance_guard=False, **long).z, run(**long).z)
    assert not torch.equal(run(start="noise", clean_clip=0.5).z, run(start="noise").z)
    start = run("map-diffusion").z
    assert not torch.equal(run("map-diffusion", map_steps=2).z, start)
    assert not torch.equal(run("map-diffusion", map_restarts=2).z, start)


def test_a_whole_scale_is_the_conditional_network_and_none_the_unconditional():
    """Between them the noise is mixed, so a deterministic single step is affine in the scale."""
    options = {**BARE, "num_steps": 1, "stochasticity": 0.0, "start": "noise", "clean_clip": 1e6}
    z = {scale: run(condition_scale=scale, **options).z for scale in (0.0, 0.5, 1.0, 2.0)}
    torch.testing.assert_close(z[0.5], (z[0.0] + z[1.0]) / 2, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(z[2.0], 2 * z[1.0] - z[0.0], rtol=1e-4, atol=1e-4)
    # the unconditional chain sees nothing of the case but through its seed, which here is the same
    changed = observation()
    shifted = Observation(**{**vars(changed), "initial": changed.initial + 1})
    same = run(data=shifted, condition_scale=0.0, **options).z
    torch.testing.assert_close(same, z[0.0])


def test_the_conditioning_is_embedded_once_whatever_the_steps(monkeypatch):
    calls, embed = [], Denoiser.embed
    monkeypatch.setattr(Denoiser, "embed", lambda self, conditions: calls.append(1) or embed(self, conditions))
    run(num_draws=7)
    assert len(calls) == 1


def test_draws_are_spread_over_noise_levels():
    method = make_estimator("enc-diffusion", weights=tiny_weights())
    assert isinstance(method, EncDiffusion)
    denoiser = load_weights("denoiser_enc", families.get("helmholtz"), tiny_weights())
    starts = method.start_steps(denoiser.schedule, 12)
    sigma = torch.sqrt(1 - denoiser.schedule.alpha_bar(torch.tensor(starts)))
    assert len(starts) == 12
    assert starts == sorted(starts, reverse=True)
    assert sigma[0] == pytest.approx(0.6, abs=0.1)
    assert sigma[-1] == pytest.approx(0.3, abs=0.1)


def test_a_warm_start_is_kept_where_hardly_any_noise_is_added():
    cold = run("map-diffusion", **BARE, sigma_min=0.03, sigma_max=0.03, num_steps=1, stochasticity=0.0)
    method = make_estimator("map-diffusion", map_steps=5, map_restarts=1)
    latent = Latent(families.get("advection_diffusion"), 0.4, 2, observation().bounds)
    warm, _ = method.warm_start(observation(), latent, seed=1, show_progress=False)  # pyright: ignore
    assert (cold.z - warm[:, None]).abs().mean() < 0.1 * warm.std()
    operator = ObservationOperator(observation(), Decoder(latent))
    np.testing.assert_allclose(cold.diagnostics["start_residual"], operator.residual(warm[:, None])[:, 0])


def test_readers_are_warned_of_what_networks_have_not_seen():
    known = {"bounds": families.get("advection_diffusion").bounds, "source_prior_std": 0.5}
    assert run("enc", data=observation(times=(0.25,)), **known).training_mismatch == []
    for options, about in (
        ({"data": observation(times=(0.2,)), **known}, "at times"),
        ({"data": observation(noise_std=0.5), **known}, "noise"),
        ({"data": observation(shape=(48, 48)), **known}, "cells"),
        ({**known, "num_modes": 3}, "modes"),
        ({**known, "source_prior_std": 2.0}, "strengths"),
    ):
        (warning, *_) = run("enc", **options).warnings(0)
        assert about in warning


@pytest.mark.parametrize(
    "options",
    [
        {"target": "mean"},
        {"start": "cold"},
        {"sigma_min": 0.0},
        {"sigma_max": 1.0},
        {"sigma_min": 0.7},
        {"num_steps": -1},
        {"stochasticity": 1.1},
        {"condition_scale": -1.0},
        {"clean_clip": 0.0},
        {"condition_scale": float("inf")},
        {"guidance_scale": -1.0},
        {"guidance_rate": float("nan")},
        {"guidance_steps": -1},
        {"guidance_clip": 0.0},
        {"guidance_below": 2.0},
        {"refinement_steps": -1},
        {"refinement_weight": -1.0},
        {"refinement_rate": 0.0},
    ],
)
@pytest.mark.parametrize("method", LEARNED[1:])
def test_impossible_options_are_refused(method, options):
    with pytest.raises(UsageError):
        make_estimator(method, **options)


@pytest.mark.parametrize("options", [{"map_steps": 0}, {"map_restarts": 0}])
def test_an_impossible_warm_start_is_refused_before_any_work(options):
    with pytest.raises(UsageError):
        make_estimator("map-diffusion", **options)
