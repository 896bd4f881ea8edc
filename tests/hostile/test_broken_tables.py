"""Tables that are broken or can be read in two ways: each is refused with what was found, where, and how to mend it."""

import numpy as np
import pandas as pd
import pytest

import latentpde as lp

GOOD = "x,y,t,value\n0,0,0,1.5\n1,0,0,2.5\n0,1,1,3.5\n1,1,1,4.5\n"

#: Content of a file, and what the message must name: the place, what was found, the way out.
BROKEN = {
    "empty": (b"", ["is empty", "a line for each reading"]),
    "heading alone": (b"x,y,value\n", ["no readings"]),
    "latin-1": ("x,y,value\n0,0,1\n1,1,2 µ\n".encode("latin-1"), ["line 3, byte 7", "--encoding latin-1"]),
    "utf-16 without a mark": ("x,y,value\n0,0,1\n".encode("utf-16-le"), ["zero bytes", "--encoding utf-16"]),
    "binary": (bytes(range(256)) * 4, ["line 2, byte 118", "UTF-8"]),
    "two separators": (b"x,y;value\n0,0;1\n1,1;2\n", ["line 1", "--separator"]),
    "commas as decimals": (b"x,y,value\n0,5,1,5,2,5\n", ["line 2", "decimal commas", "semicolons"]),
    "points and commas": (b"x;y;value\n0,5;1;2.5\n", ["line 2", "a comma", "a point"]),
    "thousands or decimals": (b"x;y;value\n1,000;2;3\n2,000;3;4\n", ["line 2", "--decimal comma"]),
    "a column too few": (b"x,y,value\n0,0,1\n1,1\n", ["line 3", "expected 3 columns", "found 2"]),
    "a column too many": (b"x,y,station,value\n0,0,Rhine, south,1\n", ["line 2", "found 5", "quotation marks"]),
    "open quotation mark": (b'x,y,value\n0,0,"1\n1,1,2\n', ["line", "quotation mark"]),
    "no heading": (b"0,0,1\n1,1,2\n", ["the names of columns", "--columns x=1,y=2,value=3"]),
    "two columns of a name": (b"x,y,x,value\n0,0,0,1\n", ["line 1", "both called 'x'"]),
    "a column without a name": (b"x,,y,value\n0,1,0,1\n", ["line 1", "column 2 has no name"]),
    "nothing that is x": (b"a,y,value\n0,0,1\n", ["no column is x", "--columns x=NAME"]),
    "two that are x": (b"x,lon,y,value\n0,0,0,1\n", ["'x', 'lon'", "--columns x="]),
    "several readings": (b"x,y,pm10,no2\n0,0,1,2\n", ["'pm10', 'no2'", "--columns value=pm10"]),
    "empty column": (b"x,y,value\n0,,1\n1,,2\n", ["column 'y'", "is empty"]),
    "no value": (b"x,y,value\n0,0,\n1,1,NA\n", ["'value'", "empty"]),
    "text in numbers": (b"x,y,value\n0,0,1\n1,1,high\n", ["line 3, column 'value'", "'high'", "leave the entry empty"]),
    "a unit in numbers": (b"x,y,value\n0,0,12.3 K\n", ["line 2, column 'value'", "'value (K)'"]),
    "limit of detection": (b"x,y,value\n0,0,<0.5\n", ["line 2", "limit of detection"]),
    "infinity": (b"x,y,value\n0,0,inf\n", ["line 2", "infinity is no reading"]),
    "a place is missing": (b"x,y,value\n0,0,1\n,1,2\n", ["line 3, column 'x'", "missing", "delete the row"]),
    "swapped degrees": (b"lat,lon,v\n120,45,1\n121,46,2\n", ["line 2, column 'lat'", "swapped"]),
    "metres as degrees": (b"lat,lon,v\n5500000,480000,1\n", ["line 2", "easting (m)"]),
    "one in degrees": (b"lat,x,v\n50,8,1\n", ["in degrees", "--columns"]),
    "lengths in two kinds": (b"x (km),y (K),v\n1,2,3\n", ["one unit of length"]),
    "kelvin and celsius": (
        b"x,y,temp\n0,0,281.2\n0,1,280.1\n1,1,9.0\n1,0,282.3\n",
        ["line 4, column 'temp'", "kelvin and degrees Celsius"],
    ),
    "mixed units": (b"x,y,value,unit\n0,0,1,ug\n1,1,2,mg\n", ["line 3, column 'unit'", "'mg'", "one unit"]),
    "fill value": (b"x,y,value\n0,0,1\n1,1,2\n1,0,1.5\n0,1,-9999\n", ["-9999", "is that a gap", "--keep-outliers"]),
    "negative sigma": (b"x,y,value,sigma\n0,0,1,0.1\n1,1,2,-0.1\n", ["line 3, column 'sigma'", "positive"]),
    "a station that moved": (
        b"station,x,y,value\na,0,0,1\nb,1,1,2\nc,2,0,1\na,5,5,3\n",
        ["line 5, column 'station'", "'a'", "line 2"],
    ),
    "day or month": (b"x,y,date,v\n0,0,01/02/2026,1\n", ["line 2, column 'date'", "--date-order day-first"]),
    "dates in two forms": (
        b"x,y,date,v\n0,0,2026-05-01,1\n1,1,02.05.2026,2\n",
        ["line 3, column 'date'", "line 2", "alike"],
    ),
    "day first and month first": (b"x,y,date,v\n0,0,13/02/2026,1\n1,1,02/13/2026,2\n", ["line 3", "line 2"]),
    "zones now and then": (
        b"x,y,date,v\n0,0,2026-05-01T06:00Z,1\n1,1,2026-05-01T07:00,2\n",
        ["line 3", "no time zone", "--time-zone"],
    ),
    "short years": (b"x,y,date,v\n0,0,01.05.26,1\n", ["line 2", "four digits"]),
    "no such day": (b"x,y,date,v\n0,0,2026-02-30,1\n", ["line 2, column 'date'", "no such date"]),
    "a date far away": (b"x,y,date,v\n0,0,2459-05-01,1\n1,1,2026-05-01,2\n", ["line 2, column 'date'", "1678 to 2261"]),
    "months in words": (b"x,y,date,v\n0,0,1 May 2026,1\n", ["line 2", "2026-05-01T06:00"]),
    "seconds since 1970": (b"x,y,t,v\n0,0,1777600000,1\n1,1,1777603600,2\n", ["--time-unit"]),
    "packed": (b"\x1f\x8b\x08\x00rest", ["gzip", "unpack"]),
    "a workbook": (b"PK\x03\x04rest", ["Excel", "CSV"]),
    "grib": (b"GRIB\x00\x00\x00\x02", ["GRIB", "NetCDF"]),
    "truncated parquet": (b"PAR1\x00\x01", ["truncated or damaged"]),
}


