"""Global sampling of a box: evidence, moments and mode weights of densities whose answers are known."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import multivariate_normal, norm

from latentpde.errors import DataError, UsageError
from latentpde.estimators.exact.search import Effort, WeightedSamples, sample_box


def rng(seed=0):
    return np.random.default_rng(seed)


def gaussian(mean, covariance):
    law = multivariate_normal(np.asarray(mean), np.asarray(covariance))
    return lambda x: np.atleast_1d(law.logpdf(x))


def mixture(means, stds, shares):
    """Isotropic Gaussians."""
    means, stds, shares = np.asarray(means, float), np.asarray(stds, float), np.asarray(shares, float)
    dim = means.shape[1]

    def log_density(x):
        distance = ((x[:, None] - means) ** 2).sum(-1) / stds**2
        return logsumexp(-0.5 * distance - dim * np.log(stds * np.sqrt(2 * np.pi)), axis=1, b=shares)

    return log_density


def moments(samples):
    weights = np.exp(samples.log_weights)
    mean = weights @ samples.points
    centred = samples.points - mean
    return mean, (weights[:, None] * centred).T @ centred


def check(samples, log_evidence=0.0):
    assert samples.trusted
    assert samples.log_weights.shape == samples.points.shape[:1]
    np.testing.assert_allclose(np.exp(samples.log_weights).sum(), 1.0)
    assert ((samples.points >= 0) & (samples.points <= 1)).all()
    assert abs(samples.log_evidence - log_evidence) < 4 * samples.log_evidence_error + 1e-9
    assert samples.log_evidence_error < 0.1


def check_gaussian(samples, mean, covariance):
    found_mean, found_covariance = moments(samples)
    error = 4.5 / np.sqrt(samples.effective_size)
    scale = np.sqrt(np.diag(covariance))
    assert (np.abs(found_mean - mean) < error * scale).all()
    assert (np.abs(found_covariance - covariance) < 1.5 * error * np.outer(scale, scale)).all()


# Densities with one mode


@pytest.mark.parametrize("dim", [1, 2, 3, 4])
def test_gaussian(dim):
    mean, std = np.linspace(0.4, 0.6, dim), np.linspace(0.03, 0.06, dim)
    samples = sample_box(gaussian(mean, np.diag(std**2)), dim, generator=rng())
    check(samples)
    check_gaussian(samples, mean, np.diag(std**2))


@pytest.mark.parametrize("dim", [1, 3])
def test_very_narrow_gaussian(dim):
    """As a thousand exact readings leave it: a millionth of the box or less."""
    mean, covariance = np.full(dim, 0.371), np.eye(dim) * 1e-4**2
    samples = sample_box(gaussian(mean, covariance), dim, generator=rng())
    check(samples)
    check_gaussian(samples, mean, covariance)


@pytest.mark.parametrize("dim", [2, 3, 4])
def test_correlated_narrow_gaussian(dim):
    """A ridge: long in one direction and a hundred times thinner in all others, along no axis."""
    direction = np.ones(dim) / np.sqrt(dim)
    covariance = 0.001**2 * np.eye(dim) + (0.1**2 - 0.001**2) * np.outer(direction, direction)
    samples = sample_box(gaussian(np.full(dim, 0.5), covariance), dim, generator=rng())
    check(samples)
    check_gaussian(samples, np.full(dim, 0.5), covariance)


@pytest.mark.parametrize("dim", [1, 2, 3, 4])
@pytest.mark.parametrize("level", [0.0, -1234.5])
def test_uniform(dim, level):
    samples = sample_box(lambda x: np.full(len(x), level), dim, generator=rng())
    check(samples, level)
    mean, covariance = moments(samples)
    np.testing.assert_allclose(mean, 0.5, atol=0.03)
    np.testing.assert_allclose(covariance, np.eye(dim) / 12, atol=0.015)


@pytest.mark.parametrize("dim", [1, 2, 3])
def test_mode_in_a_corner_of_the_box(dim):
    """A true coefficient at its bound: a 2^-dim share of the Gaussian lies inside."""
    std = 0.02
    samples = sample_box(gaussian(np.zeros(dim), std**2 * np.eye(dim)), dim, generator=rng())
    check(samples, -dim * np.log(2))
    mean, covariance = moments(samples)
    error = 4.5 / np.sqrt(samples.effective_size)
    assert (np.abs(mean - std * np.sqrt(2 / np.pi)) < error * std).all()
    assert (np.abs(np.diag(covariance) - std**2 * (1 - 2 / np.pi)) < 2 * error * std**2).all()


def test_density_that_grows_towards_a_face():
    """Most of the proposals fall outside, and the evidence counts them."""
    rate = 200.0
    samples = sample_box(lambda x: -rate * (1 - x[:, 0]), 2, generator=rng())
    check(samples, -np.log(rate))
    assert abs(moments(samples)[0][0] - (1 - 1 / rate)) < 4.5 / rate / np.sqrt(samples.effective_size)


def test_banana():
    """x2 follows the square of x1: no single Gaussian fits."""
    width, thin = 0.12, 0.01

    def log_density(x):
        bend = 0.2 + 2 * (x[:, 0] - 0.5) ** 2
        return norm.logpdf(x[:, 0], 0.5, width) + norm.logpdf(x[:, 1], bend, thin)

    samples = sample_box(log_density, 2, generator=rng())
    inside = 2 * norm.cdf(0.5 / width) - 1
    check(samples, np.log(inside))
    mean, covariance = moments(samples)
    error = 4.5 / np.sqrt(samples.effective_size)
    expected = 0.2 + 2 * width**2
    spread = np.sqrt(thin**2 + 2 * (2 * width**2) ** 2)
    assert abs(mean[0] - 0.5) < error * width
    assert abs(mean[1] - expected) < error * spread
    assert abs(covariance[1, 1] / spread**2 - 1) < 4 * error
    assert abs(covariance[0, 1]) < 2 * error * width * spread


# Several modes


def weights_near(samples, means, radius):
    near = ((samples.points[:, None] - np.asarray(means)) ** 2).sum(-1) < radius**2
    return np.exp(samples.log_weights) @ near


@pytest.mark.parametrize("dim", [1, 2, 3, 4])
def test_two_equal_modes_far_apart(dim):
    means = np.stack([np.full(dim, 0.15), np.full(dim, 0.85)])
    samples = sample_box(mixture(means, [0.02, 0.02], [0.5, 0.5]), dim, generator=rng())
    check(samples)
    np.testing.assert_allclose(weights_near(samples, means, 0.2), 0.5, atol=4 * 0.5 / np.sqrt(samples.effective_size))


@pytest.mark.parametrize("seed", range(3))
def test_eight_modes_of_unequal_weight(seed):
    """From 0.36 down to 0.04 of the mass, all over the cube, as aliased wave speeds lie."""
    means = 0.2 + 0.6 * np.stack(np.meshgrid([0, 1], [0, 1], [0, 1]), -1).reshape(-1, 3)
    shares = np.linspace(1, 9, 8) ** 1.2
    shares /= shares.sum()
    stds = np.linspace(0.035, 0.015, 8)
    samples = sample_box(mixture(means, stds, shares), 3, generator=rng(seed))
    check(samples)
    error = np.sqrt(shares * (1 - shares) / samples.effective_size)
    assert (np.abs(weights_near(samples, means, 0.2) - shares) < 4.5 * error).all()


@pytest.mark.parametrize("seed", range(8))
def test_a_wide_and_a_narrow_mode_share_the_mass_as_they_should(seed):
    """The narrow one is a hundred times higher; neither height nor width alone decides. It covers a few thousandths of
    the box, so that a sweep meets its flank with a point or two."""
    means = np.array([[0.3, 0.3], [0.8, 0.8]])
    samples = sample_box(mixture(means, [0.065, 0.006], [0.5, 0.5]), 2, generator=rng(seed))
    check(samples)
    assert abs(weights_near(samples, means, 0.28)[1] - 0.5) < 4.5 * 0.5 / np.sqrt(samples.effective_size)


def test_easier_densities_lead_to_a_mode_that_no_sweep_meets():
    """A needle and a hill: of the box one part in a million is needle."""
    means = np.array([[0.3, 0.3, 0.3], [0.8, 0.7, 0.6]])
    stages = [mixture(means, [0.1, width], [0.01, 0.99]) for width in (0.05, 0.01, 0.002, 0.0005)]
    alone = sample_box(stages[-1], 3, generator=rng())
    led = sample_box(stages[-1], 3, generator=rng(), easier=stages[:-1])
    assert weights_near(alone, means, 0.01)[1] < 0.01
    check(led)
    assert abs(weights_near(led, means, 0.01)[1] - 0.99) < 0.05


def test_what_an_earlier_round_met_by_chance_is_not_passed_over():
    """Both halves of the last round agree, but a point of the first outweighs all they found: not to be trusted."""
    calls = iter(range(10**6))

    def log_density(x):
        hill = norm.logpdf(x, 0.5, 0.1).sum(1)
        return np.where(next(calls) == 0, np.where(np.arange(len(x)) == 0, 50.0, hill), hill)

    samples = sample_box(log_density, 2, generator=rng())
    assert samples.num_rounds > 1
    assert not samples.trusted


@pytest.mark.slow
def test_the_stated_error_of_the_evidence_is_honest():
    """Over many seeds the evidence scatters no more than it says: not a single lucky run."""
    target = mixture([[0.2, 0.3], [0.7, 0.8]], [0.03, 0.02], [0.7, 0.3])
    runs = [sample_box(target, 2, generator=rng(seed)) for seed in range(12)]
    scores = np.array([run.log_evidence / run.log_evidence_error for run in runs])
    assert np.sqrt((scores**2).mean()) < 1.5
    assert abs(scores.mean()) < 4 / np.sqrt(len(runs))


# Failure is known


FEEBLE = Effort(sweep=2, step=2, most_iterations=1, most_rounds=1)


def test_hopeless_effort_is_not_trusted():
    means = [[0.1, 0.1, 0.1], [0.9, 0.9, 0.9]]
    samples = sample_box(mixture(means, [0.001, 0.001], [0.5, 0.5]), 3, generator=rng(), effort=FEEBLE)
    assert not samples.trusted
    assert samples.num_rounds == 1
    assert samples.num_evaluations <= 200


def test_where_one_half_finds_a_spike_the_result_has_it_and_says_that_they_disagreed():
    """Most of the mass in a spike that a sweep hits now and then: one half alone must not decide unheard."""
    means, shares = [[0.3, 0.3, 0.3], [0.8, 0.75, 0.7]], [0.2, 0.8]
    small = Effort(sweep=64, step=64, min_effective=20.0, target=100.0, most_rounds=1)
    split = 0
    for seed in range(12):
        samples = sample_box(mixture(means, [0.1, 0.02], shares), 3, generator=rng(seed), effort=small)
        if samples.evidence_gap > 1.0:  # chance leaves 0.3 at most
            split += 1
            assert not samples.trusted
            assert weights_near(samples, means, 0.1)[1] > 0.4
    assert split, "the construction no longer divides the halves"


@pytest.mark.slow
def test_disagreement_of_the_halves_is_reported_and_answered_with_more_effort():
    """With a starved first round the halves find different modes; the search goes on, and says how often."""
    means = 0.15 + 0.7 * np.stack(np.meshgrid([0, 1], [0, 1], [0, 1]), -1).reshape(-1, 3)
    target = mixture(means, np.full(8, 0.01), np.full(8, 1 / 8))
    starved = {"sweep": 8, "step": 32, "min_effective": 4.0, "target": 100.0}
    one = [sample_box(target, 3, generator=rng(s), effort=Effort(**starved, most_rounds=1)) for s in range(5)]
    doubted = [run for run in one if not run.trusted]
    assert doubted, "the construction no longer starves the search"
    assert max(run.evidence_gap for run in doubted) > 0.1
    more = [sample_box(target, 3, generator=rng(s), effort=Effort(**starved, most_rounds=3)) for s in range(5)]
    for few, many in zip(one, more, strict=True):
        assert many.num_rounds >= few.num_rounds
        assert (many.num_rounds > 1) == (not few.trusted)
    assert sum(run.trusted for run in more) > sum(run.trusted for run in one)


def test_no_further_round_begins_once_the_evaluations_are_spent():
    calls, base = [], gaussian(np.full(3, 0.123), 1e-5**2 * np.eye(3))

    def log_density(x):
        calls.append(len(x))
        return base(x)

    effort = Effort(sweep=64, step=64, most_evaluations=100, most_rounds=5, most_iterations=3)
    samples = sample_box(log_density, 3, generator=rng(), effort=effort)
    assert samples.num_rounds == 1
    assert samples.num_evaluations == sum(calls)
    assert not samples.trusted


# Awkward values


def test_minus_infinity_and_nan_have_no_weight():
    """Half the box is impossible, a quarter fails to evaluate."""
    base = gaussian([0.5, 0.5], 0.1**2 * np.eye(2))

    def log_density(x):
        values = base(x)
        values[x[:, 0] < 0.5] = -np.inf
        values[(x[:, 0] >= 0.5) & (x[:, 1] < 0.5)] = np.nan
        return values

    samples = sample_box(log_density, 2, generator=rng())
    check(samples, np.log(0.25))
    carries = np.exp(samples.log_weights) > 0
    assert (samples.points[carries] >= 0.5).all()


def test_density_that_is_zero_nearly_everywhere():
    """Uniform on a small ball: no slope leads there."""
    samples = sample_box(
        lambda x: np.where(((x - 0.6) ** 2).sum(1) < 0.05**2, 0.0, -np.inf), 2, generator=rng(), effort=Effort()
    )
    assert abs(samples.log_evidence - np.log(np.pi * 0.05**2)) < 4 * samples.log_evidence_error
    np.testing.assert_allclose(moments(samples)[0], 0.6, atol=0.01)


@pytest.mark.parametrize("value", [-np.inf, np.nan])
def test_density_that_is_zero_everywhere_is_refused_or_not_trusted(value):
    """As where no likelihood can be evaluated at all: never a NaN further down, nor a trusted result."""
    effort = Effort(sweep=16, step=16, most_rounds=2)
    try:
        samples = sample_box(lambda x: np.full(len(x), value), 2, generator=rng(), effort=effort)
    except (DataError, UsageError):
        return
    assert not samples.trusted
    assert np.isneginf(samples.log_evidence)


def test_very_large_and_very_small_log_densities_do_not_overflow():
    base = gaussian([0.5, 0.5], 0.05**2 * np.eye(2))
    for shift in (1e6, -1e6):
        samples = sample_box(lambda x, shift=shift: base(x) + shift, 2, generator=rng())
        check(samples, shift)


# Randomness


def test_same_seed_same_samples():
    target = gaussian([0.4, 0.6], 0.03**2 * np.eye(2))
    first, again, other = (sample_box(target, 2, generator=rng(seed)) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first.points, again.points)
    np.testing.assert_array_equal(first.log_weights, again.log_weights)
    assert first.log_evidence == again.log_evidence
    assert first.log_evidence != other.log_evidence


def test_global_random_state_is_neither_read_nor_moved():
    target = gaussian([0.4], [[0.03**2]])
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    sample_box(target, 1, generator=rng())
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002


def weighted(weights):
    weights = np.asarray(weights, float)
    points = np.arange(len(weights), dtype=float)[:, None] / len(weights)
    with np.errstate(divide="ignore"):
        log_weights = np.log(weights / weights.sum())
    return WeightedSamples(points, log_weights, 0.0, 0.1, 1.0, 0.0, len(weights), 1, True)


def test_resampling_gives_each_point_its_share_to_within_one():
    shares = np.array([0.0, 0.501, 0.25, 0.0, 0.2, 0.049, 0.0])
    index = weighted(shares).resample(1000, generator=rng())
    counts = np.bincount(index, minlength=len(shares))
    assert (np.abs(counts - 1000 * shares) < 1).all()
    assert counts[shares == 0].sum() == 0


def test_resampling_is_unbiased_for_few_draws():
    """Two draws of three points: systematic resampling must still favour none over many repetitions."""
    shares, generator = np.array([0.2, 0.3, 0.5]), rng()
    index = np.stack([weighted(shares).resample(2, generator=generator) for _ in range(4000)])
    for draw in range(2):  # order is random, so each position has the same law
        frequency = np.bincount(index[:, draw], minlength=3) / 4000
        np.testing.assert_allclose(frequency, shares, atol=4.5 * np.sqrt(0.25 / 4000))


# Where a surrogate is searched


def needle(x, width=300.0):
    return -0.5 * ((x - 0.37) ** 2).sum(1) * width**2


def beside_nothing(x):
    return np.where(x.sum(1) > 0.37 * x.shape[1], -np.inf, needle(x))


def with_holes(x):
    holes = np.abs(np.sin(x @ np.arange(1, x.shape[1] + 1) * 12345.678) * 1e4) % 1 < 0.05
    return np.where(holes, np.nan, needle(x))


@pytest.mark.parametrize("dim", [2, 3, 4])
@pytest.mark.parametrize("log_density", [beside_nothing, with_holes])
def test_a_surrogate_bears_what_is_not_finite(log_density, dim):
    """A peak of the surrogate may lie where the density is zero, or next to it."""
    for seed in range(4):
        samples = sample_box(log_density, dim, generator=rng(seed), surrogate=needle)
        assert samples.trusted
        assert np.abs(moments(samples)[0] - 0.37).max() < 0.01


@pytest.mark.parametrize("steepness", [1e5, 1e6])
def test_a_surrogate_bears_a_sheet_a_million_times_thinner_than_wide(steepness):
    direction = np.array([0.6, -0.64, 0.48])

    def log_density(x):
        return -0.5 * (steepness * ((x - 0.4) @ direction)) ** 2

    for seed in range(3):
        samples = sample_box(log_density, 3, generator=rng(seed), surrogate=log_density)
        assert samples.trusted
        assert np.abs((samples.points - 0.4) @ direction).max() < 20 / steepness
