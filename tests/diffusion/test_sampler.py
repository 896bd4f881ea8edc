"""The reverse chain against closed forms, where everything is Gaussian."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import torch
from small_operator import normal

from latentpde.diffusion import ReverseChain, Schedule
from latentpde.errors import UsageError

STRONG = Schedule(num_steps=100, beta_start=1e-3, beta_end=0.2)


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


@pytest.mark.parametrize("settings", [{"num_steps": -1}, {"stochasticity": 1.5}])
def test_impossible_settings_are_refused(settings):
    with pytest.raises(UsageError):
        ReverseChain(**settings)
