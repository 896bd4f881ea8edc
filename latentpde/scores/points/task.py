"""What a method is given and asked for where readings are a long table, and how its answer is scored."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import numpy as np
import scoringrules
from jaxtyping import Float, Shaped

_HALF_WIDTH = 1.6448536269514722  # of a Gaussian's central 90 % interval, in standard deviations


@dataclass(frozen=True, eq=False)
class Readings:
    """Readings one after another, each with its own place and time.

    Args:
        points: places as ``(y, x)``.
        times: when.
        values: what was read; in a table of what is asked for, what is true there.
        stations: which readings share a place, as whole numbers.

    Example:
        >>> table = Readings(np.zeros((2, 2)), np.array([0.0, 1.0]), np.array([3.0, 4.0]), np.array([0, 0]))
        >>> len(table), len(table[table.times > 0])
        (2, 1)
    """

    points: Float[np.ndarray, "reading 2"]
    times: Float[np.ndarray, " reading"]
    values: Float[np.ndarray, " reading"]
    stations: Shaped[np.ndarray, " reading"]

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, chosen: Shaped[np.ndarray, " index"]) -> Readings:
        """Some of the readings, by a mask or by their indices."""
        return Readings(self.points[chosen], self.times[chosen], self.values[chosen], self.stations[chosen])


@dataclass(frozen=True, eq=False)
class Task:
    """What a method is given, and what it is asked for.

    Args:
        name: tells it from other tasks of its study.
        readings: what a method sees.
        asked: places and times, with what is true there, which no method sees.
        origin: the domain's lower corner as ``(y, x)``.
        extent: the domain's lengths along y and x.
        noisy: whether the truth is itself a reading, with its noise, as of a station that was left out.
        truth: coefficients of the PDE that made the readings, by name, where one did.
    """

    name: str
    readings: Readings
    asked: Readings
    origin: tuple[float, float]
    extent: tuple[float, float]
    noisy: bool
    truth: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Prediction:
    """What a method says of the field at some places and times.

    Args:
        mean: of the field.
        std: standard deviation of the field, without the noise of a reading.
        noise_std: standard deviation of the noise that a reading there would have.
        draws: of the field; where there are none, it is Gaussian.
        coefficients: draws of the PDE's coefficients, by name.
        found: what else is worth a record, such as fitted parameters.
    """

    mean: Float[np.ndarray, " point"]
    std: Float[np.ndarray, " point"]
    noise_std: float | Float[np.ndarray, " point"]
    draws: Float[np.ndarray, "draw point"] | None = None
    coefficients: dict[str, Float[np.ndarray, " draw"]] = field(default_factory=dict)
    found: dict[str, Any] = field(default_factory=dict)


@runtime_checkable
class Predictor(Protocol):
    """A method: from readings to predictions at any places and times."""

    def __call__(self, task: Task, *, seed: int) -> Prediction:
        """Learn from ``task.readings`` and predict at the places and times of ``task.asked``, unseen its values."""
        ...


def scores(prediction: Prediction, task: Task, *, seed: int) -> dict[str, float]:
    r"""RMSE, MAE, CRPS, coverage of central 90 % intervals, and the mean error.

    Where the truth is a reading, the noise is part of what is predicted. The CRPS of a Gaussian is its closed form,

    .. math:: \sigma \Big[ z \big(2 \Phi(z) - 1\big) + 2 \varphi(z) - \pi^{-1/2} \Big], \qquad z = (y - \mu) / \sigma

    and that of draws the fair estimator. The interval of draws has the quantiles at 0.05 and 0.95 by Weibull's rule.

    Args:
        prediction: what a method said.
        task: what it was asked, with the truth.
        seed: of the noise that is added to draws.

    Example:
        >>> table = Readings(np.zeros((2, 2)), np.zeros(2), np.array([0.0, 2.0]), np.zeros(2))
        >>> task = Task("example", table, table, (0.0, 0.0), (1.0, 1.0), noisy=False)
        >>> found = scores(Prediction(np.zeros(2), np.ones(2), 0.1), task, seed=0)
        >>> round(found["rmse"], 3), found["coverage90"]
        (1.414, 0.5)
    """
    truth, noise = task.asked.values, prediction.noise_std if task.noisy else 0.0
    error = prediction.mean - truth
    if prediction.draws is None:
        std = np.hypot(prediction.std, noise)
        crps = scoringrules.crps_normal(truth, prediction.mean, std)
        covered = np.abs(error) <= _HALF_WIDTH * std
    else:
        draws = prediction.draws + noise * np.random.default_rng(seed).standard_normal(prediction.draws.shape)
        crps = scoringrules.crps_ensemble(truth, draws, m_axis=0, estimator="pwm", backend="numpy")
        low, high = np.quantile(draws, [0.05, 0.95], axis=0, method="weibull")
        covered = (low <= truth) & (truth <= high)
    found = {
        "rmse": np.sqrt(np.mean(error**2)),
        "mae": np.mean(np.abs(error)),
        "crps": np.mean(np.asarray(crps)),
        "coverage90": np.mean(covered),
        "bias": np.mean(error),
    }
    return {name: float(value) for name, value in found.items()}
