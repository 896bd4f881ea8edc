"""Every metric against a slow reference that reads like its definition, and the properties that make it trusted."""

import numpy as np
import pytest
import scoringrules
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from latentpde.errors import DataError, UsageError
from latentpde.scores import metrics

SHAPES = [(8, 8), (7, 7), (6, 10), (9, 4), (5, 12), (2, 2), (2, 3)]
shapes = st.tuples(st.integers(2, 13), st.integers(2, 13))
seeds = st.integers(0, 2**32 - 1)
few = settings(max_examples=25, deadline=None)


def rng(seed=0):
    return np.random.default_rng(seed)


def full_plane_psd(field):
    """The definition of the radial spectrum, one mode of the full plane after another."""
    ny, nx = field.shape
    power = np.abs(np.fft.fft2(field - field.mean())) ** 2 / (ny * nx)
    annuli = [[] for _ in range(min(ny, nx) // 2)]
    for row in range(ny):
        for col in range(nx):
            radius = np.hypot(row if 2 * row < ny else row - ny, col if 2 * col < nx else col - nx)
            for k in range(1, len(annuli) + 1):
                if k - 0.5 <= radius < k + 0.5:
                    annuli[k - 1].append(power[row, col])
    return np.array([np.mean(annulus) for annulus in annuli])


def double_loop_crps(draws, truth):
    num = len(draws)
    skill = sum(abs(a - truth) for a in draws) / num
    spread = sum(abs(draws[s] - draws[t]) for s in range(num) for t in range(num) if s != t)
    return np.mean(skill - spread / (2 * num * (num - 1)))


# Point metrics


def test_rmse_and_mae_are_their_definitions_and_keep_leading_axes():
    prediction, truth = rng().normal(size=(2, 2, 3, 6, 5))
    errors = [[(prediction - truth)[i, j].ravel() for j in range(3)] for i in range(2)]
    np.testing.assert_allclose(metrics.rmse(prediction, truth), [[np.sqrt(np.mean(e**2)) for e in r] for r in errors])
    np.testing.assert_allclose(metrics.mae(prediction, truth), [[np.mean(abs(e)) for e in r] for r in errors])
    single = metrics.rmse(prediction[0, 0], truth[0, 0])
    assert isinstance(single, float)
    assert single == metrics.rmse(prediction, truth)[0, 0]


@pytest.mark.parametrize("shape", SHAPES)
def test_radial_psd_is_the_mean_over_annuli_of_the_full_plane(shape):
    fields = 3 + rng().normal(size=(2, 3, *shape))
    expected = [[full_plane_psd(field) for field in row] for row in fields]
    np.testing.assert_allclose(metrics.radial_psd(fields), expected, rtol=1e-12)
    np.testing.assert_array_equal(metrics.radial_psd(fields[0, 0]), metrics.radial_psd(fields)[0, 0])


@given(shape=shapes, seed=seeds)
@few
def test_psd_conserves_the_energy_of_band_limited_fields(shape, seed):
    """Parseval: if every mode lies in some annulus, the mode-weighted spectrum sums to the field's variance."""
    rows, cols = (np.fft.fftfreq(n, 1 / n) for n in shape)
    annulus = np.floor(np.hypot(rows[:, None], cols) + 0.5).astype(int)
    num_modes = np.bincount(annulus.ravel())[1 : min(shape) // 2 + 1]
    # A radius, unlike an arbitrary mask, contains each mode with its conjugate, so the field stays real.
    inside = annulus <= min(shape) // 2
    field = np.fft.ifft2(np.where(inside, np.fft.fft2(rng(seed).normal(size=shape)), 0)).real
    assert np.sum(num_modes * metrics.radial_psd(field)) == pytest.approx(np.sum((field - field.mean()) ** 2))


@pytest.mark.parametrize(("shape", "mode"), [((16, 16), (3, 0)), ((15, 20), (2, 5)), ((12, 9), (-1, 3))])
def test_a_single_wave_has_its_closed_form_power_in_one_annulus(shape, mode):
    amplitude = 1.7
    y, x = np.meshgrid(*((np.arange(n) + 0.5) / n for n in shape), indexing="ij")
    psd = metrics.radial_psd(amplitude * np.cos(2 * np.pi * (mode[0] * y + mode[1] * x) + 0.4) + 5)
    k = int(np.floor(np.hypot(*mode) + 0.5))
    rows, cols = (np.fft.fftfreq(n, 1 / n) for n in shape)
    radius = np.hypot(rows[:, None], cols)
    num_modes = np.sum((radius >= k - 0.5) & (radius < k + 0.5))
    expected = np.zeros(min(shape) // 2)
    # Two conjugate modes, each |A HW / 2|^2 / (HW).
    expected[k - 1] = amplitude**2 * np.prod(shape) / (2 * num_modes)
    np.testing.assert_allclose(psd, expected, atol=1e-20)


def test_psd_log_error_is_its_definition_and_the_floor_bounds_it():
    prediction, truth = rng().normal(size=(2, 6, 9))
    decades = np.log10(full_plane_psd(prediction)) - np.log10(full_plane_psd(truth))
    assert metrics.psd_log_error(prediction, truth) == pytest.approx(np.sqrt(np.mean(decades**2)))
    assert metrics.psd_log_error(10 * truth, truth) == pytest.approx(2)
    empty = np.full((6, 9), 4.0)
    above_floor = np.log10(full_plane_psd(truth) / metrics.PSD_FLOOR)
    assert metrics.psd_log_error(empty, truth) == pytest.approx(np.sqrt(np.mean(above_floor**2)))
    assert metrics.psd_log_error(empty, truth, floor=1e9) == 0


@given(shape=shapes, seed=seeds, shift=st.tuples(st.integers(0, 12), st.integers(0, 12)))
@few
def test_psd_log_error_sees_neither_translation_nor_offset(shape, seed, shift):
    prediction, truth = rng(seed).normal(size=(2, *shape))
    moved = np.roll(prediction, shift, axis=(0, 1)) - 2
    assert metrics.psd_log_error(prediction, prediction) == 0
    assert metrics.psd_log_error(moved, prediction) == pytest.approx(0, abs=1e-7)
    assert metrics.psd_log_error(moved, truth) == pytest.approx(metrics.psd_log_error(prediction, truth), abs=1e-7)


# Ensemble metrics


@given(num=st.integers(2, 9), offset=st.sampled_from([0.0, 1e6]), decimals=st.sampled_from([1, 15]), seed=seeds)
@few
def test_crps_is_the_fair_double_loop(num, offset, decimals, seed):
    """Also with ties among draws and truth, and without losing the digits of a large common offset."""
    draws, truth = rng(seed).normal(size=(2, num, 3, 4)), rng(seed + 1).normal(size=(2, 3, 4))
    draws, truth = np.round(draws, decimals), np.round(truth, decimals)
    expected = [double_loop_crps(d, t) for d, t in zip(draws, truth, strict=True)]
    np.testing.assert_allclose(metrics.crps(draws + offset, truth + offset), expected, atol=1e-12 + 1e-15 * offset)
    fair = scoringrules.crps_ensemble(truth, draws, m_axis=-3, estimator="fair", backend="numpy")
    np.testing.assert_allclose(metrics.crps(draws, truth), fair.mean((-2, -1)), atol=1e-12)


@pytest.mark.parametrize("num", [2, 3, 12])
def test_crps_is_unbiased_for_a_gaussian_at_every_ensemble_size(num):
    mean, std, truth = 0.3, 1.4, -0.5
    scores = metrics.crps(rng().normal(mean, std, size=(4000, num, 4, 4)), np.full((4000, 4, 4), truth))
    w = (truth - mean) / std
    expected = std * (w * (2 * norm.cdf(w) - 1) + 2 * norm.pdf(w) - 1 / np.sqrt(np.pi))
    standard_error = scores.std() / np.sqrt(scores.size)
    assert scores.mean() == pytest.approx(expected, abs=4 * standard_error)
    assert 4 * standard_error < 0.05 * expected


def test_crps_from_quantiles_is_the_weighted_pinball_loss():
    levels = [0.05, 0.25, 0.5, 0.75, 0.95]
    weights = [0.15, 0.225, 0.25, 0.225, 0.15]
    quantiles, truth = np.sort(rng().normal(size=(2, 5, 3, 4)), axis=1), rng(1).normal(size=(2, 3, 4))
    losses = [
        2 * w * np.where(truth >= q, p * (truth - q), (1 - p) * (q - truth))
        for p, w, q in zip(levels, weights, quantiles.swapaxes(0, 1), strict=True)
    ]
    expected = np.sum(losses, axis=0).mean((-2, -1))
    np.testing.assert_allclose(metrics.crps_from_quantiles(levels, quantiles, truth), expected)


def test_crps_from_quantiles_reduces_to_the_plain_mean_and_converges():
    truth = np.full((2, 2), 0.7)
    expected = 0.7 * (2 * norm.cdf(0.7) - 1) + 2 * norm.pdf(0.7) - 1 / np.sqrt(np.pi)
    levels = (np.arange(400) + 0.5) / 400
    quantiles = np.broadcast_to(norm.ppf(levels)[:, None, None], (400, 2, 2))
    value = metrics.crps_from_quantiles(levels, quantiles, truth)
    assert value == pytest.approx(expected, rel=1e-3)
    assert value == pytest.approx(
        scoringrules.crps_quantile(truth, quantiles, levels, m_axis=0, backend="numpy").mean()
    )


def test_crps_from_five_quantiles_of_a_gaussian_is_three_percent_low():
    levels = [0.05, 0.25, 0.5, 0.75, 0.95]
    truth = norm.ppf((np.arange(10_000) + 0.5) / 10_000).reshape(100, 100)
    quantiles = np.broadcast_to(norm.ppf(levels)[:, None, None], (5, 100, 100))
    ratio = metrics.crps_from_quantiles(levels, quantiles, truth) * np.sqrt(np.pi)
    assert ratio == pytest.approx(0.97, abs=0.005)


def test_coverage_counts_cells_inside_the_interval():
    draws = np.broadcast_to(np.arange(1.0, 20.0)[:, None, None], (19, 2, 3))
    truth = np.array([[0.9, 1.0, 10.0], [19.0, 19.1, -50.0]])
    assert metrics.coverage(draws, truth) == pytest.approx(3 / 6)  # 19 draws: exactly [first, last]
    assert metrics.coverage(draws, truth, level=0.5) == pytest.approx(1 / 6)  # [5th, 15th]


@pytest.mark.parametrize(("num", "level"), [(19, 0.9), (39, 0.9), (100, 0.9), (31, 0.5), (3, 0.5)])
def test_calibrated_ensembles_cover_what_they_promise(num, level):
    members = rng().normal(size=(40, num + 1, 20, 20))
    covered = metrics.coverage(members[:, :-1], members[:, -1], level)
    assert covered.mean() == pytest.approx(level, abs=4 * np.sqrt(level * (1 - level) / 16_000))


def test_small_ensembles_cover_with_their_whole_range():
    members = rng().normal(size=(40, 13, 20, 20))
    covered = metrics.coverage(members[:, :-1], members[:, -1])
    assert covered.mean() == pytest.approx(11 / 13, abs=4 * np.sqrt(0.13 / 16_000))


@pytest.mark.parametrize("num", [2, 5, 30])
def test_spread_matches_error_when_calibrated_at_every_ensemble_size(num):
    members = rng().normal(size=(num + 1, 150, 150))
    draws, truth = members[:-1], members[-1]
    variance = np.sum((draws - draws.mean(0)) ** 2) / (num - 1) / 150**2
    expected = np.sqrt((num + 1) / num * variance) / metrics.rmse(draws.mean(0), truth)
    assert metrics.spread_error(draws, truth) == pytest.approx(expected)
    assert metrics.spread_error(draws, truth) == pytest.approx(1, abs=0.02)
    assert metrics.spread_error(draws, 2 * truth) < 0.9


def test_spread_error_of_an_exact_mean_is_infinite_or_undefined():
    draws = np.stack([np.full((2, 2), -1.0), np.full((2, 2), 1.0)])
    assert metrics.spread_error(draws, np.zeros((2, 2))) == np.inf
    assert np.isnan(metrics.spread_error(0 * draws, np.zeros((2, 2))))


def test_ensemble_size_is_the_smallest_that_meets_the_tolerance():
    draws = rng().normal(scale=0.5, size=(3, 40, 6, 7))
    sizes = metrics.ensemble_size(draws, 0.1)
    for size, pilot in zip(sizes, draws, strict=True):
        trace = np.trace(np.cov(pilot.reshape(40, -1), rowvar=False)) / 42
        assert trace / size <= 0.1**2 < trace / (size - 1)
    assert metrics.ensemble_size(0 * draws[0], 0.1) == 1


# One row of a table


def test_score_judges_the_mean_and_the_draws():
    draws, truth = rng().normal(size=(3, 6, 8, 8)), rng(1).normal(size=(3, 8, 8))
    mean = draws.mean(1)
    scores = metrics.score(mean, truth, draws)
    expected = {
        "rmse": metrics.rmse(mean, truth),
        "mae": metrics.mae(mean, truth),
        "psd": metrics.psd_log_error(mean, truth),
        "crps": metrics.crps(draws, truth),
        "coverage90": metrics.coverage(draws, truth, 0.9),
        "spread_error": metrics.spread_error(draws, truth),
    }
    assert list(scores) == list(expected)
    for name, values in scores.items():
        assert isinstance(values, np.ndarray)
        assert values.shape == (3,)
        np.testing.assert_array_equal(values, expected[name])


@pytest.mark.parametrize("num", [None, 1])
def test_score_of_a_point_estimate_has_no_uncertainty(num):
    mean, truth = rng().normal(size=(2, 3, 8, 8))
    scores = metrics.score(mean, truth, None if num is None else mean[:, None])
    np.testing.assert_array_equal(scores["crps"], scores["mae"])
    assert np.isnan(scores["coverage90"]).all()
    assert np.isnan(scores["spread_error"]).all()
    assert scores["coverage90"].shape == (3,)


# Refusals


def test_impossible_options_are_refused():
    draws, truth = np.zeros((3, 4, 5)), np.zeros((4, 5))
    with pytest.raises(UsageError, match="between 0 and 1"):
        metrics.coverage(draws, truth, level=90.0)
    with pytest.raises(UsageError, match="must be positive"):
        metrics.ensemble_size(draws, 0.0)
    with pytest.raises(DataError, match="at least 2 draws"):
        metrics.ensemble_size(draws[:1], 0.1)
    with pytest.raises(DataError, match="one level per quantile"):
        metrics.crps_from_quantiles([0.5], draws, truth)
    for levels in ([0.1, 0.1, 0.9], [0.0, 0.5, 0.9], [0.1, 0.5, 1.0], [0.1, np.nan, 0.9]):
        with pytest.raises(DataError, match="increase strictly"):
            metrics.crps_from_quantiles(levels, draws, truth)
    with pytest.raises(DataError, match="at least 2 cells"):
        metrics.radial_psd(np.zeros((1, 8)))
    with pytest.raises(DataError, match="draws needs the axes"):
        metrics.score(truth, truth, truth)
    with pytest.raises(TypeError, match="truth"):
        metrics.rmse(truth)
