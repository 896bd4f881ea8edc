"""The same data give the same reconstruction, whatever file, unit, order, projection or time zone they come in."""

import math

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import latentpde as lp

EFFORT = {"sweep": 32, "target": 8, "num_spread_draws": 16, "num_draws": 2}


def quick(km=1.0, **others):
    """Levels that are given, for speed: lengths in km, or in what is ``km`` times shorter."""
    return EFFORT | {"noise_std": 0.1, "initial": lp.Matern(3.0, 15.0 * km), "num_modes": 0} | others


rng = np.random.default_rng(5)
LAT, LON = 50 + rng.uniform(-0.2, 0.2, 12), rng.uniform(-0.4, 0.4, 12)
HOURS = np.array([0, 2, 4])
ASKED = np.stack([rng.uniform(49.85, 50.15, 6), rng.uniform(-0.3, 0.3, 6)], axis=-1)
WHEN = "2026-05-01T03:00"


def stations() -> pd.DataFrame:
    """A warm spot that drifts eastwards by 10 km/h: 36 readings in degrees Celsius."""
    parts = []
    for hour in HOURS:
        x, y = LON * 71.5 - 10 * (hour - 2), (LAT - 50) * 111.2
        value = 8 + 6 * np.exp(-(x**2 + y**2) / 300) + 0.1 * rng.standard_normal(12)
        when = pd.Timestamp("2026-05-01T00:00") + pd.Timedelta(hours=int(hour))
        parts.append(pd.DataFrame({"lon": LON, "lat": LAT, "date": when, "temp": value}))
    return pd.concat(parts, ignore_index=True)


TABLE = stations()


def found(data, **options):
    """Mean and standard deviation at some places and a time between the readings, and the coefficients."""
    posterior = lp.reconstruct(lp.read(data, **options), "advection_diffusion", **quick())
    there = posterior.at(ASKED, WHEN)
    return there["mean"].values, there["std"].values, posterior.coefficients.mean("draw").values


@pytest.fixture(scope="module")
def expected():
    return found(TABLE)


def in_a_file(kind, path):
    if kind == "csv":
        TABLE.to_csv(path / "a.csv", index=False)
    elif kind == "semicolons":  # as a German Excel has it
        TABLE[["temp", "lat", "date", "lon"]].to_csv(path / "a.csv", index=False, sep=";", decimal=",")
    elif kind == "parquet":
        TABLE.to_parquet(path / "a.parquet")
    else:
        points = xr.Dataset({n: ("obs", TABLE[n].values) for n in ("lon", "lat", "date", "temp")})
        points = points.set_coords(["lon", "lat", "date"])
        if kind == "zarr":
            points.to_zarr(path / "a.zarr", zarr_format=2)
        else:
            points.to_netcdf(path / "a.nc", engine="h5netcdf")
    return next(path.iterdir())


@pytest.mark.parametrize("kind", ["csv", "semicolons", "parquet", "netcdf", "zarr"])
def test_stations_in_any_file(kind, tmp_path, expected):
    for one, other in zip(found(in_a_file(kind, tmp_path)), expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)


def test_longitudes_from_0_and_dates_of_another_zone(tmp_path, expected):
    west = TABLE.assign(lon=TABLE["lon"] % 360, date=TABLE["date"].dt.tz_localize("UTC").dt.tz_convert("Asia/Kolkata"))
    west.to_csv(tmp_path / "a.csv", index=False)
    naive = TABLE.assign(date=(TABLE["date"] + pd.Timedelta("5h30min")).astype(str))
    for data, options in ((tmp_path / "a.csv", {}), (naive, {"time_zone": "Asia/Kolkata"})):
        for one, other in zip(found(data, **options), expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-6)


def test_kelvin_and_celsius(expected):
    mean, std, coefficients = found(TABLE.assign(temp=TABLE["temp"] + 273.15))
    np.testing.assert_allclose(mean - 273.15, expected[0], atol=1e-4)
    np.testing.assert_allclose(std, expected[1], rtol=1e-3)
    np.testing.assert_allclose(coefficients, expected[2], rtol=1e-3)


def utm(lat, lon, middle=0.0):
    """Easting and northing of the zone around a meridian, by Krueger's series; right to a millimetre."""
    a, f = 6378137.0, 1 / 298.257223563
    n, phi, lam = f / (2 - f), np.radians(lat), np.radians(np.asarray(lon) - middle)
    e = 2 * math.sqrt(n) / (1 + n)
    t = np.sinh(np.arctanh(np.sin(phi)) - e * np.arctanh(e * np.sin(phi)))
    xi, eta = np.arctan2(t, np.cos(lam)), np.arctanh(np.sin(lam) / np.hypot(1, t))
    alpha = (n / 2 - 2 * n**2 / 3 + 5 * n**3 / 16, 13 * n**2 / 48 - 3 * n**3 / 5, 61 * n**3 / 240)
    east = eta + sum(c * np.cos(2 * j * xi) * np.sinh(2 * j * eta) for j, c in enumerate(alpha, 1))
    north = xi + sum(c * np.sin(2 * j * xi) * np.cosh(2 * j * eta) for j, c in enumerate(alpha, 1))
    radius = 0.9996 * a / (1 + n) * (1 + n**2 / 4 + n**4 / 64)
    return 500_000 + radius * east, radius * north


