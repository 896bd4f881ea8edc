r"""How far a reconstruction is from the truth, and how honest its uncertainty is.

Fields end in the axes ``(y, x)``, ensembles in ``(draw, y, x)``. A metric reduces those and keeps every
axis before them, so fields ``(case, y, x)`` score ``(case,)`` and a single field scores a number; the
mean over cases is the caller's. Arrays and tensors must agree in shape; ``xarray.DataArray`` axes are found
by name, broadcast by name, and what remains is a DataArray again. All arithmetic is in float64.

Point metrics: `rmse`, `mae`, `psd_log_error`. Ensemble metrics: `crps`, `coverage`, `spread_error`,
`rank_histogram`. `score` gives a table's row at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, wraps
from inspect import signature
from typing import Any, TypeAlias

import numpy as np
import scoringrules
from jaxtyping import Float, Int
from scipy import sparse

from latentpde.errors import DataError, UsageError

__all__ = [
    "PSD_FLOOR",
    "coverage",
    "crps",
    "crps_from_quantiles",
    "ensemble_size",
    "mae",
    "psd_log_error",
    "radial_psd",
    "rank_histogram",
    "rmse",
    "score",
    "spread_error",
]

#: Power below which a spectrum counts as empty. It is part of the definition of `psd_log_error`.
PSD_FLOOR = 1e-12

#: A numpy array, a torch tensor or an xarray.DataArray; the functions below see float64 numpy arrays.
Array: TypeAlias = Any

_FIELD = ("y", "x")
_ENSEMBLE = ("draw", "y", "x")


def _metric(*, result: tuple[str, ...] = (), **core_dims: tuple[str, ...]) -> Callable[[Callable], Callable]:
    """Let a function of finite float64 arrays take tensors and DataArrays, and refuse data that do not fit.

    Args:
        result: names of the axes that the function adds.
        core_dims: for each array argument, the axes that the function reduces. The first argument has all of them.
    """

    def decorate(function: Callable) -> Callable:
        parameters = signature(function)

        @wraps(function)
        def metric(*args, **kwargs):
            options = parameters.bind(*args, **kwargs).arguments
            arrays = [_without_torch(options.pop(name)) for name in core_dims]
            labelled = any(hasattr(array, "dims") for array in arrays)

            def evaluate(*arrays: np.ndarray):
                fields = {
                    name: _complete(name, array, core_dims[name]) for name, array in zip(core_dims, arrays, strict=True)
                }
                if not labelled:
                    _require_matching_shapes(fields, core_dims)
                return function(**fields, **options)

            if labelled:
                return _apply_by_name(function.__name__, evaluate, arrays, list(core_dims.values()), result)
            return evaluate(*arrays)

        return metric

    return decorate


@_metric(prediction=_FIELD, truth=_FIELD)
def rmse(prediction: Float[Array, "*#batch y x"], truth: Float[Array, "*#batch y x"]) -> Float[Array, "*batch"]:
    r"""Root mean square error over the grid.

    .. math:: \Big( \frac1d \sum_j (\hat u_j - u_j)^2 \Big)^{1/2}
    """
    return np.sqrt(np.mean((prediction - truth) ** 2, axis=(-2, -1)))


@_metric(prediction=_FIELD, truth=_FIELD)
def mae(prediction: Float[Array, "*#batch y x"], truth: Float[Array, "*#batch y x"]) -> Float[Array, "*batch"]:
    r"""Mean absolute error over the grid; the CRPS of a forecast that is a single field.

    .. math:: \frac1d \sum_j |\hat u_j - u_j|
    """
    return np.mean(np.abs(prediction - truth), axis=(-2, -1))


@_metric(field=_FIELD, result=("k",))
def radial_psd(field: Float[Array, "*batch y x"]) -> Float[Array, "*batch k"]:
    r"""Radially averaged power spectral density.

    .. math:: P(k) = \frac{1}{|A_k|} \sum_{\xi \in A_k} \frac{|\hat u(\xi)|^2}{HW},
              \qquad A_k = \{\xi : k - \tfrac12 \le |\xi| < k + \tfrac12\}

    for ``k = 1 .. floor(min(H, W) / 2)``; entry 0 is ``k = 1``. The transform is the unnormalised DFT of the field
    less its mean, and ``xi`` runs over the mode numbers of the full plane: ``xi = (1, 0)`` is one period along
    the whole of y, whatever the grid's extent.
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


