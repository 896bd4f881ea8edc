"""The schedule and the reverse chain against closed forms; guidance against the residual itself."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import torch
from small_operator import normal, operator

from latentpde.decoder import Decoder
from latentpde.diffusion import Guidance, ReverseChain, Schedule
from latentpde.errors import UsageError
from latentpde.latent import Latent
from latentpde.observation import Observation
from latentpde.operator import ObservationOperator
from latentpde.pde import families
from latentpde.simulation import simulate

STRONG = Schedule(num_steps=100, beta_start=1e-3, beta_end=0.2)


# The schedule


def test_noise_grows_from_almost_none_to_almost_all():
    level = STRONG.alpha_bar(torch.arange(100))
    assert (level.diff() < 0).all()
    assert level[0] == pytest.approx(0.999)
    assert level[-1] < 1e-4
    assert STRONG.alpha_bar(-1) == 1


def test_the_paper_s_chain_starts_near_step_130():
    schedule = Schedule()
    assert schedule.num_steps == 400
    for sigma in (0.3, 0.45, 0.6):
        found = float(torch.sqrt(1 - schedule.alpha_bar(schedule.step_of(sigma))))
        assert found == pytest.approx(sigma, abs=0.005)
    assert 120 < schedule.step_of(0.6) < 140


def test_noise_and_clean_latent_follow_from_each_other():
    clean, noise = normal(4, 3), normal(4, 3, seed=1)
    noisy = STRONG.add_noise(clean, noise, torch.full((4,), 40))
    torch.testing.assert_close(STRONG.clean_of(noisy, noise, 40), clean)
    torch.testing.assert_close(STRONG.noise_of(noisy, clean, 40), noise)


def test_a_step_back_is_the_posterior_of_ddpm():
    """Mean and variance of q(w_{t-1} | w_t, w_0), as Ho et al. write them."""
    beta = torch.linspace(1e-3, 0.2, 100, dtype=torch.float64)
    now, then = STRONG.alpha_bar(30), STRONG.alpha_bar(29)
    clean, noisy, fresh = normal(5), normal(5, seed=1), normal(5, seed=2)
    mean = (then**0.5 * beta[30] * clean + (1 - beta[30]) ** 0.5 * (1 - then) * noisy) / (1 - now)
    std = (beta[30] * (1 - then) / (1 - now)) ** 0.5
    torch.testing.assert_close(STRONG.back(noisy, clean, 30, 29, fresh, 1.0), mean + std * fresh)


# The chain, where everything is Gaussian


def gaussian_predictor(schedule, mean, std):
    """The best possible denoiser of latents that are N(mean, std^2)."""

    def predict(noisy, step):
        level = schedule.alpha_bar(step)
        return (1 - level).sqrt() * (noisy - level.sqrt() * mean) / (level * std**2 + 1 - level)

    return predict


def moments(schedule, chain, mean, std):
    """Of the chain's end, by carrying mean and variance through its steps, each of which is affine."""
    predict = gaussian_predictor(schedule, mean, std)
    zero, one = torch.zeros((), dtype=torch.float64), torch.ones((), dtype=torch.float64)
    centre, variance = zero, one
    for step, to in pairwise(chain.path(schedule.num_steps - 1)):

        def move(x, fresh, step=step, to=to):
            return schedule.back(x, schedule.clean_of(x, predict(x, step), step), step, to, fresh, chain.stochasticity)

        offset = move(zero, zero)
        slope, noise = move(one, zero) - offset, move(zero, one) - offset
        centre, variance = slope * centre + offset, slope**2 * variance + noise**2
    return float(centre), float(variance) ** 0.5


@pytest.mark.parametrize(("num_steps", "stochasticity"), [(0, 1.0), (0, 0.0), (25, 1.0), (25, 0.5), (25, 0.0)])
def test_the_chain_has_the_distribution_that_gaussian_latents_say(num_steps, stochasticity):
    chain = ReverseChain(num_steps=num_steps, stochasticity=stochasticity)
    mean, std, num = 0.7, 0.4, 20000
    generator = torch.Generator().manual_seed(0)
    end = chain.run(
        STRONG,
        torch.zeros(1, 1, 1, dtype=torch.float64),
        [99] * num,
        predict=gaussian_predictor(STRONG, mean, std),
        correct=lambda clean, step: clean,
        normals=lambda draws: torch.randn(1, draws, 1, dtype=torch.float64, generator=generator),
    ).flatten()
    centre, spread = moments(STRONG, chain, mean, std)
    assert end.mean() == pytest.approx(centre, abs=4 * spread / num**0.5)
    assert end.std() == pytest.approx(spread, rel=4 / (2 * num) ** 0.5)
    assert np.abs(float((end - end.mean()).pow(3).mean()) / spread**3) < 0.1


