"""Predictions that take no model: the readings' mean, and the last reading of the nearest station."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int
from scipy.spatial import KDTree

from latentpde.scores.points.task import Prediction, Readings, Task


def mean_of_readings(task: Task, *, seed: int) -> Prediction:
    """The mean of all readings, with their standard deviation as its own.

    Args:
        task: what is given and asked.
        seed: not used.
    """
    num = len(task.asked)
    return Prediction(
        np.full(num, task.readings.values.mean()), np.full(num, task.readings.values.std(ddof=1)), noise_std=0.0
    )


def persistence(task: Task, *, seed: int) -> Prediction:
    """The last reading of the nearest station, at the time asked for or before it.

    Its standard deviation is the root mean square of what this gets wrong of each station's readings by the others'.

    Args:
        task: what is given and asked.
        seed: not used.
    """
    readings = task.readings
    errors = []
    for station in np.unique(readings.stations):
        own = readings.stations == station
        others = readings[~own]
        if not len(others):  # one station: its readings about their mean
            errors.append(readings.values - readings.values.mean())
            break
        errors.append(readings.values[own] - others.values[_nearest(others, readings.points[own], readings.times[own])])
    spread = float(np.sqrt(np.mean(np.concatenate(errors) ** 2)))
    mean = readings.values[_nearest(readings, task.asked.points, task.asked.times)]
    return Prediction(mean, np.full(len(mean), spread), noise_std=0.0)


def _nearest(
    readings: Readings, points: Float[np.ndarray, "point 2"], times: Float[np.ndarray, " point"]
) -> Int[np.ndarray, " point"]:
    """For each place and time the index of the nearest station's last reading, or of its first where all are later."""
    _, first = np.unique(readings.stations, return_index=True)
    _, near = KDTree(readings.points[first]).query(points)
    found = np.empty(len(points), dtype=int)
    for place, station in enumerate(readings.stations[first]):
        here = np.flatnonzero(near == place)
        own = np.flatnonzero(readings.stations == station)
        own = own[np.argsort(readings.times[own], kind="stable")]
        last = np.searchsorted(readings.times[own], times[here], side="right") - 1
        found[here] = own[np.maximum(last, 0)]
    return found
