r"""Ordinary kriging of one snapshot at a time, its variogram chosen by cross-validation over all of them.

The covariance is :math:`\sigma^2 [(1 - \eta) \, C(|A d| / r) + \eta \, \delta]` with :math:`C` spherical, exponential
or Gaussian as PyKrige has them, a range :math:`r`, a share :math:`\eta` of the variance that is nugget, and, where
kriging is anisotropic, a stretched direction in :math:`A`. All of these are those with the smallest error of readings
left out, in turn, and predicted by the rest of their snapshot. The variance :math:`\sigma^2` then makes these errors
as large as they are said to be.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import product

import numpy as np
import torch
from jaxtyping import Float
from scipy.optimize import minimize
from torch import Tensor

from latentpde.scores.points.flat_mean import FlatMean
from latentpde.scores.points.task import Prediction, Readings, Task

_LEAST_NUGGET = 1e-6  # keeps the system regular where stations share a place
_RANGES, _NUGGETS = np.geomspace(0.05, 3.0, 13), (_LEAST_NUGGET, 0.02, 0.05, 0.1, 0.2, 0.35, 0.5)
_FEWEST = 4  # readings of a snapshot that takes part in cross-validation
_MOST_TRIED, _MOST_KRIGED = (
    600,
    2000,
)  # readings that a variogram is chosen by, in all, and that a snapshot is kriged from


def _spherical(h: Tensor) -> Tensor:
    return torch.where(h < 1, 1 - 1.5 * h + 0.5 * h**3, torch.zeros_like(h))


def _exponential(h: Tensor) -> Tensor:
    return torch.exp(-3 * h)


def _gaussian(h: Tensor) -> Tensor:
    return torch.exp(-((7 * h / 4) ** 2))


#: Correlation at a distance in units of the range, as PyKrige defines it.
VARIOGRAMS = {"spherical": _spherical, "exponential": _exponential, "gaussian": _gaussian}


@dataclass(frozen=True)
class Variogram:
    """A fitted variogram, in the unit of length of the readings.

    Args:
        kind: a key of `VARIOGRAMS`.
        range: distance at which it levels off, along the direction that is not stretched.
        nugget: share of the variance.
        stretch: how many times longer the range is across that direction; 1 where it is the same all around.
        angle: of the longer range, from the x axis towards the y axis, in radians.
        variance: of a reading.
    """

    kind: str
    range: float
    nugget: float
    stretch: float = 1.0
    angle: float = 0.0
    variance: float = 1.0

    def between(self, a: Float[np.ndarray, "a 2"], b: Float[np.ndarray, "b 2"]) -> Float[Tensor, "a b"]:
        """Covariance of the field between places ``(y, x)``."""
        y, x = torch.tensor(a[:, None] - b).unbind(-1)
        along = (math.cos(self.angle) * x + math.sin(self.angle) * y) / self.stretch
        across = math.cos(self.angle) * y - math.sin(self.angle) * x
        distance = torch.sqrt(along**2 + across**2) / self.range
        return self.variance * (1 - self.nugget) * VARIOGRAMS[self.kind](distance)

    def field(self, snapshot: Readings) -> FlatMean:
        """The field at one time, conditioned on the readings of that time."""
        num = len(snapshot)
        noise = self.variance * self.nugget * torch.eye(num, dtype=torch.float64)
        covariance = self.between(snapshot.points, snapshot.points) + noise
        return FlatMean(covariance, torch.ones(num, 1, dtype=torch.float64), torch.tensor(snapshot.values))


def choose_variogram(readings: Readings, *, anisotropic: bool) -> Variogram:
    """The variogram with the smallest error of readings left out, and the variance that these errors have.

    Args:
        readings: of all snapshots, which share it.
        anisotropic: whether the range depends on the direction.
    """
    parts = snapshot_times(readings.times)
    snapshots = [readings[np.isin(readings.times, part)] for part in parts]
    snapshots = _few([snapshot for snapshot in snapshots if len(snapshot) >= _FEWEST] or snapshots)
    size = float(np.ptp(readings.points, axis=0).max()) or 1.0
    tried = [Variogram(kind, size * r, nugget) for kind, r, nugget in product(VARIOGRAMS, _RANGES, _NUGGETS)]
    best = min(tried, key=lambda some: _left_out(some, snapshots)[0])
    if anisotropic:
        best = _stretched(best, snapshots)
    return _with_variance(best, _left_out(best, snapshots)[1])


def snapshot_times(times: Float[np.ndarray, " reading"]) -> list[Float[np.ndarray, " time"]]:
    """Times that are kriged together: each by itself, or, where readings hardly ever share one, as many as make up a
    snapshot.

    >>> [part.tolist() for part in snapshot_times(np.array([0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]))]
    [[0.0, 1.0, 2.0, 3.0], [4.0, 5.0, 6.0, 7.0]]
    """
    known, counts = np.unique(times, return_counts=True)
    if counts.max() >= _FEWEST:
        return [known[i : i + 1] for i in range(len(known))]
    return np.array_split(known, max(1, len(times) // max(_FEWEST, min(20, len(times) // 2))))


def _few(snapshots: list[Readings]) -> list[Readings]:
    """Some of the readings, evenly, where there are more than cross-validation needs."""
    every = -(-sum(map(len, snapshots)) // _MOST_TRIED)
    if every == 1:
        return snapshots
    snapshots = snapshots[:: min(every, -(-len(snapshots) // 4))]
    return [_thinned(one, max(_FEWEST, _MOST_TRIED // len(snapshots))) for one in snapshots]


def _thinned(readings: Readings, most: int) -> Readings:
    """At most so many of the readings, at random."""
    if len(readings) <= most:
        return readings
    return readings[np.sort(np.random.default_rng(0).permutation(len(readings))[:most])]


def _stretched(isotropic: Variogram, snapshots: list[Readings]) -> Variogram:
    """The best of stretched variograms of the same kind, by a simplex search from several directions."""

    def variogram(parameters: np.ndarray) -> Variogram:
        log_range, nugget, log_stretch, angle = parameters
        return Variogram(
            isotropic.kind,
            math.exp(log_range),
            float(np.clip(nugget, _LEAST_NUGGET, 0.9)),
            math.exp(np.clip(log_stretch, -2.0, 2.0)),
            float(angle),
        )

    best, lowest = isotropic, _left_out(isotropic, snapshots)[0]
    for angle in np.arange(4) * math.pi / 4:
        start = np.array([math.log(isotropic.range / 1.2), isotropic.nugget, 0.4, angle])
        simplex = start + np.vstack([np.zeros(4), np.diag([0.3, 0.1, 0.3, 0.4])])
        found = minimize(
            lambda p: _left_out(variogram(p), snapshots)[0],
            start,
            method="Nelder-Mead",
            options={"initial_simplex": simplex, "maxfev": 150, "xatol": 1e-2, "fatol": 1e-4 * lowest},
        )
        if found.fun < lowest:
            best, lowest = variogram(found.x), float(found.fun)
    return best


def _with_variance(some: Variogram, variance: float) -> Variogram:
    return Variogram(some.kind, some.range, some.nugget, some.stretch, some.angle, max(variance, 1e-12))


def _left_out(some: Variogram, snapshots: list[Readings]) -> tuple[float, float]:
    """Mean square of the errors of readings left out, and their size in units of what a variance of 1 predicts."""
    squares, ratios = [], []
    for snapshot in snapshots:
        field = some.field(snapshot)
        spread = 1 / field.precision.diagonal()
        error = spread * (field.precision @ field.values)
        squares.append(error.square())
        ratios.append(error.square() / spread)
    return float(torch.cat(squares).mean()), float(torch.cat(ratios).mean())


@dataclass(frozen=True)
class Kriging:
    """A rival: choose the variogram, then krige each snapshot that is asked for.

    Args:
        anisotropic: whether the range depends on the direction.
    """

    anisotropic: bool = False

    def __call__(self, task: Task, *, seed: int) -> Prediction:
        some = choose_variogram(task.readings, anisotropic=self.anisotropic)
        mean, variance = np.empty(len(task.asked)), np.empty(len(task.asked))
        parts = snapshot_times(task.readings.times)
        known, number = np.concatenate(parts), np.repeat(np.arange(len(parts)), [len(part) for part in parts])
        nearest = number[np.abs(task.asked.times[:, None] - known).argmin(1)]
        for part in np.unique(nearest):
            snapshot, here = task.readings[np.isin(task.readings.times, parts[part])], np.flatnonzero(nearest == part)
            snapshot = _thinned(snapshot, _MOST_KRIGED)
            cross = some.between(task.asked.points[here], snapshot.points)
            one = torch.ones(len(here), 1, dtype=torch.float64)
            field = some.field(snapshot).predict(cross, one, some.variance * (1 - some.nugget))
            mean[here], variance[here] = (part.numpy() for part in field)
        noise_std = math.sqrt(some.variance * some.nugget)
        found = {"kind": some.kind, "range": some.range, "stretch": some.stretch, "noise_std": noise_std}
        return Prediction(mean, np.sqrt(variance), noise_std, found=found)
