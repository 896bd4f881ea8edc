"""Metrics take NumPy's, torch's and xarray's arrays, give the same numbers for all, and refuse what does not fit."""

import subprocess
import sys

import numpy as np
import pytest
import torch
import xarray as xr

from latentpde.errors import DataError
from latentpde.scores import metrics
from latentpde.scores.ranks import rank_histogram


def rng(seed=0):
    return np.random.default_rng(seed)


# Each metric as a function of prediction, truth and draws, and which of the three it reads.
METRICS = {
    "rmse": (lambda f, t, d: metrics.rmse(f, t), {0, 1}),
    "mae": (lambda f, t, d: metrics.mae(f, t), {0, 1}),
    "radial_psd": (lambda f, t, d: metrics.radial_psd(f), {0}),
    "psd_log_error": (lambda f, t, d: metrics.psd_log_error(f, t), {0, 1}),
    "crps": (lambda f, t, d: metrics.crps(d, t), {1, 2}),
    "crps_from_quantiles": (lambda f, t, d: metrics.crps_from_quantiles(*levels_and_quantiles(d), t), {1, 2}),
    "coverage": (lambda f, t, d: metrics.coverage(d, t, level=0.5), {1, 2}),
    "spread_error": (lambda f, t, d: metrics.spread_error(d, t), {1, 2}),
    "rank_histogram": (lambda f, t, d: rank_histogram(d, t, seed=1), {1, 2}),
    "ensemble_spread": (lambda f, t, d: metrics.ensemble_spread(d), {2}),
    "ensemble_size": (lambda f, t, d: metrics.ensemble_size(d, 0.1), {2}),
}


def levels_and_quantiles(draws):
    levels = [0.1, 0.4, 0.6, 0.9]
    if not isinstance(draws, xr.DataArray):
        return levels, draws
    quantiles = draws.rename(draw="quantile").assign_coords(quantile=levels)
    return quantiles["quantile"], quantiles


@pytest.fixture(scope="module")
def arrays():
    """Prediction, truth and draws."""
    generator = rng(5)
    return tuple(generator.normal(size=shape) for shape in [(3, 6, 9), (3, 6, 9), (3, 4, 6, 9)])


def label(arrays):
    attrs, coords = {"units": "K"}, {"case": [10, 20, 30], "y": np.arange(6) / 6}
    prediction, truth, draws = arrays
    return (
        xr.DataArray(prediction, dims=("case", "y", "x"), coords=coords, attrs=attrs),
        xr.DataArray(truth, dims=("case", "y", "x"), coords=coords, attrs=attrs),
        xr.DataArray(draws, dims=("case", "draw", "y", "x"), coords=coords, attrs=attrs),
    )


@pytest.mark.parametrize("name", METRICS)
def test_tensors_and_named_arrays_give_the_numbers_of_numpy(name, arrays):
    metric, _ = METRICS[name]
    expected = metric(*arrays)
    tensors = [torch.from_numpy(a).requires_grad_() for a in arrays]
    np.testing.assert_array_equal(metric(*tensors), expected)

    labelled = label(arrays)
    shuffled = (
        labelled[0].transpose("x", "case", "y"),
        labelled[1].transpose("y", "x", "case"),
        labelled[2].transpose("draw", "x", "case", "y"),
    )
    for fields in (labelled, shuffled):
        result = metric(*fields)
        np.testing.assert_array_equal(result.values, expected)
        assert result.dims[0] == "case"
        assert not {"y", "x", "draw"} & set(result.dims)
        np.testing.assert_array_equal(result.case, [10, 20, 30])
        assert result.attrs == {"units": "K"}


def test_float32_is_computed_in_float64():
    field = rng().normal(size=(4, 4)).astype(np.float32)
    assert metrics.rmse(field, np.zeros_like(field)) == np.sqrt(np.mean(field.astype(np.float64) ** 2))
    half = torch.full((4, 4), 0.5, dtype=torch.bfloat16)
    assert metrics.mae(half, torch.zeros(4, 4)) == 0.5


