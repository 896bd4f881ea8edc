r"""A space-time Gaussian process whose hyper-parameters are fitted: the usual tool for such readings without physics.

The covariance is a Matérn function of smoothness 1/2, 3/2 or 5/2, with :math:`d` a difference of places, :math:`s` one
of times, two ranges along directions of their own in the matrix :math:`A`, and a range :math:`\ell` in time, as a
product or as a function of one distance:

.. math:: \sigma^2 M(|A d|) \, M(|s| / \ell) \quad\text{or}\quad \sigma^2 M\big((|A d|^2 + s^2 / \ell^2)^{1/2}\big).

To this comes :math:`\omega^2 M(|s| / \ell)`, a level that changes with time and is the same everywhere. With a drift,
:math:`d` is taken in a frame that moves at a velocity, which is fitted too. The mean is constant and unknown, or has
slopes as well. All parameters maximise the restricted likelihood, from several starts; so does the kind of covariance.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Literal

import numpy as np
import torch
from jaxtyping import Float, Int
from scipy.optimize import minimize
from torch import Tensor

from latentpde.questions.physics_free import matern
from latentpde.scores.points.flat_mean import FlatMean, log_likelihood
from latentpde.scores.points.task import Prediction, Readings, Task

_NUM_TRIED = 32  # parameters at random, of which the likeliest are starts
_NUM_STARTS = 3
_SHORT, _LONG = 30, 200  # steps from the first start of every kind of covariance, then from all of the likeliest kinds
_NUM_KINDS = 2
_JITTER = 1e-9  # of the variance: keeps the covariance regular where stations share a place
#: Logarithms of lengths, spans and standard deviations, in units of the readings' own.
_LOG_RANGE, _LOG_STD, _LOG_NOISE = (math.log(0.02), math.log(20)), (math.log(0.1), math.log(20)), (math.log(1e-3), 0.0)
_LOG_LEVEL, _SHEAR, _DRIFT = (math.log(1e-3), math.log(20)), (-20.0, 20.0), (-4.0, 4.0)


@dataclass(frozen=True)
class Covariance:
    """A kind of covariance; its parameters are a vector, of which all but shear and drift are logarithms.

    The vector holds the standard deviation, that of the noise, that of the common level, the ranges along y and x, the
    shear that turns the ranges, the range in time, and with a drift the velocity along y and x.

    Args:
        smoothness: of the Matérn function: 1/2, 3/2 or 5/2.
        separable: whether space and time make a product.
        drift: whether the frame moves.
    """

    smoothness: float
    separable: bool
    drift: bool = False

    @property
    def bounds(self) -> list[tuple[float, float]]:
        """Of each parameter."""
        usual = [_LOG_STD, _LOG_NOISE, _LOG_LEVEL, _LOG_RANGE, _LOG_RANGE, _SHEAR, _LOG_RANGE]
        return [*usual, _DRIFT, _DRIFT] if self.drift else usual

    def starts(self, num: int, generator: np.random.Generator) -> Float[np.ndarray, "start parameter"]:
        """Parameters at random: a signal of the readings' size, ranges and noise within reason, little shear."""
        low = [math.log(0.5), math.log(0.02), math.log(0.05), *2 * [math.log(0.05)], -0.5, math.log(0.1)]
        high = [math.log(2), math.log(0.5), math.log(1), *2 * [math.log(2)], 0.5, math.log(5)]
        extra = [2.0, 2.0] if self.drift else []
        return generator.uniform([*low, *(-v for v in extra)], [*high, *extra], (num, len(low) + len(extra)))

    def between(
        self, a: Float[Tensor, "a 3"], b: Float[Tensor, "b 3"], parameters: Float[Tensor, "*batch parameter"]
    ) -> Float[Tensor, "*batch a b"]:
        """Covariance of the field between places and times ``(y, x, t)``."""
        apart = a[:, None] - b
        y, x, t = apart.unbind(-1)
        std, _, level, range_y, range_x, shear, range_t, *velocity = (p[..., None, None] for p in parameters.unbind(-1))
        if self.drift:
            y, x = y - velocity[0] * t, x - velocity[1] * t
        squared = (y / range_y.exp()).square() + (x / range_x.exp() + shear * y).square()
        in_time = (t / range_t.exp()).square()
        of_time = matern(in_time, self.smoothness)
        if self.separable:
            local = matern(squared, self.smoothness) * of_time
        else:
            local = matern(squared + in_time, self.smoothness)
        return (2 * std).exp() * local + (2 * level).exp() * of_time


@dataclass(frozen=True, eq=False)
class Fitted:
    """A Gaussian process with its parameters, in the readings' own units of place, time and value.

    Args:
        readings: what it was fitted to.
        covariance: the likeliest kind.
        parameters: the likeliest.
        log_likelihood: there.
        slopes: whether the mean has slopes.
    """

    readings: Readings
    covariance: Covariance
    parameters: Float[Tensor, " parameter"]
    log_likelihood: float
    slopes: bool

    @property
    def noise_std(self) -> float:
        """Standard deviation of a reading's noise."""
        return float(self.parameters[1].exp()) * _units(self.readings)[2]

    @cached_property
    def field(self) -> FlatMean:
        """The field, conditioned on the readings, in their own units."""
        places, values = _scaled(self.readings)
        return FlatMean(_with_noise(self.covariance, places, self.parameters), _trend(places, self.slopes), values)

    def predict(self, asked: Readings) -> tuple[Float[np.ndarray, " point"], Float[np.ndarray, " point"]]:
        """Mean and standard deviation of the field elsewhere."""
        places, (_, _, scale) = _scaled(self.readings)[0], _units(self.readings)
        there = _places(asked, self.readings)
        cross = self.covariance.between(there, places, self.parameters)
        of_field = float((2 * self.parameters[[0, 2]]).exp().sum())
        mean, variance = self.field.predict(cross, _trend(there, self.slopes), of_field)
        return mean.numpy() * scale + self.readings.values.mean(), variance.sqrt().numpy() * scale

    def left_out(
        self, block: Int[np.ndarray, " index"]
    ) -> tuple[Float[np.ndarray, " index"], Float[np.ndarray, " index"]]:
        """Mean and standard deviation of some readings, noise included, as the others predict them."""
        mean, variance = self.field.left_out(torch.from_numpy(block))
        scale = _units(self.readings)[2]
        return mean.numpy() * scale + self.readings.values.mean(), variance.sqrt().numpy() * scale