def test_eastings_and_northings_agree_to_the_accuracy_of_the_plane():
    """Lengths of the local plane, on a sphere and true along one parallel, are those of UTM to half a percent here."""
    east, north = utm(TABLE["lat"], TABLE["lon"])
    assert abs(utm(50.0, 0.0)[1] - 5_538_630.7) < 0.5, "a known point"
    table = pd.DataFrame({"easting (m)": east, "northing (m)": north, "date": TABLE["date"], "temp": TABLE["temp"]})
    many = {"num_spread_draws": 256, "num_draws": 256}  # which are others on each plane
    degrees = lp.reconstruct(TABLE, "advection_diffusion", **quick(**many))
    metres = lp.reconstruct(table, "advection_diffusion", **quick(1000.0, **many))
    one, other = degrees.at(ASKED, WHEN), metres.at(np.stack(utm(*ASKED.T)[::-1], axis=-1), WHEN)
    np.testing.assert_allclose(one["mean"], other["mean"], atol=0.05)  # of a field that varies by 6 degrees
    np.testing.assert_allclose(one["std"], other["std"], rtol=0.2)
    wind = [posterior.coefficients.mean("draw")[:2] for posterior in (degrees, metres)]
    np.testing.assert_allclose(wind[0], wind[1] / 1000, atol=0.3)  # km/h


def test_metres_and_seconds():
    x, y, t = TABLE["lon"] * 71.5, (TABLE["lat"] - 50) * 111.2, np.repeat(HOURS, 12)
    km = pd.DataFrame({"x (km)": x, "y (km)": y, "t (h)": t, "temp": TABLE["temp"]})
    metres = pd.DataFrame({"t (s)": 3600.0 * t, "temp": TABLE["temp"], "y (km)": y, "x (m)": 1000 * x})
    one, same = (
        lp.reconstruct(lp.read(table), "advection_diffusion", **quick(unit)).to_xarray("3 h", 8)
        for table, unit in ((km, 1.0), (metres, 1000.0))
    )
    for name in ("mean", "std"):
        np.testing.assert_allclose(same[name].values, one[name].values, rtol=1e-3)


def grid() -> xr.Dataset:
    lat, lon = np.linspace(49.8, 50.2, 5), np.linspace(-0.5, 0.5, 6)
    values = np.full((3, 5, 6), np.nan)
    for k, hour in enumerate(HOURS):
        x, y = lon * 71.5 - 10 * (hour - 2), (lat[:, None] - 50) * 111.2
        values[k] = 281 + 6 * np.exp(-(x**2 + y**2) / 300)
    values += 0.1 * rng.standard_normal(values.shape)
    values[rng.random(values.shape) < 0.4] = np.nan
    time = np.datetime64("2026-05-01T00", "ns") + HOURS.astype("timedelta64[h]")
    return xr.Dataset({"t2m": (("time", "lat", "lon"), values, {"units": "K"})}, {"time": time, "lat": lat, "lon": lon})


def test_a_grid_in_any_file_order_direction_and_convention(tmp_path):
    data = grid()
    turned = data.transpose("lon", "time", "lat").isel(lat=slice(None, None, -1), lon=slice(None, None, -1))
    around = data.assign_coords(lon=data["lon"] % 360)
    packed = data["t2m"].encoding | {"dtype": "float64", "_FillValue": -999.0}
    turned.to_netcdf(tmp_path / "turned.nc", engine="h5netcdf", encoding={"t2m": packed})
    around.to_zarr(tmp_path / "around.zarr", zarr_format=2)
    maps = {
        name: lp.reconstruct(lp.read(source), "advection_diffusion", **quick()).to_xarray(WHEN, (6, 8))
        for name, source in (("data", data), ("turned", tmp_path / "turned.nc"), ("around", tmp_path / "around.zarr"))
    }
    assert maps["turned"]["mean"].dims == ("lon", "time", "lat")
    assert bool((np.diff(maps["turned"]["lat"]) < 0).all())
    for name in ("turned", "around"):
        same = maps[name].assign_coords(lon=(maps[name]["lon"] + 180) % 360 - 180).sortby(["lat", "lon"])
        for variable in ("mean", "std"):
            aligned = same[variable].transpose(*maps["data"][variable].dims)
            np.testing.assert_allclose(aligned.values, maps["data"][variable].values, rtol=1e-6)
        np.testing.assert_allclose(same["lat"], maps["data"]["lat"])
        np.testing.assert_allclose(same["lon"], maps["data"]["lon"], atol=1e-9)
