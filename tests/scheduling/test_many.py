"""Many cases on two workers of a real local cluster: the same bits whatever the chunks, the workers and the kills."""

import hashlib
import os
import signal
import threading
import time
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import latentpde as lp
from latentpde.scheduling.workers import connect

FEW = {"num_steps": 10, "num_restarts": 1}
MAP = {"method": "map", "resolution": 16, **FEW}
KRIGING = {"method": "kriging", "resolution": 16}


def simulated(num: int, **options) -> xr.DataTree:
    return lp.simulate("diffusion", num=num, seed=5, shape=(32, 32), num_modes=2, sparsity=0.3, **options)


@pytest.fixture(scope="module")
def client():
    with connect(workers=2) as found:
        yield found


@pytest.fixture(scope="module")
def case_file(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("cases") / "cases.nc"
    simulated(40).to_netcdf(path)
    return path


@pytest.fixture(scope="module")
def undisturbed(client, case_file, tmp_path_factory) -> Path:
    """What comes out where nothing is in the way, of chunks of four cases."""
    path = tmp_path_factory.mktemp("undisturbed") / "out.zarr"
    lp.reconstruct_many(case_file, path, scheduler=client, chunk=4, **KRIGING)
    return path


def bits(store: Path) -> dict[str, str]:
    """Hashes of all files of a store."""
    files = sorted(path for path in store.rglob("*") if path.is_file())
    return {str(path.relative_to(store)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def same_values(one: xr.Dataset, other: xr.Dataset) -> bool:
    """Whether two datasets hold the same bits, NaN in the same places."""
    return one.drop_attrs().equals(other.drop_attrs())


def test_a_store_holds_what_one_call_gives(undisturbed, case_file):
    with xr.open_zarr(undisturbed) as found:
        expected = lp.reconstruct(xr.open_datatree(case_file), method="kriging").summary(resolution=16)
        assert found.done.all()
        assert (found.case == np.arange(40)).all()
        assert (found.readings_crc32 == expected.readings_crc32).all()
        for name in ("mean", "std"):
            np.testing.assert_allclose(found[name], expected[name], rtol=1e-5, atol=1e-6)


def test_a_worker_killed_half_way_changes_no_bit(undisturbed, case_file, client, tmp_path):
    """The store is read while it grows; when half of it is there, one of the two workers dies."""
    path, seen = tmp_path / "out.zarr", []

    def kill_half_way() -> None:
        while not (path.exists() and (done := xr.open_zarr(path).done.values).sum() >= 20):
            time.sleep(0.01)
        seen.append(done)
        with xr.open_zarr(path) as growing:
            assert not np.isnan(growing["mean"].values[done]).any()
        os.kill(max(client.run(os.getpid).values()), signal.SIGKILL)

    watch = threading.Thread(target=kill_half_way)
    watch.start()
    found = lp.reconstruct_many(case_file, path, scheduler=client, chunk=4, **KRIGING)
    watch.join(timeout=30)
    assert seen
    assert not seen[0].all()
    assert found.num_cases == 40
    assert bits(path) == bits(undisturbed)