def fit(
    readings: Readings,
    *,
    seed: int,
    drift: bool = False,
    slopes: bool = False,
    kinds: Sequence[Covariance] | None = None,
) -> Fitted:
    """The likeliest Gaussian process.

    Args:
        readings: what it is fitted to.
        seed: of the starts.
        drift: whether the frame moves.
        slopes: whether the mean has slopes along y and x.
        kinds: of covariances to try; all by default.
    """
    places, values = _scaled(readings)
    trend = _trend(places, slopes)
    generator = np.random.default_rng(seed)

    def loss(parameters: np.ndarray, kind: Covariance) -> tuple[float, np.ndarray]:
        vector = torch.tensor(parameters, requires_grad=True)
        try:
            value = -log_likelihood(_with_noise(kind, places, vector), trend, values)
        except RuntimeError:  # no Cholesky factor: a corner of the box where rounding wins
            return 1e10, np.zeros_like(parameters)
        value.backward()
        assert vector.grad is not None
        return value.item(), vector.grad.numpy()

    def climbed(kind: Covariance, start: np.ndarray, most: int) -> tuple[float, Covariance, np.ndarray]:
        options = {"maxiter": most}
        found = minimize(loss, start, (kind,), jac=True, method="L-BFGS-B", bounds=kind.bounds, options=options)
        return -float(found.fun), kind, found.x

    if kinds is None:
        kinds = [Covariance(s, separable, drift) for s, separable in product((0.5, 1.5, 2.5), (True, False))]
    starts, first = {}, []
    for kind in kinds:
        tried = kind.starts(_NUM_TRIED, generator)
        starts[kind] = tried[np.argsort([loss(start, kind)[0] for start in tried])[:_NUM_STARTS]]
        first.append(climbed(kind, starts[kind][0], _SHORT))
    first.sort(key=lambda found: -found[0])
    last = [climbed(kind, parameters, _LONG) for _, kind, parameters in first[:_NUM_KINDS]]
    last += [climbed(kind, start, _LONG) for _, kind, _ in first[:_NUM_KINDS] for start in starts[kind][1:]]
    highest, kind, parameters = max(last, key=lambda found: found[0])
    return Fitted(readings, kind, torch.tensor(parameters), highest, slopes)


@dataclass(frozen=True)
class GaussianProcess:
    """A rival: fit, then predict.

    Args:
        drift: whether the frame moves.
        mean: ``"constant"``, or ``"linear"`` for slopes along y and x too.
    """

    drift: bool = False
    mean: Literal["constant", "linear"] = "constant"

    def __call__(self, task: Task, *, seed: int) -> Prediction:
        fitted = fit(task.readings, seed=seed, drift=self.drift, slopes=self.mean == "linear")
        mean, std = fitted.predict(task.asked)
        kind = fitted.covariance
        found = {"smoothness": kind.smoothness, "separable": kind.separable, "noise_std": fitted.noise_std}
        return Prediction(mean, std, fitted.noise_std, found=found)


def _with_noise(kind: Covariance, places: Tensor, parameters: Tensor) -> Tensor:
    """Covariance of readings."""
    variance = (2 * parameters[..., 1]).exp() + _JITTER * (2 * parameters[..., 0]).exp()
    eye = torch.eye(len(places), dtype=torch.float64)
    return kind.between(places, places, parameters) + variance[..., None, None] * eye


def _units(readings: Readings) -> tuple[float, float, float]:
    """Units of length, time and value in which the readings are of the order of one."""
    length = float(np.ptp(readings.points, axis=0).max()) or 1.0
    return length, float(np.ptp(readings.times)) or 1.0, float(readings.values.std()) or 1.0


def _places(table: Readings, readings: Readings) -> Float[Tensor, "point 3"]:
    """Places and times ``(y, x, t)`` in the units of the readings, from their centre."""
    length, span, _ = _units(readings)
    points = (table.points - readings.points.mean(0)) / length
    return torch.tensor(np.column_stack([points, (table.times - readings.times.mean()) / span]))


def _scaled(readings: Readings) -> tuple[Float[Tensor, "reading 3"], Float[Tensor, " reading"]]:
    """Places and values of the readings in their own units."""
    values = (readings.values - readings.values.mean()) / _units(readings)[2]
    return _places(readings, readings), torch.tensor(values)


def _trend(places: Float[Tensor, "point 3"], slopes: bool) -> Float[Tensor, "point trend"]:
    one = torch.ones(len(places), 1, dtype=torch.float64)
    return torch.cat([one, places[:, :2]], 1) if slopes else one
