"""The checks of every run: their p-values against brute force, and what they say of wrong models."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy import stats

import latentpde as lp
from latentpde.errors import no_warnings
from latentpde.estimators.exact.checks import WeightedChiSquared
from latentpde.posterior.adequacy import EVERY_RUN, FALSE_ALARM, Check, sentences
from latentpde.simulation import Regime


@pytest.mark.parametrize("weights", [[1.0] * 8, [5.0, 1.0, 0.1], [3.0], np.geomspace(1, 1e-4, 20)], ids=len)
def test_tails_of_a_weighted_sum_are_those_of_many_draws(weights):
    weights = np.asarray(weights)
    sums = np.random.default_rng(3).chisquare(1, (400_000, len(weights))) @ weights
    turn = torch.linalg.qr(torch.randn(len(weights), len(weights), generator=torch.Generator().manual_seed(1)))[
        0
    ].double()
    matrix = turn @ torch.diag(torch.tensor(weights)) @ turn.T
    for level in (0.3, 0.05, 0.005):
        upper, lower = WeightedChiSquared.of(matrix).probabilities(float(np.quantile(sums, 1 - level)))
        assert upper == pytest.approx(level, rel=0.2)
        assert upper + lower == pytest.approx(1, abs=1e-6)


def observed(num=8, **options):
    cases = lp.simulate("klein_gordon", num=num, seed=41, shape=(32, 32), num_modes=3, sparsity=0.5, **options)
    return lp.Observation.from_dataset(cases)


def solved(observation, **options):
    with no_warnings():
        return lp.reconstruct(observation, num_draws=2, num_spread_draws=2, **options)


def test_p_values_of_right_models_are_uniform():
    """Over cases of the prior itself, here with known coefficients."""
    theta = {"cx": 1.0, "cy": 1.5, "m": 2.0}
    regime = Regime("known", "klein_gordon", tuple((v, v + 1e-9) for v in theta.values()), 0.45)
    cases = lp.simulate(regime, num=100, seed=41, shape=(32, 32), num_modes=3, sparsity=0.5)
    bounds = {name: (v - 1, v + 1) for name, v in theta.items()}
    found = solved(lp.Observation.from_dataset(cases), bounds=bounds, fixed=theta).diagnostics
    for name in ("misfit", "noise", "neighbours", "source", "start", "amplitude"):
        assert stats.kstest(found[f"p_{name}"], "uniform").pvalue > 1e-3, name
    assert np.isnan(found["p_times"]).all()  # a single snapshot
    assert (found["p_model"] < FALSE_ALARM).mean() < 0.1


def test_misfit_is_that_of_a_dense_gaussian():
    """The noise is known and nothing else is random: the misfit is a sum of squares."""
    observation = observed(1, source=False)
    posterior = solved(observation, num_modes=0, fixed={"cx": 1.0, "cy": 1.2, "m": 2.0})
    predicted = posterior.predicted_readings(slice(0, 1))
    there = observation.mask
    squares = ((observation.values - predicted)[there] / observation.noise_std[there]) ** 2
    num = int(there.sum())
    expected = 2 * min(stats.chi2.sf(squares.sum(), num), stats.chi2.cdf(squares.sum(), num))
    checks = posterior.checks()
    assert checks["misfit"].p == pytest.approx(expected, rel=1e-6)
    assert checks["misfit"].found == pytest.approx(float(squares.mean()), rel=1e-9)
    assert checks["reading"].found == pytest.approx(float(squares.max().sqrt()), rel=1e-9)
    assert checks["reading"].reading == int(squares.argmax())
    mean, noise = predicted[there] / observation.noise_std[there], observation.noise_std[there]
    share = (mean * observation.values[there] / noise).sum() / (mean**2).sum()  # by least squares
    assert checks["amplitude"].found == pytest.approx(float(share), rel=1e-9)
    expected = stats.norm.cdf(float((share - 1) * (mean**2).sum().sqrt()))
    assert checks["amplitude"].p == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize(
    ("wrong", "word"),
    [
        ("outlier", "Reading 3 is"),
        ("units", "closer to the model than their noise allows"),
        ("noise", "not explained"),
        ("transposed", "initial state"),
    ],
)
def test_what_is_wrong_is_said(wrong, word):
    observation = observed(1, noise_std=0.05)
    values = observation.values.clone()
    if wrong == "outlier":
        values[0].flatten()[observation.mask[0].flatten().nonzero()[3]] += 1.0
        observation = replace(observation, values=values)
    elif wrong == "units":
        observation = replace(observation, values=values / 1000, initial=observation.initial / 1000)
    elif wrong == "noise":
        observation = replace(observation, noise_std=observation.noise_std / 4)
    else:
        observation = replace(observation, initial=observation.initial.mT.contiguous())
    posterior = solved(observation)
    assert not posterior.diagnostics["trusted"][0]
    assert word in " ".join(posterior.warnings(0))


def test_every_check_applies_to_readings_over_time():
    rng = np.random.default_rng(0)
    y, x, t = rng.random(30), rng.random(30), np.repeat([0.0, 0.5, 1.0], 10)
    observation = lp.Observation.from_table(np.sin(6 * (x - 0.2 * t)), y=y, x=x, t=t, sigma=0.1)
    known = {"initial": lp.Matern(1.0, 0.5), "num_modes": 0, "fixed": {"vy": 0.0, "kappa": 0.01}}
    checks = lp.reconstruct(observation, "advection_diffusion", **known).checks()
    assert [name for name in EVERY_RUN if np.isnan(checks[name].p)] == ["source", "amplitude"]  # nor a start


def test_without_a_start_nothing_is_said_of_one():
    failing = {"misfit": Check(0.3, 1.0), "start": Check(1e-6, 3.0)}
    (of_given,), (of_unknown,) = sentences(failing), sentences(failing, has_start=False)
    assert "contradict the initial state" in of_given
    assert "The initial state that the readings need is 3 times as strong" in of_unknown
