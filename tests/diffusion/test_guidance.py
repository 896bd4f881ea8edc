"""Guidance against the residual itself."""

from __future__ import annotations

import pytest
import torch
from small_operator import normal, operator

from latentpde.decoder import Decoder
from latentpde.diffusion import Guidance
from latentpde.errors import UsageError
from latentpde.latent import Latent
from latentpde.observation import Observation
from latentpde.operator import ObservationOperator
from latentpde.pde import families
from latentpde.simulation import simulate


@pytest.mark.parametrize("observed", ["lowres-solve", "pooled", "point"])
def test_the_gradient_is_that_of_the_residual(observed):
    op = operator(observed)
    z, direction = normal(2, 3, 19), normal(2, 3, 19, seed=1)
    residual, slope = op.residual_and_gradient(z)
    torch.testing.assert_close(residual, op.residual(z))
    leaf = z.clone().requires_grad_(True)
    for i in range(2):
        for k in range(3):
            (own,) = torch.autograd.grad(op.residual(leaf)[i, k], leaf)
            torch.testing.assert_close(slope[i, k], own[i, k])
    step = 1e-5
    change = (op.residual(z + step * direction) - op.residual(z - step * direction)) / (2 * step)
    torch.testing.assert_close((slope * direction).sum(-1), change, rtol=1e-6, atol=1e-8)


def guided(z, op, **settings):
    guidance = Guidance(**settings)
    return guidance(z, op, guidance.first_sizes(*z.shape[:2]))


def test_one_plain_step_is_the_formula():
    op, z = operator(), normal(2, 3, 19)
    moved, _ = guided(z, op, scale=3.0, rate=0.1, num_steps=1, clip=0.01, guard=False)
    torch.testing.assert_close(moved, z - 0.3 * op.residual_and_gradient(z)[1].clamp(-0.01, 0.01))


def test_guarded_coefficients_move_only_where_the_residual_falls():
    op, z = operator(), normal(2, 3, 19)
    plain, _ = guided(z, op, num_steps=1, scale=1000.0, guard=False)
    moved, sizes = guided(z, op, num_steps=1, scale=1000.0)
    lower = op.residual(plain) <= op.residual(z)
    assert lower.any()
    assert not lower.all()
    torch.testing.assert_close(moved[lower], plain[lower])
    assert torch.equal(moved[~lower][:, :3], z[~lower][:, :3])
    torch.testing.assert_close(moved[~lower][:, 3:], plain[~lower][:, 3:])
    assert (sizes[lower] == 100).all()
    assert (sizes[~lower] == 25).all()


def test_steps_too_long_for_waves_are_shortened():
    """The paper's step takes coefficients of Klein-Gordon away from a good estimate; the guard finds shorter ones."""
    tree = simulate("klein_gordon", num=4, seed=0, shape=(64, 64), num_modes=2, sparsity=0.1)
    data = Observation.from_dataset(tree)
    latent = Latent(families.get("klein_gordon"), source_prior_std=0.45, num_modes=2, bounds=data.bounds)
    op = ObservationOperator(data, Decoder(latent))
    theta, q = (torch.from_numpy(tree[f"truth/{name}"].values) for name in ("coefficients", "source"))
    z = latent.pack(theta, q)[:, None] + 0.02 * normal(4, 3, 19)
    plain, _ = guided(z, op, num_steps=30, guard=False)
    safe, sizes = guided(z, op, num_steps=30)
    assert op.residual(plain).mean() > op.residual(z).mean()
    assert op.residual(safe).mean() < op.residual(z).mean()
    assert (sizes < 8).any()


def test_guidance_is_for_late_steps_and_can_be_off():
    guidance = Guidance(below=0.8)
    assert guidance.active(319, 400)
    assert not guidance.active(320, 400)
    for off in ({"scale": 0.0}, {"rate": 0.0}, {"num_steps": 0}, {"below": 0.0}):
        assert not Guidance(**off).active(0, 400)


def test_guidance_lowers_the_residual():
    op, z = operator(), normal(2, 3, 19)
    assert (op.residual(guided(z, op, scale=1.0, num_steps=20)[0]) < op.residual(z)).all()


@pytest.mark.parametrize("settings", [{"scale": -1.0}, {"clip": 0.0}, {"below": 1.1}, {"scale": float("nan")}])
def test_impossible_settings_are_refused(settings):
    with pytest.raises(UsageError):
        Guidance(**settings)
