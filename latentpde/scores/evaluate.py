"""Scores of a reconstruction file against the truths of a file of cases."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from latentpde.errors import DataError, LatentPDEError
from latentpde.observation import Observation
from latentpde.scores.metrics import PSD_FLOOR, crps_from_quantiles, score
from latentpde.scores.truth import last_true_fields

if TYPE_CHECKING:
    import xarray as xr


def evaluate(reconstruction: xr.Dataset, cases: xr.DataTree) -> dict[str, Any]:
    """Score a reconstruction against the truths of its cases, at the last time and on the truth's grid.

    Args:
        reconstruction: the content of ``out.nc``, or `latentpde.Posterior.summary`.
        cases: the cases in the same order, in the layout of ``cases.nc``, with their group ``truth``.

    Returns:
        The mean of each score over the cases, and under ``per_case`` the list of its values. ``crps`` is the fair
        estimator where the reconstruction keeps its draws; from its quantiles, and so approximate, where it does not;
        and the MAE for a point estimate, which is what CRPS then is; ``crps_estimator`` says which. ``coverage90`` is
        that of the reconstruction's own interval from 0.05 to 0.95. What a method without a spread cannot have is
        ``None``.

    Example:
        >>> import latentpde as lp
        >>> cases = lp.simulate("balanced", num=2, seed=3, shape=(32, 32), num_modes=2, sparsity=0.3)
        >>> posterior = lp.reconstruct(cases, method="map", num_steps=20)
        >>> scores = evaluate(posterior.summary(resolution=32), cases)
        >>> scores["num_cases"], scores["crps_estimator"], scores["crps"] == scores["mae"]
        (2, 'point', True)
    """
    field = last_true_fields(cases)
    has_spread = bool(reconstruction.attrs.get("has_spread", 0) == 1)
    has_draws = has_spread and "draws" in reconstruction and reconstruction["draws"].sizes.get("draw", 1) > 1
    for name in ("mean", "quantiles") if has_spread and not has_draws else ("mean",):
        if name not in reconstruction:
            raise DataError(f"the reconstruction has no variable {name!r}; is it a file that `reconstruct` wrote?")
    truth = _values(field)
    mean = _fields(reconstruction["mean"], truth.shape[-2:])
    if len(mean) != len(truth):
        raise DataError(f"the reconstruction has {len(mean)} case(s), the cases {len(truth)}: not the same set?")
    _require_same_rectangle(reconstruction["mean"], field)
    _require_same_readings(reconstruction, cases)
    draws = _fields(reconstruction["draws"], truth.shape[-2:]) if has_draws else None
    scores = score(mean, truth, draws)
    estimator = "fair" if has_draws else "point"
    if has_spread and "quantiles" in reconstruction:
        levels = _levels(reconstruction["quantiles"])
        quantiles = _fields(reconstruction["quantiles"], truth.shape[-2:])
        if not has_draws:
            scores["crps"] = crps_from_quantiles(levels, quantiles, truth)
            estimator = "quantiles"
        ends = [np.flatnonzero(np.isclose(levels, level)) for level in (0.05, 0.95)]
        if all(map(len, ends)):
            # the interval that the file states, which may come from more draws than it keeps
            low, high = (quantiles[:, index[0]] for index in ends)
            scores["coverage90"] = ((low <= truth) & (truth <= high)).mean((-2, -1))
    # JSON knows neither NaN nor infinity, which the spread of an exact mean over its error is
    per_case = {name: [float(v) if np.isfinite(v) else None for v in values] for name, values in scores.items()}
    means = {name: float(values.mean()) if np.isfinite(values).all() else None for name, values in scores.items()}
    return {
        **means,
        "num_cases": len(truth),
        "resolution": list(truth.shape[-2:]),
        "crps_estimator": estimator,
        "psd_floor": PSD_FLOOR,
        "method": str(reconstruction.attrs.get("method", "")),
        "per_case": per_case,
    }


def _require_same_rectangle(mean: xr.DataArray, truth: xr.DataArray) -> None:
    """Raise `DataError` where both have coordinates, and these do not cover the same rectangle."""
    for axis in ("y", "x"):
        ends = []
        for array in (mean, truth):
            centres = array[axis].values if axis in array.coords else np.zeros(0)
            if len(centres) < 2 or centres.dtype.kind not in "iuf" or not np.isfinite(centres).all():
                break
            half = (centres[-1] - centres[0]) / (len(centres) - 1) / 2
            ends.append(sorted((float(centres[0] - half), float(centres[-1] + half))))
        else:
            if not np.allclose(*ends, rtol=0.0, atol=1e-3 * (ends[1][1] - ends[1][0])):
                (low, high), (true_low, true_high) = ends
                raise DataError(
                    f"the reconstruction runs from {low:g} to {high:g} along {axis}, the truth from {true_low:g} to "
                    f"{true_high:g}: they must cover the same rectangle"
                )


def _require_same_readings(reconstruction: xr.Dataset, cases: xr.DataTree) -> None:
    """Raise `DataError` where the reconstruction says what readings it was made from, and the cases have others."""
    if "readings_crc32" not in reconstruction:
        return
    try:
        own = Observation.from_dataset(cases, noise_std=1.0, keep_outliers=True).fingerprints
    except LatentPDEError:  # cases that hold truths and no readings
        return
    made_from = np.atleast_1d(reconstruction["readings_crc32"].values).tolist()
    wrong = [case for case, pair in enumerate(zip(made_from, own, strict=False)) if pair[0] != pair[1]]
    if wrong or len(made_from) != len(own):
        raise DataError(
            f"the reconstruction was made from other readings than the cases have (case {wrong[0] if wrong else 0}): "
            "is it of another file, family, seed or order?"
        )


def _levels(quantiles: xr.DataArray) -> np.ndarray:
    """The levels of the quantiles, from their coordinate; raises `DataError` where they are none."""
    levels = quantiles["quantile"].values if "quantile" in quantiles.coords else np.zeros(0)
    if not levels.size or levels.dtype.kind != "f" or not ((levels > 0) & (levels < 1)).all():
        raise DataError(
            "the quantiles need their levels, numbers between 0 and 1, as the coordinate 'quantile'; found "
            f"{levels.tolist() or 'none'}"
        )
    return levels


def _values(array: xr.DataArray) -> np.ndarray:
    """Values in float64 with the axes ``(case, [draw or quantile,] y, x)``, a case axis added where there is none."""
    axes = ("case", *(d for d in ("draw", "quantile") if d in array.dims), "y", "x")
    if {*array.dims, "case"} != set(axes) or array.dtype.kind not in "biuf":
        raise DataError(
            f"expected numbers with the axes {', '.join(axes)} in {array.name!r}, "
            f"found {array.dtype} with {', '.join(map(str, array.dims)) or 'none'}"
        )
    sizes = {axis: array.sizes.get(axis, 1) for axis in axes}
    if 0 in sizes.values():
        raise DataError(f"{array.name!r} is empty; its axes have the lengths {sizes}")
    return array.variable.set_dims(sizes).values.astype(float)


def _fields(array: xr.DataArray, shape: tuple[int, ...]) -> np.ndarray:
    """Values as `_values` gives them, resampled to a grid of this shape where theirs is another."""
    values = _values(array)
    if values.shape[-2:] == shape:
        return values
    import torch

    from latentpde.grid import Grid, resample

    source, target = Grid((values.shape[-2], values.shape[-1])), Grid((shape[0], shape[1]))
    return resample(torch.from_numpy(values), source, target).numpy()
