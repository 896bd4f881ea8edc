"""A summary holds what the posterior's own methods give, whatever the number of cases that fit into memory."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import latentpde.posterior
from latentpde.errors import UsageError
from latentpde.estimators import reconstruct
from latentpde.posterior import LatentPosterior
from latentpde.posterior.summary import Summary
from latentpde.simulation import simulate


@pytest.fixture(scope="module")
def posterior() -> LatentPosterior:
    cases = simulate("balanced", num=5, seed=2, shape=(16, 24), sparsity=0.3, num_modes=2)
    found = reconstruct(cases, method="exact", num_draws=4, num_spread_draws=4, sweep=32)
    assert isinstance(found, LatentPosterior)
    return found


def test_it_is_what_the_posterior_says(posterior):
    summary = Summary.of(posterior, 16, draws_of=range(5))
    assert summary.grid == posterior.grid(16)
    np.testing.assert_array_equal(summary.mean, posterior.mean(16))
    np.testing.assert_array_equal(summary.std, posterior.std(16))
    np.testing.assert_array_equal(summary.quantiles, posterior.quantiles(resolution=16))
    np.testing.assert_array_equal(summary.source_mean, posterior.source(16))
    np.testing.assert_array_equal(summary.source_std, posterior.source_std(16))
    np.testing.assert_array_equal(np.stack(list(summary.draws.values())), posterior.draws(16))


@pytest.mark.parametrize("at_once", [1, 2, 3])
def test_cases_are_decoded_a_few_at_a_time(posterior, monkeypatch, at_once):
    whole = Summary.of(posterior, 16, draws_of=[4])
    sizes, fields = [], LatentPosterior.fields

    def counted(self, cases, grid, times):
        draws = fields(self, cases, grid, times)
        sizes.append(len(draws))
        return draws

    monkeypatch.setattr(latentpde.posterior.posterior, "CHUNK_VALUES", at_once * 4 * 16 * 24)
    monkeypatch.setattr(LatentPosterior, "fields", counted)
    parts = Summary.of(posterior, 16, draws_of=[4])
    assert max(sizes) == at_once
    assert sum(sizes) == 5
    for name in ("mean", "std", "quantiles", "source_mean", "source_std"):
        np.testing.assert_allclose(getattr(parts, name), getattr(whole, name), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(parts.draws[4], whole.draws[4], rtol=1e-12, atol=1e-12)


def test_some_cases_and_the_draws_of_fewer(posterior):
    whole, some = Summary.of(posterior, 16), Summary.of(posterior, 16, cases=range(1, 4), draws_of=[2])
    assert whole.draws == {}
    assert list(some.draws) == [2]
    assert some.draws[2].base is None  # a view would keep the draws of all cases
    np.testing.assert_allclose(some.mean, whole.mean[1:4], rtol=1e-12, atol=1e-12)


def test_numbers_of_cases_that_there_are_not(posterior):
    for arguments in ({"cases": range(3, 7)}, {"draws_of": [5]}, {"cases": range(-1, 2)}):
        with pytest.raises(UsageError, match="the cases are 0 to 4"):
            Summary.of(posterior, 16, **arguments)


def test_one_draw_has_no_standard_deviation(posterior):
    summary = Summary.of(reconstruct(posterior.observation, method="map", num_steps=2, num_modes=2), 16)
    assert np.isnan(summary.std).all()
    assert np.isnan(summary.source_std).all()
    assert torch.isfinite(torch.from_numpy(summary.quantiles)).all()
