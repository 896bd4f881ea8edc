"""Scores of a reconstruction file: known answers, and the conventions for what a method cannot have."""

import json

import numpy as np
import pytest
import xarray as xr

from latentpde import DataError
from latentpde.grid import Grid
from latentpde.scores.evaluate import evaluate
from latentpde.scores.metrics import crps

LEVELS = [0.05, 0.25, 0.5, 0.75, 0.95]
SCORES = {"rmse", "mae", "psd", "crps", "coverage90", "spread_error"}


def field(ny: int, nx: int, num: int = 2) -> np.ndarray:
    """Few waves, so that every grid here carries them exactly."""
    y, x = (2 * np.pi * c.numpy() for c in Grid((ny, nx)).coordinates())
    return np.stack([np.cos(y)[:, None] + (1 + i) * np.sin(2 * x)[None, :] for i in range(num)])


def cases(truth: np.ndarray) -> xr.DataTree:
    return xr.DataTree.from_dict({"/truth": xr.Dataset({"field": (("case", "y", "x"), truth)})})


def point(mean: np.ndarray) -> xr.Dataset:
    return xr.Dataset({"mean": (("case", "y", "x"), mean)}, attrs={"has_spread": 0, "method": "test"})


def spread(draws: np.ndarray, keep: bool) -> xr.Dataset:
    quantiles = np.quantile(draws, LEVELS, axis=1).swapaxes(0, 1)
    out = point(draws.mean(1)).assign_attrs(has_spread=1)
    out["quantiles"] = ("case", "quantile", "y", "x"), quantiles
    out = out.assign_coords(quantile=LEVELS)
    return out.assign(draws=(("case", "draw", "y", "x"), draws)) if keep else out


def gaussian(num_draws: int = 400) -> tuple[np.ndarray, np.ndarray]:
    """A truth and draws that are exchangeable."""
    rng = np.random.default_rng(0)
    return field(16, 16) + 0.5 * rng.standard_normal((2, 16, 16)), field(16, 16)[:, None] + 0.5 * rng.standard_normal(
        (2, num_draws, 16, 16)
    )


def test_a_perfect_reconstruction():
    scores = evaluate(point(field(8, 12)), cases(field(8, 12)))
    assert scores["rmse"] == scores["mae"] == scores["psd"] == scores["crps"] == 0
    assert scores["num_cases"] == 2
    assert scores["resolution"] == [8, 12]
    assert scores["method"] == "test"
    assert scores["psd_floor"] == 1e-12


def test_a_shifted_one():
    shift = np.array([0.5, -0.1])[:, None, None]
    scores = evaluate(point(field(8, 8) + shift), cases(field(8, 8)))
    assert scores["per_case"]["rmse"] == pytest.approx([0.5, 0.1])
    assert scores["per_case"]["mae"] == pytest.approx([0.5, 0.1])
    assert scores["rmse"] == pytest.approx(0.3)
    assert scores["psd"] == pytest.approx(0, abs=1e-6)  # a spectrum knows nothing of the mean


def test_a_point_estimate_has_neither_coverage_nor_spread():
    scores = evaluate(point(field(8, 8) + 0.5), cases(field(8, 8)))
    assert scores["crps_estimator"] == "point"
    assert scores["crps"] == scores["mae"]
    assert scores["coverage90"] is scores["spread_error"] is None
    assert scores["per_case"]["coverage90"] == [None, None]


def test_kept_draws_give_the_fair_crps():
    truth, draws = gaussian()
    scores = evaluate(spread(draws, keep=True), cases(truth))
    assert scores["crps_estimator"] == "fair"
    assert scores["per_case"]["crps"] == pytest.approx(crps(draws, truth).tolist())
    assert scores["coverage90"] == pytest.approx(0.9, abs=0.04)
    assert scores["spread_error"] == pytest.approx(1, abs=0.1)


def test_quantiles_give_nearly_the_same():
    truth, draws = gaussian()
    kept, summarised = (evaluate(spread(draws, keep), cases(truth)) for keep in (True, False))
    assert summarised["crps_estimator"] == "quantiles"
    assert summarised["crps"] == pytest.approx(kept["crps"], rel=0.05)
    assert summarised["crps"] != kept["crps"]
    assert summarised["coverage90"] == pytest.approx(kept["coverage90"], abs=0.02)
    assert summarised["spread_error"] is None
    for name in ("rmse", "mae", "psd"):
        assert summarised[name] == kept[name]


