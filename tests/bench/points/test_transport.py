"""The finite-volume solver against closed forms: puffs and plumes of Gaussian shape in a uniform wind."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import quad_vec

from latentpde.bench.points.transport import transport
from latentpde.errors import UsageError

VELOCITY, DIFFUSIVITY, WIDTH, TIME = (0.6, -1.1), 0.3, 1.2, 1.5
SIDE = 24.0


def centres(num):
    return (np.arange(num) + 0.5) * SIDE / num


def gaussian(num, time):
    """A puff of Gaussian shape that has drifted and spread for some time, of height 1 at the start."""
    variance = WIDTH**2 + 2 * DIFFUSIVITY * time
    y, x = (centres(num) - SIDE / 2 - v * time for v in VELOCITY)
    return WIDTH**2 / variance * np.exp(-(y[:, None] ** 2 + x**2) / (2 * variance))


def solve(num, initial, source):
    return transport(initial, source, np.array([TIME]), spacing=SIDE / num, velocity=VELOCITY, diffusivity=DIFFUSIVITY)[
        0
    ]


def largest_error(num, kind):
    if kind == "puff":
        return np.abs(solve(num, gaussian(num, 0), np.zeros((num, num))) - gaussian(num, TIME)).max()
    plume, _ = quad_vec(lambda t: gaussian(num, t), 0, TIME)  # puffs that have left the source one after another
    return np.abs(solve(num, np.zeros((num, num)), gaussian(num, 0)) - plume).max()


@pytest.mark.parametrize("kind", ["puff", "plume"])
def test_closed_forms_are_met_with_second_order(kind):
    errors = [largest_error(num, kind) for num in (32, 64, 128)]
    orders = [math.log2(coarse / fine) for coarse, fine in pairwise(errors)]
    assert errors[-1] < 4e-3
    assert orders[-1] == pytest.approx(2, abs=0.1)


def test_nothing_is_lost_between_cells():
    num = 64
    cell = (SIDE / num) ** 2
    rough = np.random.default_rng(0).standard_normal((2, num, num))
    puff, source = gaussian(num, 0) + rough[0], rough[1]
    after = solve(num, puff, source)
    assert after.sum() * cell == pytest.approx((puff.sum() + TIME * source.sum()) * cell, rel=1e-9, abs=1e-9)


def test_several_times_are_those_of_single_runs():
    num = 64
    times = np.array([0.0, TIME / 2, TIME])
    together = transport(
        gaussian(num, 0), gaussian(num, 0), times, spacing=SIDE / num, velocity=VELOCITY, diffusivity=DIFFUSIVITY
    )
    np.testing.assert_array_equal(together[0], gaussian(num, 0))
    np.testing.assert_allclose(together[2], solve(num, gaussian(num, 0), gaussian(num, 0)), atol=1e-3)


@pytest.mark.parametrize("velocity", [(0.0, 0.0), (30.0, 0.0), (-20.0, 20.0)])
def test_steps_are_stable_in_any_wind(velocity):
    rough = np.random.default_rng(0).standard_normal((24, 24))
    after = transport(rough, 0 * rough, np.array([2.0]), spacing=0.5, velocity=velocity, diffusivity=0.2)
    assert np.square(after).sum() < np.square(rough).sum()


def test_times_must_not_decrease():
    with pytest.raises(UsageError, match="decrease"):
        transport(
            np.zeros((4, 4)), np.zeros((4, 4)), np.array([1.0, 0.5]), spacing=1.0, velocity=(0.0, 0.0), diffusivity=1.0
        )
