"""The same data, however they are kept, are the same readings; what is not clear in a grid is asked for."""

import json
from contextlib import suppress

import numpy as np
import pandas as pd
import pytest
import torch
import xarray as xr
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import latentpde as lp
from latentpde.errors import DataError, UsageError

rng = np.random.default_rng(3)
LAT, LON = np.array([50.0, 51.0, 52.0]), np.array([-2.0, -1.0, 0.0, 1.0])
TIME = np.array(["2026-05-01T00", "2026-05-01T06"], dtype="datetime64[ns]")
VALUES = rng.standard_normal((2, 3, 4)) + 280.0
VALUES[0, 1, 2] = VALUES[1, 0, 0] = np.nan


def grid(**attributes):
    coordinates = {"time": TIME, "lat": LAT, "lon": LON}
    return xr.Dataset({"t2m": (("time", "lat", "lon"), VALUES, {"units": "K", **attributes})}, coordinates)


def same(one, other):
    assert torch.equal(one.mask, other.mask)
    torch.testing.assert_close(one.values, other.values)
    torch.testing.assert_close(one.times, other.times)
    np.testing.assert_allclose(one.grid.extent, other.grid.extent)
    np.testing.assert_allclose(one.grid.origin, other.grid.origin, atol=1e-9)


def test_a_grid_in_any_file_order_direction_and_convention(tmp_path):
    data = grid()
    expected = lp.read(data)
    turned = data.transpose("lon", "time", "lat").isel(lat=slice(None, None, -1))
    around = data.assign_coords(lon=data.lon % 360)
    renamed = data.rename(lat="northwards", lon="eastwards")
    renamed["northwards"].attrs, renamed["eastwards"].attrs = {"units": "degrees_north"}, {"units": "degrees_east"}
    filled = data.fillna(-999.0)
    filled["t2m"].encoding["_FillValue"] = -999.0
    filled.to_netcdf(tmp_path / "filled.nc", engine="h5netcdf")
    turned.to_netcdf(tmp_path / "turned.nc", engine="h5netcdf")
    around.to_zarr(tmp_path / "around.zarr", zarr_format=2)
    for other in (
        turned,
        around,
        renamed,
        data["t2m"],
        *(tmp_path / n for n in ("filled.nc", "turned.nc", "around.zarr")),
    ):
        same(expected, lp.read(other))
    assert lp.read(turned).frame.order == ("x", "time", "y")
    assert lp.read(turned).frame.y.descending


def test_a_band_around_the_globe_is_periodic():
    data = xr.Dataset(
        {"v": (("lat", "lon"), rng.standard_normal((4, 36)))}, {"lat": [0.0, 10, 20, 30], "lon": np.arange(36) * 10.0}
    )
    found = lp.read(data)
    assert found.domain == lp.Domain(y="open", x="periodic")
    assert found.frame.projection.is_band
    assert not lp.read(data.isel(lon=slice(0, 30))).frame.projection.is_band


def test_stations_in_any_file_are_the_same_readings(tmp_path):
    lat, lon, value = rng.random(8) + 50, rng.random(8) + 8, rng.standard_normal(8)
    table = pd.DataFrame({"lon": lon, "lat": lat, "date": np.tile(TIME, 4), "pm10": value})
    table.to_csv(tmp_path / "a.csv", index=False)
    table.to_parquet(tmp_path / "a.parquet")
    points = xr.Dataset({"pm10": ("obs", value)}, {k: ("obs", table[k].values) for k in ("lon", "lat", "date")})
    points.to_netcdf(tmp_path / "a.nc", engine="h5netcdf")
    points.to_zarr(tmp_path / "a.zarr", zarr_format=2)
    expected = lp.read(table)
    for name in ("a.csv", "a.parquet", "a.nc", "a.zarr"):
        found = lp.read(tmp_path / name)
        torch.testing.assert_close(found.positions, expected.positions)
        torch.testing.assert_close(found.values, expected.values)
        torch.testing.assert_close(found.reading_times, expected.reading_times)
    frame = expected.frame
    y, x = expected.positions[0].T.numpy()
    np.testing.assert_allclose(frame.to_user(y, x), (lat, lon))


