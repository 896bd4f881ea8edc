"""Cases come out of a file as they went in, wherever a part of it begins, and never all of them into memory."""

import tracemalloc

import numpy as np
import pytest
import torch
import xarray as xr

import latentpde as lp
from latentpde.scheduling.sources import Batch, describe, read_cases
from latentpde.simulation import Simulation

NUM, REPEATS = 20, 35


@pytest.fixture(scope="module")
def few() -> xr.Dataset:
    return Simulation(regime="diffusion", shape=(64, 64), num_modes=2, sparsity=0.3).cases(0, NUM).to_dataset()


@pytest.fixture(scope="module", params=["nc", "old.nc", "zarr"])
def path(request, few, tmp_path_factory) -> str:
    """700 cases: the same few again and again."""
    path = tmp_path_factory.mktemp("cases") / f"cases.{request.param}"
    many = few.isel(case=np.tile(np.arange(NUM), REPEATS)).assign_coords(case=np.arange(1000, 1000 + NUM * REPEATS))
    if path.suffix == ".zarr":
        many.chunk(case=32).to_zarr(path, zarr_format=2)
    else:
        many.to_netcdf(path, engine="scipy" if path.name == "cases.old.nc" else "h5netcdf")
    return str(path)


def test_a_file_says_how_many_cases_it_has_and_what_they_are_called(path):
    found = describe(path, {})
    assert found.num_cases == NUM * REPEATS
    assert found.labels is not None
    assert found.labels[[0, -1]].tolist() == [1000, 1699]


@pytest.mark.parametrize("start", [0, 250, 684])
def test_any_part_holds_the_cases_it_names(start, path, few):
    """The one in the middle lies in two of the blocks that are read at once."""
    expected = lp.read(few.isel(case=np.arange(start, start + 16) % NUM))
    found = read_cases(Batch(path, start, start + 16, start), {})
    torch.testing.assert_close(found.values, expected.values, rtol=0, atol=0, equal_nan=True)
    torch.testing.assert_close(found.initial, expected.initial, rtol=0, atol=0)


def test_memory_does_not_grow_with_the_file(few, tmp_path):
    """Of a file of 41 MB, no part takes more than a few."""
    path = tmp_path / "cases.nc"
    many = few[["observed", "initial"]].isel(case=np.tile(np.arange(NUM), 500))
    many.to_netcdf(path)
    assert path.stat().st_size > 40e6
    tracemalloc.start()
    describe(str(path), {})
    read_cases(Batch(str(path), 5000, 5016, 5000), {})
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 10e6
