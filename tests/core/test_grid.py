"""Grids: cell centres, the pair of transforms against sums written out by hand, resampling and pooling."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from latentpde.errors import UsageError
from latentpde.grid import (
    Grid,
    at_points,
    average_pool,
    mode_numbers,
    pooling_attenuation,
    resample,
    unpool_spectrum,
    wavenumbers,
)

lengths = st.floats(0.2, 8.0)
sides = st.integers(1, 9)
grids = st.builds(Grid, st.tuples(sides, sides), st.tuples(lengths, lengths))
seeds = st.integers(0, 2**31)


def centres(grid):
    """Written out anew: x_i = (i + 1/2) / n * extent, as a pair of arrays (y, x)."""
    y, x = ((np.arange(n) + 0.5) / n * length for n, length in zip(grid.shape, grid.extent, strict=True))
    return np.meshgrid(y, x, indexing="ij")


def series(u_hat, extent, y, x, below=(np.inf, np.inf)):
    """Re sum w c exp(i k x) over the modes of a block strictly below ``below``, one mode after the other."""
    half = u_hat.shape[0] // 2
    total = np.zeros(np.broadcast(y, x).shape)
    for i, row in enumerate([*range(half), *range(-half, 0)]):
        for col in range(u_hat.shape[1]):
            if abs(row) < below[0] and col < below[1]:
                wave = np.exp(2j * np.pi * (row * y / extent[0] + col * x / extent[1]))
                total += (1 if col == 0 else 2) * (u_hat[i, col] * wave).real
    return total


def polynomial(rng, num_y, num_x, extent):
    """A random real trigonometric polynomial with mode numbers up to ``num_y``, ``num_x``, as a function of (y, x)."""
    rows, cols = (n.ravel() for n in np.mgrid[-num_y : num_y + 1, 0 : num_x + 1])
    cosines, sines = rng.standard_normal((2, rows.size))

    def u(y, x):
        angle = 2 * np.pi * (rows * np.asarray(y)[..., None] / extent[0] + cols * np.asarray(x)[..., None] / extent[1])
        return np.cos(angle) @ cosines + np.sin(angle) @ sines

    return u


def coefficient(u_hat, row, col):
    """One mode of a block."""
    rows, cols = mode_numbers((u_hat.shape[-2], u_hat.shape[-1]))
    return u_hat[..., rows.tolist().index(row), cols.tolist().index(col)]


def random_block(rng, block_shape):
    return rng.standard_normal(block_shape) + 1j * rng.standard_normal(block_shape)


# Coordinates


@given(grids, st.integers(1, 5), st.tuples(st.floats(-5, 5), st.floats(-5, 5)))
def test_a_coarse_centre_is_the_mean_of_its_fine_centres(grid, factor, origin):
    """Pooling, masks and source stay registered only if this holds at every factor."""
    coarse = Grid(grid.shape, grid.extent, origin)
    for fine, own in zip(coarse.refine(factor).coordinates(), coarse.coordinates(), strict=True):
        np.testing.assert_allclose(fine.reshape(-1, factor).mean(1), own, rtol=0, atol=1e-12)


@given(grids)
def test_centres_are_half_a_cell_inside_and_a_cell_apart(grid):
    for c, n, length in zip(grid.coordinates(), grid.shape, grid.extent, strict=True):
        assert c.dtype == torch.float64
        assert c[0].item() == pytest.approx(length / n / 2)
        assert (length - c[-1]).item() == pytest.approx(length / n / 2)
        np.testing.assert_allclose(np.diff(c), length / n)


def test_resolution_counts_cells_along_the_shorter_side():
    grid = Grid((32, 48), (2.0, 3.0), (1.0, -1.0))
    assert grid.at_resolution(64) == Grid((64, 96), (2.0, 3.0), (1.0, -1.0))
    assert grid.at_resolution((5, 7)).shape == (5, 7)
    assert grid.at_resolution(None) is grid
    assert Grid((48, 32)).at_resolution(16).shape == (24, 16)


# The transforms


@settings(max_examples=60)
@given(grid=grids, half=st.integers(1, 5), cols=st.integers(1, 5), seed=seeds)
def test_synthesise_is_the_trigonometric_sum_below_nyquist(grid, half, cols, seed):
    """Any block on any grid, larger or smaller, odd, even or of a single cell; column 0 need not be Hermitian."""
    u_hat = random_block(np.random.default_rng(seed), (2 * half, cols))
    expected = series(u_hat, grid.extent, *centres(grid), below=(grid.shape[0] / 2, grid.shape[1] / 2))
    np.testing.assert_allclose(grid.synthesise(torch.from_numpy(u_hat)), expected, atol=1e-12)


@settings(max_examples=60)
@given(grid=grids, seed=seeds)
def test_analyse_is_the_mean_against_each_wave(grid, seed):
    u = np.random.default_rng(seed).standard_normal(grid.shape)
    y, x = centres(grid)
    u_hat = grid.analyse(torch.from_numpy(u)).numpy()
    assert u_hat.shape == grid.block_shape
    rows, cols = mode_numbers(grid.block_shape)
    for i, row in enumerate(rows.tolist()):
        for col in cols.tolist():
            carried = abs(row) < grid.shape[0] / 2 and col < grid.shape[1] / 2
            wave = np.exp(-2j * np.pi * (row * y / grid.extent[0] + col * x / grid.extent[1]))
            assert abs(u_hat[i, col] - (u * wave).mean() * carried) < 1e-12


@settings(max_examples=60)
@given(grid=grids, seed=seeds)
def test_samples_survive_analysis_and_synthesis(grid, seed):
    u = polynomial(np.random.default_rng(seed), *((n - 1) // 2 for n in grid.shape), grid.extent)(*centres(grid))
    np.testing.assert_allclose(grid.synthesise(grid.analyse(torch.from_numpy(u))), u, atol=1e-10)


@settings(max_examples=40)
@given(one=grids, shape=st.tuples(sides, sides), seed=seeds)
def test_coefficients_do_not_depend_on_the_resolution(one, shape, seed):
    """Without the phase of the half cell they would, by up to a sign."""
    other = one.with_shape(shape)
    most = [min(a - 1, b - 1) // 2 for a, b in zip(one.shape, shape, strict=True)]
    u = polynomial(np.random.default_rng(seed), *most, one.extent)
    on_one, on_other = (g.analyse(torch.from_numpy(u(*centres(g)))) for g in (one, other))
    for row in range(-most[0], most[0] + 1):
        for col in range(most[1] + 1):
            a, b = (complex(coefficient(u_hat, row, col)) for u_hat in (on_one, on_other))
            assert abs(a - b) < 1e-11


@pytest.mark.parametrize("shape", [(8, 8), (8, 7), (7, 8), (2, 2), (2, 6)])
def test_nyquist_is_absent(shape):
    """A wave that alternates from cell to cell has no defined derivative; an even grid carries none of it."""
    grid = Grid(shape)
    rows, cols = mode_numbers(grid.block_shape)
    assert cols.max() < shape[1] / 2
    i, j = np.indices(shape)
    for axis, n in zip((i, j), shape, strict=True):
        if n % 2 == 0:
            u_hat = grid.analyse(torch.from_numpy((-1.0) ** axis))
            assert u_hat.abs().max() < 1e-15
    block = torch.ones((2 * shape[0], shape[1]), dtype=torch.complex128)
    carried = grid.analyse(grid.synthesise(block))
    assert carried[(rows.abs() >= shape[0] / 2)].abs().sum() == 0


def test_leading_axes_are_transformed_one_by_one():
    grid = Grid((6, 5), (1.0, 2.0))
    u = torch.randn((2, 3, 6, 5), dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    together = grid.analyse(u)
    for i in range(2):
        for j in range(3):
            torch.testing.assert_close(together[i, j], grid.analyse(u[i, j]))
            torch.testing.assert_close(grid.synthesise(together)[i, j], grid.synthesise(grid.analyse(u[i, j])))


def test_single_precision_stays_single():
    grid = Grid((8, 8))
    u = torch.randn((8, 8), generator=torch.Generator().manual_seed(0))
    assert grid.analyse(u).dtype == torch.complex64
    assert grid.synthesise(grid.analyse(u)).dtype == torch.float32


def test_wavenumbers_follow_each_side():
    k = wavenumbers((4, 3), (2.0, 0.5))
    np.testing.assert_allclose(k.y[:, 0], np.pi * np.array([0, 1, -2, -1]))
    np.testing.assert_allclose(k.x[0], 4 * np.pi * np.array([0, 1, 2]))
    np.testing.assert_allclose(k.squared[2, 1], (2 * np.pi) ** 2 + (4 * np.pi) ** 2)


# Resampling


@settings(max_examples=40)
@given(source=grids, more=st.tuples(st.integers(0, 9), st.integers(0, 9)), seed=seeds)
def test_resampling_gives_the_function_itself_and_comes_back(source, more, seed):
    target = source.with_shape((source.shape[0] + more[0], source.shape[1] + more[1]))
    u = polynomial(np.random.default_rng(seed), *((n - 1) // 2 for n in source.shape), source.extent)
    samples = torch.from_numpy(u(*centres(source)))
    up = resample(samples, source, target)
    np.testing.assert_allclose(up, u(*centres(target)), atol=1e-10)
    torch.testing.assert_close(resample(up, target, source), samples, rtol=0, atol=1e-10)


@settings(max_examples=40)
@given(source=grids, shape=st.tuples(sides, sides), origin=st.tuples(st.floats(-3, 3), st.floats(-3, 3)), seed=seeds)
def test_resampling_equals_evaluation_at_the_targets_centres(source, shape, origin, seed):
    """Resampling truncates above the target's Nyquist; there, compare what it keeps."""
    target = Grid(shape, source.extent, origin)
    u = torch.from_numpy(np.random.default_rng(seed).standard_normal(source.shape))
    y, x = np.meshgrid(*target.coordinates(), indexing="ij")
    positions = torch.from_numpy(np.stack([y.ravel(), x.ravel()], -1))
    kept = source.analyse(u)
    rows, cols = mode_numbers(source.block_shape)
    kept = kept * ((rows.abs()[:, None] < shape[0] / 2) & (cols < shape[1] / 2))
    expected = at_points(kept, positions, source.extent, origin).reshape(shape)
    torch.testing.assert_close(resample(u, source, target), expected, rtol=0, atol=1e-11)


