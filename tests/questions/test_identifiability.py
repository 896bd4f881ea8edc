"""What is known, against closed forms, and cases where a combination or a pair of modes is all there is to know."""

import numpy as np
import pytest

import latentpde as lp
from latentpde.estimators.exact.samples import ParameterSamples
from latentpde.questions.identifiability import _bits, _combinations, _modes


def test_bits_are_those_of_closed_forms():
    rng = np.random.default_rng(0)
    weights = np.full(20_000, 1 / 20_000)
    assert _bits(0.25 + 0.25 * rng.random(20_000), weights) == pytest.approx(2, abs=0.1)
    sigma = 0.01
    expected = -np.log2(sigma * np.sqrt(2 * np.pi * np.e))
    assert _bits(0.5 + sigma * rng.standard_normal(20_000), weights) == pytest.approx(expected, abs=0.15)
    assert _bits(rng.random(20_000), weights) == pytest.approx(0, abs=0.05)


@pytest.mark.parametrize(("power", "words"), [(-1.0, "product c d"), (1.0, "ratio c / d"), (-0.5, "product c d^2")])
def test_a_combination_that_alone_is_known_is_named(power, words):
    rng = np.random.default_rng(1)
    c = np.exp(rng.uniform(-1, 1, 500))
    d = c**power * np.exp(0.02 * rng.standard_normal(500))
    samples = ParameterSamples(
        names=("c", "d"),
        bounds=np.array([[0.1, 10.0], [0.1, 10.0]]),
        logarithmic=np.array([False, False]),
        values=np.stack([c, d], -1),
        weights=np.full(500, 1 / 500),
        log_prior=np.zeros(500),
    )
    (sentence,) = _combinations(samples)
    assert words in sentence


def test_two_equal_modes_are_both_found():
    rng = np.random.default_rng(2)
    points = 0.02 * rng.standard_normal((800, 2)) + np.where(np.arange(800)[:, None] % 2, 0.25, 0.75)
    modes, weights = _modes(points, np.full(800, 1 / 800))
    np.testing.assert_allclose(weights, [0.5, 0.5], atol=0.01)
    assert len(set(modes[::2])) == len(set(modes[1::2])) == 1
    _, one = _modes(0.02 * rng.standard_normal((800, 2)) + 0.5, np.full(800, 1 / 800))
    assert len(one) == 1


@pytest.mark.parametrize("num_parameters", [1, 3])
@pytest.mark.parametrize("skewed", [False, True])
def test_sparse_tails_are_no_modes(num_parameters, skewed):
    rng = np.random.default_rng(4)
    for _ in range(10):
        points = rng.standard_normal((600, num_parameters))
        assert len(_modes(np.exp(points) if skewed else points, np.full(600, 1 / 600))[1]) == 1


def test_a_symmetric_case_has_two_modes_with_fields_of_their_own():
    """A wave that was carried by half its length to the left or to the right: readings cannot tell which."""
    x = (np.arange(16) + 0.5) / 16
    start = np.repeat(np.cos(2 * np.pi * x)[None], 16, 0)
    observation = lp.Observation.from_arrays(
        -np.exp(-0.01 * 4 * np.pi**2) * start, start, times=[1.0], noise_std=0.05, domain=lp.Domain.periodic()
    )
    posterior = lp.reconstruct(
        observation, "advection_diffusion", fixed={"vy": 0.0, "kappa": 0.01}, bounds={"vx": (-0.9, 0.9)}, num_modes=0
    )
    known = lp.identifiability(posterior)
    np.testing.assert_allclose(known.mode_weights, [0.5, 0.5], atol=0.1)
    np.testing.assert_allclose(np.sort(known.mode_means[:, 0]), [-0.5, 0.5], atol=0.02)
    assert "There are 2 modes" in known.to_text()
    assert known.mode_field(0, 8).shape[-2:] == (8, 8)


def test_a_case_where_only_a_ratio_matters_says_so():
    """Waves so damped that they diffuse: at a rate of c^2 / d, and readings know no more."""
    x = (np.arange(16) + 0.5) / 16
    start = np.repeat(np.cos(2 * np.pi * x)[None], 16, 0)
    rate = 0.5**2 / 40 * 4 * np.pi**2
    observation = lp.Observation.from_arrays(
        np.exp(-rate * 4.0) * start, start, times=[4.0], noise_std=0.02, domain=lp.Domain.periodic()
    )
    bounds = {"c": (0.2, 1.0), "d": (20.0, 100.0)}
    posterior = lp.reconstruct(observation, "telegraph", bounds=bounds, num_modes=0)
    assert "Only the ratio c^2 / d is known" in lp.identifiability(posterior).to_text()
