"""Samples by gradients: densities of the shapes that levels have, whose evidence and means are known in closed form."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

from latentpde.errors import DataError
from latentpde.estimators.exact.climbing import Maxima, climb, flanks
from latentpde.estimators.exact.estimator import Exact
from latentpde.estimators.exact.gradient_search import (
    GradientEffort,
    _inspect_ends,
    sample_by_gradients,
    tail_index,
)
from latentpde.estimators.exact.normal_box import NormalDensity, log_prior, of_box, to_box
from latentpde.estimators.exact.parameters import Parameters
from latentpde.estimators.exact.sampling import Sampler, _Density
from latentpde.estimators.setup import Setup
from latentpde.settings import Settings

DIM = 8
AXES = np.linspace(0, 1, 20_001)


class Levels:
    """A product of densities on axes, and of one on a pair of them, each of a shape that is met.

    - a strength (0) that is either about 0.55 or anything smaller, where the likelihood is flat;
    - its length (1): known to a fifth if the strength is large, and not at all on that plateau;
    - a coefficient (2) with a long tail to its upper bound, another (3) that presses against its lower bound;
    - two that are correlated (4, 5), a narrow one (6) and one that nothing is known of (7).
    """

    def __call__(self, x):
        return self.with_slope(x)[0]

    def with_slope(self, x):
        slope = np.zeros_like(x)
        present = norm.pdf(x[:, 0], 0.55, 0.05) * norm.pdf(x[:, 1], 0.3, 0.1)
        absent = 0.6 / (1 + np.exp((x[:, 0] - 0.4) / 0.03))
        total = present + absent
        slope[:, 0] = -present * (x[:, 0] - 0.55) / 0.05**2 - absent / (1 + np.exp((0.4 - x[:, 0]) / 0.03)) / 0.03
        slope[:, 1] = -present * (x[:, 1] - 0.3) / 0.1**2
        slope[:, :2] /= total[:, None]
        value = np.log(total)
        value += 2.0 * np.log(x[:, 2] + 1e-3) - 9.0 * x[:, 2]
        slope[:, 2] = 2.0 / (x[:, 2] + 1e-3) - 9.0
        value -= 12.0 * x[:, 3]
        slope[:, 3] = -12.0
        pair = x[:, 4:6] - np.array([0.5, 0.6])
        precision = np.linalg.inv(np.array([[1.0, 0.8], [0.8, 1.0]]) * 0.06**2)
        value -= 0.5 * np.einsum("ni,ij,nj->n", pair, precision, pair)
        slope[:, 4:6] = -pair @ precision
        value -= 0.5 * ((x[:, 6] - 0.7) / 0.002) ** 2
        slope[:, 6] = -(x[:, 6] - 0.7) / 0.002**2
        return value, slope

    def truth(self):
        """The log evidence, means and standard deviations, by quadrature along axes."""
        middles = (AXES[1:] + AXES[:-1]) / 2

        def moments(weights):
            total = weights.mean()
            mean = (weights * middles).mean() / total
            return total, mean, np.sqrt((weights * (middles - mean) ** 2).mean() / total)

        absent = 0.6 / (1 + np.exp((middles - 0.4) / 0.03))
        inside = norm.cdf(0.7 / 0.1) - norm.cdf(-0.3 / 0.1)
        first = moments(norm.pdf(middles, 0.55, 0.05) * inside + absent)
        second = moments(norm.pdf(middles, 0.3, 0.1) * norm.cdf(9.0) + absent.mean())
        third, fourth = moments((middles + 1e-3) ** 2 * np.exp(-9 * middles)), moments(np.exp(-12 * middles))
        volume = 2 * np.pi * 0.06**2 * 0.6 * np.sqrt(2 * np.pi) * 0.002
        known = [(0.0, 0.5, 0.06), (0.0, 0.6, 0.06), (0.0, 0.7, 0.002), (0.0, 0.5, np.sqrt(1 / 12))]
        means, stds = np.array([each[1:] for each in (first, second, third, fourth, *known)]).T
        return np.log(first[0] * third[0] * fourth[0] * volume), means, stds


def scores(samples, log_evidence, means, stds):
    """Errors of means and of the evidence, each in units of what is said of it."""
    found = np.exp(samples.log_weights) @ samples.points
    of_evidence = (samples.log_evidence - log_evidence) / samples.log_evidence_error
    return (found - means) / stds * np.sqrt(samples.effective_size), of_evidence


def run(seed, **options):
    return sample_by_gradients(Levels(), Levels().with_slope, DIM, generator=np.random.default_rng(seed), **options)


def test_slopes_of_the_test_density():
    x = np.random.default_rng(0).uniform(0.1, 0.9, (20, DIM))
    for axis in range(DIM):
        step = 1e-6 * np.eye(DIM)[axis]
        difference = (Levels()(x + step) - Levels()(x - step)) / 2e-6
        np.testing.assert_allclose(Levels().with_slope(x)[1][:, axis], difference, rtol=1e-4, atol=1e-3)


def test_stated_errors_are_honest_where_levels_have_plateaus_tails_and_bounds():
    """Over seeds, means and evidence scatter as much as the effective size says and are not off to one side: a tail
    that proposals rarely meet shows here as evidence that is too low."""
    truth, runs = Levels().truth(), [run(seed) for seed in range(40, 56)]
    assert all(samples.trusted for samples in runs)
    of_means, of_evidence = (np.array(each) for each in zip(*(scores(one, *truth) for one in runs), strict=True))
    assert 0.75 < np.sqrt((of_means**2).mean()) < 1.2
    assert (np.abs(of_means.mean(0)) < 4 / np.sqrt(len(runs))).all()
    assert np.sqrt((of_evidence**2).mean()) < 1.4
    assert abs(of_evidence.mean()) < 3 / np.sqrt(len(runs))


def test_flanks_find_the_plateau_of_a_level():
    density = NormalDensity(Levels(), Levels().with_slope)
    maxima = climb(density, of_box(np.array([[0.56, 0.3, 0.2, 0.1, 0.5, 0.6, 0.7, 0.5]])), 40)
    found = flanks(density, maxima)
    assert found is not None
    assert (to_box(found.means)[:, 0] < 0.3).any()


def test_normal_coordinates_keep_mass_and_slopes():
    density = NormalDensity(Levels(), Levels().with_slope)
    z = of_box(np.random.default_rng(1).uniform(0.2, 0.8, (6, DIM)))
    values, slopes = density.with_slope(z)
    np.testing.assert_allclose(values, density.log_posterior(z))
    np.testing.assert_allclose(values, Levels()(to_box(z)) + norm.logpdf(z).sum(1))
    np.testing.assert_allclose(log_prior(z), norm.logpdf(z).sum(1))
    for axis in range(DIM):
        step = 1e-6 * np.eye(DIM)[axis]
        difference = (density.log_posterior(z + step) - density.log_posterior(z - step)) / 2e-6
        np.testing.assert_allclose(slopes[:, axis], difference, rtol=1e-3, atol=1e-3)


def test_same_seed_same_samples():
    first, again, other = run(1), run(1), run(2)
    np.testing.assert_array_equal(first.points, again.points)
    assert first.log_evidence == again.log_evidence != other.log_evidence


class TwoModes:
    """A normal density in either half of the first axis, the first of them of 30 % of the mass."""

    MEANS, SHARES, STD = np.array([[0.25] * 5, [0.75] * 5]), np.array([0.3, 0.7]), 0.03

    def __call__(self, x):
        return self.with_slope(x)[0]

    def with_slope(self, x):
        offsets = x[:, None] - self.MEANS
        logs = np.log(self.SHARES) + norm.logpdf(offsets, scale=self.STD).sum(-1)
        value = np.logaddexp.reduce(logs, axis=1)
        return value, -(np.exp(logs - value[:, None])[..., None] * offsets).sum(1) / self.STD**2


def test_two_modes_share_the_mass_as_they_should():
    samples = sample_by_gradients(TwoModes(), TwoModes().with_slope, 5, generator=np.random.default_rng(3))
    assert samples.trusted
    assert abs(samples.log_evidence) < 4 * samples.log_evidence_error
    first = np.exp(samples.log_weights) @ (samples.points[:, 0] < 0.5)
    assert abs(first - 0.3) < 4 * np.sqrt(0.21 / samples.effective_size)


def test_maxima_that_are_known_need_no_sweep():
    density = NormalDensity(Levels(), Levels().with_slope)
    start = climb(density, of_box(np.array([[0.56, 0.3, 0.2, 0.1, 0.5, 0.6, 0.7, 0.5]])), 40)
    assert isinstance(start, Maxima)
    truth, runs = Levels().truth(), [run(seed, begin=start) for seed in range(60, 64)]
    assert max(one.num_evaluations for one in runs) < run(60).num_evaluations
    assert np.sqrt(np.mean([scores(one, *truth)[0] ** 2 for one in runs])) < 1.4


def test_whoever_inspects_sees_all_maxima_and_so_a_search_that_goes_on_knows_them():
    seen = []
    options = {"generator": np.random.default_rng(3), "inspect": lambda points, tops: seen.append(tops)}
    sample_by_gradients(TwoModes(), TwoModes().with_slope, 5, **options)
    assert len(seen) > 1
    for tops in seen:
        assert tops[0, 0] == pytest.approx(0.75, abs=5e-3), "the highest first"
        assert np.abs(tops[:, 0] - 0.25).min() < 5e-3


def test_only_what_was_not_swept_before_is_swept():
    """A mode beyond the part of the box that a search has seen is met, and what it knows is not looked for again."""
    density, modes = NormalDensity(TwoModes(), TwoModes().with_slope), TwoModes()
    begin = climb(density, of_box(np.array([[0.26] * 5])), 40)
    assert len(begin.points) == 1
    swept = np.array([[0.0] * 5, [0.5] + [1.0] * 4])
    met = []

    def counted(x):
        met.extend(x[:, 0])
        return modes(x)

    def sample(**options):
        return sample_by_gradients(counted, modes.with_slope, 5, generator=np.random.default_rng(4), **options)

    found = sample(begin=begin, swept=swept)
    assert (np.array(met[:128]) > 0.5).all(), "the sweep"
    assert found.trusted
    assert abs(found.log_evidence) < 4 * found.log_evidence_error
    first = np.exp(found.log_weights) @ (found.points[:, 0] < 0.5)
    assert abs(first - 0.3) < 4 * np.sqrt(0.21 / found.effective_size)
    assert found.num_evaluations < sample().num_evaluations


def test_known_maxima_are_kept_and_not_climbed_to_twice():
    density = NormalDensity(TwoModes(), TwoModes().with_slope)
    known = climb(density, of_box(np.array([[0.26] * 5])), 40)
    both = climb(density, of_box(np.array([[0.27] * 5, [0.74] * 5])), 40, known=known)
    np.testing.assert_allclose(to_box(both.points)[:, 0], [0.75, 0.25], atol=5e-3)
    np.testing.assert_array_equal(both.points[1], known.points[0])


@pytest.mark.parametrize("rate", [8.0, 3.0])
def test_an_end_that_the_posterior_reaches_is_seen_before_samples_are_drawn(rate):
    """What is shown of an axis with an exponential density, beside a parameter that depends on it, has about its share
    within 2 % of the end, where normal coordinates put the maximum far inside."""

    def with_slope(x):
        away = x[:, 1] - 0.3 - 0.3 * x[:, 0]
        value = rate * x[:, 0] - 0.5 * (away / 0.05) ** 2
        return value, np.stack([rate + 0.3 * away / 0.05**2, -away / 0.05**2], 1)

    class Seen(Exception):
        pass

    evaluated = []

    def density(x):
        evaluated.append(len(x))
        return with_slope(x)[0]

    def inspect(points, tops):
        if len(points) > 1:
            raise Seen((points[:, 0] > 0.98).mean())

    with pytest.raises(Seen) as seen:
        sample_by_gradients(density, with_slope, 2, generator=np.random.default_rng(0), inspect=inspect)
    truth = (1 - np.exp(-rate * 0.02)) / (1 - np.exp(-rate))
    assert abs(seen.value.args[0] - truth) < 0.06
    assert sum(evaluated) < 600, "but for the sweep and one line, nothing"


def test_a_line_on_which_there_is_nothing_is_passed_over():
    """As where no covariance on it can be factorised."""
    top = climb(NormalDensity(TwoModes(), TwoModes().with_slope), of_box(np.array([[0.26] * 5])), 40)
    wide = Maxima(top.points, top.values, np.eye(5)[None])  # so wide that the line is looked at
    nothing = NormalDensity(lambda x: np.full(len(x), np.nan), lambda x: (np.full(len(x), np.nan), x))
    shown = []
    _inspect_ends(wide, nothing, lambda points, tops: shown.append(points))
    assert not shown
    _inspect_ends(wide, NormalDensity(TwoModes(), TwoModes().with_slope), lambda points, tops: shown.append(points))
    assert len(shown) == 5


def test_hopeless_effort_is_not_trusted_and_nothing_at_all_is_refused():
    effort = GradientEffort(sweep=2, step=4, min_effective=2.0, most_rounds=1, most_searches=1, most_iterations=1)
    assert not run(0, effort=effort).trusted
    nothing, options = np.full_like, {"generator": np.random.default_rng(0), "effort": effort}
    with pytest.raises(DataError, match="zero or not a number"):
        sample_by_gradients(lambda x: nothing(x[:, 0], -np.inf), lambda x: (nothing(x[:, 0], -np.inf), x), 2, **options)


@pytest.mark.parametrize("index", [0.1, 0.4, 0.8])
def test_index_of_a_tail_of_weights(index):
    weights = np.random.default_rng(0).pareto(1 / index, 20_000) + 1
    assert abs(tail_index(np.log(weights)) - index) < 0.12


@pytest.mark.slow
def test_stated_errors_are_honest_for_a_case_of_which_nothing_is_known():
    """100 readings at three times: several seeds against one long run."""
    from latentpde.bench.points.usual import at_common_times

    setup = Setup.of(at_common_times(101), "advection_diffusion", Settings())
    (model,) = Exact().models(setup.observation, setup.latent)
    parameters = Parameters.of(model.decoder.latent, {}, {}, model.levels)
    density = _Density(model.likelihood, parameters)
    long = GradientEffort(step=2000, target=12000.0, min_effective=300.0)
    options = {"generator": np.random.default_rng(17), "effort": long}
    reference = sample_by_gradients(density, density.with_slope, parameters.num_free, **options)
    weights = np.exp(reference.log_weights)
    means = weights @ reference.points
    stds = np.sqrt(weights @ (reference.points - means) ** 2)
    assert reference.effective_size > 2000
    runs = [Sampler(parameters).sample(model.likelihood, np.random.default_rng(seed)) for seed in range(30, 38)]
    found = [scores(one, reference.log_evidence, means, stds) for one in runs]
    assert np.sqrt(np.mean([one**2 for one, _ in found])) < 1.25
    assert abs(np.mean([one for _, one in found])) < 3 / np.sqrt(len(runs))


def test_readings_that_tell_nothing_give_back_the_prior():
    samples = sample_by_gradients(
        lambda x: np.zeros(len(x)),
        lambda x: (np.zeros(len(x)), np.zeros_like(x)),
        6,
        generator=np.random.default_rng(1),
    )
    assert abs(samples.log_evidence) < 4 * samples.log_evidence_error + 1e-9
    mean = np.exp(samples.log_weights) @ samples.points
    assert (np.abs(mean - 0.5) < 4.5 * np.sqrt(1 / 12 / samples.effective_size)).all()


def test_evaluations_are_counted():
    calls = []

    def counted(x):
        calls.append(len(x))
        return Levels()(x)

    def with_slope(x):
        calls.append(4 * len(x))
        return Levels().with_slope(x)

    samples = sample_by_gradients(counted, with_slope, DIM, generator=np.random.default_rng(0))
    assert samples.num_evaluations == sum(calls)
