"""Open edges, and what must not matter: where the data lie, which axis is which, how noise is grouped."""

from __future__ import annotations

import numpy as np
import pytest

import latentpde as lp
from latentpde.bench.points.blob import reconstructed


def test_a_blob_drifts_out_through_an_open_edge():
    found = reconstructed(1, "open")
    assert found.near < 1.3 * found.inside
    assert found.inside < 0.04
    assert abs(float(found.posterior.coefficients.sel(coefficient="vx").mean()) - 0.7) < 0.05
    assert found.posterior.settings["domain"] == "open"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::latentpde.LatentPDEWarning")
def test_on_a_torus_it_comes_in_again():
    assert reconstructed(1, "periodic").near > 3 * reconstructed(1, "open").near


COLUMNS = ("value", "y", "x", "t")


@pytest.fixture(scope="module")
def small():
    """A drifting wave at few stations, which is quickly searched, and what is found of it."""
    rng = np.random.default_rng(4)
    y, x, t = np.tile(rng.random(8) * 3, 3), np.tile(rng.random(8) * 5, 3), np.repeat([0.0, 0.5, 1.0], 8)
    value = np.sin(1.3 * (x - 0.8 * t) + y) + 0.1 * rng.standard_normal(24)
    columns = dict(zip(COLUMNS, (value, y, x, t), strict=True))
    return columns, found_of(columns)


def found_of(columns, corner=(0.0, 0.0), extent=(3.0, 5.0), effort=None, **options):
    grid = lp.Grid((6, 10) if extent[0] < extent[1] else (10, 6), extent, corner)
    observation = lp.Observation.from_table(**columns, grid=grid, **options)
    known = {"source": "none", "initial": "Matern(length=1.5)", "trend": "none"}
    return lp.reconstruct(observation, "advection_diffusion", num_draws=200, **known, **(effort or {}))


def test_where_and_when_the_data_lie_does_not_matter(small):
    columns, expected = small
    moved = {**columns, "y": columns["y"] + 40, "x": columns["x"] - 7, "t": columns["t"] + 100}
    found = found_of(moved, corner=(40.0, -7.0))
    np.testing.assert_allclose(found.mean(16), expected.mean(16), atol=1e-5)
    np.testing.assert_allclose(found.std(16), expected.std(16), rtol=1e-4)


def test_which_axis_is_which_does_not_matter(small):
    """The search takes coefficients in another order, so the two agree up to its Monte Carlo error, which is made
    small: spreads are those of tails, too."""
    columns, effort = small[0], {"target": 4000.0, "num_spread_draws": 999}
    expected = found_of(columns, effort=effort)
    found = found_of({**columns, "y": columns["x"], "x": columns["y"]}, extent=(5.0, 3.0), effort=effort)
    spread = expected.std(16).values
    assert (np.abs(found.mean(16).values.T - expected.mean(16).values) < 0.3 * spread).all()
    np.testing.assert_allclose(found.std(16).values.T, spread, rtol=0.35)
    there, here = (some.coefficients.mean("draw").values for some in (found, expected))
    np.testing.assert_allclose(there[[1, 0, 2]], here, atol=0.3 * float(expected.coefficients.std("draw").max()))


def test_two_groups_of_the_same_known_noise_are_one(small):
    columns, _ = small
    one, two = (found_of(columns, sigma=0.1, group=group) for group in (None, np.arange(24) % 2))
    np.testing.assert_array_equal(one.mean(16), two.mean(16))


def test_a_result_says_what_was_assumed(small):
    settings = small[1].settings
    assert settings["domain"] == "open"
    assert settings["noise_std"] == "inferred"
    assert settings["trend"] == "none"
    assert (settings["initial"], settings["source"], settings["velocity"]) == ("Matern", "none", "zero")
    assert settings["bounds_from"]["vx"] == "from extent and times"
    lower, upper = settings["level_bounds"]["noise_std"]
    assert lower < float(small[1].levels.sel(level="noise_std").mean()) < upper
    assert settings["level_bounds_from"]["noise_std"] == "the data"
