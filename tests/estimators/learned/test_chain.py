"""The guided chain: in which coordinates each of its parts acts."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from small_operator import normal, operator
from tiny_weights import tiny_weights

from latentpde.diffusion import Guidance, ReverseChain
from latentpde.estimators.learned.chain import GuidedChain
from latentpde.nn.weights import load_weights
from latentpde.pde import families


def chain(**changes):
    """Three draws of two cases; the network is normalised by a mean of 0.1 and a standard deviation of 0.5."""
    settings = {
        "denoiser": load_weights("denoiser_true", families.get("advection_diffusion"), tiny_weights()),
        "operator": operator(),
        "starts": [10, 10, 5],
        "reverse": ReverseChain(),
        "guidance": Guidance(),
        "seed": 0,
    }
    return GuidedChain(**{**settings, **changes})


def raw_latent(some, clean):
    return some.units.to_latent(some.statistics.denormalise(clean))


def test_the_gradient_is_taken_clipped_and_applied_in_the_raw_latent():
    """The source's prior is 0.4 and the network's normalisation 0.5, so any other coordinates give another step."""
    guidance = Guidance(scale=3.0, rate=0.1, num_steps=1, clip=0.01, guard=False)
    some, clean = chain(guidance=guidance), normal(2, 3, 19)
    z = raw_latent(some, clean)
    slope = some.operator.residual_and_gradient(z)[1]
    clipped = slope.abs() > 0.01
    assert clipped.any()
    assert not clipped.all()
    moved = raw_latent(some, some.guide(clean, step=0)) - z
    torch.testing.assert_close(moved, -0.3 * slope.clamp(-0.01, 0.01))
    in_prior_units = -0.3 * some.units.to_latent(some.units.gradient(slope).clamp(-0.01, 0.01))
    assert not torch.allclose(moved, in_prior_units)


def test_in_the_paper_s_space_the_gradient_is_taken_clipped_and_applied_where_the_chain_runs():
    """Against automatic differentiation with respect to the normalised latent itself."""
    guidance = Guidance(scale=3.0, rate=0.1, num_steps=1, clip=0.01, guard=False, space="normalised")
    some, clean = chain(guidance=guidance), normal(2, 3, 19)
    leaf = clean.clone().requires_grad_(True)
    (slope,) = torch.autograd.grad(some.operator.residual(raw_latent(some, leaf)).sum(), leaf)
    clipped = slope.abs() > 0.01
    assert clipped.any()
    assert not clipped.all()
    torch.testing.assert_close(some.guide(clean, step=0), clean - 0.3 * slope.clamp(-0.01, 0.01))
    raw = chain(guidance=replace(guidance, space="raw"))
    assert not torch.allclose(raw.guide(clean, step=0), some.guide(clean, step=0))


def test_the_guard_holds_in_either_space():
    for space in ("raw", "normalised"):
        some, clean = chain(guidance=Guidance(scale=1e5, num_steps=1, space=space)), normal(2, 3, 19)
        before = some.operator.residual(raw_latent(some, clean))
        plain = chain(guidance=replace(some.guidance, guard=False)).guide(clean, step=0)
        rises = some.operator.residual(raw_latent(some, plain)) > before
        assert rises.any()
        torch.testing.assert_close(some.guide(clean, step=0)[rises][:, :3], clean[rises][:, :3])


def test_predicted_clean_latents_are_clipped_in_normalised_units():
    some = chain(guidance=Guidance(scale=0.0), clean_clip=0.5)
    clean = normal(2, 3, 19)
    assert torch.equal(some.guide(clean, step=0), clean.clamp(-0.5, 0.5))


def test_without_a_warm_start_draws_begin_at_the_mean_of_what_the_network_was_trained_on():
    zeros = torch.zeros_like
    some = chain(guidance=Guidance(scale=0.0), reverse=ReverseChain(stochasticity=0.0))
    some.predict_noise = lambda noisy, step: zeros(noisy)
    some.normals = lambda num: torch.zeros(2, num, 19, dtype=torch.float64)
    z = some.sample(None)
    torch.testing.assert_close(z, raw_latent(some, torch.zeros(2, 3, 19, dtype=torch.float64)))


def test_a_draw_that_has_not_started_keeps_its_step_size():
    some = chain(guidance=Guidance(scale=1000.0, num_steps=1))
    some.guide(normal(2, 2, 19), step=0)
    assert (some._sizes[:, :2] < 100).any()
    assert (some._sizes[:, 2] == 100).all()


@pytest.mark.parametrize("scale", [0.0, 0.5, 1.0, 3.0])
def test_noise_is_a_weighted_sum_of_the_conditional_and_the_unconditional_prediction(scale):
    noisy = normal(2, 3, 19)
    conditional, unconditional = (chain(condition_scale=s).predict_noise(noisy, 7) for s in (1.0, 0.0))
    assert not torch.equal(conditional, unconditional)
    mixed = scale * conditional + (1 - scale) * unconditional
    torch.testing.assert_close(chain(condition_scale=scale).predict_noise(noisy, 7), mixed, rtol=1e-5, atol=1e-5)
