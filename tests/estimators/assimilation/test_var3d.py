"""3D-Var is the minimum of its quadratic, and its spread the covariance of its error: both against dense algebra."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.ndimage import map_coordinates

from latentpde.errors import UsageError
from latentpde.estimators import make_estimator
from latentpde.estimators.assimilation import background as background_module
from latentpde.estimators.assimilation import var3d
from latentpde.estimators.assimilation.var3d import Var3D
from latentpde.grid import Grid
from latentpde.observation import Observation

COARSE, FACTOR, EXTENT = (3, 4), 2, (1.0, 1.5)
FINE = (6, 8)
both_edges = pytest.mark.parametrize("edges", ["periodic", "neumann"])


def laplacian(edges: str) -> np.ndarray:
    """Five points, one cell at a time; beyond a wall lies the cell's own mirror image."""
    (ny, nx), (hy, hx) = FINE, (EXTENT[0] / FINE[0], EXTENT[1] / FINE[1])
    matrix = np.zeros((ny * nx, ny * nx))
    for y in range(ny):
        for x in range(nx):
            for dy, dx, h in ((1, 0, hy), (-1, 0, hy), (0, 1, hx), (0, -1, hx)):
                row, col = y + dy, x + dx
                if edges == "neumann":
                    row, col = min(max(row, 0), ny - 1), min(max(col, 0), nx - 1)
                matrix[y * nx + x, (row % ny) * nx + col % nx] += 1 / h**2
                matrix[y * nx + x, y * nx + x] -= 1 / h**2
    return matrix


def covariance(edges: str, std: float, length: float, power: int) -> np.ndarray:
    """``B`` whose mean variance is ``std^2``."""
    inverse = np.linalg.matrix_power(np.eye(FINE[0] * FINE[1]) - length**2 * laplacian(edges), power)
    shape = np.linalg.inv(inverse)
    return shape * std**2 / np.diag(shape).mean()


def pooling() -> np.ndarray:
    rows = np.kron(np.eye(COARSE[0]), np.full((1, FACTOR), 1 / FACTOR))
    cols = np.kron(np.eye(COARSE[1]), np.full((1, FACTOR), 1 / FACTOR))
    return np.kron(rows, cols)


def bilinear(positions: np.ndarray) -> np.ndarray:
    index = positions.T / (np.array(EXTENT) / FINE)[:, None] - 0.5
    unit = np.eye(FINE[0] * FINE[1]).reshape(-1, *FINE)
    return np.stack([map_coordinates(field, index, order=1, mode="grid-wrap") for field in unit], axis=1)


def problem(kind: str, seed: int = 0):
    """Two cases at two times with readings, noise and numbers of readings of their own, and their dense operators."""
    rng = np.random.default_rng(seed)
    shape = COARSE if kind == "cells" else (7,)
    values, noise = rng.standard_normal((2, 2, *shape)), rng.uniform(0.1, 0.4, (2, 2, *shape))
    mask = rng.random((2, 2, *shape)) < np.array([0.3, 0.7]).reshape(2, 1, *[1] * len(shape))
    mask[..., 0] = True
    positions = None if kind == "cells" else rng.random((2, 7, 2)) * EXTENT
    observation = Observation.from_arrays(
        np.where(mask, values, np.nan), times=(0.1, 0.2), noise_std=noise, grid=Grid(COARSE, EXTENT),
        positions=positions, pooling=FACTOR,
    )  # fmt: skip
    operators = [pooling() if positions is None else bilinear(positions[i]) for i in (0, 0, 1, 1)]
    chosen = [m.ravel() for m in mask.reshape(4, *shape)]
    dense = [
        (operator[m], v.ravel()[m], n.ravel()[m] ** 2)
        for operator, m, v, n in zip(
            operators, chosen, values.reshape(4, *shape), noise.reshape(4, *shape), strict=True
        )
    ]
    background = torch.from_numpy(rng.standard_normal((2, 2, *FINE)))
    return observation, background, dense


def minimum(b: np.ndarray, x_b: np.ndarray, h: np.ndarray, y: np.ndarray, r: np.ndarray) -> np.ndarray:
    """Where the gradient of the quadratic vanishes, in the field's own space."""
    hessian = np.linalg.inv(b) + h.T @ (h / r[:, None])
    return x_b + np.linalg.solve(hessian, h.T @ ((y - h @ x_b) / r))


@both_edges
@pytest.mark.parametrize("kind", ["cells", "points"])
@pytest.mark.parametrize("power", [1, 2])
def test_it_is_the_dense_minimum(edges, kind, power):
    observation, background, dense = problem(kind)
    method = Var3D(background_std=0.7, length=0.3, power=power, edges=edges)
    found = method.analyse(observation, background, num_draws=1, seed=0).values[:, 0].flatten(0, 1).numpy()
    b = covariance(edges, 0.7, 0.3, power)
    for analysis, x_b, (h, y, r) in zip(found, background.flatten(0, 1).numpy(), dense, strict=True):
        expected = minimum(b, x_b.ravel(), h, y, r)
        assert np.abs(expected - x_b.ravel()).max() > 0.1, "the readings move nothing"
        np.testing.assert_allclose(analysis.ravel(), expected, atol=1e-8, rtol=0)


