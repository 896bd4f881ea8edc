"""Outliers: found, listed, and harmless; clean readings stay as they are."""

from __future__ import annotations

import subprocess
from functools import partial

import numpy as np
import pytest
import torch
import xarray as xr
from scipy import stats
from scipy.integrate import quad

import latentpde as lp
from latentpde.bench.points.outliers import of_unknown_noise, spoilt, without
from latentpde.errors import UsageError
from latentpde.estimators.exact import robust
from latentpde.estimators.exact.estimator import Exact
from latentpde.estimators.exact.likelihood import MarginalLikelihood
from tests.helpers.program import PROGRAM

NOISE = 0.15


def rmse(posterior, truth) -> float:
    return float(np.sqrt(((posterior.mean(resolution=truth.shape[-1]).values - truth) ** 2).mean()))


def simulated(regime: str, seed: int, size: int = 32):
    cases = lp.simulate(regime, num=1, seed=seed, shape=(size, size), num_modes=2, sparsity=0.6)
    return lp.read(cases), np.asarray(cases["truth"]["field"])


@pytest.mark.parametrize("variance", [0.0, 3.0])
@pytest.mark.parametrize("distance", [0.5, 1.5, 40.0])
def test_densities_are_those_of_a_gaussian_and_a_student(distance, variance):
    share, noise, std = robust.OUTLIER_PROBABILITY, 0.49, np.sqrt(variance)
    student = partial(stats.t.pdf, df=robust.DEGREES, scale=robust.SCALE * np.sqrt(noise))
    heavy = student(distance)
    if variance:
        heavy = quad(lambda e: student(distance - e) * stats.norm.pdf(e, scale=std), -9 * std, 9 * std)[0]
    expected = (1 - share) * stats.norm.pdf(distance, scale=np.sqrt(variance + noise)) + share * heavy
    given = (torch.tensor([value], dtype=torch.float64) for value in (distance, variance, noise))
    factor, density = robust.conditional_factors(*given)
    assert float(density) == pytest.approx(np.log(expected), abs=0.01)
    assert (float(factor) > 1) == (distance == 40.0)


def test_factors_mean_the_same_to_both_forms_of_the_likelihood():
    observation, _ = simulated("diffusion", 0)
    observation = of_unknown_noise(observation)
    latent = lp.reconstruct(observation, num_draws=1, sweep=16, target=10.0).prior
    (model,) = Exact().models(observation, latent)
    plain, parameters = model.likelihood, torch.tensor([[0.1, 0.2, 0.1, 0.3, 0.4]], dtype=torch.float64)
    parameters = parameters[:, : len(latent.bounds) + len(model.levels)]
    factors = torch.linspace(1, 9, len(plain.values), dtype=torch.float64)
    noise = plain.noise.with_extra(0.01).scaled(factors)
    given = (plain.values, plain.known, plain.unknown, noise)
    one, other = (MarginalLikelihood(*given, form=form) for form in ("covariance", "information"))
    assert float(one.log_likelihood(parameters)) == pytest.approx(float(other.log_likelihood(parameters)), rel=1e-9)


@pytest.mark.parametrize("noise", ["known", "inferred"])
@pytest.mark.parametrize("regime", ["diffusion", "helmholtz"])
def test_outliers_cost_little(regime, noise):
    observation, truth = simulated(regime, 1)
    bad, lying = spoilt(observation, NOISE)
    if noise == "inferred":
        observation, bad = of_unknown_noise(observation), of_unknown_noise(bad)
    clean = rmse(lp.reconstruct(without(observation, lying)), truth)
    posterior = lp.reconstruct(bad, robust=True)
    assert rmse(posterior, truth) <= 1.5 * clean
    aside = posterior.set_aside()
    assert set(lying) <= set(aside["reading"].values.tolist())
    assert aside["value"].values == pytest.approx(bad.values[0][bad.mask[0]].numpy()[aside["reading"].values])
    assert np.all(np.abs(aside["z"].values) > 3)
    assert int(posterior.diagnostics["num_set_aside"][0]) == len(aside["reading"])
    assert posterior.diagnostics["set_aside"][0][bad.mask[0].numpy()].sum() == len(aside["reading"])
    again = posterior.model(0)
    assert torch.equal(again.of_case(again.factors), posterior.factors[0])


def test_clean_readings_give_the_same_field():
    observation, _ = simulated("diffusion", 2)
    plain, careful = (lp.reconstruct(observation, robust=given) for given in (False, True))
    assert len(careful.set_aside()["reading"]) == 0
    assert np.array_equal(plain.mean(resolution=16), careful.mean(resolution=16))
    with pytest.raises(UsageError, match="robust=True"):
        plain.set_aside()