@_metric(prediction=_FIELD, truth=_FIELD)
def psd_log_error(
    prediction: Float[Array, "*#batch y x"], truth: Float[Array, "*#batch y x"], *, floor: float = PSD_FLOOR
) -> Float[Array, "*batch"]:
    r"""Root mean square difference, in decades, of two radial spectra.

    .. math:: \Big( \frac1K \sum_{k=1}^K \big[ \log_{10} \max(P_{\hat u}(k), \varepsilon)
              - \log_{10} \max(P_u(k), \varepsilon) \big]^2 \Big)^{1/2}

    Blind to where things are, and every scale weighs the same however little energy it holds; where one
    spectrum is empty the floor decides the score, so quote it beside the number.

    Args:
        floor: the ``epsilon`` above, in units of `radial_psd`.
    """
    decades = [np.log10(np.maximum(radial_psd(field), floor)) for field in (prediction, truth)]
    return np.sqrt(np.mean((decades[0] - decades[1]) ** 2, axis=-1))


@_metric(draws=_ENSEMBLE, truth=_FIELD)
def crps(draws: Float[Array, "*#batch draw y x"], truth: Float[Array, "*#batch y x"]) -> Float[Array, "*batch"]:
    r"""Fair continuous ranked probability score, averaged over the grid.

    .. math:: \frac1S \sum_s |u^{(s)} - u| - \frac{1}{2 S (S-1)} \sum_{s \ne t} |u^{(s)} - u^{(t)}|

    Fair: its expectation does not depend on the number of draws, so ensembles of different sizes compare. In
    exchange a single value may be negative, and one draw has no score.
    """
    _require_two(draws, "the fair CRPS divides by S (S - 1); the score of a single field is its MAE")
    # The probability-weighted-moment form is the same number without the S x S differences of every cell.
    # The CRPS is translation invariant, and sums of errors lose fewer digits than sums of values.
    errors = np.sort(draws - truth[..., None, :, :], axis=-3)
    at_cells = scoringrules.crps_ensemble(
        np.zeros_like(errors[..., 0, :, :]), errors, m_axis=-3, estimator="pwm", sorted_ensemble=True, backend="numpy"
    )
    return np.asarray(at_cells).mean(axis=(-2, -1))


