"""`latentpde check`: every finding it can make, its exit codes, and that what it prints can be pasted."""

import json
import shlex

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from program import without

import latentpde as lp
from latentpde.inspection.prospects import time_words

rng = np.random.default_rng(2)
KNOWN = ["--noise-std", "0.2", "--initial", "Matern(4.0, 40.0)", "--num-modes", "0"]  # for speed
QUICK = [
    *KNOWN,
    "-O",
    "sweep=32",
    "-O",
    "target=8",
    "-O",
    "num_spread_draws=8",
    "--num-draws",
    "2",
    "--resolution",
    "16",
]


FLAGS = {"flag_values": np.array([0, 1]), "flag_meanings": "sea land"}


def stations(num=12, times=3, **columns):
    """Stations that are read every hour."""
    lon, lat = rng.uniform(8, 9, num), rng.uniform(50, 50.6, num)
    date = np.datetime64("2026-05-01T00") + np.arange(times).astype("timedelta64[h]")
    value = 10 + 4 * np.sin(3 * lon) + np.repeat(np.arange(times) / 2, num).reshape(times, num)
    table = {"lon": np.tile(lon, times), "lat": np.tile(lat, times), "date": np.repeat(date, num)}
    table["pm10 (ug/m3)"] = value.ravel() + 0.2 * rng.standard_normal(times * num)
    return pd.DataFrame(table | columns)


def images(**more):
    lat, lon = np.arange(45.0, 43.0, -0.25), np.arange(356.0, 366.0, 0.5) % 360
    values = 288 + np.sin(np.arange(20) / 3) + 0.1 * rng.standard_normal((2, 8, 20))
    values[:, :, 3] = np.nan
    time = np.array(["2026-05-01", "2026-05-02"], dtype="datetime64[ns]")
    coordinates = {"time": time, "lat": lat, "lon": lon}
    return xr.Dataset({"sst": (("time", "lat", "lon"), values, {"units": "K"})} | more, coordinates)


def test_what_it_says_of_stations():
    found = lp.check(stations())
    assert found.contents["readings"] == "36 of pm10 (ug/m3), at 12 places and 3 times"
    assert found.extents["lat"].count("° N") == 2
    assert "km" in found.extents["lon"]
    assert found.extents["date"] == "2026-05-01T00:00 to 2026-05-01T02:00 UTC, steps of 1 h"
    assert found.quality == {
        "missing": "0.0% of what 12 places could say",
        "repeated": "no reading",
        "far from the others": "no reading",
        "stated noise": "none",
    }
    assert {"noise", "field"} <= set(found.variation)
    assert found.assumed["equation"].startswith("advection_diffusion: ")
    assert found.assumed["edges"].startswith("open")
    assert found.assumed["noise"] == "inferred"
    assert found.assumed["start"] == "unknown, at 2026-05-01T00:00"
    assert found.assumed["coefficients"].count("km/h") == 2
    assert found.assumed["coefficients"].count("km²/h") == 1
    assert "held-out readings included" in found.cost["time"]
    assert found.numbers["num_readings"] == 36
    assert (found.notes, found.doubts, found.obstacles) == ([], [], [])


def test_what_it_says_of_images():
    found = lp.check(images())
    assert found.contents["grid"] == "8 x 20 cells (lat, lon)"
    assert found.extents["lon"].startswith("4.25° W to 5.75° E, ")
    assert found.extents["time"].endswith("steps of 1 d")
    assert found.quality["missing"] == "5.0% of the cells that are not excluded"
    assert "km²/d" in found.assumed["coefficients"]


def test_a_single_time_gets_a_steady_equation():
    found = lp.check(stations(times=1))
    assert found.numbers["family"] == "screened_poisson"
    assert "start" not in found.assumed
    assert found.extents["date"] == "2026-05-01T00:00 UTC"


def test_a_simulated_file_that_names_no_edges_is_said_to_be_periodic(case_tree):
    found = lp.check(without("domain")(case_tree.to_dataset()))
    assert found.assumed["edges"] == "periodic, as all cases that the simulator makes (regime balanced)"
    assert found.assumed["start"] == "given"
    assert found.assumed["noise"] == "0.15"
    assert found.assumed["source"] == "unknown and steady, of strength 0.4"
    assert found.contents["cases"] == "2; what follows is of the first"


