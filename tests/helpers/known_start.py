"""The model of a case whose initial state is known, as the tests of its likelihood take it."""

from __future__ import annotations

import torch

from latentpde.estimators.exact.initial_state import InitialState
from latentpde.estimators.exact.model import Model
from latentpde.grid import unpool_spectrum


def initial_hat(observation):
    grid, initial = observation.grid, observation.initial[0]
    if observation.observed == "lowres-solve":
        return grid.analyse(initial)
    return unpool_spectrum(initial, grid, observation.pooling)


class KnownStart:
    """The model of a case whose initial state is known, or known up to standard deviations of its coefficients."""

    def __init__(self, observation, decoder, initial_std=None, extra_std=0.0, form=None, mean_hat=None):
        mean_hat = initial_hat(observation) if mean_hat is None else mean_hat
        unpooled = observation.observed != "lowres-solve"
        state = InitialState(
            observation.grid, observation.initial[0], mean_hat, initial_std, None, observation.pooling, unpooled
        )
        self.model = Model.with_known_start(observation, decoder.latent, state, form=form)
        self.likelihood = self.model.likelihood
        if extra_std:
            self.likelihood = self.likelihood.with_extra_noise(extra_std)

    def log_likelihood(self, theta):
        return self.likelihood.log_likelihood(theta)

    def conditional(self, theta, generator=None):
        return self.likelihood.conditional(theta, generator=generator)[0]

    def source(self, unknown):
        return self.model.source(unknown, torch.zeros(len(unknown), 0))

    def state(self, unknown):
        return self.likelihood.blocks("state", unknown, torch.zeros(len(unknown), 0))
