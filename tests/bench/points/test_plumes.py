"""Cases of plumes: repeatable, converged, and undisturbed by the edges of the domain that is solved."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.ndimage import map_coordinates

from latentpde.bench.points import plumes
from latentpde.bench.points.plumes import EXTENT, HOURS, NOISE_STD, SPACING, draw_plumes, interpolate, plume_task


def coarse_task(index):
    return plume_task(index, spacing=1.0)


def test_an_index_gives_the_same_case_each_time():
    first, again, other = coarse_task(3), coarse_task(3), coarse_task(4)
    np.testing.assert_array_equal(first.readings.values, again.readings.values)
    np.testing.assert_array_equal(first.asked.values, again.asked.values)
    assert first.truth == again.truth != other.truth


def test_readings_are_a_long_table_with_gaps():
    task = coarse_task(0)
    readings = task.readings
    assert 0.8 * 216 < len(readings) < 216
    assert set(readings.times) == set(HOURS)
    assert len(np.unique(readings.stations)) == 36
    assert (readings.points >= 0).all()
    assert (readings.points <= EXTENT).all()
    assert set(task.asked.times) == {HOURS[-1]}
    assert 3 <= np.hypot(task.truth["vx"], task.truth["vy"]) <= 8


def test_readings_are_the_truth_with_noise(monkeypatch):
    noisy = coarse_task(1)
    monkeypatch.setattr(plumes, "NOISE_STD", 0.0)
    clean = coarse_task(1)
    error = noisy.readings.values - clean.readings.values
    assert error.std() == pytest.approx(NOISE_STD, rel=0.2)
    np.testing.assert_array_equal(noisy.asked.values, clean.asked.values)


def inside(case, spacing):
    """The last field over the observed domain, at places 1 km apart."""
    axes = [np.arange(0.5, length) for length in EXTENT]
    points = np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(-1, 2)
    return interpolate(case.fields(spacing)[-1], points, case.origin, spacing)


def test_edges_of_the_large_domain_are_not_felt():
    case = draw_plumes(np.random.default_rng(5), spacing=1.0)
    ring = np.full_like(case.initial, 10.0)
    ring[2:-2, 2:-2] = 0
    changed = inside(replace(case, initial=case.initial + ring), 1.0)
    assert np.abs(changed - inside(case, 1.0)).max() < 0.01


@pytest.mark.slow
def test_the_solver_s_cells_are_small_enough():
    """Halving them moves the truth by much less than a reading's noise."""
    case = draw_plumes(np.random.default_rng(6))
    fine = replace(case, initial=upsampled(case.initial), source=upsampled(case.source))
    apart = inside(case, SPACING) - inside(fine, SPACING / 2)
    assert np.sqrt(np.mean(apart**2)) < 0.1 * NOISE_STD


def upsampled(field):
    """A smooth field of cell centres at the centres of cells of half the side, by cubic splines."""
    places = [(np.arange(2 * n) + 0.5) / 2 - 0.5 for n in field.shape]
    return map_coordinates(field, np.meshgrid(*places, indexing="ij"), order=3, mode="grid-wrap")
