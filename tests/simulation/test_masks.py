"""Every registered mask observes exactly what it is asked to, and each has the geometry it is named for."""

from __future__ import annotations

from fractions import Fraction
from math import floor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.ndimage import label
from scipy.spatial import cKDTree

from latentpde.errors import UsageError
from latentpde.simulation.masks import (
    EVALUATION_MASKS,
    TRAINING_MASKS,
    count_observed,
    draw_mask,
    masks,
    register_mask,
)

every_mask = pytest.mark.parametrize("kind", masks.names())
SHAPES = [(1, 1), (1, 7), (7, 1), (2, 2), (3, 5), (13, 4), (17, 31), (32, 32)]


def draw(kind, shape, sparsity, seed=0):
    return draw_mask(kind, shape, sparsity, generator=np.random.default_rng(seed))


def cells(mask):
    """Centres of the observed cells, in cells."""
    return np.argwhere(mask) + 0.5


def distance_to_edge(mask):
    """How many cells lie between each observed cell and the nearest edge."""
    rows, cols = np.nonzero(mask)
    return np.minimum(np.minimum(rows, mask.shape[0] - 1 - rows), np.minimum(cols, mask.shape[1] - 1 - cols))


def test_training_and_evaluation_masks_are_the_registered_ones():
    assert set(TRAINING_MASKS) | set(EVALUATION_MASKS) <= set(masks.names())
    assert not set(TRAINING_MASKS) & set(EVALUATION_MASKS)


# Counts


@every_mask
@pytest.mark.parametrize("shape", SHAPES)
def test_counts_are_exact_on_awkward_shapes(kind, shape):
    for sparsity in (0.001, 0.05, 0.29, 0.5, 0.77, 0.999, 1.0):
        mask = draw(kind, shape, sparsity)
        assert mask.shape == shape
        assert mask.dtype == bool
        assert mask.sum() == max(1, floor(Fraction(str(sparsity)) * shape[0] * shape[1]))


@every_mask
@settings(max_examples=30)
@given(
    shape=st.tuples(st.integers(1, 20), st.integers(1, 20)),
    sparsity=st.floats(0.001, 1.0),
    seed=st.integers(0, 2**32 - 1),
)
def test_counts_are_exact_at_any_sparsity(kind, shape, sparsity, seed):
    assert draw(kind, shape, sparsity, seed).sum() == count_observed(shape, sparsity)


@settings(max_examples=300)
@given(shape=st.tuples(st.integers(1, 300), st.integers(1, 300)), data=st.data())
def test_a_fraction_made_from_a_count_gives_that_count_back(shape, data):
    num_cells = shape[0] * shape[1]
    count = data.draw(st.integers(1, num_cells))
    assert count_observed(shape, count / num_cells) == count


def test_a_decimal_sparsity_means_the_decimal():
    assert floor(0.29 * 100) == 28
    assert count_observed((10, 10), 0.29) == 29
    assert count_observed((10, 10), 0.2899) == 28


@pytest.mark.parametrize("sparsity", [0.0, -0.1, 1.0001, float("nan"), float("inf")])
def test_impossible_sparsity_is_refused(sparsity):
    with pytest.raises(UsageError, match="sparsity"):
        draw("random", (8, 8), sparsity)


@pytest.mark.parametrize("shape", [(0, 4), (4, -1)])
def test_impossible_shape_is_refused(shape):
    with pytest.raises(UsageError, match="shape"):
        draw("random", shape, 0.5)


def test_unknown_mask_names_its_likely_meaning():
    with pytest.raises(UsageError, match="single_patch"):
        draw("single_pach", (8, 8), 0.1)


# Randomness


@every_mask
def test_the_seed_decides(kind):
    first = draw(kind, (24, 20), 0.1, seed=3)
    np.testing.assert_array_equal(first, draw(kind, (24, 20), 0.1, seed=3))
    assert len({draw(kind, (24, 20), 0.1, seed).tobytes() for seed in range(8)}) > 4


# Extension


def test_a_user_mask_is_one_decorated_function():
    @register_mask
    def leftmost(shape, num_observed, *, generator):
        return np.arange(shape[1])[None, :] + np.zeros(shape)

    try:
        assert draw("leftmost", (4, 10), 0.3)[:, :3].all()
    finally:
        masks.unregister("leftmost")


def test_scores_of_the_wrong_shape_are_refused():
    @register_mask
    def transposed(shape, num_observed, *, generator):
        return np.zeros(shape[::-1])

    try:
        with pytest.raises(UsageError, match="transposed"):
            draw("transposed", (4, 10), 0.3)
    finally:
        masks.unregister("transposed")


# Geometry

seeds = pytest.mark.parametrize("seed", range(4))
sparsities = pytest.mark.parametrize("sparsity", [0.03, 0.05, 0.1, 0.3])


def test_random_observes_every_cell_equally_often():
    frequency = np.mean([draw("random", (6, 5), 0.2, seed) for seed in range(1500)], axis=0)
    np.testing.assert_allclose(frequency, 0.2, atol=6 * np.sqrt(0.2 * 0.8 / 1500))


def test_clustered_cells_have_nearer_neighbours_than_random_ones():
    def mean_neighbour_distance(kind, seed):
        tree = cKDTree(cells(draw(kind, (32, 32), 0.05, seed)), boxsize=32)
        return tree.query(tree.data, k=4)[0][:, 1:].mean()

    clustered, uniform = (
        np.mean([mean_neighbour_distance(kind, s) for s in range(20)]) for kind in ("clustered", "random")
    )
    assert clustered < 0.6 * uniform


