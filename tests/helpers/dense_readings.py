"""A case of arbitrary readings, and the dense Gaussian of them that the decoder itself spans."""

from __future__ import annotations

import math

import numpy as np
import torch

from latentpde.decoder import Decoder
from latentpde.grid import Grid, mode_numbers, pooling_attenuation
from latentpde.latent import Latent
from latentpde.observation import Observation
from latentpde.operator import ObservationOperator
from latentpde.pde import families

EXTENT = (1.0, 1.5)
FORMS = ("covariance", "information")
KINDS = ("lowres-solve", "pooled", "point")


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def normal(*shape, seed=0):
    return torch.randn(shape, dtype=torch.float64, generator=generator(seed))


def observe(kind="lowres-solve", shape=(6, 8), times=(0.2,), share=0.3, seed=0, extent=EXTENT, pooling=2, noise=None):
    """A case whose readings are arbitrary numbers: no algebra depends on their being typical."""
    grid, rng = Grid(shape, extent), np.random.default_rng(seed)
    core = (int(share * shape[0] * shape[1]),) if kind == "point" else shape
    values = rng.standard_normal((len(times), *core))
    if kind != "point" or len(times) > 1:
        values[rng.random(values.shape) > (0.8 if kind == "point" else share)] = np.nan
    return Observation.from_arrays(
        values,
        rng.standard_normal(shape),
        times=times,
        noise_std=rng.uniform(0.05, 0.4, values.shape) if noise is None else noise,
        grid=grid,
        observed=kind,
        pooling=pooling,
        positions=rng.random((*core, 2)) * np.array(extent) if kind == "point" else None,
    )


def decoder_of(family="klein_gordon", num_modes=2, extent=EXTENT, source_prior_std=2.0):
    return Decoder(Latent(families.get(family), num_modes=num_modes, source_prior_std=source_prior_std), extent)


def thetas(decoder, num=2, seed=3):
    return decoder.latent.theta(decoder.latent.draw(num, generator=generator(seed)))


class Dense:
    """Mean, and response to each whitened unknown, of one case's readings: from predictions alone."""

    def __init__(self, observation, decoder, theta, state_factor=None):
        mask, latent = observation.mask[0], decoder.latent
        predict = ObservationOperator(observation, decoder).predict
        unit = torch.cat([torch.zeros(1, latent.num_source), torch.eye(latent.num_source)]).to(torch.float64)
        z = latent.pack(theta.expand(len(unit), -1), latent.source_prior_std * unit)
        readings = predict(z[None])[0][:, mask]
        self.mean, columns = readings[0], readings[1:] - readings[0]
        if state_factor is not None:
            moved = []
            for pattern in state_factor.T:
                other = Observation(
                    **{**vars(observation), "initial": observation.initial + pattern.reshape(observation.grid.shape)}
                )
                moved.append(ObservationOperator(other, decoder).predict(z[None, :1])[0, 0][mask] - self.mean)
            columns = torch.cat([columns, torch.stack(moved)])
        self.columns = columns.T
        self.values, self.noise = observation.values[0][mask], observation.noise_std[0][mask]
        self.covariance = self.columns @ self.columns.T + torch.diag(self.noise**2)

    def log_likelihood(self):
        return torch.distributions.MultivariateNormal(self.mean, self.covariance).log_prob(self.values)

    def conditional(self):
        """Mean and covariance of the whitened unknowns."""
        gain = torch.linalg.solve(self.covariance, self.columns).T
        eye = torch.eye(self.columns.shape[1], dtype=torch.float64)
        return gain @ (self.values - self.mean), eye - gain @ self.columns


def uncertain(observation, seed=5):
    """A standard deviation for each of the state's coefficients, and a factor of the cells' covariance it means."""
    grid = observation.grid
    rows, cols = (n.to(torch.float64) for n in mode_numbers(grid.block_shape))
    std = 1 / (1 + rows[:, None] ** 2 + 2 * cols**2)
    std[grid.block_shape[0] // 2] = 0.0
    held = std if observation.observed == "lowres-solve" else std * pooling_attenuation(grid, observation.pooling)
    y, x = (c.flatten() for c in torch.meshgrid(*grid.coordinates(), indexing="ij"))
    covariance = torch.zeros((len(y), len(y)), dtype=torch.float64)
    for i, row in enumerate(rows):
        for j, col in enumerate(cols):
            phase = row * (y[:, None] - y) / grid.extent[0] + col * (x[:, None] - x) / grid.extent[1]
            covariance += (1 if j == 0 else 2) * held[i, j] ** 2 * torch.cos(2 * math.pi * phase)
    values, vectors = torch.linalg.eigh(covariance)
    kept = values > 1e-12
    return std, vectors[:, kept] * torch.sqrt(values[kept])
