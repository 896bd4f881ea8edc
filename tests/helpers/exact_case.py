"""A small case for the exact posterior, and what to compare it with."""

from __future__ import annotations

import numpy as np
import torch
from scipy.special import logsumexp

from latentpde.decoder import Decoder
from latentpde.estimators.base import make_estimator
from latentpde.grid import Grid, at_points, average_pool
from latentpde.latent import Latent
from latentpde.observation import Observation
from latentpde.operator import ObservationOperator
from latentpde.pde import families

NAMES = {
    "log_evidence",
    "log_evidence_error",
    "evidence_gap",
    "effective_sample_size",
    "num_evaluations",
    "num_rounds",
    "misfit",
    "prior_to_noise",
    "trusted",
    "coefficient_mean",
    "coefficient_std",
}


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def float64(values):
    return torch.tensor(values, dtype=torch.float64)


def smooth_state(grid, seed=0, num=None):
    """A few large-scale modes, of about unit variance: all of it below the coarse Nyquist."""
    few = Grid((5, 5), grid.extent)
    rough = torch.randn((num or 1, 5, 5), dtype=torch.float64, generator=generator(seed))
    u = grid.synthesise(few.analyse(rough))
    return u if num else u[0]


class Case:
    """A simulated case on a small grid, its truth kept beside it."""

    def __init__(
        self,
        family="advection_diffusion",
        *,
        shape=(12, 12),
        extent=(1.0, 1.0),
        share=0.25,
        noise=0.1,
        times=(0.25,),
        num_modes=2,
        source_prior_std=0.5,
        theta=None,
        bounds=None,
        observed="lowres-solve",
        mask=None,
        seed=0,
        num=1,
        pooling=1,
        values=None,
        initial_noise=0.0,
    ):
        family = families.get(family)
        self.latent = Latent(family, source_prior_std, num_modes, family.bounds if bounds is None else float64(bounds))
        self.grid, self.times, rng = (
            Grid(shape, extent),
            torch.tensor(times, dtype=torch.float64),
            np.random.default_rng(seed),
        )
        z = self.latent.draw(num, generator=generator(seed))
        if theta is not None:
            theta = torch.tensor(theta, dtype=torch.float64).expand(num, -1)
            z = self.latent.pack(theta, self.latent.split(z)[1])
        self.z, self.theta, self.noise = z, self.latent.theta(z), noise
        self.fine = self.grid.refine(4)
        u0 = smooth_state(self.fine, seed, num)
        initial = average_pool(u0, 4) if pooling == 4 else smooth_state(self.grid, seed, num)
        self.decoder = Decoder(self.latent, extent)
        u0_hat = self.fine.analyse(u0)
        self.field = self.fine.synthesise(self.decoder.spectrum(z, u0_hat, self.times))
        options = {}
        if observed == "point":
            positions = rng.random((int(share * shape[0] * shape[1]), 2)) * np.array(extent)
            options["positions"] = positions
            clean = at_points(
                self.decoder.spectrum(z, u0_hat, self.times), torch.from_numpy(positions).expand(num, 1, -1, 2), extent
            )
        elif observed == "pooled":
            clean = average_pool(self.field, 4)
        else:
            clean = self.decoder.decode(z, initial, self.times, self.grid)
        readings = (
            clean.numpy() + noise * rng.standard_normal(clean.shape) if values is None else np.full(clean.shape, values)
        )
        if observed != "point":
            chosen = np.zeros(shape[0] * shape[1], dtype=bool)
            chosen[rng.permutation(len(chosen))[: max(1, int(share * len(chosen)))]] = True
            readings = np.where(chosen.reshape(shape) if mask is None else mask, readings, np.nan)
        initial = initial + initial_noise * torch.randn(
            initial.shape, dtype=torch.float64, generator=generator(seed + 1)
        )
        self.initial = initial
        self.observation = Observation.from_arrays(
            readings,
            initial,
            times=times,
            noise_std=noise,
            grid=self.grid,
            observed=observed,
            pooling=pooling,
            **options,
        )

    def without_initial(self):
        return Observation(**{**vars(self.observation), "initial": None})

    def estimate(self, observation=None, *, num_draws=40, seed=0, latent=None, **options):
        return make_estimator("exact", **options).estimate(
            observation or self.observation, latent or self.latent, num_draws=num_draws, seed=seed
        )


