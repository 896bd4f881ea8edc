r"""The heat task of boundary-constrained Gaussian processes (Dalton, Lazarus, Gao and Husmeier 2024, JMLR 25:272).

:math:`u_t = \kappa \Delta u` on :math:`[0, \pi]^2` with cold walls and the known start :math:`\sin x \sin y`; the
diffusivity 1 and the noise 0.02 are not known. 250 readings are scattered over place and time up to 0.5.

The diffusivity is all that the field depends on, :math:`u = e^{-2 \kappa t} \sin x \sin y`, so what can be reached
follows from the readings' Fisher information,

.. math:: I = \frac{1}{\sigma^2} \sum_i \left( 2 t_i e^{-2 t_i} \sin x_i \sin y_i \right)^2 , \qquad
          E |\hat u - u| = \sqrt{\frac{2}{\pi I}}\; 2 t e^{-2 t} \sin x \sin y .
"""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np

import latentpde as lp

NUM_READINGS, NOISE, LAST = 250, 0.02, 0.5
_CELLS, _ASKED = 16, 20
_LUCKY = 2.5e-4


def least_expected_error() -> tuple[float, float]:
    """Mean absolute error over place and time that an unbiased estimate has on average, at least, and the share of
    draws in which the best one errs by less than 2.5e-4.

    >>> error, lucky = least_expected_error()
    >>> f"{error:.2e}", round(lucky, 2)
    ('7.60e-04', 0.21)
    """
    # over uniform times up to T, by parts: means of (2 t)^2 e^(-4 t) and of 2 t e^(-2 t)
    t = LAST
    squared = (1 / 8 - math.exp(-4 * t) * (t**2 + t / 2 + 1 / 8)) / t
    once = (1 / 2 - math.exp(-2 * t) * (t + 1 / 2)) / t
    std = NOISE / math.sqrt(NUM_READINGS * squared / 4)  # sin^2 sin^2 is 1 / 4 on average, and sin sin 4 / pi^2
    of_one = once * 4 / math.pi**2
    return math.sqrt(2 / math.pi) * std * of_one, math.erf(_LUCKY / (of_one * std) / math.sqrt(2))


def heat_case(index: int) -> dict[str, Any]:
    """Error of the field, diffusivity and noise that `exact` finds, and those of least squares in closed form."""
    rng = np.random.default_rng([41, index])
    places, times = np.pi * rng.random((NUM_READINGS, 2)), np.sort(LAST * rng.random(NUM_READINGS))
    shape = np.sin(places[:, 0]) * np.sin(places[:, 1])
    values = np.exp(-2 * times) * shape + NOISE * rng.standard_normal(NUM_READINGS)
    start = time.perf_counter()
    line = (np.arange(_CELLS) + 0.5) * np.pi / _CELLS
    observation = lp.Observation.from_arrays(
        np.where(np.eye(NUM_READINGS, dtype=bool), values[:, None], np.nan),  # each time has one reading
        np.sin(line)[:, None] * np.sin(line),
        times=times,
        noise_std=None,
        positions=places,
        grid=lp.Grid((_CELLS, _CELLS), (np.pi, np.pi)),
        pooling=1,
        domain=lp.Domain("dirichlet", "dirichlet"),
    )
    posterior = lp.reconstruct(
        observation, "heat", num_modes=0, detail=False, bounds={"kappa": (0.05, 20.0)}, num_draws=50
    )
    asked, when = (np.arange(_ASKED) + 0.5) * np.pi / _ASKED, np.linspace(0.0, LAST, 11)
    truth = np.exp(-2 * when)[:, None, None] * np.sin(asked)[:, None] * np.sin(asked)
    mean = posterior.mean(resolution=_ASKED, times=when.tolist()).values.reshape(truth.shape)
    seconds = time.perf_counter() - start
    kappa = posterior.coefficients.values.reshape(-1)
    least_squares = _least_squares(shape, times, values)
    other = np.exp(-2 * least_squares * when)[:, None, None] * np.sin(asked)[:, None] * np.sin(asked)
    return {
        "mae": float(np.abs(mean - truth).mean()),
        "kappa": float(kappa.mean()),
        "kappa_std": float(kappa.std(ddof=1)),
        "mae_least_squares": float(np.abs(other - truth).mean()),
        "seconds": seconds,
    }


def _least_squares(shape: np.ndarray, times: np.ndarray, values: np.ndarray) -> float:
    """The diffusivity that leaves the smallest squares."""
    from scipy.optimize import minimize_scalar

    found: Any = minimize_scalar(
        lambda log_kappa: float(((values - np.exp(-2 * math.exp(log_kappa) * times) * shape) ** 2).sum()),
        bounds=(math.log(0.05), math.log(20.0)),
        method="bounded",
        options={"xatol": 1e-10},
    )
    return math.exp(found.x)
