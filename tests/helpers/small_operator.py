"""Readings of two small cases of advection and diffusion, for what works on their residual."""

from __future__ import annotations

import torch

from latentpde.decoder import Decoder
from latentpde.latent import Latent
from latentpde.observation import Observation
from latentpde.operator import ObservationOperator
from latentpde.pde import families
from latentpde.simulation import simulate


def normal(*shape, seed=0):
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def operator(observed="lowres-solve", num=2):
    tree = simulate(
        "balanced", num=num, seed=3, shape=(32, 32), pooling=4, num_modes=2, sparsity=0.3, observed=observed
    )
    data = Observation.from_dataset(tree)
    latent = Latent(families.get("advection_diffusion"), source_prior_std=0.4, num_modes=2, bounds=data.bounds)
    return ObservationOperator(data, Decoder(latent))
