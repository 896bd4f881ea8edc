"""Maxima inside a box, against closed forms and bounded least squares."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import lsq_linear

from latentpde.estimators.exact.ascent import ascend


def _quadratic(mean, curvature):
    return lambda x: -0.5 * np.einsum("ni,ij,nj->n", x - mean, curvature, x - mean)


@settings(deadline=None, max_examples=60)
@given(seed=st.integers(0, 10**6), dim=st.integers(1, 4))
def test_one_step_finds_the_maximum_of_a_quadratic_where_it_is_inside(seed, dim):
    rng = np.random.default_rng(seed)
    half = rng.normal(size=(dim, dim))
    curvature, mean = half @ half.T * 1e3 + 50 * np.eye(dim), rng.uniform(0.05, 0.95, dim)
    points, values, found = ascend(_quadratic(mean, curvature), rng.random((5, dim)), np.full(5, 10.0), 1)
    np.testing.assert_allclose(points, np.tile(mean, (5, 1)), atol=1e-5)
    np.testing.assert_allclose(values, 0.0, atol=1e-4)
    np.testing.assert_allclose(found, np.tile(curvature, (5, 1, 1)), rtol=1e-3, atol=1e-3 * curvature.max())


@settings(deadline=None, max_examples=60)
@given(seed=st.integers(0, 10**6), dim=st.integers(1, 4))
def test_maxima_on_the_bounds_are_those_of_bounded_least_squares(seed, dim):
    """A maximum outside of the box: the highest point inside lies on a face, an edge or in a corner."""
    rng = np.random.default_rng(seed)
    half = rng.normal(size=(dim, dim))
    curvature, mean = half @ half.T * 300 + 50 * np.eye(dim), rng.uniform(-0.5, 1.5, dim)
    points, values, _ = ascend(_quadratic(mean, curvature), rng.random((4, dim)), np.full(4, 10.0), 2)
    root = np.linalg.cholesky(curvature).T
    expected = lsq_linear(root, root @ mean, bounds=(0, 1), method="bvls", tol=1e-14)
    np.testing.assert_allclose(points, np.tile(expected.x, (4, 1)), atol=1e-4)
    np.testing.assert_allclose(values, -expected.cost, rtol=1e-3, atol=1e-3)


def test_each_point_goes_to_its_own_summit():
    means, width = np.array([[0.1, 0.2], [0.0, 0.9], [0.7, 0.6]]), 0.05

    def function(x):
        return np.logaddexp.reduce(-0.5 * ((x[:, None] - means) ** 2).sum(-1) / width**2, axis=1)

    starts = np.clip(means + np.array([0.03, -0.04]), 0, 1)
    points, _, curvatures = ascend(function, starts, np.full(3, 0.1), 6)
    np.testing.assert_allclose(points, means, atol=1e-6)
    np.testing.assert_allclose(curvatures, np.tile(np.eye(2) / width**2, (3, 1, 1)), rtol=1e-3, atol=1e-1)


@pytest.mark.parametrize("low", [-np.inf, np.nan])
def test_what_is_not_finite_is_stepped_back_from(low):
    def function(x):
        return np.where(x[:, 0] > 0.5, low, x[:, 0] - (x[:, 1] - 0.3) ** 2)

    points, values, curvatures = ascend(function, np.array([[0.2, 0.8], [0.9, 0.9]]), np.array([2.0, 2.0]), 12)
    assert np.isfinite(points).all()
    assert np.isfinite(curvatures).all()
    assert 0.3 < points[0, 0] <= 0.5
    assert values[0] > 0.3
    assert values[1] <= values[0]  # from where nothing is finite there is no way


def test_no_step_leads_down():
    rng = np.random.default_rng(0)
    waves = rng.normal(size=(12, 3)) * 25
    phases = rng.uniform(0, 6, 12)

    def function(x):
        return 50 * np.cos(x @ waves.T + phases).sum(1)

    starts = rng.random((40, 3))
    heights = [ascend(function, starts, np.full(40, 0.1), num)[1] for num in range(6)]
    assert (np.diff(heights, axis=0) >= 0).all()
    assert (heights[-1] > function(starts) + 50).mean() > 0.8