@seeds
def test_one_line_is_straight_thin_and_connected(seed):
    mask = draw("line", (40, 40), 12 / 1600, seed)
    points = cells(mask)
    across = np.linalg.svd(points - points.mean(axis=0))[2][1]
    assert np.ptp((points - points.mean(axis=0)) @ across) <= 1.5
    assert label(mask, np.ones((3, 3)))[1] == 1
    assert np.ptp(points, axis=0).max() >= 10


@seeds
def test_lines_cross_the_domain(seed):
    """A few transects hold all cells, so some thin straight strip holds many, which no scatter of 51 does."""
    mask = draw("line", (32, 32), 0.05, seed)
    rows, cols = np.nonzero(mask)
    angles = np.linspace(0, np.pi, 180, endpoint=False)
    offsets = np.round(np.outer(np.sin(angles), cols) - np.outer(np.cos(angles), rows)).astype(int)
    fullest = max(np.bincount(row - row.min()).max() for row in offsets)
    assert fullest >= 0.3 * mask.sum()
    assert (distance_to_edge(mask) == 0).any()


@seeds
@sparsities
def test_corners_are_filled_from_the_corners(seed, sparsity):
    mask = draw("corners", (30, 44), sparsity, seed)
    corners = [(0, 0), (0, 44), (30, 0), (30, 44)]
    radius = np.min([np.linalg.norm(cells(mask) - corner, axis=1) for corner in corners], axis=0)
    # Even a single quarter disc of all the cells would not be wider.
    assert radius.max() <= np.sqrt(4 * mask.sum() / np.pi) + 1
    assert mask[[0, 0, -1, -1], [0, -1, 0, -1]].sum() >= 3


@seeds
@pytest.mark.parametrize("shape", [(32, 32), (33, 21), (16, 48)])
@pytest.mark.parametrize("count", [16, 35, 51, 97])
def test_grid_is_a_lattice_of_even_gaps(seed, shape, count):
    mask = draw("grid", shape, count / (shape[0] * shape[1]), seed)
    rows, cols = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
    gaps_y, gaps_x = np.diff(rows), np.diff(cols)
    assert np.ptp(gaps_y) <= 1
    assert np.ptp(gaps_x) <= 1
    assert 0.5 < gaps_y.mean() / gaps_x.mean() < 2
    assert len(rows) * len(cols) <= 1.25 * count
    for used, length, gap in ((rows, shape[0], gaps_y.max()), (cols, shape[1], gaps_x.max())):
        assert used[0] <= gap
        assert used[-1] >= length - 1 - gap


@seeds
def test_grid_neighbours_are_equally_far(seed):
    points = cells(draw("grid", (32, 32), 64 / 1024, seed))
    nearest = cKDTree(points).query(points, k=2)[0][:, 1]
    np.testing.assert_array_equal(nearest, 4.0)


@seeds
@pytest.mark.parametrize("sparsity", [0.05, 0.2, 0.5])
def test_boundary_fills_ring_after_ring(seed, sparsity):
    mask = draw("boundary", (20, 31), sparsity, seed)
    rings = distance_to_edge(mask)
    whole = distance_to_edge(np.ones_like(mask))
    for ring in range(rings.max()):
        assert (rings == ring).sum() == (whole == ring).sum()


@seeds
@pytest.mark.parametrize("sparsity", [0.05, 0.1, 0.3])
@pytest.mark.parametrize("shape", [(32, 32), (31, 45)])
def test_radial_runs_from_the_centre_to_the_edge_in_all_directions(seed, sparsity, shape):
    mask = draw("radial", shape, sparsity, seed)
    offsets = cells(mask) - np.array(shape) / 2
    assert np.linalg.norm(offsets, axis=1).min() < 2
    outer = offsets[distance_to_edge(mask) <= 2]
    assert len(outer) >= 6
    directions = np.sort(np.arctan2(outer[:, 0], outer[:, 1]))
    gaps = np.diff(directions, append=directions[0] + 2 * np.pi)
    assert gaps.max() < 0.5 * np.pi


@seeds
def test_radial_cells_lie_on_six_even_spokes(seed):
    offsets = cells(draw("radial", (32, 32), 0.05, seed)) - 16
    outer = offsets[np.linalg.norm(offsets, axis=1) > 6]
    direction = np.arctan2(outer[:, 0], outer[:, 1])
    assert abs(np.exp(6j * direction).mean()) > 0.9


@seeds
@sparsities
@pytest.mark.parametrize("shape", [(32, 32), (5, 60), (60, 5), (19, 23)])
def test_single_patch_is_one_compact_block(seed, sparsity, shape):
    mask = draw("single_patch", shape, sparsity, seed)
    height, width = np.ptp(np.argwhere(mask), axis=0) + 1
    count = mask.sum()
    assert height * width - count < width
    side = np.ceil(np.sqrt(count))
    assert min(height, width) >= min(side - 1, *shape)
    assert label(mask)[1] == 1


def test_single_patch_moves_over_the_whole_domain():
    union = np.any([draw("single_patch", (16, 16), 0.1, seed) for seed in range(300)], axis=0)
    assert union.all()
