"""Real measurements are read from what a package installed, and tasks hide what they say."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from latentpde.bench.points import measured
from latentpde.bench.points.measured import air_task, air_temperature, find_pm10, pm10, pm10_tasks, pm10_window
from latentpde.errors import DataError, UsageError


@pytest.fixture
def air_file(tmp_path):
    """Eight snapshots of 10 x 12 cells, latitudes downwards as in the original; a cell's value says where it is."""
    lat, lon = np.arange(60.0, 35.0, -2.5), np.arange(200.0, 230.0, 2.5)
    time = pd.date_range("2014-02-24", periods=8, freq="6h")
    values = np.arange(8)[:, None, None] * 1000 + lat[:, None] + lon / 1000
    path = tmp_path / "air.nc"
    xr.Dataset({"air": (("time", "lat", "lon"), values)}, {"time": time, "lat": lat, "lon": lon}).to_netcdf(
        path, engine="h5netcdf"
    )
    return path


def test_air_tasks_hide_whole_cells(air_file):
    task = air_task(0, air_file)
    read, hidden = set(task.readings.stations), set(task.asked.stations)
    assert len(read) == 60
    assert len(hidden) == 60
    assert not read & hidden
    assert set(task.asked.times) == {30.0}
    assert set(task.readings.times) == {0.0, 6.0, 12.0, 18.0, 24.0, 30.0}
    assert 0.8 * 360 < len(task.readings) < 360
    again = air_task(0, air_file)
    np.testing.assert_array_equal(again.readings.values, task.readings.values)


def test_places_are_in_kilometres(air_file):
    task = air_task(1, air_file)
    latitude = task.asked.values % 1000 // 1 + np.where(task.asked.values % 1 > 0.5, 0.5, 0.0)
    middle = 48.75
    np.testing.assert_allclose(task.asked.points[:, 0], (latitude - middle) * 111.2)
    assert task.extent[0] == pytest.approx(10 * 2.5 * 111.2)
    assert task.extent[1] == pytest.approx(12 * 2.5 * 111.2 * np.cos(np.radians(middle)))
    everywhere = np.concatenate([task.asked.points, task.readings.points])
    assert (everywhere > task.origin).all()
    assert (everywhere < np.add(task.origin, task.extent)).all()


def test_the_installed_air_temperatures():
    pytest.importorskip("hvsampledata")
    air = air_temperature()
    assert dict(air.sizes) == {"time": 20, "lat": 25, "lon": 53}
    assert air["lat"].values[0] == 15
    assert 220 < float(air.min()) < float(air.max()) < 320


def test_air_temperatures_say_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "hvsampledata", None)
    with pytest.raises(UsageError, match=r"pip install \"latentpde\[peers\]\""):
        air_temperature()


NUM_STATIONS = 20


@pytest.fixture
def pm10_file(tmp_path):
    """A year at 20 stations in R's format, with one reading missing: an object of S4 as gstat has it."""
    return write_pm10(tmp_path / "gstat" / "data" / "DE_RB_2005.rda")


def write_pm10(path):
    pytest.importorskip("rdata")
    from rdata.conversion import to_r
    from rdata.parser import RObjectType
    from rdata.unparser import unparse_file

    fresh = to_r.ConverterFromPythonToR  # one for each part: parts do not refer to each other's symbols

    def s4(**slots):
        pairs = [(fresh().convert_to_r_sym(name), value) for name, value in slots.items()]
        return to_r.build_r_object(RObjectType.NIL, is_object=True, attributes=to_r.build_r_list(pairs), gp=0xA5F0)

    stations, days = np.meshgrid(np.arange(1, NUM_STATIONS + 1), np.arange(1, 366))
    index = np.column_stack([stations.ravel(), days.ravel()]).astype(np.int32)
    values = index[:, 0] + index[:, 1] / 1000
    values[7] = np.nan
    coords = np.column_stack([4e5 + 1e4 * np.arange(NUM_STATIONS), 5.5e6 + 2e4 * np.arange(NUM_STATIONS)])
    frame = pd.DataFrame({"PM10": values}, index=pd.RangeIndex(1, len(values) + 1))
    names = fresh().convert_to_r_object(np.array(["STSDF"]))
    places = s4(coords=fresh().convert_to_r_object(coords), **{"class": names})
    frame, index = (fresh().convert_to_r_object(part) for part in (frame, index))
    found = s4(data=frame, index=index, sp=places, **{"class": names})
    data = fresh().convert_to_r_data({"DE_RB_2005": 0}, file_type="rda")
    data.object.value = (found, data.object.value[1])
    path.parent.mkdir(parents=True)
    unparse_file(path, data, file_type="rda", compression=None)
    # rdata writes no objects of S4, but they differ from an object without a value by a number alone
    path.write_bytes(path.read_bytes().replace(b"\x0a\x5f\x03\x00", b"\x00\x01\x03\x19"))
    return path


def test_pm10_is_read_from_r_s_format(pm10_file):
    table = pm10(pm10_file)
    assert len(table) == NUM_STATIONS * 365 - 1
    np.testing.assert_allclose(table.values, table.stations + 1 + (table.times + 1) / 1000)
    np.testing.assert_allclose(table.points[:, 0], 5500 + 20 * table.stations)
    np.testing.assert_allclose(table.points[:, 1], 400 + 10 * table.stations)


def test_windows_make_the_year(pm10_file):
    days = [np.unique(pm10_window(i, pm10_file).times) for i in range(73)]
    assert all(len(some) == 5 for some in days)
    assert sorted(np.concatenate(days)) == list(range(365))
    assert np.ptp(np.concatenate(days[:4])) > 180, "the first few are spread over the year"
    with pytest.raises(UsageError, match="73 windows"):
        pm10_window(73, pm10_file)


def test_each_station_is_left_out_once(pm10_file):
    tasks = pm10_tasks(2, pm10_file)
    left_out = np.concatenate([np.unique(task.asked.stations) for task in tasks])
    assert sorted(left_out) == list(range(NUM_STATIONS))
    for task in tasks:
        assert not set(task.asked.stations) & set(task.readings.stations)
        assert len(task.asked) + len(task.readings) == NUM_STATIONS * 5
        assert (task.readings.points > task.origin).all()
        assert (task.readings.points < np.add(task.origin, task.extent)).all()


def test_pm10_is_found_where_r_keeps_its_packages(pm10_file, monkeypatch, tmp_path):
    monkeypatch.setattr(measured, "_R_LIBRARIES", (str(tmp_path / "nowhere"),))
    monkeypatch.delenv("R_LIBS", raising=False)
    with pytest.raises(UsageError, match="apt-get install r-cran-gstat"):
        find_pm10()
    monkeypatch.setenv("R_LIBS", f"{tmp_path / 'empty'}:{tmp_path}")
    assert find_pm10() == pm10_file


def test_another_file_is_refused(tmp_path, monkeypatch):
    rdata = pytest.importorskip("rdata")
    path = tmp_path / "other.rda"
    rdata.write_rda(path, {"meuse": np.zeros(3)})
    with pytest.raises(DataError, match="does not hold DE_RB_2005"):
        pm10(path)
    monkeypatch.setattr(rdata, "read_rda", lambda path: {"DE_RB_2005": SimpleNamespace(index=[[1, 1]])})
    with pytest.raises(DataError, match="does not hold DE_RB_2005"):
        pm10(tmp_path / "another.rda")
