"""Modes that have died away before the first reading: the information form leaves them out, and gives the same."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import latentpde as lp
from latentpde.estimators.exact.estimator import Exact
from latentpde.estimators.exact.forms import normals
from latentpde.estimators.exact.likelihood import MarginalLikelihood
from latentpde.estimators.exact.parameters import Parameters
from latentpde.estimators.setup import Setup
from latentpde.settings import Settings


@pytest.fixture(scope="module")
def model():
    values = np.random.default_rng(0).standard_normal((3, 6, 8))
    values[values > 1.2] = np.nan
    grid = lp.Grid((6, 8), (0.75, 1.0))
    observation = lp.Observation.from_arrays(values, times=[0.5, 0.7, 1.0], noise_std=0.3, grid=grid)
    setup = Setup.of(observation, "advection_diffusion", Settings())
    return Exact().models(setup.observation, setup.latent)[0]


@pytest.fixture(scope="module")
def forms(model):
    own = model.likelihood
    return [
        MarginalLikelihood(own.values, None, own.unknown, own.noise, own.trend, form)
        for form in ("covariance", "information")
    ]


@pytest.fixture(scope="module")
def nodes(model):
    """With a diffusivity from small to large: of the first nearly all modes are left, of the last few."""
    parameters = Parameters.of(model.decoder.latent, {}, {}, model.levels)
    points = np.full((3, parameters.num_free), 0.6)
    points[:, 2] = 0.01, 0.3, 0.9
    return parameters.at(points)


def test_modes_are_left_out_where_they_have_died_away(forms, nodes):
    kept = [len(forms[1]._form.factorised(node)._kept) for node in nodes.split(1)]
    assert kept[0] > kept[1] > kept[2]
    assert kept[2] < 0.8 * forms[1].num_unknown


def test_likelihood_is_that_of_the_readings_covariance(forms, nodes):
    covariance, information = (form.log_likelihood(nodes) for form in forms)
    torch.testing.assert_close(information, covariance, rtol=1e-9, atol=1e-8)


def test_a_batch_is_what_its_nodes_are_alone(forms, nodes):
    """Together all keep what any of them has."""
    together = forms[1]._form.factorised(nodes)
    alone = torch.cat([forms[1]._form.factorised(node).log_det for node in nodes.split(1)])
    torch.testing.assert_close(together.log_det, alone, rtol=1e-9, atol=1e-8)


def test_gradients_are_those_of_the_readings_covariance(forms, nodes):
    slopes = []
    for form in forms:
        at = nodes.clone().requires_grad_(True)
        slopes.append(torch.autograd.grad(form.log_likelihood(at).sum(), at)[0])
    torch.testing.assert_close(slopes[1], slopes[0], rtol=1e-7, atol=1e-6)


def test_conditional_means_and_leaving_one_out_are_the_same(forms, nodes):
    (expected, trend), (found, own_trend) = (form.conditional(nodes) for form in forms)
    # in standard deviations of the prior; of a mode that adds 1e-11 to a precision, readings move the mean by its root
    torch.testing.assert_close(found, expected, rtol=1e-6, atol=1e-4)
    torch.testing.assert_close(own_trend, trend, rtol=1e-6, atol=1e-7)
    for found, expected in zip(*(form.leave_one_out(nodes) for form in reversed(forms)), strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-6, atol=1e-7)


def test_modes_that_are_left_out_are_drawn_from_their_prior(forms, nodes):
    factors = forms[1]._form.factorised(nodes[2:])
    residuals = torch.zeros((1, len(forms[1].values), 4), dtype=torch.float64)
    drawn = factors.conditional(residuals, torch.Generator().manual_seed(3))
    prior = normals((1, 4, forms[1].num_unknown), torch.Generator().manual_seed(3))
    left_out = torch.ones(forms[1].num_unknown, dtype=torch.bool)
    left_out[factors._kept] = False
    assert torch.equal(drawn[..., left_out], prior[..., left_out])
    assert not torch.isclose(drawn[..., ~left_out], prior[..., ~left_out]).all()


def test_means_draws_and_misfit_together_are_those_one_by_one(forms, nodes):
    for form in forms:
        means, draws, misfit = form.means_and_draws(nodes, torch.Generator().manual_seed(1))
        torch.testing.assert_close(misfit, form.misfit(nodes))
        torch.testing.assert_close(means, form.conditional(nodes))
        torch.testing.assert_close(draws, form.conditional(nodes, generator=torch.Generator().manual_seed(1)))
