"""The noise schedule against closed forms."""

from __future__ import annotations

import pytest
import torch
from small_operator import normal

from latentpde.diffusion import Schedule
from latentpde.errors import UsageError

STRONG = Schedule(num_steps=100, beta_start=1e-3, beta_end=0.2)


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


@pytest.mark.parametrize("settings", [{"num_steps": 0}, {"beta_start": 0.1, "beta_end": 0.01}, {"beta_end": 1.0}])
def test_impossible_settings_are_refused(settings):
    with pytest.raises(UsageError):
        Schedule(**settings)
