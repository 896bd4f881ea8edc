"""Many cases on two workers of a real local cluster: the same bits whatever the chunks, the workers and the kills."""

import os
import threading
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import latentpde as lp
from latentpde.bench.studies.cluster import digest, kill_half_way
from latentpde.scheduling.simulate import simulate_many
from latentpde.scheduling.workers import connect
from latentpde.simulation import Simulation

KRIGING = {"method": "kriging", "resolution": 16}
SIMULATION = Simulation(regime="diffusion", seed=5, shape=(32, 32), num_modes=2, sparsity=0.3)


@pytest.fixture(scope="module")
def client():
    with connect(workers=2) as found:
        yield found


@pytest.fixture(scope="module")
def case_file(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("cases") / "cases.nc"
    SIMULATION.cases(0, 40).to_netcdf(path)
    return path


@pytest.fixture(scope="module")
def undisturbed(client, case_file, tmp_path_factory) -> Path:
    """What comes out where nothing is in the way, of chunks of four cases."""
    path = tmp_path_factory.mktemp("undisturbed") / "out.zarr"
    found = lp.reconstruct_many(case_file, path, scheduler=client, chunk=4, **KRIGING)
    assert found.num_new == 40
    assert len(found.memory) == 2, "both workers have worked"
    return path


def same_values(one: Path, other: Path) -> bool:
    """Whether two stores hold the same bits, however they are cut into chunks."""
    with xr.open_zarr(one) as first, xr.open_zarr(other) as second:
        return first.load().equals(second.load())


def test_a_store_holds_what_one_call_gives(undisturbed, case_file):
    expected = lp.reconstruct(xr.open_datatree(case_file), method="kriging").summary(resolution=16)
    with xr.open_zarr(undisturbed) as found:
        assert found.done.all()
        assert (found.case == np.arange(40)).all()
        assert (found.readings_crc32 == expected.readings_crc32).all()
        for name in ("mean", "std"):
            np.testing.assert_allclose(found[name], expected[name], rtol=1e-5, atol=1e-6)


def test_a_worker_killed_half_way_changes_no_bit(undisturbed, case_file, client, tmp_path):
    """Who kills it reads the store while it grows, and finds half of the cases whole."""
    path, killed = tmp_path / "out.zarr", []

    def kill() -> None:
        killed.append(kill_half_way(client, path))
        with xr.open_zarr(path) as growing:
            assert np.isfinite(growing["mean"].values[growing["done"].values]).all()

    watch = threading.Thread(target=kill)
    watch.start()
    lp.reconstruct_many(case_file, path, scheduler=client, chunk=4, **KRIGING)
    watch.join(timeout=60)
    assert len(killed) == 1
    assert digest(path) == digest(undisturbed)


def test_chunks_change_no_number_of_a_method_that_takes_batches(case_file, client, tmp_path):
    """It gives other last digits in another batch: batches follow from the file and not from the chunk."""
    options = {"method": "enkf", "resolution": 16, "num_members": 4, "num_draws": 4, "scheduler": client}
    options["background_options"] = {"num_steps": 5, "num_restarts": 1}
    whole = tmp_path / "whole.zarr"
    lp.reconstruct_many(case_file, whole, chunk=48, **options)
    lp.reconstruct_many(case_file, tmp_path / "out.zarr", chunk=16, **options)
    assert same_values(tmp_path / "out.zarr", whole)


def test_a_resumed_run_redoes_nothing_and_ends_with_the_same_bits(undisturbed, case_file, client, tmp_path):
    path = tmp_path / "out.zarr"
    lp.reconstruct_many(case_file, path, scheduler=client, chunk=4, resume=True, **KRIGING)
    before = {file: file.stat().st_mtime_ns for file in path.rglob("*") if file.is_file()}
    for name in os.listdir(path):
        for left in (path / name).glob("2.*" if name != "done" else "2"):  # the third chunk, of cases 8 to 11
            left.unlink()
    again = lp.reconstruct_many(case_file, path, scheduler=client, resume=True, **KRIGING)
    assert again.num_new == 4
    assert digest(path) == digest(undisturbed)
    after = {file: file.stat().st_mtime_ns for file in path.rglob("*") if file.is_file()}
    assert all(file.name.split(".")[0] == "2" for file in after if after[file] != before[file])
    with pytest.raises(lp.UsageError, match="resolution: 16, now 8"):
        lp.reconstruct_many(case_file, path, scheduler=client, resume=True, method="kriging", resolution=8)
    with pytest.raises(lp.UsageError, match="is there already"):
        lp.reconstruct_many(case_file, path, scheduler=client, **KRIGING)


def test_a_case_that_fails_ends_no_run_and_is_tried_again(undisturbed, case_file, client, tmp_path):
    cases = xr.open_datatree(case_file).load()
    good = cases["observed"].values.copy()
    cases["observed"].values[[0, 5]] = np.nan
    cases.to_netcdf(tmp_path / "cases.nc")
    with pytest.warns(lp.LatentPDEWarning, match="2 of 40 cases could not be reconstructed; case 0: "):
        found = lp.reconstruct_many(tmp_path / "cases.nc", tmp_path / "out.zarr", scheduler=client, chunk=4, **KRIGING)
    assert sorted(found.failed) == [0, 5]
    assert found.num_new == 38
    with found.open() as store:
        assert np.flatnonzero(~store.done.values).tolist() == [0, 5]
        assert np.isnan(store["mean"][[0, 5]]).all()
    cases["observed"].values[5] = good[5]
    cases.to_netcdf(tmp_path / "cases.nc")
    again = lp.reconstruct_many(tmp_path / "cases.nc", tmp_path / "out.zarr", scheduler=client, resume=True, **KRIGING)
    assert again.num_new == 1
    with found.open() as store, xr.open_zarr(undisturbed) as whole:
        assert store["mean"][1:].equals(whole["mean"][1:])


def test_many_files_make_one_store(undisturbed, client, tmp_path):
    """Some with one case and no axis for it, some with several; in the order of their names."""
    for name, start, stop in (("a", 0, 1), ("b", 1, 6), ("c", 6, 7)):
        tree = SIMULATION.cases(start, stop)
        (tree.isel(case=0, drop=True) if stop == start + 1 else tree).to_netcdf(tmp_path / f"{name}.nc")
    found = lp.reconstruct_many(tmp_path / "?.nc", tmp_path / "out.zarr", scheduler=client, **KRIGING)
    with found.open() as store, xr.open_zarr(undisturbed) as whole:
        assert store["file"].values.tolist() == ["a.nc", *["b.nc"] * 5, "c.nc"]
        assert (store["mean"].values == whole["mean"].values[:7]).all()
        assert (store["time"].values == whole["time"].values[:7]).all()


def test_simulated_stores_are_the_set_itself(client, tmp_path):
    path = tmp_path / "cases.zarr"
    assert simulate_many(SIMULATION, path, 70, scheduler=client) == 70
    with xr.open_datatree(path, engine="zarr") as found:
        expected = SIMULATION.cases(60, 70)
        for name in ("observed", "truth/field", "truth/source", "truth/mask_kind"):
            np.testing.assert_array_equal(found[name].values[60:], expected[name].values)
        assert found.attrs["family"] == "advection_diffusion"
    assert simulate_many(SIMULATION, path, 70, scheduler=client, resume=True) == 0
    found = lp.reconstruct_many(path, tmp_path / "out.zarr", scheduler=client, **KRIGING)
    assert found.num_new == 70
