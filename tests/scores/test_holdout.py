"""Held-out readings are predicted from the others alone, and scored as what they are: readings, with their noise."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
import xarray as xr

import latentpde as lp
from latentpde.errors import DataError, UsageError
from latentpde.observation.listing import Listing
from latentpde.scores.holdout import SCORES, split

FAMILY = "advection_diffusion"
KNOWN = {"initial": lp.Matern(1.0, 0.5), "num_modes": 0, "fixed": {"vx": 0.2, "vy": 0.0, "kappa": 0.01}}


@pytest.fixture
def stations():
    """Twelve stations, three readings each."""
    rng = np.random.default_rng(0)
    y, x = np.repeat(rng.random((12, 2)), 3, axis=0).T
    t = np.tile([0.0, 0.4, 1.0], 12)
    return lp.Observation.from_table(
        3 + np.sin(6 * (x - 0.2 * t)) + 0.1 * rng.standard_normal(36), y=y, x=x, t=t, sigma=0.1
    )


def test_one_reading_held_out_is_what_leaving_it_out_in_closed_form_gives(stations):
    labels = np.arange(36)
    labels[labels != 7] = 0  # two groups: the reading 7, and all others; a seed that holds the former out
    seed = next(s for s in range(20) if split(stations, 0.5, labels, seed=s)[1].num_readings == 1)
    found = lp.holdout(stations, FAMILY, share=0.5, groups=labels, seed=seed, num_draws=4000, **KNOWN)
    expected = lp.reconstruct(stations, FAMILY, **KNOWN).leave_one_out().isel(reading=7)
    row = found.readings.iloc[0]
    assert row["value"] == pytest.approx(float(expected["value"]))
    assert row["mean"] == pytest.approx(float(expected["mean"]), abs=4 * float(expected["std"]) / np.sqrt(4000))
    assert row["std"] == pytest.approx(float(expected["std"]), rel=0.05)
    assert row["z"] == pytest.approx(float(expected["z"]), abs=0.15)


def test_predictions_do_not_know_what_they_are_to_predict(stations):
    _, held, _ = split(stations, 0.2, seed=3)
    wild = replace(stations, values=torch.where(held.mask, 1e3, stations.values))
    first, second = (lp.holdout(one, FAMILY, share=0.2, seed=3, **KNOWN) for one in (stations, wild))
    np.testing.assert_array_equal(first.readings["mean"], second.readings["mean"])
    assert (second.scores["rmse"] > 900).all()


def test_whole_stations_are_held_out_together(stations):
    kept, held, by = split(stations, 0.25, "stations", seed=1)
    assert by == "stations"
    assert (kept.num_readings.item(), held.num_readings.item()) == (27, 9)
    places = [{tuple(point) for point in Listing.of(one).points.tolist()} for one in (kept, held)]
    assert not places[0] & places[1]


@pytest.mark.parametrize("observed", ["lowres-solve", "pooled", "point"])
def test_readings_of_every_kind_are_calibrated(observed):
    """Of 400 held-out readings of cases that the model is right about, 90 % intervals hold 90 %."""
    cases = lp.simulate(
        "diffusion", num=8, seed=5, shape=(32, 32), pooling=4, num_modes=2, sparsity=0.8, observed=observed
    )
    found = lp.holdout(cases, share=0.5, num_draws=50, sweep=128)
    num = len(found.readings)
    own = found.scores.loc["exact"]
    # 50 draws hold 90 % with quantiles by Weibull's rule
    assert abs(own["coverage90"] - 0.9) < 3.5 * np.sqrt(0.09 / num)
    assert own["z_std"] == pytest.approx(1, abs=0.2)
    assert own["rmse"] < found.scores.loc["mean of readings", "rmse"]


def test_a_point_estimate_has_no_coverage():
    cases = lp.simulate("diffusion", num=1, shape=(16, 16), num_modes=2, sparsity=0.8)
    found = lp.holdout(cases, share=0.3, method="map", num_steps=5)
    own = found.scores.loc["map"]
    assert np.isnan(own["coverage90"])
    assert own["crps"] <= own["rmse"]  # it is the mean absolute error
    assert "intervals" not in found.sentence
    assert "rough" in found.sentence


def test_readings_that_never_share_a_time_have_rivals_too():
    rng = np.random.default_rng(1)
    y, x, t = rng.random((3, 40))
    track = lp.Observation.from_table(np.sin(6 * x), y=y, x=x, t=t, sigma=0.1)
    found = lp.holdout(track, FAMILY, share=0.2, **KNOWN)
    assert np.isfinite(found.scores.to_numpy()).all()
    assert found.scores.loc["kriging", "rmse"] < found.scores.loc["mean of readings", "rmse"]


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"share": 0.0}, UsageError, "share must be above 0"),
        ({"share": float("nan")}, UsageError, "share must be"),
        ({"groups": "instruments"}, UsageError, "'stations'"),
        ({"groups": [1, 2]}, UsageError, "one label for each of the 36 readings"),
        ({"groups": np.zeros(36)}, DataError, "leaves no reading"),
    ],
)
def test_what_cannot_be_held_out_is_refused(stations, options, error, words):
    with pytest.raises(error, match=words):
        lp.holdout(stations, FAMILY, **{"share": 0.1, **options})


def test_the_command_prints_records_and_then_uses_all_readings(run, case_file, tmp_path):
    out = tmp_path / "out.nc"
    code, text, err = run("reconstruct", case_file, "-o", out, "--holdout", "0.2", "-O", "sweep=64")
    assert code == 0, err
    assert "held-out readings" in text
    assert "persistence" in text
    with xr.open_dataset(out) as dataset:
        scores = dataset["holdout_scores"].to_pandas()
        assert list(scores.index) == ["exact", "kriging", "persistence", "mean of readings"]
        assert list(scores.columns) == list(SCORES)
        whole = dataset["mean"].load()
        z = (dataset["holdout_value"] - dataset["holdout_mean"]) / dataset["holdout_std"]
        np.testing.assert_allclose(z, dataset["holdout_z"])
    code, text, err = run("reconstruct", case_file, "-o", out, "-O", "sweep=64", "--json", "--holdout", "0.2", "-q")
    assert json.loads(text)["holdout"]["exact"]["rmse"] == pytest.approx(scores.loc["exact", "rmse"])
    code, _, err = run("reconstruct", case_file, "-o", out, "-O", "sweep=64", "-q")
    assert code == 0, err
    with xr.open_dataset(out) as dataset:
        xr.testing.assert_equal(dataset["mean"], whole)


def test_the_command_refuses_shares_that_are_none(refused, case_file, tmp_path):
    for share in ("0", "1", "nan", "1.5"):
        refused(2, "--holdout must be a share between 0 and 1", "reconstruct", case_file, "-o", tmp_path / "o.nc",
                "--holdout", share)  # fmt: skip
    refused(2, "--holdout-groups needs --holdout", "reconstruct", case_file, "-o", tmp_path / "o.nc",
            "--holdout-groups")  # fmt: skip


def test_readings_of_the_source_are_kept():
    """Their unit is another, and predictors that know no PDE would take them for readings of the field."""
    rng = np.random.default_rng(0)
    y, x = rng.random((2, 24))
    reads = np.repeat(["field", "source"], [16, 8])
    values = np.where(reads == "field", np.sin(np.pi * y) * np.sin(np.pi * x), 1e3 * y)
    observation = lp.Observation.from_table(
        values,
        y=y,
        x=x,
        sigma=np.where(reads == "field", 0.01, 10.0),
        reads=reads,
        domain="dirichlet",
        grid=lp.Grid((8, 8)),
    )
    known = {"fixed": {"kappa": 1.0}, "source": lp.Matern(20.0, 0.5), "num_draws": 4}
    found = lp.holdout(observation, "poisson", share=0.25, **known)
    assert len(found.readings) == 4
    assert found.num_kept == 20
    assert found.readings["value"].abs().max() <= 1
    assert found.scores.loc["mean of readings", "rmse"] < 1
    alone = lp.Observation.from_table(values[16:], y=y[16:], x=x[16:], sigma=10.0, reads="source")
    with pytest.raises(DataError, match="are of the source"):
        lp.holdout(alone, "poisson", **known)