def test_other_units_give_the_same_result():
    x, y, t = rng.random(12) * 40, rng.random(12) * 30, np.tile([0.0, 3.0, 6.0], 4)
    value = np.sin(x / 9) + y / 20
    table = pd.DataFrame({"x (km)": x, "y (km)": y, "t (h)": t, "value": value})
    other = pd.DataFrame({"y (m)": 1000 * y, "t (min)": 60 * t, "value": value, "x (m)": 1000 * x})
    quick = {"sweep": 32, "target": 8, "num_spread_draws": 2, "num_draws": 2}
    one = lp.reconstruct(table, "advection_diffusion", **quick).mean(8)
    two = lp.reconstruct(other, "advection_diffusion", **quick).mean(8)
    np.testing.assert_allclose(one.values, two.values, rtol=1e-4, atol=1e-4)
    mixed = lp.read(table.rename(columns={"y (km)": "y (m)"}).assign(**{"y (m)": 1000 * y}))
    torch.testing.assert_close(mixed.positions, lp.read(table).positions)


def test_land_is_not_missing(tmp_path):
    data = grid()
    data["land"] = (("lat", "lon"), np.array([[1, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]]))
    with pytest.warns(lp.LatentPDEWarning, match="1 reading"):
        found = lp.read(data, excluded="land")
    assert not found.mask[0, :, 0, 0].any()
    assert found.frame.excluded_cells(found.grid).sum() == 1
    sea = data.assign(sea=1 - data.land).drop_vars("land")
    with pytest.warns(lp.LatentPDEWarning):
        same(found, lp.read(sea, excluded="~sea"))


def test_results_come_in_the_users_coordinates(tmp_path):
    data = grid(standard_name="air_temperature").isel(lat=slice(None, None, -1)).transpose("lon", "lat", "time")
    data["land"] = (("lat", "lon"), np.eye(3, 4))
    with pytest.warns(lp.LatentPDEWarning):
        observation = lp.read(data, excluded="land")
    quick = {"sweep": 32, "target": 8, "num_spread_draws": 3, "num_draws": 2}
    posterior = lp.reconstruct(observation, "advection_diffusion", **quick)
    for name in ("out.nc", "out.zarr"):
        posterior.to_netcdf(tmp_path / name, (6, 8))
        out = xr.open_zarr(tmp_path / name) if name.endswith("zarr") else xr.open_dataset(tmp_path / name)
        assert out["mean"].dims == ("lon", "lat")
        assert bool((np.diff(out["lat"]) < 0).all())
        assert out["time"].values == TIME[-1]
        assert out["mean"].attrs["units"] == "K"
        assert out["std"].attrs["units_metadata"] == "temperature: difference"
        assert out["mean"].attrs["standard_name"] == "air_temperature"
        assert out[out["mean"].attrs["grid_mapping"]].attrs["grid_mapping_name"] == "latitude_longitude"
        assert out["lat"].attrs["standard_name"] == "latitude"
        assert out["coefficient_unit"].values.tolist() == ["km/h", "km/h", "km²/h"]
        assert bool(out["mean"].isnull().equals(out["excluded"] == 1))
        out.close()
        same(observation, lp.read(tmp_path / name))


@pytest.mark.parametrize(
    ("change", "fragments"),
    [
        (lambda d: d.assign(d2m=d.t2m), ["t2m", "d2m", "--variable"]),
        (lambda d: d.rename(lat="a", lon="b"), ["which axis", "--columns"]),
        (lambda d: d.drop_vars("lat"), ["'lat' has no coordinates"]),
        (lambda d: d.expand_dims(level=[500, 850]), ["level", "--select level=500"]),
        (lambda d: d.isel(time=[0, 0]), ["twice"]),
        (lambda d: d.assign_coords(lat=[80.0, 100.0, 120.0]), ["latitudes", "swapped"]),
        (lambda d: d * np.nan, ["missing"]),
        (lambda d: d.astype(str), ["no variable holds readings"]),
    ],
)
def test_what_is_not_clear_in_a_grid_is_asked_for(change, fragments):
    with pytest.raises(lp.LatentPDEError) as caught:
        lp.read(change(grid()))
    for fragment in fragments:
        assert fragment in str(caught.value)


def test_a_billion_cells_are_refused_before_memory_is_asked_for(tmp_path):
    import h5py

    with h5py.File(tmp_path / "huge.nc", "w") as file:
        for name, size in (("lat", 40_000), ("lon", 50_000)):
            file[name] = np.arange(size, dtype=float) * 1e-3
            file[name].make_scale(name)
        huge = file.create_dataset("v", (40_000, 50_000), "f8", chunks=(1000, 1000))
        huge.dims[0].attach_scale(file["lat"])
        huge.dims[1].attach_scale(file["lon"])
    with pytest.raises(lp.DataError, match="2,000,000,000 cells"):
        lp.read(tmp_path / "huge.nc")
    store = tmp_path / "huge.zarr"
    grid().to_zarr(store, zarr_format=2)
    for path in (store / "t2m" / ".zarray", store / ".zmetadata"):
        text = json.loads(path.read_text())
        (text if path.name == ".zarray" else text["metadata"]["t2m/.zarray"])["shape"] = [2, 30_000, 40_000]
        path.write_text(json.dumps(text))
    with pytest.raises(lp.DataError):
        lp.read(store)


