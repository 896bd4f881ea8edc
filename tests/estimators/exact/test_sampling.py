"""Samples of the parameters of a case without a start: against quadrature, with a part of the readings first too."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.special import logsumexp

import latentpde as lp
from latentpde.estimators.exact import sampling
from latentpde.estimators.exact.estimator import Exact
from latentpde.estimators.exact.parameters import Parameters
from latentpde.latent import Latent
from latentpde.pde import get_family


@pytest.fixture(scope="module")
def problem():
    """A model whose noise and diffusivity are free, and the evidence by a fine grid over them."""
    rng = np.random.default_rng(3)
    y, x, t = rng.random(60), rng.random(60), np.repeat([0.0, 0.4, 1.0], 20)
    value = np.sin(6 * x) * np.exp(-0.8 * t) + np.cos(5 * y) * np.exp(-0.5 * t) + 0.1 * rng.standard_normal(60)
    observation = lp.Observation.from_table(value, y=y, x=x, t=t, grid=lp.Grid((8, 8)), domain=lp.Domain())
    bounds = torch.tensor([[-1.0, 1.0], [-1.0, 1.0], [0.001, 0.2]])
    latent = Latent(get_family("advection_diffusion"), num_modes=0, bounds=bounds)
    estimator = Exact(initial=lp.Matern(1.0, 0.5), source=lp.WhiteBand(0, 1.0))
    (model,) = estimator.models(observation, latent)
    fixed = model.in_its_units({"vx": 0.0, "vy": 0.0})
    parameters = Parameters.of(model.decoder.latent, {}, fixed, model.levels)
    assert parameters.num_free == 2
    middles = (np.arange(90) + 0.5) / 90
    nodes = np.stack(np.meshgrid(middles, middles, indexing="ij"), -1).reshape(-1, 2)
    with torch.no_grad():
        logs = model.likelihood.log_likelihood(parameters.at(nodes)).numpy()
    weights = np.exp(logs - logsumexp(logs))
    return model.likelihood, parameters, logsumexp(logs) - np.log(len(nodes)), weights @ nodes


@pytest.mark.parametrize("part", [False, True], ids=["all readings", "a part first"])
def test_evidence_and_means_are_those_of_quadrature(problem, part, monkeypatch):
    likelihood, parameters, log_evidence, mean = problem
    if part:
        monkeypatch.setattr(sampling, "MOST_VALUES", 100)
        monkeypatch.setattr(sampling, "NUM_IN_PART", 25)
    said = []
    found = sampling.Sampler(parameters, say=said.append).sample(likelihood, np.random.default_rng(0))
    assert len(said) == (4 if part else 0)
    assert found.trusted
    assert abs(found.log_evidence - log_evidence) < 0.05 + 4 * found.log_evidence_error
    weights = np.exp(found.log_weights)
    std = np.sqrt(weights @ (found.points - weights @ found.points) ** 2)
    assert np.all(np.abs(weights @ found.points - mean) < 5 * std / np.sqrt(found.effective_size) + 0.005)


def test_what_narrower_bounds_have_swept_is_a_part_of_the_box(problem):
    """Two of three coefficients are fixed, so the box has an axis for the third, and one for the noise."""
    _, parameters, *_ = problem
    wide = parameters.latent.bounds
    kappa = float(wide[2, 0]), float(wide[2].mean())
    narrow = wide.clone()
    narrow[2] = torch.tensor(kappa)
    middle = parameters.at(np.array([[0.5, 0.5]]))
    corners = sampling.Begun(middle, narrow).swept(parameters)
    assert corners is not None
    np.testing.assert_allclose(corners, [[0.0, 0.0], [0.5, 1.0]])
    assert sampling.Begun(middle, wide).swept(parameters) is None, "levels alone have wider bounds now"
    units = torch.tensor([2.0, 2.0, 4.0, 8.0], dtype=torch.float64)
    other = sampling.Begun(middle * units, narrow * units[:3, None]).in_units(units)
    torch.testing.assert_close(other.bounds, narrow)


@pytest.mark.parametrize("part", [False, True], ids=["all readings", "a part first"])
def test_a_search_within_wider_bounds_goes_on_from_the_narrower(problem, part, monkeypatch):
    """From a maximum on the bound of what was swept, to the same evidence and means as a search of its own."""
    likelihood, parameters, log_evidence, mean = problem
    if part:
        monkeypatch.setattr(sampling, "MOST_VALUES", 100)
        monkeypatch.setattr(sampling, "NUM_IN_PART", 25)
    bounds = parameters.latent.bounds.clone()
    bounds[2, 1] = float(parameters.at(mean[None])[0, 2])  # half of the posterior is beyond
    begin = sampling.Begun(torch.cat([bounds[:, 1], parameters.at(mean[None])[0, 3:]])[None], bounds)
    found = sampling.Sampler(parameters, begin=begin).sample(likelihood, np.random.default_rng(0))
    assert found.trusted
    assert abs(found.log_evidence - log_evidence) < 0.05 + 4 * found.log_evidence_error
    weights = np.exp(found.log_weights)
    std = np.sqrt(weights @ (found.points - weights @ found.points) ** 2)
    assert np.all(np.abs(weights @ found.points - mean) < 5 * std / np.sqrt(found.effective_size) + 0.005)


def test_a_part_of_the_readings_is_what_they_alone_would_say(problem):
    likelihood, parameters, *_ = problem
    chosen = torch.tensor([3, 4, 11, 45, 59])  # none of the second snapshot
    at = parameters.at(np.array([[0.3, 0.6]]))
    factors = likelihood._form.factorised(at)
    whole = torch.linalg.inv(factors.solve(torch.eye(60, dtype=torch.float64)[None])[0])
    law = torch.distributions.MultivariateNormal(torch.zeros(5).double(), whole[chosen][:, chosen])
    part = likelihood.only(chosen)
    products = part._form.factorised(at).products(part.values[None, :, None])[0, 0, 0]
    log_det = part._form.factorised(at).log_det[0]
    expected = law.log_prob(likelihood.values[chosen])
    assert abs(-0.5 * (products + log_det + 5 * np.log(2 * np.pi)) - expected) < 1e-8


@pytest.mark.parametrize("speed", [0.0, 1e-5, 0.3])
def test_both_responses_at_once_are_those_one_by_one(speed):
    family = get_family("advection_diffusion")
    k = lp.grid.Wavenumbers(torch.zeros(1, 4).double(), 6.28 * torch.arange(4.0).double()[None])
    theta = torch.tensor([[speed, 0.0, speed / 10]]).double()
    times = torch.tensor([0.0, 1e-4, 1.0]).double()
    state, source = family.transfer(k, times, theta)
    torch.testing.assert_close(state, family.state_response(k, times, theta), rtol=1e-13, atol=0)
    torch.testing.assert_close(source, family.source_response(k, times, theta), rtol=1e-11, atol=1e-18)


@pytest.mark.parametrize("size", [1e-6, 0.3])
def test_both_responses_at_once_have_derivatives(size):
    family, k = get_family("advection_diffusion"), lp.grid.Wavenumbers(torch.zeros(1, 3).double(), _waves())
    times, theta = torch.tensor([0.0, 0.3, 1.0]).double(), torch.tensor([[size, 0.5 * size, size / 10]]).double()
    at = theta.requires_grad_(True)

    def together(values):
        return torch.view_as_real(torch.cat(family.transfer(k, times, values)))

    def apart(values):
        parts = family.state_response(k, times, values), family.source_response(k, times, values)
        return torch.view_as_real(torch.cat(parts))

    assert torch.autograd.gradcheck(together, (at,))
    slopes = [torch.autograd.functional.jacobian(function, theta.detach()) for function in (together, apart)]
    torch.testing.assert_close(*slopes, rtol=1e-9, atol=1e-12)


def _waves():
    return 6.28 * torch.arange(3.0).double()[None]


@pytest.mark.parametrize("said", [(0.35, 0.5), "0.35:0.5"], ids=["pair", "words"])
def test_noise_is_inferred_within_bounds_that_are_given(said):
    rng = np.random.default_rng(5)
    y, x = rng.random((2, 40))
    observation = lp.Observation.from_table(1000 * rng.standard_normal(40), y=y, x=x, t=np.zeros(40))
    options = {"num_draws": 40, "sweep": 64, "target": 20.0, "source": lp.WhiteBand(), "fixed": {"angle": 0.0}}
    posterior = lp.reconstruct(observation, "screened_poisson", noise_std=said, **options)
    noise = posterior.levels.sel(level="noise_std").values
    assert noise.min() >= 0.35
    assert noise.max() <= 0.5, "white noise of 1000 is not what the bounds allow"
    assert posterior.settings["level_bounds"]["noise_std"] == pytest.approx([0.35, 0.5])
    assert posterior.settings["level_bounds_from"]["noise_std"] == "given"


@pytest.mark.parametrize("said", [(0.5, 0.1), (0.0, 1.0), "a:b", "1:2:3", (1.0, float("nan"))])
def test_bounds_of_the_noise_that_make_no_sense_are_refused(said):
    with pytest.raises(lp.errors.UsageError, match="noise_std"):
        lp.settings.Settings.of(noise_std=said)