@pytest.mark.parametrize("stochasticity", [1.0, 0.5, 0.0])
def test_finer_chains_tend_to_the_latents_own_distribution(stochasticity):
    """Same noise in four times the steps: the spread's error falls to a quarter, as the first order does, or less.

    What is left of the mean's error is what the schedule leaves of the latent at its noisiest step.
    """
    coarse = Schedule(num_steps=100, beta_start=1e-3, beta_end=0.2)
    fine = Schedule(num_steps=400, beta_start=2.5e-4, beta_end=0.05)
    chain = ReverseChain(stochasticity=stochasticity)
    errors = [abs(np.subtract(moments(schedule, chain, 0.7, 0.4), (0.7, 0.4))) for schedule in (coarse, fine)]
    assert errors[0][1] < 0.04
    assert errors[1][1] < 0.35 * errors[0][1]
    assert errors[0][0] < 0.002
    assert errors[1][0] < 0.002


@pytest.mark.parametrize("stochasticity", [1.0, 0.0])
def test_short_chains_are_less_exact_and_deterministic_ones_bear_it_better(stochasticity):
    schedule = Schedule(num_steps=400, beta_start=2.5e-4, beta_end=0.05)
    errors = [
        abs(moments(schedule, ReverseChain(num_steps=num, stochasticity=stochasticity), 0.7, 0.4)[1] - 0.4)
        for num in (20, 50, 100, 400)
    ]
    assert all(a > b for a, b in pairwise(errors))
    assert errors[1] < (0.05 if stochasticity == 0 else 0.1)


def test_draws_join_at_their_own_steps():
    chain, seen = ReverseChain(), []

    def predict(noisy, step):
        seen.append((step, noisy.shape[1]))
        return torch.zeros_like(noisy)

    clean = normal(2, 1, 3)
    end = chain.run(
        STRONG,
        clean,
        [4, 4, 2, 0],
        predict=predict,
        correct=lambda clean, step: clean,
        normals=lambda num: torch.zeros(2, num, 3, dtype=torch.float64),
    )
    assert seen == [(4, 2), (3, 2), (2, 3), (1, 3), (0, 4)]
    torch.testing.assert_close(end, clean.expand(2, 4, 3))


@pytest.mark.parametrize("start", [0, 7, 99])
@pytest.mark.parametrize("num_steps", [0, 1, 5, 1000])
def test_paths_go_down_to_the_clean_latent(start, num_steps):
    path = ReverseChain(num_steps=num_steps).path(start)
    assert path[0] == start
    assert path[-1] == -1
    assert all(a > b for a, b in pairwise(path))
    assert len(path) - 1 == min(num_steps or start + 1, start + 1)


def test_draws_must_be_in_order():
    with pytest.raises(UsageError, match="noisiest first"):
        ReverseChain().run(
            STRONG,
            normal(1, 1, 1),
            [2, 5],
            predict=lambda noisy, step: noisy,
            correct=lambda clean, step: clean,
            normals=lambda num: normal(1, num, 1),
        )


# Guidance


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


@pytest.mark.parametrize(
    "make",
    [
        lambda: Schedule(num_steps=0),
        lambda: Schedule(beta_start=0.1, beta_end=0.01),
        lambda: Schedule(beta_end=1.0),
        lambda: ReverseChain(num_steps=-1),
        lambda: ReverseChain(stochasticity=1.5),
        lambda: Guidance(scale=-1.0),
        lambda: Guidance(clip=0.0),
        lambda: Guidance(below=1.1),
        lambda: Guidance(scale=float("nan")),
    ],
)
def test_impossible_settings_are_refused(make):
    with pytest.raises(UsageError):
        make()
