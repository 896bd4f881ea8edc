"""Users' files: looked at, reconstructed, shown, downloaded, cancelled and deleted; and files that mean harm."""

import time
from pathlib import Path

import httpx
import numpy as np
import pytest
from web_server import serving

RNG = np.random.default_rng(0)
PLACES = RNG.uniform(0, 1, (8, 2)) * (25, 40)
TABLE = "x_km,y_km,hour,pm10\n" + "".join(
    f"{x:.2f},{y:.2f},{t},{20 + 8 * np.sin((x - 4 * t) / 7) * np.cos(y / 6):.2f}\n" for y, x in PLACES for t in (0, 1)
)


COLUMNS = "x=x_km,y=y_km,t=hour,value=pm10"


def send(client, content, name="stations.csv", **more):
    return client.post("/api/files", params={"name": name} | more, content=content)


@pytest.mark.slow
def test_a_table_becomes_a_reconstruction(client):
    status = send(client, TABLE.encode(), columns=COLUMNS).json()
    assert status["checked"]["works"], status
    path = f"/api/files/{status['id']}"
    assert client.get(f"{path}/netcdf").status_code == 409
    answer = client.post(f"{path}/reconstruction", json={"family": "screened_poisson", "resolution": 32})
    assert answer.status_code == 202
    assert client.post(f"{path}/reconstruction", json={"family": "screened_poisson"}).status_code == 409
    while (status := client.get(path).json())["state"] in ("queued", "running"):
        time.sleep(0.3)
    assert status["state"] == "done", status["problem"]
    picture = client.get(f"{path}/pictures/0").json()
    assert {"mean", "std", "source"} <= set(picture["layers"])
    assert len(status["result"]["places"]) == 8
    netcdf, report = client.get(f"{path}/netcdf"), client.get(f"{path}/report")
    assert netcdf.content[:4] == b"\x89HDF"
    for download in (netcdf, report):
        assert download.headers["content-disposition"].startswith("attachment")
    assert client.delete(path).status_code == 204
    assert client.get(path).status_code == 404


def test_work_can_be_cancelled_and_leaves_nothing(tmp_path):
    with (
        serving("--workers", "1", TMPDIR=str(tmp_path)) as address,
        httpx.Client(base_url=address, timeout=60) as client,
    ):
        status = send(client, TABLE.encode(), columns=COLUMNS).json()
        path = f"/api/files/{status['id']}"
        client.post(f"{path}/reconstruction", json={"family": "advection_diffusion"})
        (root,) = tmp_path.glob("latentpde-*")
        assert (root / status["id"] / "readings.csv").exists()
        assert root.stat().st_mode & 0o077 == 0
        assert client.delete(path).status_code == 204
        assert list(root.iterdir()) == []
        send(client, TABLE.encode(), columns=COLUMNS)
        assert len(list(root.iterdir())) == 1
    assert list(tmp_path.glob("latentpde-*")) == []


HOSTILE = {
    "empty": (b"", "a.csv"),
    "a program": (b"#!/bin/sh\nrm -rf /\n", "run.sh"),
    "a path as name": (b"x", "../../etc/passwd"),
    "no ending": (b"x", "stations"),
    "zeros": (bytes(100_000), "a.csv"),
    "no text": (bytes(range(256)) * 50, "a.csv"),
    "only a header": (b"x,y,value\n", "a.csv"),
    "words for numbers": (b"x,y,value\na,b,c\n" * 20, "a.csv"),
    "formulas": (b"x,y,value\n=cmd|'/c calc'!A0,1,2\n", "a.csv"),
    "a script": (b"<script>alert(1)</script>", "<script>alert(1)</script>.csv"),
    "one endless line": (b"1," * 200_000, "a.csv"),
    "an open quote": (b'x,y,value\n"1,2,3\n' + b"4,5,6\n" * 1000, "a.csv"),
    "infinities": (b"x,y,value\n" + b"1,2,inf\n3,4,nan\n" * 5, "a.csv"),
    "a huge number": (b"x,y,value\n1,2," + b"9" * 5000 + b"\n2,3,4\n", "a.csv"),
    "a cut NetCDF": (b"\x89HDF\r\n\x1a\n" + bytes(50), "a.nc"),
    "a NetCDF of noise": (b"\x89HDF\r\n\x1a\n" + np.random.default_rng(1).bytes(20_000), "a.nc"),
    "an old NetCDF, cut": (b"CDF\x01" + bytes(20), "a.nc"),
    "an old NetCDF of huge sizes": (b"CDF\x01\0\0\0\0\0\0\0\x0a\x7f\xff\xff\xff" + b"\xff" * 200, "a.nc"),
    "a table called NetCDF": (b"x,y,value\n1,2,3\n", "a.nc"),
    "a cut Parquet": (b"PAR1" + bytes(100) + b"PAR1", "a.parquet"),
    "a pickle": (b"\x80\x04\x95\x1e\0\0\0\0\0\0\0\x8c\x05posix\x8c\x06system\x93\x8c\x02id\x85R.", "a.h5"),
}


@pytest.mark.parametrize(("content", "name"), HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_files_are_refused(client, content, name):
    answer = send(client, content, name)
    assert answer.status_code == 400 or not answer.json()["checked"]["works"], answer.text
    assert "/tmp" not in answer.text
    assert "Traceback" not in answer.text
    if answer.status_code == 201:
        client.delete(f"/api/files/{answer.json()['id']}")


def test_links_out_of_a_netcdf_file_are_not_followed(client, tmp_path):
    import h5py

    path = tmp_path / "links.nc"
    with h5py.File(path, "w") as file:
        file["observed"] = h5py.ExternalLink("/etc/hostname", "/")
        file.create_dataset("initial", (16,), "u1", external=[("/etc/passwd", 0, 16)])
    answer = send(client, path.read_bytes(), "links.nc")
    assert answer.status_code == 400
    assert "root" not in answer.text


@pytest.mark.parametrize("number", ["x", "..", "..%2f..", "%00", "a" * 41, "<script>"])
@pytest.mark.parametrize("part", ["", "/netcdf", "/report", "/pictures/0"])
def test_no_file_is_found_by_a_made_up_number(client, number, part):
    assert client.get(f"/api/files/{number}{part}").status_code in (404, 422)


def test_the_colour_tables_are_matplotlibs():
    from page_colours import TARGET, source

    assert Path(TARGET).read_text() == source()
