"""Ranks of the truth among draws, and the null distributions of what is said about them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from latentpde.errors import DataError
from latentpde.scores import ranks as rk


def rng(seed=0):
    return np.random.default_rng(seed)


# Counting


def test_ranks_count_draws_below_and_break_ties_evenly():
    draws = np.arange(5.0)[None, :, None].repeat(2, axis=2)
    assert rk.ranks(draws, np.array([[-1.0, 2.5]])).tolist() == [[0, 3]]
    tied = rk.ranks(np.zeros((4000, 3)), np.zeros(4000))
    assert rk.rank_uniformity(tied, 3) > 1e-3


def test_rank_histogram_counts_draws_below_the_truth():
    draws, truth = rng().normal(size=(2, 3, 4, 6, 5)), rng(1).normal(size=(2, 3, 6, 5))
    counts = rk.rank_histogram(draws, truth)
    assert counts.shape == (2, 3, 5)
    for i, j in np.ndindex(2, 3):
        ranks = [sum(draws[i, j, s, y, x] < truth[i, j, y, x] for s in range(4)) for y, x in np.ndindex(6, 5)]
        np.testing.assert_array_equal(counts[i, j], [ranks.count(r) for r in range(5)])


@pytest.mark.parametrize("decimals", [None, 0])
def test_rank_histogram_is_flat_for_exchangeable_draws_even_with_ties(decimals):
    members = rng().normal(size=(10, 100, 100))
    members = members if decimals is None else np.round(members, decimals)
    counts = rk.rank_histogram(members[:-1], members[-1])
    assert counts.sum() == 10_000
    # 33.7 is the 0.9999 quantile of chi-squared with 9 degrees of freedom.
    assert np.sum((counts - 1000) ** 2 / 1000) < 33.7


def test_rank_histogram_breaks_ties_by_seed_or_generator():
    tied = np.zeros((5, 8, 8))
    by_seed = rk.rank_histogram(tied[:4], tied[4], seed=3)
    np.testing.assert_array_equal(by_seed, rk.rank_histogram(tied[:4], tied[4], generator=rng(3)))
    assert np.any(by_seed != rk.rank_histogram(tied[:4], tied[4], seed=4))


# The null law of the test, of its correction and of the band


def uniform_counts(num_draws: int, num: int, size: int, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, num_draws, (size, num), endpoint=True)


@pytest.mark.parametrize(("num_draws", "num"), [(39, 256), (39, 40), (3, 60), (200, 64)])
def test_p_values_are_uniform_under_the_null(num_draws, num):
    p = np.array([rk.rank_uniformity(ranks, num_draws) for ranks in uniform_counts(num_draws, num, 1000)])
    assert stats.kstest(p, "uniform").pvalue > 1e-3
    for level in (0.01, 0.05):
        assert abs(np.mean(p < level) - level) < 4 * np.sqrt(level / len(p))


def test_the_smallest_ensemble_gives_the_sign_test():
    assert rk.rank_uniformity([0] * 30 + [1] * 10, 1) == pytest.approx(stats.chi2.sf((30 - 10) ** 2 / 40, 1))


@pytest.mark.parametrize("bad", [[], [0, 40], [-1, 3], [0.5, 2.0], [[1, 2]]])
def test_what_is_no_rank_is_refused(bad):
    with pytest.raises(DataError, match="rank"):
        rk.rank_uniformity(np.array(bad), 39)


def test_holm_by_hand():
    # Sorted 0.005, 0.01, 0.03, 0.04 times 4, 3, 2, 1 is 0.02, 0.03, 0.06, 0.04; never decreasing: 0.06 twice.
    assert rk.holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert rk.holm([0.9, 0.6]) == pytest.approx([1.0, 1.0])
    assert rk.holm([0.3]) == pytest.approx([0.3])


@pytest.mark.parametrize(("num", "num_draws", "level"), [(64, 39, 0.9), (256, 39, 0.99), (30, 9, 0.95)])
def test_the_band_holds_whole_curves_as_often_as_it_says(num, num_draws, level):
    low, high = rk.ecdf_band(num, num_draws, level)
    counts = np.random.default_rng(3).multinomial(num, np.full(num_draws + 1, 1 / (num_draws + 1)), size=20000)
    ecdf = counts.cumsum(1) / num
    inside = np.mean(np.all((low <= ecdf) & (ecdf <= high), axis=1))
    error = np.sqrt(level * (1 - level) / len(ecdf))
    # A band of whole counts cannot meet the level exactly; it errs to the wide side.
    assert level - 4 * error < inside < level + 4 * error + 0.3 * (1 - level)


def test_the_band_of_two_ranks_is_binomial():
    low, high = rk.ecdf_band(20, 1, 0.95)
    assert (low[0], high[0]) == (stats.binom.ppf(0.025, 20, 0.5) / 20, stats.binom.ppf(0.975, 20, 0.5) / 20)
    assert (low[1], high[1]) == (1, 1)