@settings(max_examples=40)
@given(half=st.integers(1, 4), cols=st.integers(1, 4), extent=st.tuples(lengths, lengths), seed=seeds)
def test_evaluate_is_the_trigonometric_sum_and_is_periodic(half, cols, extent, seed):
    rng = np.random.default_rng(seed)
    u_hat, origin = random_block(rng, (2 * half, cols)), (0.3, -1.1)
    positions = rng.uniform(-1, 2, (7, 2)) * extent
    values = at_points(torch.from_numpy(u_hat), torch.from_numpy(positions), extent, origin)
    expected = series(u_hat, extent, positions[:, 0] - origin[0], positions[:, 1] - origin[1])
    np.testing.assert_allclose(values, expected, atol=1e-11)
    around = at_points(torch.from_numpy(u_hat), torch.from_numpy(positions + extent), extent, origin)
    torch.testing.assert_close(around, values, rtol=0, atol=1e-11)


# Pooling


@given(shape=st.tuples(st.integers(1, 5), st.integers(1, 5)), factor=st.integers(1, 5), seed=seeds)
def test_average_pool_is_the_mean_of_each_tile(shape, factor, seed):
    u = np.random.default_rng(seed).standard_normal((2, shape[0] * factor, shape[1] * factor))
    expected = u.reshape(2, shape[0], factor, shape[1], factor).mean((2, 4))
    np.testing.assert_allclose(average_pool(torch.from_numpy(u), factor), expected, atol=1e-14)


