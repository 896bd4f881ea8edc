r"""Ranks of the truth among draws, and whether they are uniform.

If truth and draws come from the same distribution, the rank of the truth, the number of draws below it, is uniform on
:math:`\{0, \dots, S\}` for :math:`S` draws. An excess of extreme ranks means draws too narrow, an excess of middle
ranks draws too wide, a slope a bias.

**Tests.** `rank_uniformity` is Neyman's smooth test: with :math:`h_1, \dots, h_4` the polynomials of degree 1 to 4
that are orthonormal under the uniform distribution on :math:`\{0, \dots, S\}`, and :math:`N` cases,

.. math:: T = \frac1N \sum_{j=1}^4 \Big( \sum_{i=1}^N h_j(r_i) \Big)^2 \;\to\; \chi^2_4

so its parts are mean, width, skewness and tails of the ranks, which is where posteriors go wrong. `holm` corrects for
the number of quantities tested.

**Bands.** Of :math:`N` uniform ranks, the number up to :math:`r` is binomial. `ecdf_band` takes binomial intervals
of one tail probability at all :math:`r`, the largest with which the whole curve stays inside often enough
(Säilynoja, Bürkner and Vehtari, *Graphical test for discrete uniformity and its applications*, 2022). That probability
is computed, not simulated: ranks are independent Poisson counts conditioned on their sum.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from jaxtyping import Float, Int

from latentpde.errors import DataError, UsageError
from latentpde.scores.arrays import ENSEMBLE, FIELD, Array, metric

__all__ = ["ecdf_band", "holm", "rank_counts", "rank_histogram", "rank_uniformity", "ranks"]

_HIGHEST_DEGREE = 4  # of the smooth test's polynomials


def ranks(
    draws: Float[np.ndarray, "..."],
    truth: Float[np.ndarray, "..."],
    *,
    axis: int = 1,
    generator: np.random.Generator | None = None,
    seed: int = 0,
) -> Int[np.ndarray, "..."]:
    """Count the draws that lie below the truth; a rank goes from 0 to the number of draws.

    Args:
        draws: values with an axis of draws, by default the second, as in ``(case, draw, quantity)``.
        truth: the true values, without the axis of draws.
        axis: the axis of draws.
        generator: breaks ties at random; one is made from ``seed`` where it is not given.
        seed: seed of the random numbers that break ties.

    Example:
        >>> ranks(np.array([[1.0, 2.0, 3.0, 4.0]]), np.array([2.5]))
        array([2])
    """
    generator = np.random.default_rng(seed) if generator is None else generator
    truth = np.expand_dims(truth, axis)
    below, ties = np.sum(draws < truth, axis=axis), np.sum(draws == truth, axis=axis)
    return below + generator.integers(0, ties, endpoint=True)


def rank_counts(ranks: np.ndarray, num_draws: int) -> Int[np.ndarray, " rank"]:
    """Count the cases of each rank ``0 .. num_draws``.

    Args:
        ranks: one whole number per case, from 0 to ``num_draws``.
        num_draws: the largest rank possible.

    Example:
        >>> rank_counts(np.array([0, 2, 2, 3]), 3)
        array([1, 0, 2, 1])
    """
    whole = ranks.astype(int)
    if np.any(whole != ranks) or whole.min() < 0 or whole.max() > num_draws:
        raise DataError(f"ranks must be whole numbers from 0 to num_draws = {num_draws}, got {ranks}")
    return np.bincount(whole, minlength=num_draws + 1)


@metric(draws=ENSEMBLE, truth=FIELD, result=("rank",))
def rank_histogram(
    draws: Float[Array, "*#batch draw y x"],
    truth: Float[Array, "*#batch y x"],
    *,
    generator: np.random.Generator | None = None,
    seed: int = 0,
) -> Int[Array, "*batch rank"]:
    r"""Count the cells whose truth has the rank ``r`` among the draws, for ``r = 0 .. S``.

    .. math:: h_r = \#\{ j : \operatorname{rank}_j = r \}, \qquad
              \operatorname{rank}_j = \#\{ s : u^{(s)}_j < u_j \} + \mathcal U\{0, \dots, \#\{ s : u^{(s)}_j = u_j \}\}

    Flat if truth and draws are exchangeable; a U shape is overconfidence, a dome underconfidence, a slope bias.

    Args:
        draws: an ensemble of fields; arrays of any kind, see `latentpde.scores.arrays`.
        truth: the true fields.
        generator: breaks ties at random; one is made from ``seed`` where it is not given.
        seed: seed of the random numbers that break ties.

    Example:
        >>> draws = np.array([[[1.0, 1.0]], [[2.0, 2.0]]])  # two draws of a field of 1 x 2 cells
        >>> rank_histogram(draws, np.array([[1.5, 3.0]]))
        array([0, 1, 1])
    """
    values = ranks(draws, truth, axis=-3, generator=generator, seed=seed)
    *batch, ny, nx = values.shape
    num_ranks, num_fields = draws.shape[-3] + 1, int(np.prod(batch))
    bins = values.reshape(num_fields, ny * nx) + num_ranks * np.arange(num_fields)[:, None]
    return np.bincount(bins.ravel(), minlength=num_fields * num_ranks).reshape(*batch, num_ranks)


def rank_uniformity(ranks, num_draws: int) -> float:
    """The p-value of Neyman's smooth test that ranks are uniform on ``0 .. num_draws``.

    Measured on 40 ranks, at the level 0.01 and with 256 cases, it finds draws 20 % too narrow in 89 % of the
    experiments and draws 25 % too wide in 78 %; Pearson's test on 10 bins in 60 % and 55 %, Cramér and von Mises's in
    18 % and 12 %. It does not see departures that change sign many times, which a histogram shows. The limiting
    distribution is accurate to a few per cent of p down to 0.01 from 64 cases on, and within a fifth down to 1e-4 from
    256; with fewer cases very small values are too small.

    Args:
        ranks: one whole number per case, from 0 to ``num_draws``.
        num_draws: the largest rank possible.

    Example:
        >>> even, extreme = np.arange(40), np.repeat([0, 39], 20)
        >>> round(rank_uniformity(even, 39), 3), rank_uniformity(extreme, 39) < 1e-6
        (1.0, True)
    """
    from scipy import stats  # takes a second, which callers of the other functions need not wait for

    values = np.asarray(ranks)
    if values.ndim != 1 or not values.size:
        raise DataError(f"expected a list of ranks, one per case, got shape {values.shape}")
    counts = rank_counts(values, num_draws)
    polynomials = _polynomials(num_draws + 1)
    return float(stats.chi2.sf(np.sum((counts @ polynomials) ** 2) / values.size, polynomials.shape[1]))


@lru_cache(maxsize=32)
def _polynomials(num_ranks: int) -> Float[np.ndarray, "rank degree"]:
    """Polynomials of degree 1 to 4, orthonormal under the uniform distribution on the ranks; one column each."""
    powers = np.vander(np.linspace(-1, 1, num_ranks), min(_HIGHEST_DEGREE, num_ranks - 1) + 1, increasing=True)
    return np.linalg.qr(powers)[0][:, 1:] * math.sqrt(num_ranks)


def holm(p_values: Sequence[float] | Float[np.ndarray, " test"]) -> Float[np.ndarray, " test"]:
    r"""Correct p-values for the number of tests, by Holm's method.

    .. math:: \tilde p_{(i)} = \max_{j \le i} \, \min\big(1, (m - j + 1) \, p_{(j)}\big)

    Reject the tests whose corrected value is below the level that is wanted for all of them together. That is valid
    however the tests depend on each other.

    Args:
        p_values: one per test, from 0 to 1.

    Example:
        >>> holm([0.01, 0.04, 0.03]).tolist()
        [0.03, 0.06, 0.06]
    """
    p = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(p)
    corrected = np.empty_like(p)
    corrected[order] = np.minimum(np.maximum.accumulate(p[order] * np.arange(p.size, 0, -1)), 1.0)
    return corrected


@lru_cache(maxsize=32)
def ecdf_band(num: int, num_draws: int, level: float = 0.99) -> tuple[np.ndarray, np.ndarray]:
    """Bounds of the share of uniform ranks that are at most ``r``, for ``r = 0 .. num_draws``.

    The whole curve of shares lies in the band with at least the probability ``level``, and little more.

    Args:
        num: how many ranks there are, one per case.
        num_draws: the largest rank possible.
        level: probability that a curve of uniform ranks stays inside, in (0, 1).

    Returns:
        The lower and the upper bound, one number for each ``r``.

    Example:
        >>> low, high = ecdf_band(256, 3, level=0.95)
        >>> high.round(2).tolist()
        [0.31, 0.57, 0.81, 1.0]
    """
    from scipy import stats

    if num < 1 or num_draws < 1 or not 0 < level < 1:
        raise UsageError(f"a band needs cases, draws and a level in (0, 1); got {num}, {num_draws}, {level}")
    share = np.arange(1, num_draws + 2) / (num_draws + 1)

    def band(tails: float) -> tuple[np.ndarray, np.ndarray]:
        low, high = (stats.binom.ppf(q, num, share).astype(int) for q in (tails / 2, 1 - tails / 2))
        return low, high

    # Bonferroni's tails are surely small enough, and the level's own surely not too small.
    small, large = math.log((1 - level) / (num_draws + 1)), math.log(1 - level)
    for _ in range(24):
        middle = (small + large) / 2
        enough = _probability_inside(*band(math.exp(middle)), num) >= level
        small, large = (middle, large) if enough else (small, middle)
    low, high = band(math.exp(small))
    return low / num, high / num


def _probability_inside(low: np.ndarray, high: np.ndarray, num: int) -> float:
    """The probability that running counts of uniform ranks keep within bounds, from Poisson counts given their sum."""
    from scipy import stats

    step = stats.poisson.pmf(np.arange(num + 1), num / len(low))
    state, offset = np.ones(1), 0
    for bottom, top in zip(low.tolist(), high.tolist(), strict=True):
        state = np.convolve(state, step[: top - offset + 1])[bottom - offset : top - offset + 1]
        offset = bottom
    return float(state[num - offset] / stats.poisson.pmf(num, num))
