"""What one would use without physics, each fitted to the readings that it is given."""

from __future__ import annotations

from latentpde.bench.points.gaussian_process import GaussianProcess
from latentpde.scores.points.kriging import Kriging
from latentpde.scores.points.simple import mean_of_readings, persistence
from latentpde.scores.points.task import Predictor

RIVALS: dict[str, Predictor] = {
    "gaussian process": GaussianProcess(),
    "gaussian process, drift": GaussianProcess(drift=True),
    "gaussian process, slopes": GaussianProcess(mean="linear"),
    "kriging": Kriging(),
    "kriging, anisotropic": Kriging(anisotropic=True),
    "persistence": persistence,
    "mean of readings": mean_of_readings,
}