@_metric(quantiles=("quantile", "y", "x"), truth=_FIELD)
def crps_from_quantiles(
    levels: Sequence[float] | Float[Array, " quantile"],
    quantiles: Float[Array, "*#batch quantile y x"],
    truth: Float[Array, "*#batch y x"],
) -> Float[Array, "*batch"]:
    r"""Approximate CRPS where only quantiles were kept: twice the weighted mean pinball loss, averaged over the grid.

    .. math:: \mathrm{CRPS} = 2 \int_0^1 \rho_p(u - q_p) \, dp \approx 2 \sum_i w_i \, \rho_{p_i}(u - q_{p_i}),
              \qquad \rho_p(e) = \max(p e, (p - 1) e)

    ``w_i`` is the length of the part of (0, 1) that lies nearest to ``p_i``, which makes evenly spread midpoints
    the plain mean. It is a quadrature, not the fair estimator: with levels 0.05, 0.25, 0.5, 0.75, 0.95 a
    calibrated Gaussian scores 3 % too low.

    Args:
        levels: increasing probabilities in (0, 1), one per quantile.
        quantiles: the fields at those levels, on the axis ``quantile``.
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


@_metric(draws=_ENSEMBLE, truth=_FIELD)
def coverage(
    draws: Float[Array, "*#batch draw y x"], truth: Float[Array, "*#batch y x"], level: float = 0.9
) -> Float[Array, "*batch"]:
    r"""Fraction of cells whose truth lies in the ensemble's central interval.

    .. math:: \frac1d \, \#\{ j : q_{(1 - c) / 2, j} \le u_j \le q_{(1 + c) / 2, j} \}, \qquad c = \text{level}

    Draw number ``i`` of ``S``, in order, is the quantile at ``i / (S + 1)`` (Weibull's rule), because a truth
    exchangeable with the draws lies below it with that probability. Other rules make calibrated ensembles look
    overconfident. Below ``(1 + c) / (1 - c)`` draws, 19 for ``c = 0.9``, the interval is the ensemble's whole
    range, and a calibrated ensemble can reach only ``(S - 1) / (S + 1)``.
    """
    if not 0 < level < 1:
        raise UsageError(f"the level of a central interval lies between 0 and 1, got {level}")
    _require_two(draws, "an interval needs both ends")
    tail = (1 - level) / 2
    low, high = np.quantile(draws, [tail, 1 - tail], axis=-3, method="weibull")
    return np.mean((low <= truth) & (truth <= high), axis=(-2, -1))


@_metric(draws=_ENSEMBLE, truth=_FIELD)
def spread_error(draws: Float[Array, "*#batch draw y x"], truth: Float[Array, "*#batch y x"]) -> Float[Array, "*batch"]:
    r"""Spread of the ensemble over the error of its mean: 1 if calibrated, below 1 if overconfident.

    .. math:: \Big( \frac{S+1}{S} \cdot \frac1d \sum_j s_j^2 \Big)^{1/2} \Big/ \; \mathrm{RMSE}(\bar u, u)

    ``s^2`` is the unbiased variance over draws. The truth differs from the mean of ``S`` draws by its own variance
    and by that of the mean, hence ``(S + 1) / S``. An exact mean gives ``inf``, or NaN where nothing spreads.
    """
    _require_two(draws, "one draw has no spread")
    num_draws = draws.shape[-3]
    spread = np.sqrt((num_draws + 1) / num_draws * draws.var(axis=-3, ddof=1).mean(axis=(-2, -1)))
    error = np.sqrt(np.mean((draws.mean(axis=-3) - truth) ** 2, axis=(-2, -1)))
    with np.errstate(divide="ignore", invalid="ignore"):
        return spread / error


@_metric(draws=_ENSEMBLE, truth=_FIELD, result=("rank",))
def rank_histogram(
    draws: Float[Array, "*#batch draw y x"],
    truth: Float[Array, "*#batch y x"],
    *,
    generator: np.random.Generator | None = None,
    seed: int = 0,
) -> Int[Array, "*batch rank"]:
    r"""How many cells have their truth above exactly ``r`` of the draws, for ``r = 0 .. S``.

    .. math:: h_r = \#\{ j : \operatorname{rank}_j = r \}, \qquad
              \operatorname{rank}_j = \#\{ s : u^{(s)}_j < u_j \} + \mathcal U\{0, \dots, \#\{ s : u^{(s)}_j = u_j \}\}

    Flat if truth and draws are exchangeable; a U shape is overconfidence, a dome underconfidence, a slope bias.

    Args:
        generator: breaks ties; ``seed`` makes one where it is not given.
    """
    generator = np.random.default_rng(seed) if generator is None else generator
    truth = truth[..., None, :, :]
    below, ties = np.sum(draws < truth, axis=-3), np.sum(draws == truth, axis=-3)
    ranks = below + generator.integers(0, ties, endpoint=True)

    *batch, ny, nx = ranks.shape
    num_ranks, num_fields = draws.shape[-3] + 1, int(np.prod(batch))
    bins = ranks.reshape(num_fields, ny * nx) + num_ranks * np.arange(num_fields)[:, None]
    return np.bincount(bins.ravel(), minlength=num_fields * num_ranks).reshape(*batch, num_ranks)


@_metric(draws=_ENSEMBLE)
def ensemble_size(draws: Float[Array, "*batch draw y x"], tolerance: float) -> Int[Array, "*batch"]:
    r"""Draws needed for the ensemble mean to be within ``tolerance`` of the posterior mean.

    .. math:: K = \Big\lceil \frac{\operatorname{tr} \Sigma}{d \, \varepsilon^2} \Big\rceil

    because the mean of ``K`` independent draws has the expected squared error ``tr(Sigma) / (d K)`` per cell. One
    number per case: to be safe for all of them, take the largest.

    Args:
        draws: a pilot ensemble, whose unbiased variances stand for ``Sigma``.
        tolerance: the root mean square error allowed, in the field's units.
    """
    if not tolerance > 0:
        raise UsageError(f"the tolerance of an ensemble mean must be positive, got {tolerance}")
    _require_two(draws, "one draw has no variance")
    variance = draws.var(axis=-3, ddof=1).mean(axis=(-2, -1))
    return np.maximum(np.ceil(variance / tolerance**2), 1).astype(np.int64)


def score(mean: Array, truth: Array, draws: Array | None = None) -> dict[str, np.ndarray]:
    """Everything a table needs, per case: ``rmse, mae, psd, crps, coverage90, spread_error``.

    ``rmse``, ``mae`` and ``psd`` (`psd_log_error`) judge ``mean``; the others judge ``draws``. Without draws, or with
    only one, the forecast is the point estimate ``mean``: its ``crps`` is then its MAE, the CRPS of a point
    mass, and ``coverage90`` and ``spread_error`` are NaN.
    """
    scores = {"rmse": rmse(mean, truth), "mae": mae(mean, truth), "psd": psd_log_error(mean, truth)}
    if draws is not None and _num_draws(draws) > 1:
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


def _without_torch(array: Array) -> Array:
    if hasattr(array, "dims"):
        return array
    if hasattr(array, "detach"):
        array = array.detach().cpu().double().numpy()
    return np.asarray(array)


def _complete(name: str, array: np.ndarray, axes: tuple[str, ...]) -> np.ndarray:
    if array.ndim < len(axes) or 0 in array.shape[array.ndim - len(axes) :]:
        raise DataError(f"{name} needs the axes (..., {', '.join(axes)}), none of them empty, got shape {array.shape}")
    array = np.asarray(array, dtype=np.float64)
    bad = ~np.isfinite(array)
    if bad.any():
        first = tuple(int(i) for i in np.argwhere(bad)[0])
        raise DataError(
            f"{name} must be finite everywhere, found {bad.sum()} of {bad.size} values NaN or infinite, the first at "
            f"index {first}; fill the gaps, or cut both fields to where they are known"
        )
    return array


def _require_matching_shapes(arrays: dict[str, np.ndarray], core_dims: dict[str, tuple[str, ...]]) -> None:
    leader, first = next(iter(arrays.items()))
    num_batch = first.ndim - len(core_dims[leader])
    sizes = dict(zip(core_dims[leader], first.shape[num_batch:], strict=True))
    for name, array in arrays.items():
        expected = (*first.shape[:num_batch], *(sizes[axis] for axis in core_dims[name]))
        if array.shape != expected:
            raise DataError(
                f"{name} should have shape {expected} to go with {leader} of shape {first.shape}, got {array.shape}"
            )


def _apply_by_name(metric: str, evaluate: Callable, arrays: list, core_dims: list, result: tuple[str, ...]) -> Array:
    import xarray as xr  # half a second, which callers with plain arrays need not wait for

    try:
        return xr.apply_ufunc(
            evaluate, *arrays, input_core_dims=core_dims, output_core_dims=[result], join="exact", keep_attrs=True
        )
    except (DataError, UsageError):
        raise
    except ValueError as error:
        raise DataError(f"{metric} cannot match its arrays by name: {error}") from error


def _num_draws(draws: Array) -> int:
    sizes = (
        draws.sizes if hasattr(draws, "dims") else dict(zip(("x", "y", "draw"), np.shape(draws)[::-1], strict=False))
    )
    if "draw" not in sizes:
        raise DataError(f"draws needs the axes (..., draw, y, x), got {dict(sizes)}")
    return sizes["draw"]


def _require_two(draws: np.ndarray, why: str) -> None:
    num_draws = draws.shape[-3]
    if num_draws < 2:
        raise DataError(f"expected at least 2 draws, got {num_draws} in an ensemble of shape {draws.shape}: {why}")
