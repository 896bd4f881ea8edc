"""The latent: its layout, its bounds, and a prior whose source has the stated strength everywhere."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from latentpde.errors import UsageError
from latentpde.grid import Grid, at_points
from latentpde.latent import Latent, Statistics, source_scale
from latentpde.pde import families

every_family = pytest.mark.parametrize("family", list(families), ids=lambda f: f.name)
KLEIN_GORDON = families.get("klein_gordon")


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def basis(latent, grid=None, positions=None):
    """The linear map from q to the source, on a grid or at points: one row per entry of q."""
    spectrum = latent.source_spectrum(torch.eye(latent.num_source, dtype=torch.float64))
    if grid is not None:
        return grid.synthesise(spectrum).flatten(1)
    return at_points(spectrum, positions, (1.0, 1.0))


# Coefficients


@every_family
@settings(max_examples=25)
@given(data=st.data())
def test_coefficients_survive_packing(family, data):
    latent = Latent(family, num_modes=2)
    fraction = data.draw(
        st.lists(st.floats(1e-6, 1 - 1e-6), min_size=latent.num_coefficients, max_size=latent.num_coefficients)
    )
    lower, upper = latent.bounds.unbind(-1)
    theta = lower + (upper - lower) * torch.tensor(fraction, dtype=torch.float64)
    q = torch.randn(16, dtype=torch.float64, generator=generator())
    z = latent.pack(theta, q)
    assert z.shape == (latent.size,)
    torch.testing.assert_close(latent.theta(z), theta, rtol=1e-9, atol=1e-9)
    assert torch.equal(latent.split(z)[1], q)


@every_family
def test_extreme_raw_coefficients_stay_within_bounds(family):
    """An optimiser may run r to infinity; the coefficients must stay physical and finite."""
    latent = Latent(family, num_modes=0)
    for extreme in (-1e300, -1e3, -40.0, 40.0, 1e3, 1e300):
        theta = latent.theta(torch.full((latent.size,), extreme, dtype=torch.float64))
        assert torch.isfinite(theta).all()
        assert (theta >= latent.bounds[:, 0]).all()
        assert (theta <= latent.bounds[:, 1]).all()


def test_theta_is_a_sigmoid_onto_the_bounds():
    latent = Latent(
        KLEIN_GORDON, num_modes=0, bounds=torch.tensor([[0.0, 4.0], [1.0, 2.0], [-1.0, 1.0]], dtype=torch.float64)
    )
    theta = latent.theta(torch.tensor([0.0, np.log(3.0), -np.log(3.0)], dtype=torch.float64))
    np.testing.assert_allclose(theta, [2.0, 1.75, -0.5])


@every_family
def test_coefficients_on_or_beyond_their_bounds_cannot_be_packed(family):
    latent = Latent(family, num_modes=0)
    none = torch.zeros(0, dtype=torch.float64)
    for theta in (latent.bounds[:, 0], latent.bounds[:, 1], latent.bounds[:, 1] + 1, latent.bounds[:, 0] * torch.nan):
        with pytest.raises(UsageError, match="inside their bounds"):
            latent.pack(theta, none)


# The source


def test_source_block_has_the_agreed_layout():
    """q.reshape(2, 2, 12, 12): rows 0..11 then -12..-1; real then imaginary; row; column. Files rely on it."""
    m, n = 12, 64
    q = np.random.default_rng(0).standard_normal(4 * m**2)
    (above_re, above_im), (below_re, below_im) = q.reshape(2, 2, m, m)
    half = np.zeros((n, n // 2 + 1), dtype=complex)
    half[:m, :m] = above_re + 1j * above_im
    half[-m:, :m] = below_re + 1j * below_im
    mirrored = np.conj(half[-np.arange(n) % n, 0])
    half[:, 0] = (half[:, 0] + mirrored) / 2
    numbers = np.fft.fftfreq(n, 1 / n)
    half *= np.exp(1j * np.pi * (numbers[:, None] + np.arange(n // 2 + 1)) / n)
    expected = np.fft.irfft2(half / np.sqrt(1080), s=(n, n), norm="forward")
    spectrum = Latent(KLEIN_GORDON).source_spectrum(torch.from_numpy(q))
    np.testing.assert_allclose(Grid((n, n)).synthesise(spectrum), expected, atol=1e-13)


@pytest.mark.parametrize("num_modes", [0, 1, 3, 12])
def test_sizes_follow_the_number_of_modes(num_modes):
    latent = Latent(KLEIN_GORDON, num_modes=num_modes)
    assert latent.num_source == 4 * num_modes**2
    assert latent.size == 3 + 4 * num_modes**2
    z = latent.draw(5, generator=generator())
    assert z.shape == (5, latent.size)
    r, q = latent.split(z)
    assert torch.equal(torch.cat([r, q], -1), z)
    assert latent.source_spectrum(q).shape == (5, 2 * num_modes, num_modes)


GRIDS = [Grid((32, 32)), Grid((64, 64)), Grid((128, 128)), Grid((40, 64), (1.0, 1.6)), Grid((27, 25))]


@pytest.mark.parametrize("grid", GRIDS, ids=lambda g: f"{g.shape[0]}x{g.shape[1]}")
def test_source_has_the_priors_strength_in_every_cell(grid):
    """Exactly: the variance of the linear map q -> f(x), and in draws, within five standard errors."""
    latent = Latent(KLEIN_GORDON, source_prior_std=0.7)
    to_field = basis(latent, grid)
    variance = 0.7**2 * to_field.square().sum(0)
    torch.testing.assert_close(variance, torch.full_like(variance, 0.7**2), rtol=1e-11, atol=0)
    num = 4000
    q = latent.split(latent.draw(num, generator=generator(1)))[1]
    cells = torch.randperm(to_field.shape[1], generator=generator(2))[:50]
    std = (q @ to_field[:, cells]).square().mean(0).sqrt()
    assert (std / 0.7 - 1).abs().max() < 5 / np.sqrt(2 * num)


@pytest.mark.parametrize("num_modes", [1, 3, 12])
def test_source_has_the_priors_strength_at_any_point(num_modes):
    latent = Latent(KLEIN_GORDON, source_prior_std=2.0, num_modes=num_modes)
    positions = torch.rand((200, 2), dtype=torch.float64, generator=generator())
    positions = torch.cat([positions, torch.tensor([[0.0, 0.0], [0.0, 0.5], [1.0, 1.0]], dtype=torch.float64)])
    variance = basis(latent, positions=positions).square().sum(0)
    torch.testing.assert_close(variance, torch.ones_like(variance), rtol=1e-11, atol=0)


def test_scale_of_the_default_block_is_the_documented_one():
    assert source_scale(12) == pytest.approx(1 / np.sqrt(1080), rel=1e-15)


# The prior


def test_prior_draws_coefficients_uniformly_and_source_normally():
    bounds = torch.tensor([[-1.0, 1.0], [2.0, 5.0], [0.1, 0.2]], dtype=torch.float64)
    latent = Latent(KLEIN_GORDON, source_prior_std=0.3, num_modes=2, bounds=bounds)
    z = latent.draw(4000, generator=generator(3))
    for values, (lower, upper) in zip(latent.theta(z).T.numpy(), bounds.tolist(), strict=True):
        assert stats.kstest(values, stats.uniform(lower, upper - lower).cdf).pvalue > 1e-3
    q = latent.split(z)[1].numpy()
    assert stats.kstest(q.ravel(), stats.norm(0, 0.3).cdf).pvalue > 1e-3
    correlation = np.corrcoef(np.concatenate([latent.theta(z).numpy(), q], 1).T)
    assert np.abs(correlation - np.eye(latent.size)).max() < 5 / np.sqrt(4000)


def test_prior_draws_follow_the_generator():
    latent = Latent(KLEIN_GORDON, num_modes=2)
    assert torch.equal(latent.draw(3, generator=generator(1)), latent.draw(3, generator=generator(1)))
    assert not torch.equal(latent.draw(3, generator=generator(1)), latent.draw(3, generator=generator(2)))


@settings(max_examples=30)
@given(
    tau=st.floats(0.01, 10), num_modes=st.sampled_from([0, 1, 2]), seed=st.integers(0, 1000), scale=st.floats(0.1, 30)
)
def test_log_prior_is_the_density_of_the_draws(tau, num_modes, seed, scale):
    latent = Latent(KLEIN_GORDON, source_prior_std=tau, num_modes=num_modes)
    z = scale * np.random.default_rng(seed).standard_normal((2, 3, latent.size))
    expected = stats.logistic.logpdf(z[..., :3]).sum(-1) + stats.norm(0, tau).logpdf(z[..., 3:]).sum(-1)
    np.testing.assert_allclose(latent.log_prior(torch.from_numpy(z)), expected, rtol=1e-12, atol=1e-12)


# Normalisation


def test_statistics_normalise_and_come_back():
    z = Latent(KLEIN_GORDON, num_modes=2).draw(50, generator=generator()) * 3 + 1
    statistics = Statistics.of(z)
    normal = statistics.normalise(z)
    np.testing.assert_allclose(normal.mean(0), 0, atol=1e-12)
    np.testing.assert_allclose(normal.std(0), 1, rtol=1e-12)
    torch.testing.assert_close(statistics.denormalise(normal), z)
    torch.testing.assert_close(statistics.denormalise(normal[:4, None].expand(4, 2, -1))[:, 1], z[:4])


def test_statistics_survive_a_coordinate_that_never_changes():
    """A set without a source has q = 0 throughout; normalising it must not divide by zero."""
    z = torch.zeros((10, 3), dtype=torch.float64)
    z[:, 0] = torch.arange(10)
    normal = Statistics.of(z).normalise(z)
    assert torch.isfinite(normal).all()
    torch.testing.assert_close(Statistics.of(z).denormalise(normal), z)


# Mistakes


@pytest.mark.parametrize(
    "bounds",
    [
        [[0.0, 1.0], [0.0, 1.0]],
        [[0.0, 1.0], [0.0, 1.0], [1.0, 1.0]],
        [[0.0, 1.0], [0.0, 1.0], [2.0, 1.0]],
        [[0.0, 1.0], [0.0, 1.0], [float("nan"), 1.0]],
        [[0.0, 1.0], [0.0, 1.0], [0.0, float("inf")]],
    ],
    ids=["too few", "empty interval", "swapped", "nan", "infinite"],
)
def test_wrong_bounds_are_refused(bounds):
    with pytest.raises(UsageError, match="bounds"):
        Latent(KLEIN_GORDON, bounds=torch.tensor(bounds, dtype=torch.float64))


@pytest.mark.parametrize(
    "options",
    [{"source_prior_std": 0.0}, {"source_prior_std": -1.0}, {"source_prior_std": float("nan")}, {"num_modes": -1}],
)
def test_impossible_priors_are_refused(options):
    with pytest.raises(UsageError, match="source"):
        Latent(KLEIN_GORDON, **options)


def test_a_latent_of_another_size_is_refused():
    with pytest.raises(UsageError, match="579 entries, got 578"):
        Latent(KLEIN_GORDON).split(torch.zeros(578, dtype=torch.float64))