def test_clean_readings_give_the_same_bits_after_a_second_search():
    """Of these the first sweep suspects some, and the search finds them innocent."""
    observation, _ = simulated("advection", 0, 64)
    _, lying = spoilt(observation, NOISE)
    plain, careful = (lp.reconstruct(without(observation, lying), robust=given) for given in (False, True))
    assert len(careful.set_aside()["reading"]) == 0
    assert np.array_equal(plain.mean(resolution=16), careful.mean(resolution=16))


def stations(seed: int, num: int = 30):
    """Waves that drift and decay, read by stations at three times; truth on a grid at the last."""
    rng, times = np.random.default_rng(seed), np.repeat([0.0, 1.0, 2.0], num)
    y, x = (np.tile(rng.uniform(0, 10, num), 3) for _ in range(2))
    k, phase, (vy, vx) = rng.normal(0, 0.5, (2, 12, 1)), rng.uniform(0, 6.28, (12, 1)), rng.uniform(-1, 1, 2)

    def field(y, x, t):
        waves = np.cos(k[0] * (y - vy * t) + k[1] * (x - vx * t) + phase)
        return 5 + 0.6 * (waves * np.exp(-0.05 * (k**2).sum(0) * t)).sum(0)

    readings = field(y, x, times) + NOISE * rng.standard_normal(len(times))
    places = np.stack(np.meshgrid(*2 * [np.linspace(0.5, 9.5, 15)], indexing="ij"), -1).reshape(-1, 2)
    return lp.Observation.from_table(readings, y=y, x=x, t=times), places, field(places[:, 0], places[:, 1], 2.0)


def error_at_stations(observation, places, truth, **settings) -> float:
    quick = {"bounds": {"vx": (-2, 2), "vy": (-2, 2), "kappa": (0.001, 0.5)}, "source": "none"}
    posterior = lp.reconstruct(observation, "advection_diffusion", **quick, **settings)
    return float(np.sqrt(((posterior.at(places, times=2.0)["mean"].values - truth) ** 2).mean()))


@pytest.mark.parametrize("noise_std", [NOISE, None], ids=["known", "inferred"])
def test_outliers_cost_little_without_a_start(noise_std):
    observation, places, truth = stations(1)
    bad, lying = spoilt(observation, NOISE)
    clean = error_at_stations(without(observation, lying), places, truth, noise_std=noise_std)
    assert error_at_stations(bad, places, truth, noise_std=noise_std, robust=True) <= 1.5 * clean


@pytest.mark.slow
@pytest.mark.parametrize("known", [True, False], ids=["known", "inferred"])
@pytest.mark.parametrize("regime", ["diffusion", "advection", "balanced", "klein_gordon", "helmholtz", "telegraph"])
def test_outliers_cost_little_in_every_regime(regime, known):
    ratios = []
    for seed in range(6):
        observation, truth = simulated(regime, seed, 64)
        bad, lying = spoilt(observation, NOISE, seed)
        as_given = (lambda one: one) if known else of_unknown_noise
        clean = lp.reconstruct(as_given(without(observation, lying)))
        ratios.append(rmse(lp.reconstruct(as_given(bad), robust=True), truth) / rmse(clean, truth))
    assert np.exp(np.mean(np.log(ratios))) < 1.2
    assert max(ratios) <= 1.5


def test_it_is_spelt_alike_on_the_command_line_and_in_files(tmp_path):
    observation, _ = simulated("diffusion", 1)
    rng = np.random.default_rng(0)
    table = np.c_[rng.uniform(0, 1, (30, 2)), np.repeat([0.0, 1.0], 15), rng.standard_normal(30)]
    table[7, 3] += 60.0
    path, out = tmp_path / "in.csv", tmp_path / "out.nc"
    np.savetxt(path, table, delimiter=",", header="y,x,t,value", comments="")
    settings = ["--pde", "advection_diffusion", "--source", "none", "--noise-std", "1", "-O", "sweep=16", "-q"]
    call = ["reconstruct", str(path), "-o", str(out), "--robust", "--resolution", "8", *settings]
    subprocess.run([*PROGRAM, *call], check=True)
    with xr.open_dataset(out) as found:
        assert int(found["diagnostic_num_set_aside"]) == 1
        assert int(found["diagnostic_set_aside"].sum()) == 1
    with pytest.raises(UsageError, match="robust"):
        lp.reconstruct(observation, method="map", robust=True)
    with pytest.raises(UsageError, match="true or false"):
        lp.reconstruct(observation, robust="perhaps")
