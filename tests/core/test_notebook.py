"""What a notebook asks of posteriors and observations, in the user's own coordinates and dates."""

from __future__ import annotations

import sys
from dataclasses import replace
from datetime import datetime

import numpy as np
import pytest

import latentpde as lp
from latentpde.errors import UsageError
from latentpde.frame import Clock, Frame

KNOWN = {"initial": lp.Matern(6.0, 80.0), "num_modes": 0, "fixed": {"vx": 6.0, "vy": 0.0}, "bounds": {"kappa": (1, 9)}}


@pytest.fixture(scope="module")
def posterior():
    """Stations with latitudes, longitudes and dates."""
    rng = np.random.default_rng(0)
    clock = Clock("time", "h", np.datetime64("2026-05-01T00:00"))
    frame = Frame.geographic(latitudes=(53.0, 55.0), longitudes=(3.0, 6.0), clock=clock, value="no2", value_unit="ppb")
    y, x = frame.to_plane(rng.uniform(53.1, 54.9, 12), rng.uniform(3.1, 5.9, 12))
    y, x, t = np.repeat(y, 3), np.repeat(x, 3), np.tile([0.0, 3.0, 6.0], 12)
    value = 20 + 8 * np.sin((x - 6 * t) / 60) + rng.standard_normal(36)
    observation = replace(lp.Observation.from_table(value, y=y, x=x, t=t, sigma=1.0), frame=frame)
    return lp.reconstruct(observation, "advection_diffusion", num_draws=30, sweep=32, **KNOWN)


def test_a_place_and_a_date_of_the_user_s_are_the_map_there(posterior):
    maps = posterior.to_xarray(times=["2026-05-01T03:00"], resolution=16)
    cell = maps.isel(lat=5, lon=7, time=0)
    found = posterior.at([[float(cell["lat"]), float(cell["lon"])]], "2026-05-01T03:00").isel(point=0)
    assert float(found["mean"]) == pytest.approx(float(cell["mean"]), rel=1e-9)
    assert float(found["std"]) == pytest.approx(float(cell["std"]), rel=1e-9)
    assert found["time"].values == np.datetime64("2026-05-01T03:00")
    selected = posterior.sel(time="2026-05-01T03:00", lat=float(cell["lat"]), lon=float(cell["lon"]))
    assert selected["mean"].dims == ()
    assert float(selected["mean"]) == pytest.approx(float(cell["mean"]), rel=1e-9)
    assert selected["draws"].sizes == {"draw": 30}


@pytest.mark.parametrize(
    "time", ["2026-05-01T06:00", datetime(2026, 5, 1, 6), np.datetime64("2026-05-01T06:00"), 6.0, "6 h", None]
)
def test_a_time_may_be_said_in_many_ways(posterior, time):
    expected = posterior.at([[54.0, 4.0]], 6.0)
    np.testing.assert_array_equal(posterior.at([[54.0, 4.0]], time)["mean"], expected["mean"])


def test_lists_of_places_make_a_grid_of_them(posterior):
    found = posterior.sel(time=[0.0, "2026-05-01T06"], lat=[53.5, 54.0, 54.5], lon=[4.0, 5.0])
    assert dict(found["mean"].sizes) == {"time": 2, "lat": 3, "lon": 2}
    one = posterior.at([[54.5, 4.0]], 6.0)
    assert float(found["mean"][1, 2, 0]) == pytest.approx(float(one["mean"][0]))
    assert dict(posterior.sel(time=6.0, resolution=16)["mean"].sizes).keys() == {"lat", "lon"}


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda p: p.sel(lat=54.0), "give both coordinates, lat= and lon="),
        (lambda p: p.sel(y=1.0, x=2.0), "lat= and lon="),
        (lambda p: p.at([54.0, 4.0]), "axes \\(point, 2\\)"),
        (lambda p: p.at([["a", "b"]]), "finite numbers"),
        (lambda p: p.at([[54.0, np.nan]]), "finite numbers"),
        (lambda p: p.at([[54.0, 4.0]], "soon"), "time"),
        (lambda p: p.at([[54.0, 4.0]], -5.0), ">= 0"),
    ],
)
def test_what_cannot_be_meant_is_refused(posterior, ask, words):
    with pytest.raises(UsageError, match=words):
        ask(posterior)


def test_methods_without_a_law_of_their_own_are_evaluated_too():
    cases = lp.simulate("diffusion", num=2, shape=(32, 32), num_modes=2, sparsity=0.5)
    found = lp.reconstruct(cases, method="map", num_steps=5)
    y, x = found.grid(32).coordinates()
    at = found.at([[float(y[3]), float(x[9])]])
    np.testing.assert_allclose(at["mean"].isel(point=0), found.mean(resolution=32)[:, 3, 9], rtol=1e-9)
    assert np.isnan(at["std"]).all()


def test_arviz_has_draws_and_readings(posterior):
    arviz = pytest.importorskip("arviz")
    data = posterior.to_arviz()
    np.testing.assert_array_equal(
        data.posterior["kappa"].values[0], posterior.coefficients.sel(coefficient="kappa").values
    )
    assert data.posterior_predictive["reading"].shape == (1, 30, 36)
    assert data.observed_data["reading"].shape == (36,)
    table = arviz.summary(data, var_names=["kappa"], kind="stats")
    assert table.loc["kappa", "mean"] == pytest.approx(float(posterior.thetas[0, :, 2].mean()), abs=5e-4)


def test_without_arviz_the_error_says_how_to_get_it(posterior, monkeypatch):
    monkeypatch.setitem(sys.modules, "arviz", None)
    with pytest.raises(UsageError, match=r"pip install .latentpde\[arviz\]"):
        posterior.to_arviz()


def test_a_notebook_shows_pictures_in_the_user_s_terms(posterior):
    html = posterior._repr_html_()
    assert "data:image/png;base64," in html
    assert "No2 at 2026-05-01 06:00 UTC averages" in html
    assert "<img" in posterior.observation._repr_html_()
    figure = posterior.plot(times=["2026-05-01T00", "2026-05-01T06"], resolution=16)
    titles = [ax.get_title() for ax in figure.axes if ax.get_title()]
    assert titles[0] == "Mean, 2026-05-01 00:00 UTC"
    assert len(titles) == 4
    west, east = figure.axes[0].get_xlim()
    assert 2 < west < 3.2 < 5.8 < east < 7
    table = posterior.observation.to_xarray().to_dataframe()
    assert list(table.columns) == ["lat", "lon", "time", "no2"]
    assert len(table) == 36
