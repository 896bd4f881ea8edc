"""Scores at points, against sampling, and the predictions that take no model."""

from __future__ import annotations

import numpy as np
import pytest

from latentpde.scores.points.simple import mean_of_readings, persistence
from latentpde.scores.points.task import Prediction, Readings, Task, scores


def task_of(truth, *, noisy):
    asked = Readings(np.zeros((len(truth), 2)), np.zeros(len(truth)), truth, np.zeros(len(truth)))
    return Task("test", asked, asked, (0.0, 0.0), (1.0, 1.0), noisy=noisy)


@pytest.mark.parametrize("noisy", [False, True])
def test_draws_score_as_the_gaussian_that_they_are_from(noisy):
    rng = np.random.default_rng(0)
    truth, mean, std = rng.standard_normal(40), rng.standard_normal(40), rng.uniform(0.5, 2, 40)
    draws = mean + std * rng.standard_normal((20_000, 40))
    task = task_of(truth, noisy=noisy)
    gaussian, drawn = (scores(Prediction(mean, std, 0.7, d), task, seed=1) for d in (None, draws))
    assert drawn["crps"] == pytest.approx(gaussian["crps"], rel=0.01)
    assert drawn["coverage90"] == pytest.approx(gaussian["coverage90"], abs=0.026)
    assert drawn["rmse"] == gaussian["rmse"]


def test_truths_from_the_prediction_are_covered_nine_times_of_ten():
    rng = np.random.default_rng(0)
    truth = 3 + np.hypot(0.6, 0.8) * rng.standard_normal(4000)
    prediction = Prediction(np.full(4000, 3.0), np.full(4000, 0.6), 0.8)
    found = scores(prediction, task_of(truth, noisy=True), seed=0)
    assert found["coverage90"] == pytest.approx(0.9, abs=0.015)
    assert found["crps"] == pytest.approx(1 / np.sqrt(np.pi), rel=0.03)
    assert scores(prediction, task_of(truth, noisy=False), seed=0)["coverage90"] < 0.8


def test_persistence_takes_the_nearest_station_s_last_reading():
    readings = Readings(
        np.array([[0.0, 0.0], [0.0, 0.0], [0.0, 4.0], [0.0, 4.0]]),
        np.array([2.0, 1.0, 1.0, 3.0]),
        np.array([12.0, 11.0, 21.0, 23.0]),
        np.array([5, 5, 9, 9]),
    )
    asked = Readings(
        np.array([[0.0, 1.0], [0.0, 1.0], [0.0, 3.0], [1.0, 3.5], [0.0, 0.0]]),
        np.array([1.5, 9.0, 2.5, 3.0, 0.0]),
        np.zeros(5),
        np.zeros(5),
    )
    task = Task("test", readings, asked, (0.0, 0.0), (1.0, 4.0), noisy=False)
    found = persistence(task, seed=0)
    assert found.mean.tolist() == [11.0, 12.0, 21.0, 23.0, 11.0]
    # of one station by the other: 12 by 21, 11 by 21, 21 by 11, 23 by 12
    assert found.std[0] == pytest.approx(np.sqrt((81 + 100 + 100 + 121) / 4))
    mean = mean_of_readings(task, seed=0)
    assert mean.mean[0] == pytest.approx(16.75)
    assert mean.std[0] == pytest.approx(np.std([12, 11, 21, 23], ddof=1))
