"""Simulated cases in files: the same as in memory, in the documented layout."""

import os

import numpy as np
import pytest
import xarray as xr

from latentpde import simulate
from latentpde.io.netcdf import open_cases, write_netcdf
from latentpde.io.streaming import append_cases
from latentpde.simulation import Simulation, simulate_to_file

SMALL = {"shape": (16, 24), "pooling": 4, "sparsity": 0.3}


def test_cases_round_trip(cases, tmp_path):
    write_netcdf(cases, tmp_path / "cases.nc")
    again = open_cases(tmp_path / "cases.nc")
    for path in ("/", "/truth"):
        xr.testing.assert_identical(again[path].to_dataset(inherit=False), cases[path].to_dataset(inherit=False))


@pytest.mark.parametrize("observed", ["lowres-solve", "point"])
def test_streamed_cases_equal_those_in_memory(tmp_path, observed):
    simulation = Simulation(regime="telegraph", seed=2, observed=observed, times=(0.5, 1.0), **SMALL)
    counts = []
    append_cases(simulation.batches(5, size=2), tmp_path / "cases.nc", 5, counts.append)
    streamed = open_cases(tmp_path / "cases.nc")
    whole = simulate("telegraph", num=5, seed=2, observed=observed, times=(0.5, 1.0), **SMALL)
    assert counts == [2, 2, 1]
    for path in ("/", "/truth"):
        expected, actual = whole[path].to_dataset(inherit=False), streamed[path].to_dataset(inherit=False)
        # the arithmetic of a batch may round differently with its size
        xr.testing.assert_allclose(actual, expected, rtol=1e-6)
        assert actual.attrs.keys() == expected.attrs.keys()
        assert set(actual.variables) == set(expected.variables)


def test_streaming_that_fails_leaves_the_old_file(tmp_path):
    path = tmp_path / "cases.nc"
    path.write_text("old")
    simulation = Simulation(regime="balanced", **SMALL)

    def parts():
        yield simulation.cases(0, 1)
        raise RuntimeError("boom")

    with pytest.raises(RuntimeError, match="boom"):
        append_cases(parts(), path, 2)
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["cases.nc"]


def test_simulated_file_has_the_documented_layout(tmp_path):
    simulate_to_file(Simulation(regime="balanced", **SMALL), tmp_path / "cases.nc", 2)
    tree = open_cases(tmp_path / "cases.nc")
    assert tree["observed"].dims == tree["initial"].dims == ("case", "y_obs", "x_obs")
    assert {"family", "regime", "time", "noise_std"} <= set(tree.attrs)
    truth = tree["truth"]
    assert truth["field"].dims == truth["initial"].dims == ("case", "y", "x")
    assert truth["coefficients"].dims == ("case", "coefficient")
    assert truth["source"].dims == ("case", "latent")
    assert truth["coefficient"].values.tolist() == ["vx", "vy", "kappa"]
    assert np.isnan(tree["observed"]).any()
    assert np.isfinite(tree["initial"]).all()