def cell_means(u, coarse, factor):
    """Averages of a function over the cells of a grid: of ``factor`` samples per side, or by quadrature."""
    if factor is None:
        nodes, weights = np.polynomial.legendre.leggauss(24)
        nodes, weights = nodes / 2, weights / 2
    else:
        nodes, weights = (np.arange(factor) + 0.5) / factor - 0.5, np.full(factor, 1 / factor)
    (y, x), (dy, dx) = centres(coarse), coarse.spacing
    return sum(
        wy * wx * u(y + a * dy, x + b * dx)
        for a, wy in zip(nodes, weights, strict=True)
        for b, wx in zip(nodes, weights, strict=True)
    )


@pytest.mark.parametrize("factor", [1, 2, 3, 4, None])
@pytest.mark.parametrize("mode", [(0, 0), (1, 0), (0, 2), (-3, 2), (3, 1)])
def test_pooling_multiplies_a_mode_by_its_attenuation(factor, mode):
    coarse = Grid((8, 6), (1.0, 1.5))

    def wave(y, x):
        return np.cos(2 * np.pi * (mode[0] * y + mode[1] * x / 1.5) + 0.7)

    pooled = coarse.analyse(torch.from_numpy(cell_means(wave, coarse, factor)))
    before = np.exp(0.7j) / 2 if mode != (0, 0) else np.cos(0.7)
    ratio = complex(coefficient(pooled, *mode)) / before
    assert abs(ratio - coefficient(pooling_attenuation(coarse, factor), *mode).item()) < 1e-13
    if factor is not None:
        fine = coarse.refine(factor)
        tiles = average_pool(torch.from_numpy(wave(*centres(fine))), factor)
        torch.testing.assert_close(coarse.analyse(tiles), pooled, rtol=0, atol=1e-13)


