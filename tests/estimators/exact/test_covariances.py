"""Every way to the readings' covariance: the same numbers, and the derivatives that differences have."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import latentpde as lp
from latentpde.estimators.exact.covariances import DisplacementTable, signal_of
from latentpde.estimators.exact.products import ReadingProducts, SnapshotProducts
from latentpde.latent import Latent
from latentpde.pde import families, get_family
from tests.estimators.exact.test_model import EXTENT, GRID, model_of, some_parameters

LAYOUTS = {"stations": DisplacementTable, "swarm": SnapshotProducts, "ship": ReadingProducts}
WALLS = lp.Domain("neumann", "dirichlet")


def unknown_of(family, layout, domain=None):
    """The unknown modes of nine readings a time: stations, other places at each of three times, or a ship."""
    rng, num = np.random.default_rng(2), 27
    places = rng.random((num, 2)) * EXTENT + np.array(GRID.origin)
    places = np.tile(places[:9], (3, 1)) if layout == "stations" else places
    times = np.sort(rng.random(num)) if layout == "ship" else np.repeat([0.0, 0.3, 0.7], 9)
    columns = {"value": rng.standard_normal(num), "y": places[:, 0], "x": places[:, 1], "t": times}
    family = get_family(family)
    latent = Latent(family, bounds=torch.stack([family.bounds[:, 0], family.bounds.mean(-1)], -1), infers_source=True)
    domain = domain or lp.Domain("open", "periodic")
    observation = lp.Observation.from_table(**columns, grid=GRID, family=family.name, domain=domain)
    model, _ = model_of(observation, latent, most_modes=4)
    return model.likelihood.unknown, some_parameters(model, num=2)[0]


def by_modes(unknown, parameters):
    """The covariance as the product of what readings see of all modes."""
    heard = unknown.heard(parameters)
    return (heard @ heard.mH).real


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("family", families.names())
def test_the_cheapest_way_gives_what_all_modes_give(family, layout):
    unknown, parameters = unknown_of(family, layout)
    signal = signal_of(unknown)
    if get_family(family).order:
        assert type(signal) is LAYOUTS[layout]
    torch.testing.assert_close(signal.covariance(parameters), by_modes(unknown, parameters), rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("kind", [SnapshotProducts, ReadingProducts])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_walls_and_readings_in_any_layout(layout, kind):
    unknown, parameters = unknown_of("heat", layout, WALLS)
    found = kind(unknown).covariance(parameters)
    torch.testing.assert_close(found, by_modes(unknown, parameters), rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("family", ["advection_diffusion", "klein_gordon", "helmholtz"])
def test_derivatives_are_those_of_differences(family, layout):
    unknown, parameters = unknown_of(family, layout)
    signal = signal_of(unknown)
    weights = torch.randn((27, 27), dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    for part in (weights, weights.tril()):  # the likelihood's own derivative is of the lower triangle
        assert torch.autograd.gradcheck(
            lambda some, part=part: (signal.covariance(some) * part).sum(),
            parameters.clone().requires_grad_(True),
            atol=1e-6,
            rtol=1e-5,
        )


def test_more_rows_than_are_multiplied_at_once(monkeypatch):
    monkeypatch.setattr("latentpde.estimators.exact.products._ROWS_AT_ONCE", 4)
    for kind in (SnapshotProducts, ReadingProducts):
        unknown, parameters = unknown_of("advection_diffusion", "swarm")
        found = kind(unknown).covariance(parameters)
        torch.testing.assert_close(found, by_modes(unknown, parameters), rtol=1e-11, atol=1e-12)
