"""Calibrated and miscalibrated draws of a posterior that is known in closed form."""

from __future__ import annotations

import functools

import numpy as np
import xarray as xr

from latentpde.scores.calibration import LEVELS, coverage_curve
from latentpde.scores.metrics import rmse
from latentpde.scores.ranks import ranks

NUM_DRAWS = 39


@functools.cache
def linear_gaussian(width: float = 1.0, bias: float = 0.0, num: int = 256, seed: int = 0) -> xr.Dataset:
    """Fields ``u ~ N(0, C)`` on 6 x 6 cells, 9 of them read with noise; the posterior is known in closed form.

    Draws are ``mean + bias std + width (u - mean)`` with ``u`` from the posterior, so only (1, 0) is calibrated.
    """
    rng = np.random.default_rng(seed)
    cells = np.stack(np.meshgrid(np.arange(6), np.arange(6)), -1).reshape(-1, 2)
    prior = np.exp(-0.5 * ((cells[:, None] - cells) ** 2).sum(-1) / 2.0**2) + 1e-6 * np.eye(36)
    read, noise_std = rng.permutation(36)[:9], 0.3
    gain = np.linalg.solve(prior[np.ix_(read, read)] + noise_std**2 * np.eye(9), prior[read]).T
    posterior = prior - gain @ prior[read]
    truth = rng.standard_normal((num, 36)) @ np.linalg.cholesky(prior).T
    mean = (truth[:, read] + noise_std * rng.standard_normal((num, 9))) @ gain.T
    noise = rng.standard_normal((num, NUM_DRAWS, 36)) @ np.linalg.cholesky(posterior + 1e-9 * np.eye(36)).T
    draws = mean[:, None] + bias * np.sqrt(np.diag(posterior)) + width * noise

    some = [0, 8, 15, 22, 35]
    fields, u = draws.reshape(num, NUM_DRAWS, 6, 6), truth.reshape(num, 6, 6)
    spread = np.sqrt((NUM_DRAWS + 1) / NUM_DRAWS * draws.var(axis=1, ddof=1).mean(-1))
    return xr.Dataset(
        {
            "rank": (("case", "quantity"), ranks(draws[..., some], truth[:, some])),
            "coverage": (("case", "level"), coverage_curve(fields, u)),
            "spread": ("case", spread),
            "error": ("case", rmse(fields.mean(1), u)),
        },
        coords={
            "quantity": [f"u{i}" for i in some],
            "quantity_kind": ("quantity", ["coefficient"] * 2 + ["field"] * 3),
            "level": list(LEVELS),
            "mask_kind": ("case", np.array(["grid", "radial"])[np.arange(num) % 2]),
            "family": ("case", np.full(num, "helmholtz")),
        },
        attrs={"num_draws": NUM_DRAWS},
    )
