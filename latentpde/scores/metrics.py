r"""How far a reconstruction is from the truth, and how honest its uncertainty is.

Fields end in the axes ``(y, x)``, ensembles in ``(draw, y, x)``. A metric reduces those and keeps every
axis before them, so fields ``(case, y, x)`` score ``(case,)`` and a single field scores a number; the
mean over cases is the caller's. Arrays and tensors must agree in shape; ``xarray.DataArray`` axes are found
by name, broadcast by name, and what remains is a DataArray again. All arithmetic is in float64.

Point metrics: `rmse`, `mae`, `psd_log_error`. Ensemble metrics: `crps`, `coverage`, `spread_error`, and
`latentpde.scores.ranks.rank_histogram`. `score` gives a table's row at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import scoringrules
from jaxtyping import Float, Int
from scipy import sparse

from latentpde.errors import DataError, UsageError
from latentpde.scores.arrays import ENSEMBLE, FIELD, Array, count_draws, metric, require_two_draws

__all__ = [
    "PSD_FLOOR",
    "coverage",
    "crps",
    "crps_from_quantiles",
    "ensemble_size",
    "ensemble_spread",
    "mae",
    "psd_log_error",
    "radial_psd",
    "rmse",
    "score",
    "spread_error",
]

#: Power below which a spectrum counts as empty. It is part of the definition of `psd_log_error`.
PSD_FLOOR = 1e-12


@metric(prediction=FIELD, truth=FIELD)
def rmse(prediction: Float[Array, "*#batch y x"], truth: Float[Array, "*#batch y x"]) -> Float[Array, "*batch"]:
    r"""Root mean square error over the grid, in the field's units.

    .. math:: \Big( \frac1d \sum_j (\hat u_j - u_j)^2 \Big)^{1/2}

    Example:
        >>> float(rmse(np.array([[0.0, 3.0]]), np.array([[4.0, 0.0]])))  # of 1 x 2 cells: sqrt((16 + 9) / 2)
        3.5355339059327378
    """
    return np.sqrt(np.mean((prediction - truth) ** 2, axis=(-2, -1)))


@metric(prediction=FIELD, truth=FIELD)
def mae(prediction: Float[Array, "*#batch y x"], truth: Float[Array, "*#batch y x"]) -> Float[Array, "*batch"]:
    r"""Mean absolute error over the grid, in the field's units; the CRPS of a forecast that is a single field.

    .. math:: \frac1d \sum_j |\hat u_j - u_j|

    Example:
        >>> float(mae(np.array([[0.0, 3.0]]), np.array([[4.0, 0.0]])))
        3.5
    """
    return np.mean(np.abs(prediction - truth), axis=(-2, -1))


@metric(field=FIELD, result=("k",))
def radial_psd(field: Float[Array, "*batch y x"]) -> Float[Array, "*batch k"]:
    r"""Radially averaged power spectral density of a field.

    .. math:: P(k) = \frac{1}{|A_k|} \sum_{\xi \in A_k} \frac{|\hat u(\xi)|^2}{HW},
              \qquad A_k = \{\xi : k - \tfrac12 \le |\xi| < k + \tfrac12\}

    for ``k = 1 .. floor(min(H, W) / 2)`` on ``H x W`` cells, at least 2 a side; entry 0 is ``k = 1``. The transform is
    the unnormalised DFT of the field less its mean, and ``xi`` runs over the mode numbers of the full plane:
    ``xi = (1, 0)`` is one period along the whole of y, whatever the grid's extent.

    Example:
        >>> wave = np.cos(2 * np.pi * 2 * np.arange(8) / 8) * np.ones((8, 1))  # two periods along x
        >>> radial_psd(wave).round(3).tolist()
        [0.0, 2.667, 0.0, 0.0]
    """
    shape = field.shape[-2:]
    if min(shape) < 2:
        raise DataError(f"a radial spectrum needs at least 2 cells along y and x, got a field of shape {field.shape}")
    u_hat = np.fft.rfft2(field - field.mean(axis=(-2, -1), keepdims=True))
    power = (u_hat.real**2 + u_hat.imag**2).reshape(-1, u_hat.shape[-2] * u_hat.shape[-1])
    return (power @ _annulus_means(*shape)).reshape(*field.shape[:-2], min(shape) // 2)


@lru_cache(maxsize=16)
def _annulus_means(ny: int, nx: int) -> sparse.csr_array:
    """The matrix from squared half-plane coefficients ``(modes,)`` to annulus means ``(k,)`` of the full plane."""
    rows, cols = np.fft.fftfreq(ny, 1 / ny), np.fft.rfftfreq(nx, 1 / nx)
    # No mode sits on an edge: |xi|^2 is whole and (k - 1/2)^2 never is, so rounding cannot move one.
    annulus = np.floor(np.hypot(rows[:, None], cols[None, :]) + 0.5).astype(int).ravel()
    # Column 0, and the Nyquist column of an even side, hold both members of their conjugate pairs already.
    multiplicity = np.where((cols == 0) | (2 * cols == nx), 1.0, 2.0)
    multiplicity = np.broadcast_to(multiplicity, (ny, cols.size)).ravel()
    num_modes = np.bincount(annulus, weights=multiplicity)

    modes = np.flatnonzero((annulus >= 1) & (annulus <= min(ny, nx) // 2))
    weights = multiplicity[modes] / (num_modes[annulus[modes]] * ny * nx)
    return sparse.csr_array((weights, (modes, annulus[modes] - 1)), shape=(annulus.size, min(ny, nx) // 2))


@metric(prediction=FIELD, truth=FIELD)
def psd_log_error(
    prediction: Float[Array, "*#batch y x"], truth: Float[Array, "*#batch y x"], *, floor: float = PSD_FLOOR
) -> Float[Array, "*batch"]:
    r"""Root mean square difference, in decades, of two radial spectra.

    .. math:: \Big( \frac1K \sum_{k=1}^K \big[ \log_{10} \max(P_{\hat u}(k), \varepsilon)
              - \log_{10} \max(P_u(k), \varepsilon) \big]^2 \Big)^{1/2}

    It is blind to where things are, and every scale weighs the same however little energy it holds. Where one
    spectrum is empty the floor decides the score, so quote it beside the number.

    Args:
        prediction: the reconstructed fields.
        truth: the true fields.
        floor: the ``epsilon`` above, positive, in units of `radial_psd`.

    Example:
        >>> field = np.random.default_rng(0).normal(size=(8, 8))
        >>> round(float(psd_log_error(10 * field, field)), 6)  # ten times the amplitude, a hundred times the power
        2.0
    """
    decades = [np.log10(np.maximum(radial_psd(field), floor)) for field in (prediction, truth)]
    return np.sqrt(np.mean((decades[0] - decades[1]) ** 2, axis=-1))


@metric(draws=ENSEMBLE, truth=FIELD)
def crps(draws: Float[Array, "*#batch draw y x"], truth: Float[Array, "*#batch y x"]) -> Float[Array, "*batch"]:
    r"""Fair continuous ranked probability score, averaged over the grid, in the field's units.

    .. math:: \frac1S \sum_s |u^{(s)} - u| - \frac{1}{2 S (S-1)} \sum_{s \ne t} |u^{(s)} - u^{(t)}|

    It is fair: its expectation does not depend on the number of draws, so ensembles of different sizes compare. In
    exchange a single value may be negative, and one draw has no score.

    Example:
        >>> draws = np.array([[[1.0]], [[3.0]]])  # two draws of a field of one cell
        >>> float(crps(draws, np.array([[0.0]])))  # their mean distance from the truth, 2, less half their own, 1
        1.0
    """
    require_two_draws(draws, "the fair CRPS divides by S (S - 1); the score of a single field is its MAE")
    # The probability-weighted-moment form is the same number without the S x S differences of every cell.
    # The CRPS is translation invariant, and sums of errors lose fewer digits than sums of values.
    errors = np.sort(draws - truth[..., None, :, :], axis=-3)
    at_cells = scoringrules.crps_ensemble(
        np.zeros_like(errors[..., 0, :, :]), errors, m_axis=-3, estimator="pwm", sorted_ensemble=True, backend="numpy"
    )
    return np.asarray(at_cells).mean(axis=(-2, -1))


@metric(quantiles=("quantile", "y", "x"), truth=FIELD)
def crps_from_quantiles(
    levels: Sequence[float] | Float[Array, " quantile"],
    quantiles: Float[Array, "*#batch quantile y x"],
    truth: Float[Array, "*#batch y x"],
) -> Float[Array, "*batch"]:
    r"""Approximate CRPS where only quantiles were kept: twice the weighted mean pinball loss, averaged over the grid.

    .. math:: \mathrm{CRPS} = 2 \int_0^1 \rho_p(u - q_p) \, dp \approx 2 \sum_i w_i \, \rho_{p_i}(u - q_{p_i}),
              \qquad \rho_p(e) = \max(p e, (p - 1) e)

    ``w_i`` is the length of the part of (0, 1) that lies nearest to ``p_i``, so evenly spaced midpoints give the plain
    mean. It is a quadrature, not the fair estimator: with levels 0.05, 0.25, 0.5, 0.75, 0.95 a calibrated Gaussian
    scores 3 % too low.

    Args:
        levels: increasing probabilities in (0, 1), one per quantile.
        quantiles: the fields at those levels, with the axes ``(..., quantile, y, x)``.
        truth: the true fields.

    Example:
        >>> float(crps_from_quantiles([0.25, 0.75], np.array([[[1.0]], [[3.0]]]), np.array([[0.0]])))
        1.5
    """
    p = np.asarray(levels, dtype=np.float64)
    if p.shape != quantiles.shape[-3:-2] or p.size == 0:
        raise DataError(f"expected one level per quantile, got levels {p.shape} for quantiles {quantiles.shape}")
    if not (p[0] > 0 and np.all(np.diff(p) > 0) and p[-1] < 1):
        raise DataError(f"quantile levels must increase strictly within (0, 1), got {p.tolist()}")
    weights = np.diff(np.concatenate([[0.0], (p[1:] + p[:-1]) / 2, [1.0]]))
    errors = truth[..., None, :, :] - quantiles
    p = p[:, None, None]
    pinball = np.maximum(p * errors, (p - 1) * errors)
    return 2 * pinball.mean(axis=(-2, -1)) @ weights


@metric(draws=ENSEMBLE, truth=FIELD)
def coverage(
    draws: Float[Array, "*#batch draw y x"], truth: Float[Array, "*#batch y x"], level: float = 0.9
) -> Float[Array, "*batch"]:
    r"""Fraction of cells whose truth lies in the ensemble's central interval.

    .. math:: \frac1d \, \#\{ j : q_{(1 - c) / 2, j} \le u_j \le q_{(1 + c) / 2, j} \}, \qquad c = \text{level}

    Draw number ``i`` of ``S``, in order, is the quantile at ``i / (S + 1)`` (Weibull's rule), because a truth
    exchangeable with the draws lies below it with that probability. Other rules make calibrated ensembles look
    overconfident. Below ``(1 + c) / (1 - c)`` draws, 19 for ``c = 0.9``, the interval is the ensemble's whole
    range, and a calibrated ensemble can reach only ``(S - 1) / (S + 1)``.

    Args:
        draws: an ensemble of at least 2 fields.
        truth: the true fields.
        level: probability of the central interval, in (0, 1).

    Example:
        >>> draws = np.linspace(-1, 1, 19)[:, None, None] * np.ones((1, 2))  # 19 draws of a field of 1 x 2 cells
        >>> float(coverage(draws, np.array([[0.5, 2.0]])))  # the second cell's truth lies outside
        0.5
    """
    if not 0 < level < 1:
        raise UsageError(f"the level of a central interval lies between 0 and 1, got {level}")
    require_two_draws(draws, "an interval needs both ends")
    tail = (1 - level) / 2
    low, high = np.quantile(draws, [tail, 1 - tail], axis=-3, method="weibull")
    return np.mean((low <= truth) & (truth <= high), axis=(-2, -1))


@metric(draws=ENSEMBLE)
def ensemble_spread(draws: Float[Array, "*batch draw y x"]) -> Float[Array, "*batch"]:
    r"""Standard deviation of the ensemble, root mean square over the grid, as it compares with its mean's error.

    .. math:: \Big( \frac{S+1}{S} \cdot \frac1d \sum_j s_j^2 \Big)^{1/2}

    ``s^2`` is the unbiased variance over draws. The truth differs from the mean of ``S`` draws by its own variance
    and by that of the mean, hence ``(S + 1) / S``.

    Example:
        >>> float(ensemble_spread(np.array([[[-1.0]], [[1.0]]])))  # sqrt(3 / 2 * 2)
        1.7320508075688772
    """
    require_two_draws(draws, "one draw has no spread")
    num_draws = draws.shape[-3]
    return np.sqrt((num_draws + 1) / num_draws * draws.var(axis=-3, ddof=1).mean(axis=(-2, -1)))


@metric(draws=ENSEMBLE, truth=FIELD)
def spread_error(draws: Float[Array, "*#batch draw y x"], truth: Float[Array, "*#batch y x"]) -> Float[Array, "*batch"]:
    r"""Spread of the ensemble (`ensemble_spread`) over the RMSE of its mean: 1 if calibrated, below 1 if overconfident.

    An exact mean gives ``inf``, or NaN where all draws are the same.

    Example:
        >>> float(spread_error(np.array([[[-1.0]], [[1.0]]]), np.array([[2.0]])))
        0.8660254037844386
    """
    spread = ensemble_spread(draws)
    error = np.sqrt(np.mean((draws.mean(axis=-3) - truth) ** 2, axis=(-2, -1)))
    with np.errstate(divide="ignore", invalid="ignore"):
        return spread / error


@metric(draws=ENSEMBLE)
def ensemble_size(draws: Float[Array, "*batch draw y x"], tolerance: float) -> Int[Array, "*batch"]:
    r"""Number of draws that the ensemble mean needs to be within ``tolerance`` of the posterior mean.

    .. math:: K = \Big\lceil \frac{\operatorname{tr} \Sigma}{d \, \varepsilon^2} \Big\rceil

    because the mean of ``K`` independent draws has the expected squared error ``tr(Sigma) / (d K)`` per cell. One
    number per case: to be safe for all of them, take the largest.

    Args:
        draws: a pilot ensemble of at least 2 fields, whose unbiased variances stand for ``Sigma``.
        tolerance: the root mean square error allowed, positive, in the field's units.

    Example:
        >>> int(ensemble_size(np.array([[[-1.0]], [[1.0]]]), tolerance=0.1))
        200
    """
    if not tolerance > 0:
        raise UsageError(f"the tolerance of an ensemble mean must be positive, got {tolerance}")
    require_two_draws(draws, "one draw has no variance")
    variance = draws.var(axis=-3, ddof=1).mean(axis=(-2, -1))
    return np.maximum(np.ceil(variance / tolerance**2), 1).astype(np.int64)


def score(mean: Array, truth: Array, draws: Array | None = None) -> dict[str, np.ndarray]:
    """Everything that a table needs, per case: ``rmse, mae, psd, crps, coverage90, spread_error``.

    Args:
        mean: the reconstructed fields, ``(..., y, x)``, which ``rmse``, ``mae`` and ``psd`` (`psd_log_error`) judge.
        truth: the true fields.
        draws: the ensembles, ``(..., draw, y, x)``, which the other scores judge. Without draws, or with only one, the
            forecast is the point estimate ``mean``: its ``crps`` is then its MAE, the CRPS of a point mass, and
            ``coverage90`` and ``spread_error`` are NaN.

    Example:
        >>> scores = score(np.zeros((2, 4, 4)), np.ones((2, 4, 4)))
        >>> scores["rmse"].tolist(), scores["crps"].tolist()
        ([1.0, 1.0], [1.0, 1.0])
    """
    scores = {"rmse": rmse(mean, truth), "mae": mae(mean, truth), "psd": psd_log_error(mean, truth)}
    if draws is not None and count_draws(draws) > 1:
        scores |= {
            "crps": crps(draws, truth),
            "coverage90": coverage(draws, truth, level=0.9),
            "spread_error": spread_error(draws, truth),
        }
    else:
        unknown = np.nan * scores["mae"]
        scores |= {"crps": scores["mae"], "coverage90": unknown, "spread_error": unknown}
    order = getattr(scores["rmse"], "dims", ())
    return {
        name: np.array(values.transpose(*order, missing_dims="ignore") if hasattr(values, "dims") else values)
        for name, values in scores.items()
    }
