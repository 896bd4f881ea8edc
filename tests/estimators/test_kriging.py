"""Kriging is PyKrige's, draws have its mean and variance, and odd readings do not break it."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from pykrige.ok import OrdinaryKriging

from latentpde.errors import DataError, UsageError
from latentpde.estimators import make_estimator, reconstruct
from latentpde.grid import Grid
from latentpde.observation import Observation

EXTENT, ORIGIN = (1.0, 1.5), (2.0, -1.0)
COARSE, FINE = (8, 12), (32, 48)


def readings(seed: int = 0, noise: float = 0.1):
    """A smooth field read at a third of 8 x 12 cells of a rectangle whose corner is not the origin."""
    rng = np.random.default_rng(seed)
    y, x = (o + (np.arange(n) + 0.5) / n * e for n, e, o in zip(COARSE, EXTENT, ORIGIN, strict=True))
    field = np.sin(3 * y[:, None]) + np.cos(2 * x) + noise * rng.standard_normal(COARSE)
    seen = rng.random(COARSE) < 0.35
    data = Observation.from_arrays(np.where(seen, field, np.nan), noise_std=noise, grid=Grid(COARSE, EXTENT, ORIGIN))
    rows, cols = np.nonzero(seen)
    return data, y[rows], x[cols], field[seen]


def krige(data, **options):
    return reconstruct(data, "helmholtz", method="kriging", **options)


def by_hand(y, x, z, variogram, parameters=None, nlags=6):
    """PyKrige on the fine grid: mean, and variance less the nugget, which is noise."""
    model = OrdinaryKriging(x, y, z, variogram, parameters, nlags=nlags, exact_values=False)
    ys, xs = (o + (np.arange(n) + 0.5) / n * e for n, e, o in zip(FINE, EXTENT, ORIGIN, strict=True))
    mean, variance = model.execute("grid", xs, ys)
    return np.asarray(mean), np.asarray(variance) - model.variogram_model_parameters[2]


@pytest.mark.parametrize("variogram", ["spherical", "exponential", "gaussian"])
def test_it_is_pykrige_called_by_hand(variogram):
    data, y, x, z = readings(noise=0.6)
    posterior = krige(data, variogram=variogram, nugget="fit", num_lags=6)
    mean, variance = by_hand(y, x, z, variogram)
    assert mean.std() > 0.3
    # ours has at least a millionth of the sill as its nugget, so that sensors may share a place
    np.testing.assert_allclose(posterior.mean(FINE), mean, atol=1e-5)
    np.testing.assert_allclose(posterior.std(FINE) ** 2, variance, atol=1e-5)


def test_with_a_known_nugget_it_is_pykrige_with_those_parameters():
    data, y, x, z = readings()
    posterior = krige(data, variogram="spherical")
    sill, length, nugget = (float(posterior.diagnostics[k][0]) for k in ("partial_sill", "range", "nugget"))
    assert nugget == pytest.approx(0.1**2)
    mean, variance = by_hand(y, x, z, "spherical", {"psill": sill, "range": length, "nugget": nugget})
    np.testing.assert_allclose(posterior.mean(FINE), mean, atol=1e-8)
    np.testing.assert_allclose(posterior.std(FINE) ** 2, variance, atol=1e-8)


@pytest.mark.parametrize("variogram", ["spherical", "exponential", "gaussian"])
def test_draws_have_the_kriging_mean_and_variance(variogram):
    data, *_ = readings()
    num = 400
    posterior = krige(data, variogram=variogram, num_draws=num)
    draws, mean, std = posterior.draws(FINE).values, posterior.mean(FINE).values, posterior.std(FINE).values
    assert np.abs((draws.mean(0) - mean) / std * np.sqrt(num)).max() < 6
    # Readings lie between cells, where the embedding interpolates, and a long range is cut off at a few domains: so a
    # little more than Monte Carlo error, 3.5 %, is allowed.
    ratio = draws.std(0, ddof=1) / std
    assert abs(ratio.mean() - 1) < 0.04
    assert np.abs(ratio - 1).mean() < 0.06


def test_draws_meet_readings_without_noise():
    """Sensors on the fine grid's own cells: there each draw is the reading."""
    rng = np.random.default_rng(1)
    grid = Grid((8, 8))
    cells = np.unique(rng.integers(0, 32, (20, 2)), axis=0)
    values = rng.standard_normal(len(cells))
    data = Observation.from_arrays(values, noise_std=1e-4, grid=grid, positions=(cells + 0.5) / 32)
    draws = krige(data, num_draws=5).draws(32).values
    assert draws.std(0).max() > 0.3
    np.testing.assert_allclose(draws[:, cells[:, 0], cells[:, 1]], np.tile(values, (5, 1)), atol=0.02)


@pytest.mark.parametrize("num", [1, 2, 3])
def test_very_few_readings(num):
    values = np.full(COARSE, np.nan)
    values.flat[[5, 40, 77][:num]] = [1.0, 2.0, -1.0][:num]
    posterior = krige(Observation.from_arrays(values, noise_std=0.1), num_draws=3)
    assert np.isfinite(posterior.mean(16)).all()
    assert (posterior.std(16) > 0).all()
    if num == 1:
        np.testing.assert_allclose(posterior.mean(16), 1.0)


def test_constant_readings_give_a_constant():
    posterior = krige(Observation.from_arrays(np.full(COARSE, 3.0), noise_std=0.1), num_draws=3)
    np.testing.assert_allclose(posterior.mean(16), 3.0, atol=1e-9)
    assert (posterior.std(16) > 0).all()


@pytest.mark.parametrize("noise", [0.1, 1e-9])
def test_sensors_in_one_place(noise):
    """Twenty sensors on five spots; and all of them on one."""
    rng = np.random.default_rng(0)
    spots = rng.random((5, 2))
    values = np.repeat([1.0, -1.0, 0.5, 2.0, 0.0], 4) + noise * rng.standard_normal(20)
    for positions in (np.repeat(spots, 4, 0), np.tile(spots[:1], (20, 1))):
        data = Observation.from_arrays(values, noise_std=noise, grid=Grid((8, 8)), positions=positions)
        posterior = krige(data, num_draws=3)
        assert np.isfinite(posterior.draws(16)).all()
        assert np.abs(posterior.mean(16)).max() < 5


def test_a_snapshot_without_readings_is_refused():
    values = np.ones((2, *COARSE))
    values[1] = np.nan
    with pytest.raises(DataError, match=r"none at time 0\.5"):
        krige(Observation.from_arrays(values, times=(0.1, 0.5), noise_std=0.1))


def test_without_pykrige_it_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "pykrige.ok", None)
    with pytest.raises(UsageError, match=r'pip install "latentpde\[peers\]"'):
        krige(readings()[0])


def test_it_needs_no_initial_state_and_many_readings_fit():
    """Every cell of a larger grid: predictions go in parts."""
    rng = np.random.default_rng(0)
    y = (np.arange(24) + 0.5) / 24
    field = np.sin(6 * y[:, None]) * np.cos(5 * y)
    data = Observation.from_arrays(field + 0.05 * rng.standard_normal((24, 24)), noise_std=0.05, pooling=3)
    error = krige(data, num_draws=1, variogram="gaussian").mean((72, 72)).values[1::3, 1::3] - field
    assert np.sqrt((error**2).mean()) < 0.04, "no better than the readings"


@pytest.mark.parametrize("options", [{"variogram": "power"}, {"nugget": "none"}, {"num_lags": 1}])
def test_impossible_options_are_refused(options):
    with pytest.raises(UsageError, match="kriging"):
        make_estimator("kriging", **options)