class Quadrature:
    """One free coefficient on a fine grid, dense Gaussian algebra at each node: nothing of the method is used."""

    def __init__(self, case, name, known, num=1201, log_prior=None):
        latent, names = case.latent, case.latent.family.coefficient_names
        j = names.index(name)
        low, high = latent.bounds[j].tolist()
        nodes = low + (high - low) * (torch.arange(num, dtype=torch.float64) + 0.5) / num
        theta = torch.tensor([known.get(n, 0.0) for n in names], dtype=torch.float64).repeat(num, 1)
        theta[:, j] = nodes
        unit = torch.cat([torch.zeros(1, latent.num_source), torch.eye(latent.num_source)]).to(torch.float64)
        z = latent.pack(theta[:, None].expand(-1, len(unit), -1), latent.source_prior_std * unit.expand(num, -1, -1))
        operator = ObservationOperator(case.observation, case.decoder)
        cells = operator.predict(z.flatten(0, 1)[None])[0, :, -1].flatten(1).unflatten(0, (num, len(unit)))
        mask = case.observation.mask[0, -1].flatten()
        mean, columns = cells[:, 0], (cells[:, 1:] - cells[:, :1]).mT
        noise = case.observation.noise_std[0, -1].flatten()[mask]
        heard = columns[:, mask]
        covariance = heard @ heard.mT + torch.diag(noise**2)
        law = torch.distributions.MultivariateNormal(mean[:, mask], covariance)
        residual = case.observation.values[0, -1].flatten()[mask] - mean[:, mask]
        logs = law.log_prob(case.observation.values[0, -1].flatten()[mask]).numpy()
        logs = logs + (0.0 if log_prior is None else log_prior(nodes.numpy()))
        self.log_evidence = logsumexp(logs) - np.log(num)
        weights = np.exp(logs - logsumexp(logs))
        self.weights, self.nodes = weights, nodes.numpy()
        self.mean = weights @ self.nodes
        self.std = np.sqrt(weights @ (self.nodes - self.mean) ** 2)
        gain = columns @ heard.mT @ torch.linalg.inv(covariance)
        fields = (mean + (gain @ residual[..., None])[..., 0]).numpy()
        variance = ((columns**2).sum(-1) - (gain * (columns @ heard.mT)).sum(-1)).numpy()
        shape = case.grid.shape
        self.field = (weights @ fields).reshape(shape)
        self.field_std = np.sqrt(weights @ (variance + fields**2) - (weights @ fields) ** 2).reshape(shape)


def check_honest(case, found, least=0.5):
    """Finite, with diagnostics, and with intervals that hold the truth more often than an absurd method's would."""
    assert set(found.diagnostics) >= NAMES
    for name in NAMES - {"evidence_gap"}:
        assert np.isfinite(found.diagnostics[name]).all(), name
    resolution = case.fine.shape
    draws = found.draws(resolution=resolution).values[0]
    mean, std = found.mean(resolution=resolution).values[0], found.std(resolution=resolution).values[0]
    assert np.isfinite(draws).all()
    assert np.isfinite(mean).all()
    assert (std >= 0).all()
    low, high = np.quantile(draws, [0.05, 0.95], axis=0)
    truth = case.field[0, -1].numpy()
    covered = ((truth >= low) & (truth <= high)).mean()
    bounds = case.latent.bounds.numpy()
    theta = found.coefficients.values[0]
    assert ((theta >= bounds[:, 0]) & (theta <= bounds[:, 1])).all()
    assert covered >= least, f"90 % intervals cover {covered:.0%}"
