"""The conditional of source and initial state, its mean and its draws, against a dense Gaussian."""

from __future__ import annotations

import pytest
import torch
from dense_readings import FORMS, KINDS, Dense, decoder_of, generator, observe, thetas, uncertain
from known_start import KnownStart as model_of

from latentpde.grid import pooling_attenuation


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", KINDS)
def test_conditional_mean_is_the_dense_one(kind, form):
    decoder, observation = decoder_of("advection_diffusion"), observe(kind, times=(0.1, 0.3))
    model, theta = model_of(observation, decoder, form=form), thetas(decoder)
    expected = torch.stack([Dense(observation, decoder, one).conditional()[0] for one in theta])
    found = model.source(model.conditional(theta))
    torch.testing.assert_close(found, decoder.latent.source_prior_std * expected, rtol=1e-8, atol=1e-9)


def check_moments(draws, mean, covariance):
    """Sample moments within 5.5 standard errors, entry by entry: thousands of entries make no false alarm."""
    num, spread = len(draws), covariance.diagonal().clamp(min=0)
    assert ((draws.mean(0) - mean).abs() <= 5.5 * torch.sqrt(spread / num) + 1e-9).all()
    error = torch.sqrt((spread[:, None] * spread + covariance**2) / num)
    assert ((torch.cov(draws.T) - covariance).abs() <= 5.5 * error + 1e-9).all()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", KINDS)
def test_conditional_draws_have_the_dense_mean_and_covariance(kind, form):
    decoder, observation = decoder_of("telegraph"), observe(kind, times=(0.3,), share=0.2)
    theta = thetas(decoder, 1)
    model = model_of(observation, decoder, form=form)
    draws = model.source(model.conditional(theta.expand(5_000, -1), generator=generator()))
    check_moments(draws / decoder.latent.source_prior_std, *Dense(observation, decoder, theta[0]).conditional())


@pytest.mark.parametrize("form", FORMS)
def test_modes_that_no_reading_depends_on_are_drawn_from_the_prior(form):
    """A coarse solve on 4 x 4 cells knows nothing of modes 2 and 3; a draw without them would be too smooth."""
    decoder = decoder_of("advection_diffusion", 4, (1.0, 1.0))
    observation = observe(shape=(4, 4), share=0.6, extent=(1.0, 1.0))
    theta = thetas(decoder, 1)
    model = model_of(observation, decoder, form=form)
    draws = model.source(model.conditional(theta.expand(5_000, -1), generator=generator()))
    mean, covariance = Dense(observation, decoder, theta[0]).conditional()
    assert int((covariance.diagonal() > 1 - 1e-9).sum()) >= 20  # the case is what it should be
    check_moments(draws / decoder.latent.source_prior_std, mean, covariance)


def test_draws_repeat_with_the_generator_and_differ_without():
    decoder = decoder_of()
    model, theta = model_of(observe(), decoder), thetas(decoder)
    first, again, other = (model.conditional(theta, generator=generator(seed)) for seed in (1, 1, 2))
    assert torch.equal(first, again)
    assert not torch.allclose(first, other)


def test_without_a_source_there_is_nothing_to_draw():
    decoder = decoder_of(num_modes=0)
    model = model_of(observe(), decoder)
    unknown = model.conditional(thetas(decoder), generator=generator())
    assert unknown.shape == (2, 0)
    assert model.source(unknown).shape == (2, 0)
    assert model.state(unknown) is None


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", KINDS)
def test_uncertain_initial_state_conditional(kind, form):
    """Source and state are drawn together: they share the readings, so they are correlated."""
    decoder, observation = decoder_of("klein_gordon", 1), observe(kind, (4, 5), times=(0.3,))
    std, factor = uncertain(observation)
    theta, grid = thetas(decoder, 1), observation.grid
    mean, covariance = Dense(observation, decoder, theta[0], factor).conditional()
    num = decoder.latent.num_source
    to_cells = torch.block_diag(decoder.latent.source_prior_std * torch.eye(num, dtype=torch.float64), factor)
    mean, covariance = to_cells @ mean, to_cells @ covariance @ to_cells.T

    model = model_of(observation, decoder, initial_std=std, form=form)

    def source_and_cells(unknown):
        block = model.state(unknown).unflatten(-1, grid.block_shape)
        if kind != "lowres-solve":
            block = block * pooling_attenuation(grid, observation.pooling)
        return torch.cat([model.source(unknown), grid.synthesise(block).flatten(1)], 1)

    torch.testing.assert_close(source_and_cells(model.conditional(theta))[0], mean, rtol=1e-8, atol=1e-8)
    draws = source_and_cells(model.conditional(theta.expand(5_000, -1), generator=generator()))
    check_moments(draws, mean, covariance)
