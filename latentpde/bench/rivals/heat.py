r"""The heat task of boundary-constrained Gaussian processes (Dalton, Lazarus, Gao and Husmeier 2024, JMLR 25:272).

:math:`u_t = \kappa \Delta u` on :math:`[0, \pi]^2` with cold walls and the known start :math:`\sin x \sin y`; the
diffusivity 1 and the noise 0.02 are not known. 250 readings are scattered over place and time up to 0.5.
"""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np

import latentpde as lp

NUM_READINGS, NOISE, LAST = 250, 0.02, 0.5
_CELLS, _ASKED = 16, 20


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
