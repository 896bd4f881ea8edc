"""Calibration: honest posteriors pass, dishonest ones are found."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr
from linear_gaussian import linear_gaussian

from latentpde.errors import UsageError
from latentpde.scores import calibration as cal
from latentpde.scores.metrics import coverage
from latentpde.simulation import Simulation

TINY = Simulation(regime="helmholtz", shape=(32, 32), pooling=4, num_modes=2, sparsity=0.3)


# Verdicts


def test_the_exact_posterior_passes():
    data = linear_gaussian()
    assert (cal.uniformity(data)["p_holm"] > 0.01).all()
    table = cal.expected_coverage(data, ())
    assert (abs(table["coverage"] - table.index) < 4 * table["standard_error"]).all()
    assert np.sqrt(np.mean(data.spread**2) / np.mean(data.error**2)) == pytest.approx(1, abs=0.08)


@pytest.mark.parametrize(
    ("width", "bias", "sign"), [(0.7, 0.0, -1), (1.5, 0.0, 1), (1.0, 0.5, None), (1.0, -0.5, None)]
)
def test_dishonest_posteriors_are_found(width, bias, sign):
    data = linear_gaussian(width, bias)
    assert (cal.uniformity(data)["p_holm"] < 0.01).all()
    if sign:
        table = cal.expected_coverage(data, ())
        assert (sign * (table["coverage"] - table.index) > 4 * table["standard_error"]).all()


# Coverage


def test_coverage_curve_takes_what_metrics_take():
    rng = np.random.default_rng(0)
    draws, truth = rng.standard_normal((3, 39, 4, 5)), rng.standard_normal((3, 4, 5))
    curve = cal.coverage_curve(draws, truth, (0.5, 0.9))
    assert curve.shape == (3, 2)
    assert np.array_equal(curve[:, 1], coverage(draws, truth, 0.9))
    named = cal.coverage_curve(
        xr.DataArray(draws, dims=("case", "draw", "y", "x")),
        xr.DataArray(truth, dims=("case", "y", "x")),
        (0.5, 0.9),
    )
    assert named.dims == ("case", "level")
    assert named.level.values.tolist() == [0.5, 0.9]
    assert np.array_equal(named.values, curve)


def test_expected_coverage_groups_cases():
    data = linear_gaussian()
    table = cal.expected_coverage(data, ("mask_kind", "family"))
    row = table.loc[("radial", "helmholtz", 0.9)]
    values = data.coverage.sel(level=0.9).values[1::2]
    assert row["num"] == 128
    assert row["coverage"] == pytest.approx(values.mean())
    assert row["standard_error"] == pytest.approx(values.std(ddof=1) / np.sqrt(128))
    assert table.equals(cal.expected_coverage(data, ["mask_kind", "family"]))
    assert cal.expected_coverage(data, "mask_kind").index.names == ["mask_kind", "level"]
    with pytest.raises(UsageError, match=r"season.*mask_kind"):
        cal.expected_coverage(data, "season")


# From simulation to verdict


def test_simulation_based_calibration_of_exact():
    data = cal.simulation_based_calibration("exact", TINY, 4, num_draws=9, points=[(3, 4), (20, 31)], num_mean_nodes=8)
    assert dict(data.sizes) == {"case": 4, "quantity": 5, "level": len(cal.LEVELS)}
    assert data.quantity.values.tolist() == ["kappa_x", "kappa_y", "k", "u[3, 4]", "u[20, 31]"]
    assert data.quantity_kind.values.tolist() == ["coefficient"] * 3 + ["field"] * 2
    assert np.issubdtype(data["rank"].dtype, np.integer)
    assert 0 <= data["rank"].min() <= data["rank"].max() <= 9
    assert (np.diff(data.coverage.values, axis=1) >= 0).all()
    assert data.attrs["regime"] == data.attrs["family"] == "helmholtz"
    assert (data.attrs["method"], data.attrs["num_draws"]) == ("exact", 9)
    truth = TINY.cases(0, 4)["truth"]
    for name in ("mask_kind", "initial_kind"):
        assert data[name].values.tolist() == truth[name].values.tolist()
    # The ensemble of 9 is a little worse than the mean, and both are of the size of the spread.
    assert (data.rmse < 0.3).all()
    assert 0.3 < float(np.sqrt((data.spread**2).mean() / (data.error**2).mean())) < 3

    later = cal.simulation_based_calibration(
        "exact", TINY, 1, num_draws=9, points=[(3, 4), (20, 31)], num_mean_nodes=8, start=1, seed=0
    )
    assert xr.concat([data.isel(case=[0]), later], "case").case.values.tolist() == [0, 1]
    assert later["rank"].equals(data["rank"].isel(case=[1]))


def test_a_method_without_a_spread_is_refused():
    with pytest.raises(UsageError, match=r"'map'.*without a spread"):
        cal.simulation_based_calibration("map", TINY, 4, num_steps=2, num_restarts=1)


@pytest.mark.parametrize(
    "options", [{"num": 0}, {"num_draws": 1}, {"points": [(0, 32)]}, {"points": [(1, 1), (1, 1)]}, {"start": -1}]
)
def test_impossible_requests_are_refused(options):
    with pytest.raises(UsageError):
        cal.simulation_based_calibration("exact", TINY, **{"num": 2, **options})
