"""Noise has one covariance at every resolution; levels, preconditioning and Heun's step are as derived."""

import math
from itertools import pairwise

import pytest
import torch

from latentpde.diffusion.edm import FieldDenoiser, Preconditioning, heun_step, noise_levels
from latentpde.diffusion.random_fields import RandomField
from latentpde.errors import UsageError


def normals(*shape):
    return torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("n", [16, 32, 64])
def test_noise_has_one_covariance_at_every_resolution(n):
    """Between places a sixteenth of a side apart, along and across; four standard errors of what 4,000 draws give."""
    noise, step = RandomField(0.08), n // 16
    draws = noise.colour(normals(4000 * 16 // n, n, n))
    for lag in ((0, 0), (0, 1), (1, 1), (2, 0), (0, 8)):
        moved = draws.roll((lag[0] * step, lag[1] * step), (-2, -1))
        found = (draws * moved).mean((-2, -1))
        expected = math.exp(-math.hypot(*lag) / 16 / 0.08)
        assert float(found.mean()) == pytest.approx(expected, abs=4 * float(found.std()) / math.sqrt(len(found)))


def test_the_covariance_is_the_table_it_is_made_of():
    noise, n = RandomField(0.05), 32
    delta = torch.zeros(n, n, dtype=torch.float64)
    delta[3, 5] = 1.0
    row = noise.apply(delta)
    assert float(row[3, 5]) == pytest.approx(1.0)
    assert float(row[3, 4]) == pytest.approx(math.exp(-1 / n / 0.05), rel=1e-6)
    assert float(row[31, 5]) == pytest.approx(math.exp(-4 / n / 0.05), rel=1e-3), "around the edge"
    fields = normals(2, n, n)
    torch.testing.assert_close(noise.colour(noise.colour(fields)), noise.apply(fields))


def test_a_length_that_reaches_around_the_torus_is_refused():
    with pytest.raises(UsageError, match="tenth of a side"):
        RandomField(0.3)


def test_levels_fall_from_first_to_last_and_then_to_zero():
    levels = noise_levels(20, 80.0, 0.002)
    assert levels[0] == pytest.approx(80.0)
    assert levels[-2] == pytest.approx(0.002)
    assert levels[-1] == 0
    roots = torch.tensor(levels[:-1]) ** (1 / 7)
    torch.testing.assert_close(roots.diff(), roots.diff()[:1].expand(19), rtol=1e-3, atol=1e-5)
    with pytest.raises(UsageError, match="noise levels"):
        noise_levels(1, 1.0, 0.1)


def test_the_network_of_a_denoiser_sees_and_gives_unit_size():
    """For fields and noise of the sizes that the preconditioning assumes, and a network that is right."""
    factors, sigma = Preconditioning(0.5), torch.tensor([0.01, 0.3, 5.0])
    clean, noise = 0.5 * normals(20000, 1), normals(2, 20000, 1)[1]
    noisy = clean + sigma * noise
    torch.testing.assert_close((factors.into(sigma) * noisy).std(0), torch.ones(3).double(), rtol=0.02, atol=0)
    target = (clean - factors.skip(sigma) * noisy) / factors.out(sigma)
    torch.testing.assert_close(target.std(0), torch.ones(3).double(), rtol=0.02, atol=0)
    torch.testing.assert_close(factors.weight(sigma), factors.out(sigma) ** -2)


def test_a_denoiser_gives_back_what_has_no_noise():
    denoiser = FieldDenoiser(_Constant(), Preconditioning(0.5))
    fields = normals(2, 3, 8, 8).float()
    torch.testing.assert_close(denoiser(fields, torch.full((2,), 1e-6)), fields, atol=1e-5, rtol=0)


class _Constant(torch.nn.Module):
    def forward(self, fields, level):
        return torch.ones_like(fields) * level[:, None, None, None].isfinite()


def test_heun_is_of_second_order():
    """For Gaussian data of unit size the way back is known: it keeps ``x / sqrt(1 + sigma^2)``."""

    def error(num):
        levels, x = noise_levels(num, 10.0, 0.1), torch.tensor([math.sqrt(101.0)], dtype=torch.float64)
        for sigma, to in pairwise(levels[:-1]):
            x = heun_step(x, sigma, to, lambda x, sigma: x / (1 + sigma**2))
        return abs(float(x) / math.sqrt(1.01) - 1)

    assert error(40) < 2e-3
    assert error(80) < 0.3 * error(40)
