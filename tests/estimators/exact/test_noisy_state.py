"""A noisy initial state: its level is free, and the rest is a Gaussian computation that can be written out."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import latentpde as lp
from latentpde.estimators.exact.initial_state import InitialState
from latentpde.estimators.exact.subgrid import Subgrid
from latentpde.grid import Grid
from latentpde.observation import Observation


def observed(cells, **options):
    readings = np.full(cells.shape, np.nan)
    readings[0, 0] = 1.0
    return Observation.from_arrays(readings, cells, times=[0.1], noise_std=0.1, pooling=2, **options)


@pytest.mark.parametrize("shape", [(4, 6), (5, 4)])
def test_mean_and_variance_against_a_dense_computation(shape):
    """Cells are level + deviations + noise; the level has a flat prior, here one of a very large variance."""
    rng = np.random.default_rng(0)
    noise_std, num = 0.7, shape[0] * shape[1]
    cells = 19.94 + rng.standard_normal(shape)
    state = InitialState.of(observed(cells), detail=True, noise_std=noise_std)
    subgrid = Subgrid.fit(torch.from_numpy(cells), Grid(shape), 2, noise_power=noise_std**2 / num)
    with_first = np.fft.irfft2(subgrid.coarse_power.numpy() * num, s=shape)  # covariances with the first cell
    with_first -= subgrid.coarse_power[0, 0].item()  # but for the level
    rows, cols = np.divmod(np.arange(num), shape[1])
    covariance = with_first[(rows[:, None] - rows) % shape[0], (cols[:, None] - cols) % shape[1]] + 1e7
    gain = covariance @ np.linalg.inv(covariance + noise_std**2 * np.eye(num))
    expected, left = gain @ cells.ravel(), noise_std**2 * gain  # the same as covariance - gain @ covariance
    np.testing.assert_allclose(state.coarse.flatten(), expected, rtol=1e-6)
    assert state.std is not None
    for row, col in ((0, 0), (1, 0), (0, 1), (1, 1)):
        wave = np.exp(-2j * np.pi * (row * rows / shape[0] + col * cols / shape[1])) / num
        assert state.std[row, col] ** 2 == pytest.approx((wave.conj() @ left @ wave).real, rel=1e-5)


def test_the_level_of_noisy_cells_is_kept():
    """Cells that average 19.94 with noise of 3 came out at 10.6, because the prior's mean was zero."""
    rng = np.random.default_rng(1)
    y, x = (np.arange(16) + 0.5) / 16, (np.arange(16) + 0.5) / 16
    truth = 20 + np.cos(2 * np.pi * y)[:, None] * np.sin(2 * np.pi * x)
    cells = truth + 3 * rng.standard_normal((16, 16))
    readings = np.full((16, 16), np.nan)
    readings[::4, ::4] = truth[::4, ::4] + 0.5 * rng.standard_normal((4, 4))
    observation = Observation.from_arrays(
        readings, cells, times=[0.001], noise_std=0.5, observed="pooled", family="advection_diffusion"
    )
    options = {"num_modes": 0, "sweep": 64, "initial_noise_std": 3.0}
    found = lp.reconstruct(observation, bounds={"vx": (-1, 1), "vy": (-1, 1), "kappa": (0.01, 0.1)}, **options)
    assert float(found.mean(16).mean()) == pytest.approx(20, abs=0.4)
    assert float(np.abs(found.mean(16) - truth).max()) < 2
    assert float(found.std(16).mean()) < 1
    state = InitialState.of(observation, detail=True, noise_std=3.0)
    assert float(state.coarse.mean()) == pytest.approx(cells.mean(), rel=1e-12)


@pytest.mark.parametrize("slope", [3.0, 5.0])
def test_level_and_slope_are_found_under_noise(slope):
    """On average over draws of the prior, with noise of half its pointwise standard deviation."""
    grid, noise_std = Grid((32, 32)), 0.5
    prior, generator = Subgrid.of_variance(grid, 2, 1.0, slope), torch.Generator().manual_seed(0)
    found = []
    for _ in range(12):
        white = torch.randn(1, 64, 64, dtype=torch.float64, generator=generator)
        field = prior.fine.synthesise(prior.fine.analyse(white) * torch.sqrt(prior.power * 64 * 64))
        cells = field[0].unflatten(0, (32, 2)).unflatten(-1, (32, 2)).mean((1, 3))
        noisy = cells + noise_std * torch.randn(32, 32, dtype=torch.float64, generator=generator) + 7.0
        fit = Subgrid.fit(noisy, grid, 2, noise_power=noise_std**2 / 1024)
        found.append((fit.slope, np.log(fit.level / prior.level)))
    mean, error = np.mean(found, 0), np.std(found, 0) / np.sqrt(len(found))
    assert abs(mean[0] - slope) < 4 * error[0] + 0.2
    assert abs(mean[1]) < 4 * error[1] + 0.3
