"""The fitted Gaussian process: its covariances, its fit and its predictions."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.special import gamma, kv

from latentpde.bench.points.gaussian_process import Covariance, GaussianProcess, fit
from latentpde.scores.points.task import Readings, Task


def readings_of(seed, drift=(0.0, 0.0), num_stations=20, num_times=4):
    """A draw of a Gaussian process that drifts, with 0.1 of noise, and a plain list of where it was read."""
    rng = np.random.default_rng(seed)
    stations = rng.uniform(0, 4, (num_stations, 2))
    points, times = np.tile(stations, (num_times, 1)), np.repeat(np.arange(float(num_times)), num_stations)
    moved = points - times[:, None] * drift
    apart = np.linalg.norm(moved[:, None] - moved, axis=-1)
    covariance = np.exp(-((apart / 1.5) ** 2)) * np.exp(-np.abs(times[:, None] - times) / 8)
    values = 5 + rng.multivariate_normal(np.zeros(len(times)), covariance) + 0.1 * rng.standard_normal(len(times))
    return Readings(points, times, values, np.tile(np.arange(num_stations), num_times))


@pytest.mark.parametrize("smoothness", [0.5, 1.5, 2.5])
def test_covariances_are_matern_s(smoothness):
    kind = Covariance(smoothness, separable=True)
    parameters = torch.tensor([*np.log([1.5, 0.1, 0.8, 0.7, 0.4]), 0.6, np.log(2.0)])
    y, x, t = 0.3, -0.2, 0.9
    found = kind.between(torch.tensor([[y, x, t]]).double(), torch.zeros(1, 3).double(), parameters)

    def matern(r):
        r = np.sqrt(2 * smoothness) * r
        return 2 ** (1 - smoothness) / gamma(smoothness) * r**smoothness * kv(smoothness, r)

    expected = (1.5**2 * matern(np.hypot(y / 0.7, x / 0.4 + 0.6 * y)) + 0.8**2) * matern(t / 2)
    assert float(found) == pytest.approx(expected, rel=1e-8)


def test_in_a_moving_frame_places_move():
    still, moving = Covariance(1.5, separable=False), Covariance(1.5, separable=False, drift=True)
    usual = torch.tensor([0.0, -2.0, -3.0, -1.0, -0.5, 0.3, 0.2]).double()
    velocity = torch.tensor([0.4, -0.7]).double()
    places = torch.tensor(np.random.default_rng(0).uniform(size=(5, 3)))
    frame = places.clone()
    frame[:, :2] -= frame[:, 2:] * velocity
    torch.testing.assert_close(
        moving.between(places, places, torch.cat([usual, velocity])), still.between(frame, frame, usual)
    )


def test_the_fit_is_at_least_as_likely_as_others():
    readings = readings_of(0)
    kinds = [Covariance(2.5, separable=True)]
    best = fit(readings, seed=0, kinds=kinds)
    assert best.noise_std == pytest.approx(0.1, rel=0.5)
    for seed in (1, 2):
        assert fit(readings, seed=seed, kinds=kinds).log_likelihood == pytest.approx(best.log_likelihood, abs=0.05)


def test_a_drift_is_found():
    readings = readings_of(3, drift=(0.8, -0.5))
    kinds = [Covariance(2.5, separable=True, drift=True)]
    fitted = fit(readings, seed=0, kinds=kinds)
    length, span = np.ptp(readings.points, axis=0).max(), 3.0
    np.testing.assert_allclose(fitted.parameters[-2:].numpy() * length / span, [0.8, -0.5], atol=0.2)
    assert fitted.log_likelihood > fit(readings, seed=0, kinds=[Covariance(2.5, separable=True)]).log_likelihood + 5


def test_units_do_not_matter():
    readings = readings_of(4)
    other = Readings(1000 * readings.points + 7, 60 * readings.times, 10 * readings.values - 3, readings.stations)
    asked = readings[np.arange(5)]
    moved = Readings(asked.points + 0.1, asked.times + 0.5, asked.values, asked.stations)
    there = Readings(1000 * moved.points + 7, 60 * moved.times, moved.values, moved.stations)
    kinds = [Covariance(1.5, separable=False)]
    mean, std = fit(readings, seed=0, kinds=kinds).predict(moved)
    other_mean, other_std = fit(other, seed=0, kinds=kinds).predict(there)
    np.testing.assert_allclose(other_mean, 10 * mean - 3, rtol=1e-4)
    np.testing.assert_allclose(other_std, 10 * std, rtol=1e-3)


@pytest.mark.parametrize("mean", ["constant", "linear"])
def test_predictions_cover_what_was_left_out(mean):
    readings = readings_of(5, num_stations=30, num_times=3)
    hidden = readings.stations >= 24
    task = Task("test", readings[~hidden], readings[hidden], (0.0, 0.0), (4.0, 4.0), noisy=True)
    found = GaussianProcess(mean=mean)(task, seed=0)
    z = (found.mean - task.asked.values) / np.hypot(found.std, found.noise_std)
    assert np.sqrt(np.mean(z**2)) < 2
    assert np.std(found.mean - task.asked.values) < 0.6 * task.asked.values.std()
