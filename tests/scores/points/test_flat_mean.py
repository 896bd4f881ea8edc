"""Gaussian fields with an unknown mean, against dense Gaussians."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.linalg import null_space
from scipy.stats import multivariate_normal

from latentpde.scores.points.flat_mean import FlatMean, log_likelihood

NUM = 9


@pytest.fixture(params=[1, 3], ids=["constant", "slopes"])
def problem(request):
    """Readings, their covariance, and the trend, with its functions and the field at 4 more places behind them."""
    rng = np.random.default_rng(1)
    places = rng.uniform(size=(NUM + 4, 2))
    distance = np.linalg.norm(places[:, None] - places, axis=-1)
    covariance = 1.7 * np.exp(-distance / 0.4)
    trend = np.column_stack([np.ones(NUM + 4), places])[:, : request.param]
    return covariance, 0.3 * np.eye(NUM), trend, rng.standard_normal(NUM)


def test_the_likelihood_is_that_of_contrasts(problem):
    covariance, noise, trend, values = problem
    covariance, trend = covariance[:NUM, :NUM] + noise, trend[:NUM]
    contrasts = null_space(trend.T)
    expected = multivariate_normal(cov=contrasts.T @ covariance @ contrasts).logpdf(contrasts.T @ values)
    found = log_likelihood(*map(torch.from_numpy, (covariance, trend, values)))
    assert float(found) == pytest.approx(expected, abs=1e-10)


def test_predictions_are_those_of_a_wide_prior_for_the_mean(problem):
    covariance, noise, trend, values = problem
    wide = covariance + 1e4 * trend @ trend.T
    gain = wide[NUM:, :NUM] @ np.linalg.inv(wide[:NUM, :NUM] + noise)
    variance = np.diag(wide[NUM:, NUM:] - gain @ wide[:NUM, NUM:])
    field = FlatMean(*map(torch.from_numpy, (covariance[:NUM, :NUM] + noise, trend[:NUM], values)))
    mean, found = field.predict(torch.from_numpy(covariance[NUM:, :NUM]), torch.from_numpy(trend[NUM:]), 1.7)
    np.testing.assert_allclose(mean, gain @ values, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(found, variance, rtol=1e-3)


def test_readings_left_out_are_predicted_by_the_others(problem):
    covariance, noise, trend, values = problem
    covariance, trend = covariance[:NUM, :NUM] + noise, trend[:NUM]
    out, rest = np.array([1, 4]), np.array([0, 2, 3, 5, 6, 7, 8])
    others = FlatMean(*map(torch.from_numpy, (covariance[np.ix_(rest, rest)], trend[rest], values[rest])))
    mean, variance = others.predict(torch.from_numpy(covariance[np.ix_(out, rest)]), torch.from_numpy(trend[out]), 2.0)
    field = FlatMean(*map(torch.from_numpy, (covariance, trend, values)))
    found_mean, found_variance = field.left_out(torch.from_numpy(out))
    np.testing.assert_allclose(found_mean, mean, rtol=1e-10)
    np.testing.assert_allclose(found_variance, variance, rtol=1e-10)