@pytest.mark.parametrize(
    ("data", "where", "words"),
    [
        (stations(num=3, times=1), "doubts", "3 readings are few"),
        (
            stations().assign(**{"pm10 (ug/m3)": lambda d: d.iloc[:, 3].where(d.index != 4, 150.0)}),
            "doubts",
            "--robust",
        ),
        (stations().rename(columns={"lon": "x", "lat": "y"}), "doubts", "the unit of lengths is not known"),
        (stations(num=40).assign(lat=lambda d: 10 + 60 * (d["lat"] - 50)), "doubts", "lengths along lon are wrong"),
        (
            stations(num=200, times=1).assign(
                **{"pm10 (ug/m3)": lambda d: np.sin(d["lon"]) + rng.standard_normal(200)}
            ),
            "doubts",
            "the noise is larger than what varies",
        ),
        (pd.concat([stations().iloc[:2], stations()]).assign(), "contents", "38 of pm10"),
        (images(land=(("lat", "lon"), np.eye(8, 20, dtype=int), FLAGS)), "notes", "--excluded land"),
        (stations(num=2), "obstacles", "2 places cannot tell"),
        (stations().assign(**{"pm10 (ug/m3)": 4.0}), "obstacles", "all readings are the same"),
    ],
)
def test_what_it_notices(data, where, words):
    said = getattr(lp.check(data), where)
    assert any(words in sentence for sentence in (said.values() if isinstance(said, dict) else said)), said


def test_repeated_rows_and_excluded_areas_are_counted():
    table = stations()
    twice = pd.concat([table, table.iloc[:3], table.iloc[:2].assign(**{"pm10 (ug/m3)": 1.0})])
    found = lp.check(twice)
    assert found.quality["repeated"] == "2 readings, at a place and time of another"
    assert any("3 row(s) repeat another one" in note for note in found.notes)
    land = xr.DataArray(np.eye(8, 20), {"lat": images()["lat"], "lon": images()["lon"]}, ("lat", "lon"))
    found = lp.check(images(), excluded=land)
    assert found.quality["excluded"] == "5.0% of the cells"


def test_a_family_in_time_needs_times(tmp_path, refused):
    stations(times=1).to_csv(tmp_path / "a.csv", index=False)
    err = refused(3, ["this cannot work yet", "--pde screened-poisson"], "check", tmp_path / "a.csv", "--pde", "heat")
    assert "Run next" not in err


def test_a_variable_that_is_not_clear_is_asked_for_and_the_answer_is_in_the_command(tmp_path, run, refused):
    data = images()
    data.assign(ice=data["sst"]).to_netcdf(tmp_path / "a.nc", engine="h5netcdf")
    refused(3, ["sst (time, lat, lon), ice", "--variable sst"], "check", tmp_path / "a.nc")
    code, out, _ = run("check", tmp_path / "a.nc", "--variable", "ice", "--keep-outliers", "--json")
    assert code == 0
    command = json.loads(out)["command"]
    assert "--variable ice --keep-outliers" in command


def test_codes_are_not_taken_for_readings():
    flags = (("time", "lat", "lon"), np.zeros((2, 8, 20), dtype="int8"), {"flag_meanings": "good bad"})
    assert lp.check(images(quality=flags)).contents["readings"].startswith("304 of sst")


def test_what_it_prints_runs_as_it_is_pasted(tmp_path, run, monkeypatch):
    monkeypatch.chdir(tmp_path)
    stations().to_csv("my stations.csv", index=False, sep=";")
    code, out, err = run("check", "my stations.csv", "--columns", "value=pm10 (ug/m3)")
    assert code == 0, err
    command = shlex.split(out.splitlines()[-1])
    assert command[:3] == ["latentpde", "reconstruct", "my stations.csv"]
    assert "--holdout" in command
    code, out, err = run(*command[1:], *QUICK)
    assert code == 0, err
    assert "held-out reading" in out
    assert "Open in a browser: my stations-report.html" in out
    assert (tmp_path / "my stations-out.nc").exists()


def test_places_that_may_be_degrees_are_asked_about():
    degrees = stations().rename(columns={"lon": "x", "lat": "y"})
    assert any("if x and y are degrees, call them lon and lat" in doubt for doubt in lp.check(degrees).doubts)
    square = degrees.assign(x=degrees["x"] - 8, y=degrees["y"] - 50)
    assert not any("degrees" in doubt for doubt in lp.check(square).doubts)


def test_pure_numbers_have_no_unit_for_people_and_keep_it_in_files():
    axes = {name: (name, np.arange(n) / n, {"units": "1"}) for name, n in (("y", 6), ("x", 8))}
    share = xr.Dataset({"share": (("y", "x"), rng.random((6, 8)), {"units": "1"})}, axes)
    found = lp.check(share)
    assert found.contents["readings"] == "48 of share, in 48 cells"
    assert found.extents["x"] == "-0.0625 to 0.9375 (no unit)"
    assert "ratio 0.1 to 1, angle 0 to 3.14;" in found.assumed["coefficients"]
    settings = {"method": "kriging", "domain": "periodic"}
    kriged = lp.reconstruct(lp.read(share, noise_std=0.1), "screened_poisson", **settings).to_xarray()
    assert kriged["mean"].attrs["units"] == "1"


def test_a_range_of_time_that_people_can_read():
    assert time_words(1.0, 1) == "some seconds on one core"
    assert time_words(600.0, 2) == "3 minutes to 30 minutes on one core, held-out readings included"
