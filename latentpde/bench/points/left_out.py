"""Every station predicted by the others in closed form, with parameters that were fitted to all of them.

This is how gstat's vignette cross-validates, so its figures compare with these. A method that is fitted anew without
the stations that it predicts, as `latentpde.bench.points.measured.pm10_tasks` asks, has it a little harder.
"""

from __future__ import annotations

import numpy as np
import torch

from latentpde.bench.points.gaussian_process import fit
from latentpde.scores.points.kriging import choose_variogram
from latentpde.scores.points.task import Prediction, Task


def gaussian_process_left_out(task: Task, *, seed: int) -> Prediction:
    """A fitted Gaussian process, the readings of one station after another left out.

    Args:
        task: what is asked for are the readings themselves.
        seed: of the fit.
    """
    readings, fitted = task.readings, fit(task.readings, seed=seed)
    mean, std = np.empty(len(readings)), np.empty(len(readings))
    for station in np.unique(readings.stations):
        own = np.flatnonzero(readings.stations == station)
        mean[own], std[own] = fitted.left_out(own)
    return Prediction(mean, std, noise_std=0.0)


def kriging_left_out(task: Task, *, seed: int) -> Prediction:
    """Kriging of one snapshot at a time, one station after another left out.

    Args:
        task: what is asked for are the readings themselves, one for each station and time.
        seed: not used.
    """
    readings = task.readings
    variogram = choose_variogram(readings, anisotropic=False)
    mean, std = np.empty(len(readings)), np.empty(len(readings))
    for time in np.unique(readings.times):
        here = np.flatnonzero(readings.times == time)
        field = variogram.field(readings[here])
        for i, own in enumerate(here):
            of_own, variance = field.left_out(torch.tensor([i]))
            mean[own], std[own] = float(of_own), float(variance.sqrt())
    return Prediction(mean, std, noise_std=0.0)