def test_attenuation_of_a_larger_block_covers_modes_that_fold():
    """Beyond the coarse Nyquist a mode lands on another, still multiplied by its own factor."""
    coarse, row, col = Grid((8, 8)), 11, 5
    factor = pooling_attenuation(coarse, 4, (32, 16))[row, col].item()
    means = cell_means(lambda y, x: np.cos(2 * np.pi * (row * y + col * x)), coarse, 4)
    y, x = centres(coarse)
    np.testing.assert_allclose(means, factor * np.cos(2 * np.pi * (row * y + col * x)), atol=1e-13)


@settings(max_examples=40)
@given(grid=grids, factor=st.sampled_from([1, 2, 3, 4, None]), seed=seeds)
def test_unpooling_undoes_pooling_below_the_coarse_nyquist(grid, factor, seed):
    u = polynomial(np.random.default_rng(seed), *((n - 1) // 2 for n in grid.shape), grid.extent)
    means = torch.from_numpy(cell_means(u, grid, factor))
    fine = grid.refine(3)
    np.testing.assert_allclose(fine.synthesise(unpool_spectrum(means, grid, factor)), u(*centres(fine)), atol=1e-10)


# Mistakes


@pytest.mark.parametrize("shape", [(0, 4), (4, -1)])
def test_impossible_shapes_are_refused(shape):
    with pytest.raises(UsageError, match="shape"):
        Grid(shape)


@pytest.mark.parametrize("extent", [(0.0, 1.0), (1.0, -2.0), (float("nan"), 1.0), (float("inf"), 1.0)])
def test_impossible_extents_are_refused(extent):
    with pytest.raises(UsageError, match="extent"):
        Grid((4, 4), extent)


@pytest.mark.parametrize("factor", [0, -2, 3, 5])
def test_pooling_that_does_not_divide_is_refused(factor):
    with pytest.raises(UsageError, match="pooled by"):
        Grid((8, 4)).coarsen(factor)
    with pytest.raises(UsageError, match="pooled by"):
        average_pool(torch.zeros((8, 4), dtype=torch.float64), factor)


def test_a_field_of_another_shape_is_refused():
    with pytest.raises(UsageError, match=r"\(8, 4\).*\(4, 8\)"):
        Grid((8, 4)).analyse(torch.zeros((4, 8), dtype=torch.float64))


@pytest.mark.parametrize("resolution", [0, -3])
def test_impossible_resolutions_are_refused(resolution):
    with pytest.raises(UsageError, match="at least 1"):
        Grid((8, 4)).at_resolution(resolution)
