"""Quantiles hold what they say, and the spread does not depend on how many draws are kept."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import latentpde.estimators.exact.posterior
from latentpde.estimators import reconstruct
from latentpde.posterior.spread import QUANTILES, gaussian_quantiles, interval_probability, quantiles_over_draws
from latentpde.simulation import simulate


@pytest.mark.parametrize("num_draws", [1, 2, 12, 19, 50, 199])
def test_quantiles_follow_weibulls_rule(num_draws):
    """NumPy knows the rule too, and sorts."""
    draws = torch.randn(2, num_draws, 3, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(num_draws))
    levels = [*QUANTILES, 0.0, 0.123, 1.0]
    expected = np.quantile(draws.numpy(), levels, axis=1, method="weibull").swapaxes(0, 1)
    np.testing.assert_allclose(quantiles_over_draws(draws, levels), expected, rtol=1e-12)


@pytest.mark.parametrize("num_draws", [2, 12, 19, 199])
def test_an_interval_holds_a_new_draw_with_its_probability(num_draws):
    """By simulation, with a law that is not normal."""
    rng = np.random.default_rng(num_draws)
    values = torch.from_numpy(rng.gumbel(size=(1, num_draws + 1, 40_000)))
    low, high = quantiles_over_draws(values[:, 1:], [0.05, 0.95]).unbind(1)
    held = float(((low <= values[:, 0]) & (values[:, 0] <= high)).double().mean())
    assert held == pytest.approx(interval_probability(num_draws), abs=4 * np.sqrt(0.25 / 40_000))


def test_gaussian_quantiles():
    found = gaussian_quantiles(torch.tensor([[1.0]]), torch.tensor([[2.0]]), [0.5, 0.8413447])
    np.testing.assert_allclose(found[0, :, 0], [1.0, 3.0], rtol=1e-5)


@pytest.fixture(scope="module")
def cases():
    return simulate("balanced", num=2, seed=2, shape=(16, 24), sparsity=0.3, num_modes=2)


def run(cases, num_draws, num_spread_draws=60, **options):
    return reconstruct(cases, num_draws=num_draws, num_spread_draws=num_spread_draws, sweep=32, **options)


def test_the_spread_of_exact_does_not_depend_on_the_draws_that_are_kept(cases):
    """The kept draws do not depend on those for the spread either."""
    one, few = run(cases, 1), run(cases, 5)
    assert one.has_spread
    for resolution in (8, 16, 20):
        np.testing.assert_array_equal(one.mean(resolution), few.mean(resolution))
        np.testing.assert_array_equal(one.std(resolution), few.std(resolution))
        np.testing.assert_array_equal(one.source_std(resolution), few.source_std(resolution))
        np.testing.assert_array_equal(one.quantiles(resolution=resolution), few.quantiles(resolution=resolution))
    other = run(cases, 5, num_spread_draws=30)
    np.testing.assert_array_equal(other.draws(16), few.draws(16))
    np.testing.assert_array_equal(other.coefficients, few.coefficients)
    assert not np.array_equal(other.std(16), few.std(16))


def test_where_more_draws_are_kept_the_spread_is_theirs(cases):
    many = run(cases, 70)
    assert many.num_spread_draws == 70
    np.testing.assert_allclose(many.std(16), many.draws(16).std("draw", ddof=1), rtol=1e-10)
    np.testing.assert_allclose(
        many.quantiles(resolution=16),
        many.draws(16).quantile(QUANTILES, "draw", method="weibull").transpose("case", ...),
        rtol=1e-10,
    )


@pytest.mark.parametrize("known", [True, False])
def test_draws_for_the_spread_have_the_law_of_the_kept_ones(cases, known):
    """Variances over 600 of each differ by what chance allows, for the field, the source and the coefficients."""
    data = cases.to_dataset() if known else cases.to_dataset().drop_vars("initial")
    of_kept, own = run(data, 600, 2), run(data, 1, 600)
    for name in ("std", "source_std"):
        ratio = getattr(own, name)(16) / getattr(of_kept, name)(16)
        assert abs(float((ratio**2).mean()) - 1) < 0.1
    ratio = own.spread_thetas.std(1) / of_kept.thetas.std(1)
    assert (abs(ratio - 1) < 0.15).all()


@pytest.mark.parametrize("rows_at_once", [1, 5])
def test_large_grids_are_decoded_in_bands(cases, monkeypatch, rows_at_once):
    posterior = run(cases, 2)
    whole = posterior.std(20, times=[0.1, 0.2]), posterior.quantiles(resolution=20)
    monkeypatch.setattr(latentpde.estimators.exact.posterior, "CHUNK_VALUES", rows_at_once * 2 * 60 * 30)
    np.testing.assert_allclose(posterior.std(20, times=[0.1, 0.2]), whole[0], rtol=1e-10)
    np.testing.assert_allclose(posterior.quantiles(resolution=20), whole[1], rtol=1e-10, atol=1e-12)


def test_the_variance_of_the_source_is_had_from_few_samples(cases):
    """On a grid that is fine enough for the short way, as from draws of the source there."""
    posterior = run(cases, 2)
    draws = posterior.decoder.source(posterior.spread_z, posterior.grid(40))
    np.testing.assert_allclose(posterior.source_std(40), draws.std(1), rtol=1e-8)
