"""Cases between walls, from the prior: their walls, and their sizes in the middle."""

import numpy as np
import pytest

from latentpde.bench.points.walled_draws import EDGES, Images, heat_between_walls, matern_power, steady_between_walls


@pytest.mark.parametrize("edges", EDGES)
def test_fields_meet_their_walls(edges):
    rng, images = np.random.default_rng(0), Images(edges)
    field = images.draw(1.0, 0.4, rng)
    for axis, edge in enumerate(edges):
        for wall in (0.0, 1.0):
            place = np.array([[0.3, 0.6]])
            place[0, axis] = wall
            step = np.eye(2)[axis] * 1e-5
            if edge == "dirichlet":
                assert abs(images.at(field, place)[0]) < 1e-12
            if edge == "neumann":
                assert abs(images.at(field, place + step)[0] - images.at(field, place - step)[0]) < 1e-12


def test_a_steady_field_has_the_laplacian_that_its_source_says():
    case = steady_between_walls(3)
    assert case.field.shape == case.source.shape == (64,)
    assert case.of_source.sum() == 6
    assert np.abs(case.field).max() < 0.2 * np.abs(case.source).max()


def test_between_walls_the_middle_looks_like_the_stationary_field():
    rng, images = np.random.default_rng(1), Images(("dirichlet", "neumann"))
    middle = [images.at(images.draw(1.0, 0.25, rng), np.array([[0.5, 0.5]]))[0] for _ in range(4000)]
    k = np.sqrt((images.k**2).sum(-1))
    total = (matern_power(k, 1.0, 0.25) / 4 * np.where((images.k == 0).all(-1), 1, 2)).sum()
    assert abs(np.var(middle) / total - 1) < 0.15


def test_heat_is_read_three_times_and_its_source_once():
    case = heat_between_walls(1)
    assert case.edges == ("neumann", "neumann")
    assert np.unique(case.times[~case.of_source]).tolist() == [0.0, 0.5, 1.0]
