"""What must not matter to a posterior: where the origin is, which axis is called x, and how readings are grouped."""

from __future__ import annotations

import numpy as np
import pytest

import latentpde as lp
from latentpde.estimators.exact.embedding import Embedding
from latentpde.estimators.exact.model import Model
from latentpde.estimators.exact.parameters import Parameters
from latentpde.estimators.exact.readings import Readings
from latentpde.latent import Latent
from latentpde.pde import get_family

EXTENT, ORIGIN, SHAPE = (3.0, 5.0), (10.0, -2.0), (6, 10)


@pytest.fixture(scope="module")
def columns():
    """Twelve stations that read a moving wave at three times, with noise."""
    rng = np.random.default_rng(4)
    y, x = np.tile(rng.random((12, 2)) * EXTENT + ORIGIN, (3, 1)).T
    t = np.repeat([4.0, 4.5, 5.5], 12)
    value = 7 + np.sin(1.3 * (x - 0.8 * t) + y) + 0.1 * rng.standard_normal(36)
    return {"value": value, "y": y, "x": x, "t": t}


def posterior(columns, origin=ORIGIN, **more):
    observation = lp.Observation.from_table(**columns, **more, grid=lp.Grid(SHAPE, EXTENT, origin))
    return lp.reconstruct(observation, "advection_diffusion", num_draws=12, seed=3)


def test_neither_the_origin_nor_the_clock_matters(columns):
    here = posterior(columns)
    moved = {**columns, "y": columns["y"] - 1000.0, "x": columns["x"] + 250.0, "t": columns["t"] + 64.0}
    there = posterior(moved, (ORIGIN[0] - 1000.0, ORIGIN[1] + 250.0))
    for name in ("mean", "std"):
        np.testing.assert_allclose(getattr(there, name)(16), getattr(here, name)(16), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(there.coefficients, here.coefficients, rtol=1e-5, atol=1e-5)


def test_a_group_split_in_two_of_the_same_noise_is_the_same_group(columns):
    whole = posterior(columns, sigma=np.full(36, 0.1))
    halves = posterior(columns, sigma=np.full(36, 0.1), group=np.arange(36) % 2)
    for name in ("mean", "std"):
        np.testing.assert_allclose(getattr(halves, name)(16), getattr(whole, name)(16), rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(halves.coefficients, whole.coefficients, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("edges", [("open", "open"), ("periodic", "open")])
@pytest.mark.parametrize("trend", ["constant", "linear"])
@pytest.mark.parametrize("form", ["covariance", "information"])
def test_which_axis_is_called_x_does_not_matter(columns, edges, trend, form):
    """The search draws parameters in their order, so that the likelihood is compared, at the same parameters."""

    def likelihood(turn):
        names = ("x", "y") if turn else ("y", "x")
        turned = {**columns, **{new: columns[old] for new, old in zip(("y", "x"), names, strict=True)}}
        extent, origin, shape, on = (pair[::-1] if turn else pair for pair in (EXTENT, ORIGIN, SHAPE, edges))
        grid, domain = lp.Grid(shape, extent, origin), lp.Domain(*on)
        readings = Readings.of(lp.Observation.from_table(**turned, grid=grid, domain=domain))
        latent = Latent(get_family("advection_diffusion"), infers_source=True)
        around = Embedding.of(grid, domain, latent.family, latent.bounds, 1.5, 0.8, 60)
        model = Model.with_unknown_start(readings, grid, latent, around, trend=trend, form=form)
        parameters = Parameters.of(model.decoder.latent, {}, {}, model.levels)
        rows = parameters.at(np.random.default_rng(1).uniform(0.2, 0.8, (4, parameters.num_free))).clone()
        if turn:
            vx, vy = (parameters.names.index(name) for name in ("vx", "vy"))
            rows[:, [vx, vy]] = rows[:, [vy, vx]]
        return model.likelihood.log_likelihood(rows).numpy()

    np.testing.assert_allclose(likelihood(True), likelihood(False), rtol=1e-9)