@pytest.mark.parametrize("name", BROKEN)
def test_says_what_is_wrong_where_and_how_to_mend_it(name, tmp_path):
    content, fragments = BROKEN[name]
    path = tmp_path / "readings.csv"
    path.write_bytes(content)
    with pytest.raises(lp.LatentPDEError) as caught:
        lp.read(path)
    for fragment in fragments:
        assert fragment in str(caught.value)
    assert "readings.csv" in str(caught.value) or "column" in str(caught.value)


@pytest.mark.parametrize(
    ("content", "options"),
    [
        ("x;y;t;value\n0,0;0;0;1,5\n1;0;0;2,5\n0;1;1;3,5\n1;1;1;4,5\n", {}),
        ("x\ty\tt\tvalue\n0\t0\t0\t1.5\n1\t0\t0\t2.5\n0\t1\t1\t3.5\n1\t1\t1\t4.5\n", {}),
        ("x y t value\n0 0 0 1.5\n1 0 0 2.5\n0 1 1 3.5\n1 1 1 4.5\n", {}),
        ("# a logger\n\n" + GOOD.replace("\n", "\r\n"), {}),
        (GOOD.replace("x,y,t,value", "1,2,3,4").split("\n", 1)[1], {"columns": "x=1,y=2,t=3,value=4"}),
        (GOOD.replace("x,y,t,value", "a,b,c,d"), {"columns": {"x": "a", "y": "b", "t": "c", "value": "d"}}),
        (GOOD.replace("x,y,t,value", "value,x,t,y").replace("value,x,t,y", "x,y,t,value"), {}),
        (GOOD.replace("value\n", "value\n,,,K\n").replace(",,,K", "km,km,h,K"), {}),
        ("\ufeff" + GOOD, {}),
    ],
)
def test_usual_dialects_are_the_same(content, options, tmp_path):
    (tmp_path / "good.csv").write_text(GOOD)
    (tmp_path / "other.csv").write_bytes(content.encode())
    one, other = lp.read(tmp_path / "good.csv"), lp.read(tmp_path / "other.csv", **options)
    assert one.values.equal(other.values)
    assert one.positions.equal(other.positions)
    assert one.reading_times.equal(other.reading_times)


def test_times_of_any_zone_and_form_are_the_same_moments():
    places = {"x": [0.0, 1.0, 2.0], "y": [0.0, 1.0, 0.5], "value": [1.0, 2.0, 3.0]}
    forms = [
        ["2026-05-01T00:00Z", "2026-05-01T06:00Z", "2026-05-01T12:00Z"],
        ["2026-05-01T02:00+02:00", "2026-05-01T08:00+02:00", "2026-05-01T14:00+02:00"],
        ["01.05.2026 00:00", "01.05.2026 06:00", "01.05.2026 12:00"],
        ["20260501T0000", "20260501T0600", "20260501T1200"],
        pd.to_datetime(["2026-05-01T00:00", "2026-05-01T06:00", "2026-05-01T12:00"]),
        pd.to_datetime(["2026-05-01T02:00", "2026-05-01T08:00", "2026-05-01T14:00"]).tz_localize("Europe/Berlin"),
    ]
    for form in forms:
        found = lp.read(pd.DataFrame({**places, "date": form}))
        assert found.reading_times[0, 0].tolist() == [0.0, 6.0, 12.0]
        assert found.frame.clock.epoch == np.datetime64("2026-05-01T00:00")
    local = lp.read(
        pd.DataFrame({**places, "date": [f[:16].replace("T0", "T0") for f in forms[1]]}), time_zone="Europe/Berlin"
    )
    assert local.frame.clock.epoch == np.datetime64("2026-05-01T00:00")
    apart = lp.read(pd.DataFrame({**places, "date": ["2026-05-01"] * 3, "time": ["00:00", "06:00", "12:00"]}))
    assert apart.reading_times[0, 0].tolist() == [0.0, 6.0, 12.0]
