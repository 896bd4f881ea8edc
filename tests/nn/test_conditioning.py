"""The four channels: distances against a search over all pairs, densities, and points in their cells."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from latentpde.grid import Grid
from latentpde.nn.conditioning import conditioning, distance_to_observation, observation_density
from latentpde.observation import Observation

lengths = st.floats(0.2, 5.0)


@st.composite
def masks_on_grids(draw):
    shape = draw(st.tuples(st.integers(1, 7), st.integers(1, 7)))
    mask = draw(hnp.arrays(bool, shape))
    mask[draw(st.integers(0, shape[0] - 1)), draw(st.integers(0, shape[1] - 1))] = True
    return mask, Grid(shape, draw(st.tuples(lengths, lengths)))


def nearest(mask, grid):
    """Distance of every cell to every observed cell and its eight periodic images; the least of them."""
    observed = np.argwhere(mask)
    images = [(a, b) for a in (-1, 0, 1) for b in (-1, 0, 1)]
    expected = np.zeros(grid.shape)
    for cell in np.ndindex(*grid.shape):
        gaps = [(observed - cell + np.multiply(image, grid.shape)) * grid.spacing for image in images]
        expected[cell] = min(np.sqrt((gap**2).sum(1)).min() for gap in gaps)
    return expected


@settings(max_examples=60)
@given(masks_on_grids())
def test_distance_is_that_of_the_nearest_reading_around_the_domain(case):
    mask, grid = case
    actual = distance_to_observation(torch.from_numpy(mask), grid)
    np.testing.assert_allclose(actual, nearest(mask, grid) / min(grid.extent), atol=1e-12)


def test_distance_by_hand():
    """One reading in the corner of four by four cells: the far corner is one cell away, around the edges."""
    mask = torch.zeros((4, 4), dtype=torch.bool)
    mask[0, 0] = True
    distance = distance_to_observation(mask, Grid((4, 4), (2.0, 2.0)))
    np.testing.assert_allclose(distance[0], [0, 0.25, 0.5, 0.25])
    assert distance[3, 3].item() == pytest.approx(np.sqrt(2) / 4)


@settings(max_examples=60)
@given(masks_on_grids())
def test_mean_density_is_the_sparsity(case):
    mask, grid = case
    density = observation_density(torch.from_numpy(mask), grid)
    assert density.mean().item() == pytest.approx(mask.mean(), rel=1e-12)
    assert density.min() >= 0
    assert density.max() <= 1 + 1e-12


def test_density_falls_off_as_its_window():
    """Around one reading it is a Gaussian of a sixteenth of the shorter side, in physical lengths on both axes."""
    grid = Grid((64, 96), (1.0, 1.5))
    mask = torch.zeros(grid.shape, dtype=torch.bool)
    mask[30, 50] = True
    density = observation_density(mask, grid)
    for steps in (1, 4, 8):
        expected = np.exp(-0.5 * (steps / 64 * 16) ** 2)
        assert (density[30 + steps, 50] / density[30, 50]).item() == pytest.approx(expected, rel=1e-9)
        assert (density[30, 50 - steps] / density[30, 50]).item() == pytest.approx(expected, rel=1e-9)


@settings(max_examples=30)
@given(masks_on_grids(), st.tuples(st.integers(-9, 9), st.integers(-9, 9)))
def test_channels_move_with_the_mask(case, shift):
    mask, grid = case
    moved = torch.from_numpy(np.roll(mask, shift, (0, 1)))
    for channel in (distance_to_observation, observation_density):
        still = channel(torch.from_numpy(mask), grid).roll(shift, (0, 1))
        torch.testing.assert_close(channel(moved, grid), still, rtol=0, atol=1e-12)


def test_channels_of_cells_in_order():
    rng = np.random.default_rng(0)
    grid = Grid((6, 8), (1.0, 2.0))
    values, mask = rng.standard_normal((3, 2, 6, 8)), rng.random((3, 2, 6, 8)) < 0.3
    mask[..., 0, 0] = True
    channels = conditioning(Observation.from_arrays(values, times=[0.1, 0.2], noise_std=0.1, mask=mask, grid=grid))
    assert channels.shape == (3, 2, 4, 6, 8)
    np.testing.assert_array_equal(channels[:, :, 0], np.where(mask, values, 0))
    np.testing.assert_array_equal(channels[:, :, 1], mask)
    for i in range(3):
        for t in range(2):
            alone = torch.from_numpy(mask[i, t])
            torch.testing.assert_close(channels[i, t, 2], distance_to_observation(alone, grid))
            torch.testing.assert_close(channels[i, t, 3], observation_density(alone, grid))


def points(values, positions, grid, **options):
    return conditioning(Observation.from_arrays(values, noise_std=0.1, positions=positions, grid=grid, **options))


@pytest.mark.parametrize("origin", [(0.0, 0.0), (-2.0, 5.0)])
def test_points_land_in_the_cells_that_hold_them(origin):
    grid = Grid((4, 8), (1.0, 4.0), origin)
    cells = [(0, 0), (3, 7), (2, 5), (1, 0)]
    corner = np.array(origin)
    positions = [corner + np.add(cell, (0.1, 0.9)) * grid.spacing for cell in cells]
    channels = points(np.array([1.0, 2.0, 3.0, 4.0]), np.array(positions), grid)[0, 0]
    expected = np.zeros((4, 8))
    for value, cell in zip((1.0, 2.0, 3.0, 4.0), cells, strict=True):
        expected[cell] = value
    np.testing.assert_array_equal(channels[0], expected)
    np.testing.assert_array_equal(channels[1], expected != 0)
    assert not channels[2][channels[1].bool()].any()


def test_a_point_on_the_upper_edge_is_one_on_the_lower():
    """The domain is periodic: both edges are the same place."""
    grid = Grid((4, 8), (1.0, 4.0))
    upper = points(np.array([7.0]), np.array([[1.0, 4.0]]), grid)
    lower = points(np.array([7.0]), np.array([[0.0, 0.0]]), grid)
    assert torch.equal(upper, lower)
    assert upper[0, 0, 0, 0, 0] == 7


def test_points_in_one_cell_are_averaged_and_missing_ones_do_not_count():
    grid = Grid((2, 2))
    positions = np.array([[0.1, 0.1], [0.2, 0.3], [0.3, 0.1], [0.9, 0.9]])
    channels = points(np.array([[1.0, 3.0, np.nan, np.nan]]), positions, grid)[0, 0]
    np.testing.assert_allclose(channels[0], [[2, 0], [0, 0]])
    np.testing.assert_allclose(channels[1], [[1, 0], [0, 0]])


def test_a_snapshot_without_readings_has_finite_channels():
    """Another snapshot of the same case may have some; an infinite distance would ruin a network's output."""
    values = np.ones((2, 4, 6))
    values[1] = np.nan
    channels = conditioning(Observation.from_arrays(values, times=[0.1, 0.2], noise_std=0.1))
    assert torch.isfinite(channels).all()