def test_coverage_needs_the_right_quantiles():
    truth, draws = gaussian(40)
    out = spread(draws, keep=False)
    assert evaluate(out.isel(quantile=slice(1, 4)), cases(truth))["coverage90"] is None
    assert evaluate(out.isel(quantile=[0, 2, 4]), cases(truth))["coverage90"] > 0.7


def test_one_kept_draw_of_a_known_spread_is_scored_by_the_quantiles():
    truth, draws = gaussian()
    out = spread(draws, keep=False)
    one = out.assign(draws=(("case", "draw", "y", "x"), draws[:, :1]))
    assert evaluate(one, cases(truth)) == evaluate(out, cases(truth))


def test_coverage_is_that_of_the_interval_in_the_file():
    """Which may come from more draws than are kept: 12 of them could not cover 90 %."""
    truth, draws = gaussian()
    out = spread(draws, keep=False)
    few = out.assign(draws=(("case", "draw", "y", "x"), draws[:, :12]))
    assert evaluate(few, cases(truth))["coverage90"] == evaluate(out, cases(truth))["coverage90"]
    assert evaluate(few, cases(truth))["crps_estimator"] == "fair"


@pytest.mark.parametrize("shape", [(8, 8), (33, 20), (64, 64)])
def test_other_resolutions_are_resampled(shape):
    """Spectrally, with the half cell: the same function on another grid scores as the same."""
    truth = cases(field(16, 24))
    for reconstruction in (
        point(field(*shape) + 0.25),
        spread(field(*shape)[:, None] + np.array([0.15, 0.25, 0.35])[:, None, None], keep=True),
        spread(field(*shape)[:, None] + np.array([0.15, 0.25, 0.35])[:, None, None], keep=False),
    ):
        scores = evaluate(reconstruction, truth)
        assert scores["rmse"] == pytest.approx(0.25)
        assert scores["resolution"] == [16, 24]


def test_axes_go_by_name():
    truth, draws = gaussian(20)
    expected = evaluate(spread(draws, keep=True), cases(truth))
    assert evaluate(spread(draws, keep=True).transpose(), cases(truth)) == expected


def test_one_case_needs_no_case_axis():
    reconstruction = point(field(8, 8) + 0.5).isel(case=0)
    truth = xr.DataTree.from_dict({"/truth": cases(field(8, 8))["truth"].to_dataset().isel(case=0)})
    assert evaluate(reconstruction, truth)["per_case"]["rmse"] == pytest.approx([0.5])


def test_the_last_snapshot_is_scored():
    both = np.stack([field(8, 8) + 7, field(8, 8)], axis=1)
    truth = xr.DataTree.from_dict({"/truth": xr.Dataset({"field": (("case", "time", "y", "x"), both)})})
    assert evaluate(point(field(8, 8)), truth)["rmse"] == 0


def test_scores_are_json_whatever_they_are():
    """The spread of an exact mean over its error is infinite, which JSON cannot say."""
    draws = field(8, 8)[:, None] + np.array([-1.0, 0.0, 1.0])[:, None, None]
    scores = evaluate(spread(draws, keep=True), cases(draws.mean(1)))
    assert scores["spread_error"] is None
    parsed = json.loads(json.dumps(scores, allow_nan=False))
    assert set(parsed["per_case"]) == SCORES
    assert set(parsed) > SCORES


def test_what_cannot_be_compared_is_refused():
    good, truth = point(field(8, 8)), cases(field(8, 8))
    for reconstruction, other, message in (
        (good, xr.DataTree.from_dict({"/": good}), "hold no truth"),
        (good, xr.DataTree.from_dict({"/truth": xr.Dataset()}), "hold no truth"),
        (good.drop_vars("mean"), truth, "no variable 'mean'"),
        (good.assign_attrs(has_spread=1), truth, "no variable 'quantiles'"),
        (good.isel(case=[0]), truth, "1 case"),
        (good.rename(y="lat"), truth, "axes case, y, x"),
        (good.astype(str), truth, "expected numbers"),
        (good * np.nan, truth, "finite"),
        (good, cases(field(8, 8) * np.nan), "finite"),
        (good.expand_dims(level=2), truth, "axes case, y, x"),
    ):
        with pytest.raises(DataError, match=message):
            evaluate(reconstruction, other)