@both_edges
def test_conjugate_gradients_find_the_same_minimum(edges, monkeypatch):
    monkeypatch.setattr(var3d, "CHUNK_VALUES", 0)
    observation, background, dense = problem("cells")
    method = Var3D(background_std=0.7, length=0.3, edges=edges, spread=True)
    posterior = method.analyse(observation, background, num_draws=2, seed=0)
    assert posterior.mean_values is not None
    assert posterior.variance is None
    b = covariance(edges, 0.7, 0.3, 2)
    found = posterior.mean_values.flatten(0, 1).numpy()
    for analysis, x_b, (h, y, r) in zip(found, background.flatten(0, 1).numpy(), dense, strict=True):
        np.testing.assert_allclose(analysis.ravel(), minimum(b, x_b.ravel(), h, y, r), atol=1e-8, rtol=0)


def test_the_variance_is_left_out_where_it_is_not_known_for_all(monkeypatch):
    """Snapshots with few readings are solved by Cholesky and know it, those with many by conjugate gradients."""
    observation, background, _ = problem("cells")
    counts = observation.mask.flatten(2).sum(2).flatten()
    limit = int(counts.min()) * FINE[0] * FINE[1]
    for module in (var3d, background_module):
        monkeypatch.setattr(module, "CHUNK_VALUES", limit)
    posterior = Var3D(spread=True).analyse(observation, background, num_draws=3, seed=0)
    assert counts.min() < counts.max()
    assert posterior.variance is None
    assert np.isfinite(posterior.std(FINE)).all()


@both_edges
def test_the_spread_is_the_covariance_of_the_analysis_error(edges):
    observation, background, dense = problem("cells")
    num = 6000
    method = Var3D(background_std=0.7, length=0.3, edges=edges, spread=True)
    posterior = method.analyse(observation, background, num_draws=num, seed=3)
    b = covariance(edges, 0.7, 0.3, 2)
    std = posterior.std(FINE, times=[0.1, 0.2]).values.reshape(4, -1)
    draws = posterior.draws(FINE, times=[0.1, 0.2]).values.swapaxes(1, 2).reshape(4, num, -1)
    means = posterior.mean(FINE, times=[0.1, 0.2]).values.reshape(4, -1)
    for stated, drawn, mean, (h, _, r) in zip(std, draws, means, dense, strict=True):
        expected = np.linalg.inv(np.linalg.inv(b) + h.T @ (h / r[:, None]))
        variance = np.diag(expected)
        np.testing.assert_allclose(stated**2, variance, atol=1e-8, rtol=0)
        # the standard error of a sample covariance, and of a mean; 5.5 of them for the largest of a few thousand
        error = np.sqrt((np.outer(variance, variance) + expected**2) / num)
        assert (np.abs(np.cov(drawn.T) - expected) / error).max() < 5.5
        assert (np.abs(drawn.mean(0) - mean) / np.sqrt(variance / num)).max() < 5.5


def test_where_there_is_no_spread_it_says_so():
    observation, background, _ = problem("cells")
    posterior = Var3D().analyse(observation, background, num_draws=5, seed=0)
    assert posterior.num_draws == 1
    assert np.isnan(posterior.std(FINE)).all()


def test_the_pointwise_standard_deviation_means_the_same_on_any_grid():
    """Halving the cells leaves the analysis nearly where it was; with the bare sigma_b it would not."""
    rng = np.random.default_rng(0)
    readings = np.where(rng.random((8, 8)) < 0.3, rng.standard_normal((8, 8)), np.nan)
    fields = []
    for pooling_ in (4, 8):
        data = Observation.from_arrays(readings, noise_std=0.2, pooling=pooling_)
        zero = torch.zeros((1, 1, 8 * pooling_, 8 * pooling_), dtype=torch.float64)
        posterior = Var3D(background_std=0.5, length=0.2).analyse(data, zero, num_draws=1, seed=0)
        fields.append(posterior.mean(8).values)
    assert np.abs(fields[0]).max() > 0.3
    np.testing.assert_allclose(fields[0], fields[1], atol=0.03)


@pytest.mark.parametrize(
    "options", [{"background_std": 0.0}, {"length": -1.0}, {"power": 0}, {"edges": "open"}, {"length": float("inf")}]
)
def test_impossible_options_are_refused(options):
    with pytest.raises(UsageError, match="3dvar"):
        make_estimator("3dvar", **options)


def test_the_background_may_be_any_method():
    from latentpde.estimators import reconstruct
    from latentpde.simulation import simulate

    data = Observation.from_dataset(simulate("balanced", num=1, seed=3, shape=(32, 32), num_modes=2))
    options = {"method": "3dvar", "background": "kriging", "background_std": 1e-6, "num_modes": 2}
    kept = reconstruct(data, **options).mean(32)
    np.testing.assert_allclose(kept, reconstruct(data, method="kriging", num_modes=2).mean(32), atol=1e-6)
    with pytest.raises(UsageError, match="unknown method"):
        reconstruct(data, method="3dvar", background="guesswork")
