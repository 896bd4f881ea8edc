"""Kriging tuned by cross-validation, against PyKrige."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from latentpde.scores.points.kriging import VARIOGRAMS, Kriging, Variogram, choose_variogram
from latentpde.scores.points.task import Readings, Task

NUM = 14


@pytest.fixture
def readings():
    """Two snapshots of a field that is longer along one diagonal than along the other."""
    rng = np.random.default_rng(2)
    stations = rng.uniform(0, 10, (NUM, 2))
    along, across = stations.sum(1) / 6, (stations[:, 0] - stations[:, 1]) / 1.5
    squared = (along[:, None] - along) ** 2 + (across[:, None] - across) ** 2
    draws = rng.multivariate_normal(np.zeros(NUM), np.exp(-squared / 4), 2) + 0.1 * rng.standard_normal((2, NUM))
    return Readings(np.tile(stations, (2, 1)), np.repeat([0.0, 1.0], NUM), draws.ravel(), np.tile(np.arange(NUM), 2))


@pytest.mark.parametrize("kind", VARIOGRAMS)
@pytest.mark.parametrize(("stretch", "angle"), [(1.0, 0.0), (2.5, 0.7)], ids=["isotropic", "anisotropic"])
def test_predictions_are_pykrige_s(kind, stretch, angle, readings):
    pykrige = pytest.importorskip("pykrige.ok")
    some = Variogram(kind, range=3.0, nugget=0.2, stretch=stretch, angle=angle, variance=1.4)
    snapshot, points = readings[readings.times == 0], np.random.default_rng(0).uniform(0, 10, (6, 2))
    mean, variance = some.field(snapshot).predict(
        some.between(points, snapshot.points), torch.ones(6, 1, dtype=torch.float64), 1.4 * 0.8
    )
    reference = pykrige.OrdinaryKriging(
        snapshot.points[:, 1],
        snapshot.points[:, 0],
        snapshot.values,
        kind,
        variogram_parameters={"psill": 1.4 * 0.8, "range": 3.0 * stretch, "nugget": 1.4 * 0.2},
        anisotropy_scaling=stretch,
        anisotropy_angle=math.degrees(angle),
        exact_values=False,
    )
    expected_mean, expected_variance = reference.execute("points", points[:, 1], points[:, 0])
    np.testing.assert_allclose(mean, expected_mean, rtol=1e-6)
    np.testing.assert_allclose(variance + 1.4 * 0.2, expected_variance, rtol=1e-6)  # theirs is that of a reading


def left_out(some, readings):
    """Errors of readings that the rest of their snapshot predicts, and their variances, one by one."""
    errors, variances = [], []
    for i in range(len(readings)):
        rest = (readings.times == readings.times[i]) & (np.arange(len(readings)) != i)
        task = Task("test", readings[rest], readings[np.array([i])], (0.0, 0.0), (10.0, 10.0), noisy=True)
        field = some.field(task.readings)
        mean, variance = field.predict(
            some.between(task.asked.points, task.readings.points),
            torch.ones(1, 1, dtype=torch.float64),
            some.variance * (1 - some.nugget),
        )
        errors.append(float(mean) - readings.values[i])
        variances.append(float(variance) + some.variance * some.nugget)
    return np.array(errors), np.array(variances)


def test_the_chosen_variogram_predicts_best_what_was_left_out(readings):
    isotropic = choose_variogram(readings, anisotropic=False)
    errors, variances = left_out(isotropic, readings)
    assert np.mean(errors**2 / variances) == pytest.approx(1, rel=1e-6)
    for other in (
        Variogram(isotropic.kind, 2 * isotropic.range, isotropic.nugget),
        Variogram("exponential", isotropic.range, 0.5),
    ):
        assert np.mean(left_out(other, readings)[0] ** 2) >= np.mean(errors**2)
    anisotropic = choose_variogram(readings, anisotropic=True)
    assert np.mean(left_out(anisotropic, readings)[0] ** 2) < np.mean(errors**2)


def test_each_time_is_kriged_from_its_own_snapshot(readings):
    asked = Readings(np.array([[5.0, 5.0]] * 3), np.array([0.0, 1.0, 1.2]), np.zeros(3), np.zeros(3))
    task = Task("test", readings, asked, (0.0, 0.0), (10.0, 10.0), noisy=False)
    found = Kriging()(task, seed=0)
    assert found.mean[1] == pytest.approx(found.mean[2])
    assert abs(found.mean[1] - found.mean[0]) > 0.01
    assert (found.std > 0).all()
