"""Scores of a reconstruction file against the truths of a file of cases."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from latentpde.errors import DataError
from latentpde.metrics import PSD_FLOOR, crps_from_quantiles, score

if TYPE_CHECKING:
    import xarray as xr


def evaluate(reconstruction: xr.Dataset, cases: xr.DataTree) -> dict[str, Any]:
    """Mean scores over the samples, and the list of each per sample.

    CRPS is the fair estimator where the reconstruction keeps its samples; from its quantiles, and so approximate,
    where it does not; and the MAE for a point estimate, which is what CRPS then is. ``crps_estimator`` says which.
    Coverage is that of the central 90 % interval. What a method without a spread cannot have is ``None``.
    """
    if "truth" not in cases.children or "field" not in cases["truth"]:
        raise DataError("the cases hold no truth to compare with; expected a group 'truth' with a variable 'field'")
    if "mean" not in reconstruction:
        raise DataError("the reconstruction has no variable 'mean'; is it a file that `reconstruct` wrote?")
    truth = _with_sample(cases["truth/field"])
    if "time" in truth.dims:
        truth = truth.isel(time=-1)
    truth = truth.transpose("sample", "y", "x").values.astype(float)
    mean = _fields(reconstruction["mean"], truth.shape[-2:])
    if len(mean) != len(truth):
        raise DataError(f"the reconstruction has {len(mean)} sample(s), the cases {len(truth)}: not the same set?")
    has_spread = bool(reconstruction.attrs.get("has_spread", 0))
    draws = _fields(reconstruction["samples"], truth.shape[-2:]) if has_spread and "samples" in reconstruction else None
    scores = score(mean, truth, draws)
    estimator = "fair" if draws is not None else "point"
    if has_spread and draws is None:
        levels = reconstruction["quantile"].values
        quantiles = _fields(reconstruction["quantiles"], truth.shape[-2:])
        scores["crps"] = crps_from_quantiles(levels, quantiles, truth)
        estimator = "quantiles"
        inside = (quantiles[:, 0] <= truth) & (truth <= quantiles[:, -1])
        scores["coverage90"] = inside.mean((-2, -1))
    per_sample = {name: [None if np.isnan(v) else float(v) for v in values] for name, values in scores.items()}
    means = {name: None if None in values else float(np.mean(values)) for name, values in per_sample.items()}
    return {
        **means,
        "num_samples": len(truth),
        "resolution": list(truth.shape[-2:]),
        "crps_estimator": estimator,
        "psd_floor": PSD_FLOOR,
        "method": str(reconstruction.attrs.get("method", "")),
        "per_sample": per_sample,
    }


def _with_sample(array: xr.DataArray) -> xr.DataArray:
    return array if "sample" in array.dims else array.expand_dims("sample")


def _fields(array: xr.DataArray, shape: tuple[int, ...]) -> np.ndarray:
    """Values with axes (sample, [draw or quantile,] y, x), resampled to the truth's grid where they differ."""
    array = _with_sample(array)
    between = [d for d in ("draw", "quantile") if d in array.dims]
    values = array.transpose("sample", *between, "y", "x").values.astype(float)
    if values.shape[-2:] == shape:
        return values
    import torch

    from latentpde.grid import Grid, resample

    source, target = Grid((values.shape[-2], values.shape[-1])), Grid((shape[0], shape[1]))
    return resample(torch.from_numpy(values), source, target).numpy()
