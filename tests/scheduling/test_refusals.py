"""What cannot be done many times is refused before any work, in one sentence; nothing is lost where it fails later."""

import resource
import sys
import time

import dask
import numpy as np
import pytest
import xarray as xr

import latentpde as lp
from latentpde.io.chunks import ChunkedStore
from latentpde.scheduling.sources import check_alike, describe, find_files
from latentpde.scheduling.workers import connect, run_tasks
from latentpde.simulation import Simulation

SMALL = Simulation(regime="diffusion", shape=(16, 16), num_modes=2, sparsity=0.3)


def test_without_dask_the_message_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    SMALL.cases(0, 1).to_netcdf(tmp_path / "cases.nc")
    with pytest.raises(lp.UsageError, match=r'pip install "latentpde\[cluster\]"'):
        lp.reconstruct_many(tmp_path / "cases.nc", tmp_path / "out.zarr")


@pytest.mark.parametrize("address", ["nonsense", "nobody.invalid:8786", "tcp://"])
def test_addresses_of_no_scheduler(address):
    with pytest.raises(lp.UsageError, match="no Dask scheduler answers"), connect(address):
        pass


def test_either_a_scheduler_or_workers():
    with pytest.raises(lp.UsageError, match="either --scheduler or --workers"), connect("tcp://127.0.0.1:1", 2):
        pass


def test_a_worker_with_much_memory_in_use_goes_on():
    """Dask lets one rest until its memory is free again, which ours keep for the next case: the run would hang."""
    with dask.config.set({"distributed.worker.memory.pause": 0.001}), connect(workers=1) as client:
        assert list(run_tasks(client, time.sleep, [(0.3,)])) == [None]  # it looks at its memory every 0.1 s
        assert list(run_tasks(client, max, [(1, 2)])) == [2]


@pytest.mark.parametrize(
    ("arguments", "fragment"),
    [
        ((["no such*.nc"], "out.zarr"), "no file matches"),
        (([], "out.zarr"), "at least one file"),
        (("cases.nc", "no such folder/out.zarr"), "does not exist; create it first"),
        (("cases.nc", "cases.nc"), "is there already"),
        (("store.zarr", "store.zarr/out.zarr"), "inside a store of readings"),
    ],
)
def test_paths_are_refused_before_any_worker_is_started(arguments, fragment, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    SMALL.cases(0, 1).to_netcdf("cases.nc")
    (tmp_path / "store.zarr").mkdir()
    with pytest.raises(lp.UsageError, match=fragment):
        lp.reconstruct_many(*arguments)


def test_a_chunk_must_hold_whole_batches(tmp_path):
    SMALL.cases(0, 1).to_netcdf(tmp_path / "cases.nc")
    with pytest.raises(lp.UsageError, match="multiple of that, got 3"):
        lp.reconstruct_many(tmp_path / "cases.nc", tmp_path / "out.zarr", method="map", chunk=3)


def test_files_of_other_grids_are_named(tmp_path):
    for name, shape in (("a", (16, 16)), ("b", (16, 16)), ("c", (32, 16))):
        Simulation(regime="diffusion", shape=shape, num_modes=2).cases(0, 2).to_netcdf(tmp_path / f"{name}.nc")
    sources = [describe(path, {}) for path in find_files(tmp_path / "*.nc")]
    with pytest.raises(lp.DataError, match=r"a\.nc has 4 x 4 cells .*c\.nc 8 x 4"):
        check_alike(sources)


def test_stores_without_cases_and_folders_that_are_no_store(tmp_path):
    SMALL.cases(0, 1).to_dataset().isel(case=slice(0)).to_zarr(tmp_path / "none.zarr", zarr_format=2)
    with pytest.raises(lp.DataError, match="holds no case"):
        describe(str(tmp_path / "none.zarr"), {})
    (tmp_path / "empty.zarr").mkdir()
    with pytest.raises(lp.DataError, match=r"empty\.zarr"):
        describe(str(tmp_path / "empty.zarr"), {})
    xr.Dataset({"other": 1.0}).to_netcdf(tmp_path / "other.nc")
    with pytest.raises(lp.DataError, match=r"other\.nc"):
        check_alike([describe(str(tmp_path / "other.nc"), {})])


@pytest.fixture
def store(tmp_path) -> ChunkedStore:
    return ChunkedStore.create(tmp_path / "cases.zarr", SMALL.cases(0, 1), num_cases=4, chunk=2, run={"of": "a test"})


def test_a_full_disk_loses_nothing(store):
    """A limit on the size of files stands for the disk."""
    store.write(0, [SMALL.cases(0, 2)])
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, before[1]))
    try:
        with pytest.raises(lp.DataError, match=r"what is done is kept\. Make room and go on with --resume"):
            store.write(2, [SMALL.cases(2, 4)])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert store.missing() == [range(2, 4)]
    assert not list(store.path.rglob("*.partial"))
    store.write(2, [SMALL.cases(2, 4)])
    with xr.open_zarr(store.path) as found:
        np.testing.assert_array_equal(found["observed"], SMALL.cases(0, 4)["observed"])


def test_what_does_not_fit_into_a_store_is_refused(store):
    other = Simulation(regime="diffusion", shape=(32, 16), num_modes=2)
    with pytest.raises(lp.DataError, match="cases 2 to 3 do not fit"):
        store.write(2, [other.cases(2, 4)])
    assert not store.done(range(4)).any()


def test_dates_of_cases_are_dates_again(tmp_path):
    """As the times of a year of daily files; a case that is not written has none."""
    when = np.array(["2026-05-01T03:00", "2026-05-02T06:30"], dtype="datetime64[ns]")
    tree = xr.DataTree(xr.Dataset({"mean": ("case", [1.0, 2.0])}, coords={"time": ("case", when)}))
    store = ChunkedStore.create(tmp_path / "out.zarr", tree, num_cases=3, chunk=2, run={})
    store.write(0, [tree])
    with xr.open_zarr(store.path) as found:
        assert "time" in found.coords
        assert (found["time"].values[:2] == when).all()
        assert np.isnat(found["time"].values[2])


def test_a_task_left_over_from_another_run_writes_nothing(store):
    stale = ChunkedStore(store.path, '{"of": "yesterday"}', 4, 2)
    with pytest.raises(lp.DataError, match="another run"):
        stale.write(0, [SMALL.cases(0, 2)])
    assert len(store.missing()) == 2


@pytest.mark.slow
def test_a_scheduler_that_dies_ends_the_run_with_a_sentence():
    from distributed import LocalCluster

    with (
        LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None) as cluster,
        connect(cluster.scheduler_address) as client,
    ):
        results = run_tasks(client, time.sleep, [(0,), (60,)])
        next(results)
        cluster.close()
        with pytest.raises(lp.LatentPDEError, match="connection to the Dask scheduler is lost"):
            next(results)
