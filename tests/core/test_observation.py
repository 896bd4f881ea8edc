"""What is taken as an observation, and what is refused and why."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from latentpde.errors import DataError
from latentpde.grid import Grid
from latentpde.observation import Observation

EXTENT = (1.0, 1.5)


# Shapes


@pytest.mark.parametrize(
    ("shape", "times", "batched"),
    [
        ((4, 6), [0.1], False),
        ((3, 4, 6), [0.1], True),
        ((2, 4, 6), [0.1, 0.2], False),
        ((3, 2, 4, 6), [0.1, 0.2], True),
        ((3, 1, 4, 6), [0.1], True),
    ],
)
def test_case_and_time_axes_may_be_left_out(shape, times, batched):
    values = np.arange(np.prod(shape), dtype=float).reshape(shape)
    num_cases = shape[0] if batched else 1
    data = Observation.from_arrays(values, times=times, noise_std=0.1)
    assert data.batched is batched
    assert len(data) == data.num_cases == num_cases
    assert data.values.shape == (num_cases, len(times), 4, 6)
    np.testing.assert_array_equal(data.values.ravel(), values.ravel())
    assert data.grid == Grid((4, 6))


@pytest.mark.parametrize("shape", [(5,), (3, 5), (2, 5), (3, 2, 5)])
def test_case_and_time_axes_of_points(shape):
    times = [0.1, 0.2] if shape in ((2, 5), (3, 2, 5)) else [0.1]
    positions = np.random.default_rng(0).random((5, 2))
    data = Observation.from_arrays(np.ones(shape), times=times, noise_std=0.1, positions=positions, grid=Grid((4, 4)))
    assert data.values.shape == (3 if shape[0] == 3 else 1, len(times), 5)
    assert data.positions is not None
    assert data.positions.shape == (len(data), 5, 2)


def test_missing_readings_are_masked_and_hold_nothing():
    values = np.arange(12.0).reshape(3, 4)
    values[1, 2] = np.nan
    data = Observation.from_arrays(values, noise_std=0.1)
    assert data.num_readings.tolist() == [11]
    assert not data.mask[0, 0, 1, 2]
    assert data.values[0, 0, 1, 2] == 0
    masked = Observation.from_arrays(values, noise_std=0.1, mask=np.arange(12).reshape(3, 4) < 5)
    assert masked.num_readings.tolist() == [5]
    assert not masked.values[~masked.mask].any()


def test_masks_and_noise_may_differ_between_samples():
    rng = np.random.default_rng(0)
    mask, noise = rng.random((3, 4, 6)) < 0.5, rng.uniform(0.1, 0.2, (3, 4, 6))
    data = Observation.from_arrays(np.ones((3, 4, 6)), noise_std=0.1, mask=mask)
    np.testing.assert_array_equal(data.mask[:, 0], mask)
    per_reading = Observation.from_arrays(np.ones((3, 1, 4, 6)), noise_std=noise[:, None])
    np.testing.assert_array_equal(per_reading.noise_std[:, 0], noise)


def test_noise_of_the_readings_own_shape_is_taken_as_it_is():
    noise = np.random.default_rng(0).uniform(0.1, 0.2, (3, 4, 6))
    data = Observation.from_arrays(np.ones((3, 4, 6)), noise_std=noise)
    np.testing.assert_array_equal(data.noise_std[:, 0], noise)


def test_slicing_takes_samples():
    rng = np.random.default_rng(0)
    data = Observation.from_arrays(
        rng.standard_normal((5, 2, 3)), rng.standard_normal((5, 4, 4)), times=[0.1, 0.2], noise_std=0.1,
        positions=rng.random((5, 3, 2)), family="telegraph", pooling=4, source_prior_std=0.5,
    )  # fmt: skip
    some = data[1:3]
    assert len(some) == 2
    for name in ("values", "mask", "noise_std", "initial", "positions"):
        assert torch.equal(getattr(some, name), getattr(data, name)[1:3])
    for name in ("times", "grid", "observed", "family", "pooling", "source_prior_std", "batched"):
        assert getattr(some, name) is getattr(data, name)
    assert len(Observation.from_arrays(np.ones((3, 4, 4)), noise_std=0.1)[1:]) == 2


# Bad data. Each message must name the trouble.

GOOD = np.ones((4, 6))


def with_value(value, at=(1, 2), shape=(4, 6)):
    array = np.ones(shape)
    array[at] = value
    return array


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"values": GOOD, "initial": GOOD * np.nan}, "initial state is NaN everywhere"),
        ({"values": GOOD, "initial": with_value(np.inf)}, "initial state has 1 NaN or infinite"),
        ({"values": np.full((4, 6), np.nan)}, "no observation at all"),
        ({"values": np.stack([GOOD, np.nan * GOOD])}, r"no observation at all in case\(s\) 1"),
        ({"values": GOOD, "mask": np.zeros((4, 6), dtype=bool)}, "no observation at all"),
        ({"values": with_value(np.inf)}, "infinite"),
        ({"values": with_value(-np.inf)}, "infinite"),
        ({"values": with_value(np.nan), "mask": np.ones((4, 6), dtype=bool)}, "1 readings that the mask marks"),
        ({"values": GOOD, "mask": np.ones((4, 5), dtype=bool)}, r"mask has shape \(4, 5\)"),
        ({"values": GOOD, "mask": np.ones((6, 4), dtype=bool)}, r"mask has shape \(6, 4\)"),
        ({"values": GOOD, "noise_std": -0.1}, "noise's standard deviation must be a positive"),
        ({"values": GOOD, "noise_std": 0.0}, "noise's standard deviation must be a positive"),
        ({"values": GOOD, "noise_std": float("nan")}, "noise's standard deviation must be a positive"),
        ({"values": GOOD, "noise_std": float("inf")}, "noise's standard deviation must be a positive"),
        ({"values": GOOD, "noise_std": with_value(0.0)}, "noise's standard deviation must be a positive"),
        ({"values": GOOD, "noise_std": np.ones(5)}, r"noise standard deviation has shape \(5,\)"),
        ({"values": GOOD, "noise_std": "loud"}, "noise standard deviation must be numbers"),
        ({"values": [["a", "b"]]}, "readings must be numbers"),
        ({"values": np.ones((3, 4, 6)), "times": [0.1, 0.2]}, r"2 time\(s\), got shape \(1, 3, 4, 6\)"),
        ({"values": np.ones((2, 3, 4, 6)), "times": [0.1, 0.2]}, "are axes swapped"),
        ({"values": np.ones(6)}, "expected readings with axes"),
        ({"values": GOOD, "times": [-0.1]}, "times must be finite and not negative"),
        ({"values": GOOD, "times": [float("nan")]}, "times must be finite"),
        ({"values": GOOD, "initial": np.ones((6, 4))}, "must agree"),
        ({"values": GOOD.T, "initial": GOOD}, r"cells have shape \(6, 4\).*\(4, 6\)"),
        ({"values": GOOD, "initial": np.ones((8, 12))}, "must agree"),
        ({"values": GOOD, "initial": GOOD, "grid": Grid((6, 4))}, "must agree"),
        ({"values": np.ones((3, 4, 6)), "initial": np.ones((2, 4, 6))}, r"expected 3 initial state\(s\)"),
        ({"values": GOOD, "observed": "point"}, "sensor positions"),
    ],
)  # fmt: skip
def test_bad_cells_are_refused(arguments, message):
    with pytest.raises(DataError, match=message):
        Observation.from_arrays(**{"noise_std": 0.1, **arguments})


@pytest.mark.parametrize(
    ("positions", "message"),
    [
        ([[0.5, 0.5], [0.5, 1.6]], r"1 sensor\(s\) lie outside"),
        ([[-0.1, 0.5], [1.2, 0.5]], r"2 sensor\(s\) lie outside"),
        ([[0.5, float("nan")], [0.5, 0.5]], "outside"),
        ([[1.4, 0.9], [0.1, 0.2]], "units or axes swapped"),
        ([[0.5, 0.5]], r"positions of shape \(1, 2, 2\)"),
        ([[0.5, 0.5, 0.5], [0.5, 0.5, 0.5]], "expected positions"),
    ],
)
def test_bad_positions_are_refused(positions, message):
    with pytest.raises(DataError, match=message):
        Observation.from_arrays(
            np.ones(2), np.ones((4, 6)), noise_std=0.1, positions=positions, grid=Grid((4, 6), EXTENT)
        )


@pytest.mark.parametrize("pooling", [0, -2])
def test_impossible_pooling_is_refused(pooling):
    with pytest.raises(DataError, match="pooling"):
        Observation.from_arrays(GOOD, GOOD, noise_std=0.1, pooling=pooling)


def test_points_without_a_grid_are_refused():
    with pytest.raises(DataError, match="need a grid"):
        Observation.from_arrays(np.ones(2), noise_std=0.1, positions=[[0.1, 0.1], [0.2, 0.2]])


def test_unread_noise_does_not_matter():
    """Files fill gaps with NaN in every variable."""
    values, noise = with_value(np.nan), with_value(np.nan)
    data = Observation.from_arrays(values, noise_std=noise)
    assert torch.isfinite(data.noise_std).all()