def test_a_store_that_would_run_code_or_lead_away_is_refused(tmp_path):
    store = tmp_path / "a.zarr"
    grid().to_zarr(store, zarr_format=2)
    described = json.loads((store / "t2m" / ".zarray").read_text())
    (store / "t2m" / ".zarray").write_text(json.dumps({**described, "filters": [{"id": "pickle"}]}))
    with pytest.raises(lp.DataError, match="codec 'pickle'"):
        lp.read(store)
    (store / "t2m" / ".zarray").write_text(json.dumps(described))
    (store / "away").symlink_to("/etc")
    with pytest.raises(lp.DataError, match="not followed"):
        lp.read(store)


entries = st.sampled_from(
    [
        "",
        "0",
        "1.5",
        "-3,25",
        "1e400",
        "NA",
        "2026-05-01",
        "01/02/2026",
        '"',
        ";",
        "x",
        "\u2212",
        "9" * 400,
        "\x00",
        "é",
    ]
)
lines = st.lists(st.lists(entries, max_size=5).map(",".join), max_size=8)


@settings(max_examples=60, deadline=2000, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(head=st.sampled_from(["x,y,value", "lon,lat,date,v", "", "x;y;t;v"]), rows=lines, tail=st.binary(max_size=20))
def test_no_text_brings_the_reader_down(tmp_path, head, rows, tail):
    path = tmp_path / "any.csv"
    path.write_bytes("\n".join([head, *rows]).encode() + tail)
    before = sorted(tmp_path.iterdir())
    with suppress(lp.LatentPDEError):  # and nothing else
        lp.read(path)
    assert sorted(tmp_path.iterdir()) == before


@settings(max_examples=40, deadline=4000, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_no_damage_of_a_store_or_parquet_brings_the_reader_down(tmp_path_factory, data):
    import shutil

    folder = tmp_path_factory.mktemp("damaged")
    grid().to_zarr(folder / "a.zarr", zarr_format=2)
    pd.DataFrame({"x": [0.0, 1, 2], "y": [0.0, 1, 0], "value": [1.0, 2, 3]}).to_parquet(folder / "a.parquet")
    files = sorted(p for p in folder.rglob("*") if p.is_file())
    target = data.draw(st.sampled_from(files))
    content = bytearray(target.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    target.write_bytes(content[: data.draw(st.integers(0, len(content)))] if data.draw(st.booleans()) else content)
    with suppress(lp.LatentPDEError):
        lp.read(folder / target.relative_to(folder).parts[0])
    shutil.rmtree(folder)


def test_a_table_says_what_each_reading_is_of_and_where_the_walls_are(tmp_path):
    path = tmp_path / "plate.csv"
    rows = [
        "north,east,heat,sigma,reads",
        "1,2,3.5,0.1,field",
        "2,4,0.4,0.1,source",
        "3,1,2.5,0.1,",
        "4,5,0.2,0.1,Source",
    ]
    path.write_text("\n".join(rows))
    found = lp.read(path, rectangle="0,5,0,10", domain=lp.Domain.parse("y=dirichlet(1,2),x=neumann"))
    assert found.of_source[0, 0].tolist() == [False, True, False, True]
    assert found.grid.extent == (5.0, 10.0)
    assert found.grid.origin == (0.0, 0.0)
    assert found.to_xarray()["reads"].values.tolist() == ["field", "source", "field", "source"]
    with pytest.raises(UsageError, match="four numbers"):
        lp.read(path, rectangle="0,5,0")
    with pytest.raises(UsageError, match="low below its high"):
        lp.read(path, rectangle=(5.0, 0.0, 0.0, 10.0))
    with pytest.raises(DataError, match="outside the rectangle"):
        lp.read(path, rectangle=(0.0, 1.0, 0.0, 10.0))
    with pytest.raises(DataError, match="where they are"):
        lp.reconstruct(path, "poisson", domain="dirichlet", fixed={"kappa": 1.0})
    path.write_text("\n".join([*rows, "1,1,1,0.1,flux"]))
    with pytest.raises(DataError, match="'field' or of the 'source', found 'flux'"):
        lp.read(path)


def test_readings_of_the_source_need_no_time_and_have_a_scale_of_their_own(tmp_path):
    path = tmp_path / "plate.csv"
    rows = ["y,x,time,value,unit,reads"]
    rows += [f"{i},{7 - i},2026-05-01T0{i}:00,{20 + i}.5,K,field" for i in range(5)]
    path.write_text("\n".join([*rows, "2,4,,9999,W,source", "3,1,,9990,W,source"]))
    found = lp.read(path)
    assert found.of_source[0, 0].tolist() == [False] * 5 + [True] * 2
    assert found.frame.value_unit == "K"
    assert found.values[0, 0, -2:].tolist() == [9999.0, 9990.0]
    path.write_text("\n".join([*rows, "2,4,,21,K,field", "3,1,,9990,W,source"]))
    with pytest.raises(DataError, match="line 7, column 'time': the entry is missing"):
        lp.read(path)
    path.write_text("\n".join([*rows, "2,4,2026-05-01,-9999,K,field"]))
    with pytest.raises(DataError, match="is that a gap"):
        lp.read(path)


def test_stations_beside_an_initial_state_in_a_file(tmp_path, run):
    """The layout of sensors and a start of `cases.nc`, from a table and a file in degrees."""
    lat, lon = np.arange(49.0, 51.0, 0.25), np.arange(7.0, 10.0, 0.25)
    start = np.sin(3 * lon) + np.cos(2 * lat[:, None])
    state = xr.Dataset({"no2": (("lat", "lon"), start)}, {"lat": lat, "lon": lon})
    state.isel(lat=slice(None, None, -1)).assign_coords(lon=lon % 360).to_netcdf(tmp_path / "u0.nc", engine="h5netcdf")
    table = pd.DataFrame(
        {"station": list("abcd") * 2, "lat": [49.5, 50.0, 50.25, 49.75] * 2, "lon": [8.0, 8.5, 9, 9.5] * 2}
    )
    table = table.assign(date=np.repeat(TIME, 4), no2=rng.standard_normal(8)).drop(index=5)
    found = lp.read(table, initial_state=tmp_path / "u0.nc")
    np.testing.assert_allclose(found.initial[0], start)
    assert found.times.tolist() == [0.0, 6.0]
    assert found.mask[0].tolist() == [[True] * 4, [True, True, False, True]]  # from south to north
    at = found.frame.to_user(*found.positions[0].T.numpy())
    listing = dict(zip(found.frame.places, zip(*at, strict=True), strict=True))
    np.testing.assert_allclose(listing["c"], (50.25, 9.0))
    cells = found.frame.to_user(*(c.numpy() for c in found.grid.coordinates()))
    np.testing.assert_allclose(cells[0], lat)
    table.to_csv(tmp_path / "a.csv", index=False)
    quick = ["--noise-std", "0.1", "--num-modes", "0", "--method", "map", "-O", "num_steps=2", "--resolution", "16"]
    where = [tmp_path / "a.csv", "--initial", tmp_path / "u0.nc", "-o", tmp_path / "out.nc"]
    code, _, err = run("reconstruct", *where, "--pde", "advection-diffusion", "--domain", "periodic", *quick)
    assert code == 0, err
    with xr.open_dataset(tmp_path / "out.nc") as out:
        assert out["mean"].dims == ("lat", "lon")
    for change, words in (
        (lambda d: d.rename(lat="y", lon="x"), "both be in degrees"),
        (lambda d: d.expand_dims(level=[1, 2]), "alone"),
        (lambda d: d.assign_coords(lon=lon**2), "evenly spaced"),
        (lambda d: d.assign_coords(lon=lon + 50), "outside"),
    ):
        with pytest.raises(lp.DataError, match=words):
            lp.read(table, initial_state=change(state)["no2"])
    with pytest.raises(lp.UsageError, match="for a table"):
        lp.read(grid(), initial_state=tmp_path / "u0.nc")


def test_dates_that_nanoseconds_cannot_tell_are_refused():
    """Found by atheris: numpy would take them for other dates in silence."""
    far = np.array(["2506-02-06", "2506-02-07"], dtype="datetime64[s]")
    for lat in (LAT, LAT**2):  # evenly spaced or not
        with pytest.raises(lp.DataError, match="1678 to 2261"):
            lp.read(grid().assign_coords(time=far, lat=lat / 40))


def test_a_check_tells_readings_of_the_source_apart():
    from latentpde.inspection import check

    table = pd.DataFrame({"x": [0.0, 1.0, 2.0, 3.0], "y": [0.0, 2.0, 1.0, 3.0], "heat": [20.0, 21.0, 22.0, 0.1]})
    found = check(table.assign(reads=["field", "field", "field", "source"]), family="poisson")
    assert found.contents["readings"].startswith("3 of heat")
    assert found.contents["values"].startswith("20 to 22")
    assert found.contents["of the source"] == "1 more, 0.1 to 0.1"