def test_named_arrays_broadcast_by_name(arrays):
    prediction, truth, draws = label(arrays)
    methods = xr.concat([prediction, 2 * prediction], "method").transpose("case", "method", "y", "x")
    result = metrics.rmse(truth, methods)
    np.testing.assert_array_equal(result.sel(case=20)[1], metrics.rmse(2 * arrays[0][1], arrays[1][1]))
    np.testing.assert_array_equal(metrics.crps(draws, truth[0])[1], metrics.crps(arrays[2][1], arrays[1][0]))


def test_score_of_named_arrays_has_one_order_of_axes():
    mean, truth = xr.DataArray(rng().normal(size=(2, 2, 3, 4, 5)), dims=("pair", "case", "time", "y", "x"))
    draws = xr.DataArray(rng(1).normal(size=(3, 6, 2, 5, 4)), dims=("time", "draw", "case", "x", "y"))
    scores = metrics.score(mean, truth, draws)
    expected = metrics.score(mean.values, truth.values, draws.transpose("case", "time", "draw", "y", "x").values)
    for name, values in scores.items():
        assert isinstance(values, np.ndarray)
        np.testing.assert_array_equal(values, expected[name])


def test_importing_metrics_imports_neither_torch_nor_xarray():
    code = "import sys, latentpde.scores.metrics; sys.exit('torch' in sys.modules or 'xarray' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


# Refusals


@pytest.mark.parametrize("metric", [metrics.rmse, metrics.mae, metrics.psd_log_error])
def test_shapes_that_disagree_are_refused_not_broadcast(metric):
    with pytest.raises(DataError, match=r"truth should have shape \(3, 4, 5\) .* got \(4, 5\)"):
        metric(np.zeros((3, 4, 5)), np.zeros((4, 5)))


@pytest.mark.parametrize("metric", [metrics.crps, metrics.coverage, metrics.spread_error, rank_histogram])
def test_ensembles_and_truths_that_disagree_are_refused(metric):
    with pytest.raises(DataError, match=r"truth should have shape \(4, 5\) to go with draws of shape \(3, 4, 5\)"):
        metric(np.zeros((3, 4, 5)), np.zeros((5, 4)))
    with pytest.raises(DataError, match=r"draws needs the axes \(\.\.\., draw, y, x\).* got shape \(4, 5\)"):
        metric(np.zeros((4, 5)), np.zeros((4, 5)))
    with pytest.raises(DataError, match=r"none of them empty"):
        metric(np.zeros((3, 0, 5)), np.zeros((0, 5)))


@pytest.mark.parametrize("wrap", [tuple, label])
@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("name", METRICS)
def test_gaps_are_refused_wherever_they_are(name, value, wrap, arrays):
    metric, reads = METRICS[name]
    for index in reads:
        spoiled = [array.copy() for array in arrays]
        spoiled[index][0, ..., 2, 3] = value
        with pytest.raises(DataError, match="must be finite everywhere"):
            metric(*wrap(spoiled))


@pytest.mark.parametrize("metric", [metrics.crps, metrics.coverage, metrics.spread_error])
def test_one_draw_is_refused(metric):
    with pytest.raises(DataError, match="at least 2 draws, got 1"):
        metric(np.zeros((1, 4, 5)), np.zeros((4, 5)))


def test_named_arrays_that_do_not_line_up_are_refused(arrays):
    prediction, truth, draws = label(arrays)
    with pytest.raises(DataError, match="rmse cannot match its arrays by name"):
        metrics.rmse(prediction, truth.assign_coords(case=[10, 20, 31]))
    with pytest.raises(DataError, match="rmse cannot match its arrays by name"):
        metrics.rmse(prediction, truth.rename(y="latitude"))
    with pytest.raises(DataError, match="rmse cannot match its arrays by name"):
        metrics.rmse(prediction, truth.isel(x=slice(4)))
    with pytest.raises(DataError, match="crps cannot match its arrays by name"):
        metrics.crps(prediction, truth)
    with pytest.raises(DataError, match="at least 2 draws"):
        metrics.crps(draws.isel(draw=[0]), truth)
    with pytest.raises(DataError, match="none of them empty"):
        metrics.rmse(prediction.isel(x=slice(0)), truth.isel(x=slice(0)))
