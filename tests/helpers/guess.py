"""A method that guesses, for tests of the benchmark."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

from latentpde.bench.jobs import Job, cases_of
from latentpde.bench.rows import row
from latentpde.estimators import Estimator
from latentpde.observation import Observation
from latentpde.posterior.fields import FieldPosterior


@dataclass(frozen=True, kw_only=True)
class Guess(Estimator):
    """Noise around zero: quick, and wrong in a known way."""

    name = "guess"
    summary = "noise, for tests"

    fails_below: float = -math.inf

    def estimate(self, observation, latent, *, num_draws, seed, show_progress=False):
        assert isinstance(observation, Observation)
        if bool((observation.values[observation.mask].min() < self.fails_below).item()):
            raise ValueError("a reading too low for me")
        grid = observation.grid.at_resolution(128)
        shape = (len(observation), num_draws, len(observation.times), *grid.shape)
        values = 0.1 * torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
        return FieldPosterior(observation=observation, method=self.name, native=grid, values=values)


def job_of(name, regime="diffusion", **setting):
    return Job(row=row(name), simulation=cases_of(regime, **setting))
