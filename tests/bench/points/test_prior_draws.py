"""Cases from the prior: their fields have the covariance and solve the equation that they say."""

from __future__ import annotations

import numpy as np
import pytest

from latentpde.bench.points.prior_draws import BOUNDS, LEVELS, NUM_STATIONS, TIMES, Torus, prior_case


def test_fields_are_matern_s():
    torus, rng = Torus(3), np.random.default_rng(0)
    apart = np.array([0.0, 0.1, 0.25, 0.5])
    points = np.column_stack([0.5 + 0.6 * apart, 0.2 + 0.8 * apart])
    draws = np.array([torus.at(torus.draw(1.3, 0.3, rng), points) for _ in range(3000)])
    found = (draws[:, :1] * draws).mean(0)
    r = np.sqrt(3) * apart / 0.3
    np.testing.assert_allclose(found, 1.3**2 * (1 + r) * np.exp(-r), atol=0.12)


def test_the_square_closes_on_itself_or_not():
    for length, closes in ((1, True), (3, False)):
        torus = Torus(length)
        field = torus.draw(1.0, 0.3, np.random.default_rng(1))
        left, right = torus.at(field, np.array([[0.3, 0.0], [0.3, 1.0]]))
        assert (abs(left - right) < 1e-9) == closes


def test_fields_solve_the_equation():
    torus, rng = Torus(1), np.random.default_rng(2)
    state, source = torus.draw(1.0, 0.4, rng), torus.draw(1.0, 0.4, rng)
    velocity, diffusivity, time, h = (0.4, -0.7), 0.02, 0.6, 1e-3
    points = rng.uniform(0, 1, (20, 2))

    def u(shift=(0.0, 0.0), later=0.0):
        return torus.at(torus.evolved(state, source, time + later, velocity, diffusivity), points + np.array(shift))

    u_t = (u(later=h) - u(later=-h)) / (2 * h)
    u_y, u_x = (u((h, 0)) - u((-h, 0))) / (2 * h), (u((0, h)) - u((0, -h))) / (2 * h)
    laplacian = (u((h, 0)) + u((-h, 0)) + u((0, h)) + u((0, -h)) - 4 * u()) / h**2
    right = diffusivity * laplacian + torus.at(source, points)
    np.testing.assert_allclose(u_t + velocity[0] * u_y + velocity[1] * u_x, right, atol=2e-3)
    at_start = torus.evolved(state, source, 0.0, velocity, diffusivity)
    np.testing.assert_allclose(at_start, state)


def test_settings_share_what_they_do_not_change():
    plain, added, larger = (prior_case(3), prior_case(3, constant=True), prior_case(3, open_edges=True))
    assert plain.task.truth == added.task.truth == larger.task.truth
    assert plain.levels == added.levels == larger.levels
    assert plain.trend == (0, 0, 0)
    np.testing.assert_allclose(added.task.readings.values - plain.task.readings.values, added.trend[0])
    np.testing.assert_array_equal(plain.task.readings.points, larger.task.readings.points)
    assert len(plain.task.readings) == NUM_STATIONS * len(TIMES)


def test_slopes_are_about_the_middle():
    plain, sloped = prior_case(4), prior_case(4, constant=True, slopes=True)
    readings = sloped.task.readings
    expected = sloped.trend[0] + (readings.points - 0.5) @ np.array(sloped.trend[1:])
    np.testing.assert_allclose(readings.values - plain.task.readings.values, expected)


def test_truths_lie_within_their_bounds():
    cases = [prior_case(index) for index in range(40)]
    for ranges, drawn in ((BOUNDS, [case.task.truth for case in cases]), (LEVELS, [case.levels for case in cases])):
        for name, (low, high) in ranges.items():
            values = [some[name] for some in drawn]
            assert low < min(values) < max(values) < high
    noise = [case.task.readings.values for case in cases]
    assert all(np.isfinite(values).all() for values in noise)
    assert min(case.levels["noise_std"] for case in cases) == pytest.approx(0.05, rel=0.5)
