"""A gridded start, learnt once: all that comes of it against dense Gaussians of all readings, its cells among them."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.integrate import quad_vec
from scipy.linalg import null_space
from scipy.stats import multivariate_normal

import latentpde as lp
from latentpde.estimators.exact import conditioned, start
from latentpde.estimators.exact.estimator import Exact
from latentpde.estimators.exact.readings import Readings
from latentpde.latent import Latent
from latentpde.pde import get_family

EXTENT, SHAPE, TIMES, NOISE = (3.0, 4.0), (7, 9), [0.5, 1.2], 0.2
THETA = {"vx": 0.7, "vy": -0.4, "kappa": 0.1}
STATE, SOURCE = (1.3, 0.9), (0.8, 0.7)  # std and length
SHARE = conditioned.NEGLIGIBLE
BOUNDS = {"vx": (-1.0, 1.0), "vy": (-1.0, 1.0), "kappa": (0.05, 0.5)}
GIVEN = {"initial": lp.Matern(*STATE), "source": lp.Matern(*SOURCE), "fixed": THETA, "bounds": BOUNDS}
STARTS = {"complete": (0.0, 0.0), "gappy": (0.25, 0.0), "noisy": (0.0, 0.3)}  # share of gaps, noise


def observe(kind, seed=0, num=14):
    """Most of a smooth start, and arbitrary numbers in some cells later."""
    rng = np.random.default_rng(seed)
    rows, cols = np.meshgrid(*(np.arange(n) for n in SHAPE), indexing="ij")
    initial = 1 + np.sin(0.8 * rows + rng.normal()) * np.cos(0.5 * cols + rng.normal())
    later = rng.standard_normal((2, *SHAPE))
    where = np.random.default_rng(7)  # the same for all seeds
    later[:, where.random(SHAPE) > num / 2 / np.prod(SHAPE)] = np.nan
    initial[where.random(SHAPE) < STARTS[kind][0]] = np.nan
    grid = lp.Grid(SHAPE, EXTENT)
    arrays = {"times": TIMES, "noise_std": NOISE, "grid": grid, "observed": "pooled", "domain": lp.Domain()}
    return lp.Observation.from_arrays(later, initial, **arrays)


class Dense:
    """All readings and the field at other points as one Gaussian, by sums over all modes of the plane."""

    def __init__(self, model, readings, trend):
        self.k = kept = model.likelihood.unknown.parts[0][0].modes.k.numpy()
        self.k = np.unique(np.round(np.concatenate([kept, -kept]), 12), axis=0)
        self.area, self.trend, self.readings = math.prod(model.decoder.extent), trend, readings
        self.rows = self._rows(readings.positions.numpy(), readings.times.numpy(), readings.cells.numpy())
        self.phi = self._phi(readings.positions.numpy())
        self.covariance = self._between(self.rows, self.rows) + np.diag(readings.noise_std.numpy() ** 2)
        self.values = readings.values.numpy()

    def _rows(self, at, times, cells):
        rate = THETA["kappa"] * (self.k**2).sum(1) + 1j * self.k @ [THETA["vy"], THETA["vx"]]
        waves = np.exp(1j * at @ self.k.T) * np.sinc(cells[:, None] * self.k / (2 * np.pi)).prod(-1)
        distinct, which = np.unique(times, return_inverse=True)
        grown = np.stack([quad_vec(lambda s: np.exp(-rate * s), 0, t, epsabs=1e-13)[0] for t in distinct])[which]
        return waves * np.exp(-rate * times[:, None]), waves * grown

    def _between(self, rows, others):
        found = 0.0
        for (std, length), one, other in zip((STATE, SOURCE), rows, others, strict=True):
            scale = 3 / length**2
            power = std**2 * 6 * math.pi * scale**1.5 / (scale + (self.k**2).sum(1)) ** 2.5 / self.area
            found = found + ((one * power) @ other.conj().T).real
        return found

    def _phi(self, at):
        columns = np.column_stack([np.ones(len(at)), at - np.array(EXTENT) / 2])
        return columns[:, : {"none": 0, "constant": 1, "linear": 3}[self.trend]]

    def log_density(self):
        """Of contrasts, which no trend changes; for a flat prior in its coefficients."""
        if not self.phi.shape[1]:
            return multivariate_normal(cov=self.covariance).logpdf(self.values)
        contrasts = null_space(self.phi.T).T
        found = multivariate_normal(cov=contrasts @ self.covariance @ contrasts.T).logpdf(contrasts @ self.values)
        return found - 0.5 * np.linalg.slogdet(self.phi.T @ self.phi)[1]

    def field(self, at, times, without=None):
        """Mean and standard deviation of the field, given all readings, or all but one."""
        kept = np.arange(len(self.values)) != (-1 if without is None else without)
        rows, phi = self._rows(at, times, np.zeros_like(at)), self._phi(at)
        across = self._between(rows, self.rows)[:, kept]
        return self._given(kept, across, phi, self._between(rows, rows))

    def left_out(self, i):
        kept = np.arange(len(self.values)) != i
        mean, std = self._given(
            kept, self.covariance[i : i + 1, kept], self.phi[i : i + 1], self.covariance[i : i + 1, i : i + 1]
        )
        return mean[0], std[0]

    def _given(self, kept, across, phi, own):
        precision, seen = np.linalg.inv(self.covariance[np.ix_(kept, kept)]), self.phi[kept]
        gain = across @ precision
        weight = np.linalg.inv(seen.T @ precision @ seen)
        beta = weight @ seen.T @ precision @ self.values[kept]
        left = phi - gain @ seen
        covariance = own - gain @ across.T + left @ weight @ left.T
        return phi @ beta + gain @ (self.values[kept] - seen @ beta), np.sqrt(np.diag(covariance))


@pytest.fixture(autouse=True)
def _leave_nothing_out(monkeypatch):
    monkeypatch.setattr(conditioned, "NEGLIGIBLE", 0.0)


def reconstruct(kind, trend, seed=0, **options):
    options = GIVEN | {"trend": trend, "initial_noise_std": STARTS[kind][1], "num_draws": 2} | options
    observation = observe(kind, seed) if isinstance(seed, int) else seed
    posterior = lp.reconstruct(observation, "advection_diffusion", **options)
    models = posterior.make_models(posterior.observation, posterior.prior)
    assert models[0].likelihood.conditioned is not None
    return posterior, models[0], Readings.of(posterior.observation[:1], STARTS[kind][1])


@pytest.mark.parametrize("trend", ["none", "constant", "linear"])
@pytest.mark.parametrize("kind", STARTS)
def test_the_posterior_is_that_of_all_readings(kind, trend):
    posterior, model, readings = reconstruct(kind, trend, num_spread_draws=1000)
    dense = Dense(model, readings, trend)
    expected = dense.log_density()
    assert abs(float(posterior.diagnostics["log_evidence"][0]) - expected) < 1e-8 * abs(expected)
    at, times = np.array([[0.4, 0.3], [1.7, 2.2], [2.9, 3.8]]), np.array([0.2, 0.9, 1.2])
    for time in times:
        found = posterior.at(at, times=time)
        mean, std = dense.field(at, np.full(3, time))
        np.testing.assert_allclose(found["mean"].values.squeeze(), mean, atol=1e-7)
        np.testing.assert_allclose(found["std"].values.squeeze(), std, rtol=0.1)
    left = posterior.left_out[0]
    assert left is not None
    later = [i for i in range(len(readings)) if readings.order[i] >= 0]
    assert len(later) == len(left[0])
    for i in later:
        mean, std = dense.left_out(i)
        assert abs(left[0][readings.order[i]] - mean) < 1e-7
        assert abs(left[1][readings.order[i]] - std) < 1e-7


def test_what_is_left_out_does_not_matter(monkeypatch):
    whole, model, _ = reconstruct("complete", "constant")
    monkeypatch.setattr(conditioned, "NEGLIGIBLE", SHARE)
    fewer, reduced, _ = reconstruct("complete", "constant")
    num_seen, num = reduced.likelihood.conditioned.num_seen, model.likelihood.conditioned.num_unknown
    assert num_seen < 0.8 * num
    np.testing.assert_allclose(fewer.diagnostics["log_evidence"], whole.diagnostics["log_evidence"], atol=0.02)
    np.testing.assert_allclose(fewer.mean(resolution=SHAPE), whole.mean(resolution=SHAPE), atol=5e-3)


def test_cases_of_one_layout_are_as_if_alone():
    one, other = observe("gappy", 0), observe("gappy", 1)
    names = ("values", "mask", "noise_std", "initial")
    cases = replace(one, **{name: torch.cat([getattr(one, name), getattr(other, name)]) for name in names})
    both, *_ = reconstruct("gappy", "constant", cases)
    alone, *_ = reconstruct("gappy", "constant", 1)
    np.testing.assert_allclose(both.diagnostics["log_evidence"][1], alone.diagnostics["log_evidence"][0], rtol=1e-10)
    for name in ("mean_z", "mean_trend"):
        np.testing.assert_allclose(getattr(both, name)[1], getattr(alone, name)[0], rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(both.mean_initial_hat[1], alone.mean_initial_hat[0], rtol=1e-7, atol=1e-9)


def smooth(noise=0.05, factor=1.0):
    """A blob that drifts and spreads; a plausible start."""
    y, x = ((np.arange(n) + 0.5) * side / n for n, side in zip(SHAPE, EXTENT, strict=True))
    rng = np.random.default_rng(3)

    def blob(t):
        variance = 0.4 + 2 * THETA["kappa"] * t
        place = (y[:, None] - 1.8 - THETA["vy"] * t) ** 2 + (x - 1.5 - THETA["vx"] * t) ** 2
        return 1 + 2 * 0.4 / variance * np.exp(-place / (2 * variance))

    later = np.stack([blob(t) for t in TIMES])
    later += noise * rng.standard_normal(later.shape)
    later[rng.random(later.shape) < 0.7] = np.nan
    arrays = {"times": TIMES, "noise_std": factor * noise, "observed": "pooled", "domain": lp.Domain()}
    return lp.Observation.from_arrays(factor * later, factor * blob(0.0), grid=lp.Grid(SHAPE, EXTENT), **arrays)


def model_of(observation):
    estimator, latent = Exact(), Latent(get_family("advection_diffusion"), infers_source=True)
    return estimator.models(observation, replace(latent, bounds=torch.tensor([*BOUNDS.values()]).double()))[0]


def test_levels_are_held_where_the_cells_are_most_probable():
    state = model_of(smooth()).likelihood.conditioned
    assert state is not None
    assert state.level_names == ("initial_prior_std", "initial_prior_length", "noise_std")
    num = state.at.shape[1] - len(state.level_names)
    best = float(state.cells.log_likelihood(state.at)[0])
    for j in (num, num + 1):  # the noise is at its bound
        for factor in (0.9, 1.1):
            other = state.at.clone()
            other[0, j] *= factor
            assert float(state.cells.log_likelihood(other)[0]) < best


def test_units_of_the_values_do_not_matter():
    model, scaled = model_of(smooth()), model_of(smooth(factor=1000.0))
    middle = torch.tensor([[0.1, -0.2, 0.2]]).double() / model.units_of_parameters[:3]
    parameters = torch.cat([middle, torch.ones((1, len(model.levels))).double()], dim=1)
    one, other = (
        float(own.likelihood.log_likelihood(parameters)[0]) + own.log_unit_of_evidence for own in (model, scaled)
    )
    num = len(Readings.of(smooth()))
    assert abs(one - other - (num - 1) * math.log(1000.0)) < 1e-6 * abs(one)


def test_few_cells_are_readings_like_any_other():
    observation = smooth()
    few = observation.initial.clone()
    few.flatten()[start.MANY_CELLS - 1 :] = torch.nan
    model = model_of(replace(observation, initial=few))
    assert model.likelihood.conditioned is None
    assert "initial_prior_std" in model.level_names
