"""What `reconstruct` makes of its arguments."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from small_cases import observation

from latentpde.errors import DataError, UsageError
from latentpde.estimators import reconstruct
from latentpde.observation import Observation
from latentpde.pde import families
from latentpde.posterior import LatentPosterior


def test_a_method_misspelt_gets_a_suggestion():
    with pytest.raises(UsageError, match="did you mean 'map'"):
        reconstruct(observation(), method="mpa")


def test_knowledge_comes_from_the_arguments_then_the_data_then_the_family():
    data = observation()
    assert data.bounds is not None

    def latent(**options):
        posterior = reconstruct(data, method="map", num_steps=1, num_restarts=1, num_modes=1, **options)
        assert isinstance(posterior, LatentPosterior)
        return posterior.decoder.latent

    assert torch.equal(latent().bounds, data.bounds)
    assert latent().source_prior_std == 0.4
    assert latent(source_prior_std=2.0).source_prior_std == 2.0
    narrowed = latent(bounds={"kappa": (0.1, 0.12)}).bounds
    assert torch.equal(narrowed[:2], data.bounds[:2])
    assert narrowed[2].tolist() == [0.1, 0.12]
    other = latent(family="telegraph")
    assert other.family.name == "telegraph"
    assert torch.equal(other.bounds, families.get("telegraph").bounds)
    assert latent(family="Advection-Diffusion").family.name == "advection_diffusion"
    with pytest.raises(UsageError, match="no coefficient 'speed'"):
        latent(bounds={"speed": (0.0, 1.0)})
    with pytest.raises(UsageError, match="bounds"):
        latent(bounds={"kappa": (0.2, 0.1)})


def test_a_family_is_needed():
    nameless = Observation.from_arrays(np.ones((4, 4)), np.ones((4, 4)), noise_std=0.1)
    with pytest.raises(UsageError, match="family"):
        reconstruct(nameless)


def test_an_initial_state_is_needed():
    with pytest.raises(DataError, match="initial state"):
        reconstruct(Observation.from_arrays(np.ones((4, 4)), noise_std=0.1), "helmholtz", method="map")


def test_a_coefficient_that_is_known_need_not_lie_in_bounds_that_nobody_gave():
    rng = np.random.default_rng(0)
    y, x = 100 * rng.random(12), 100 * rng.random(12)
    readings = Observation.from_table(np.sin(x / 20), y=y, x=x, sigma=0.1)
    posterior = reconstruct(readings, "poisson", fixed={"kappa": 1e-3}, source="Matern(1.0, 20.0)", num_draws=2)
    np.testing.assert_allclose(posterior.coefficients.values, 1e-3, rtol=1e-6)
    with pytest.raises(UsageError, match="outside its bounds"):
        reconstruct(readings, "poisson", fixed={"kappa": 1e-3}, bounds={"kappa": (1.0, 2.0)})
