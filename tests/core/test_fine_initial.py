"""A finer initial state: what is accepted, what sees it, and how it reaches the methods."""

from __future__ import annotations

import functools

import numpy as np
import pytest
import torch
import xarray as xr

from latentpde.errors import DataError, UsageError
from latentpde.estimators import reconstruct
from latentpde.grid import Grid, average_pool
from latentpde.io.netcdf import write_netcdf
from latentpde.observation import Observation
from latentpde.simulation import simulate

QUICK = {"map": {"num_steps": 10, "num_restarts": 1}, "exact": {"sweep": 64}}


@functools.cache
def cases(observed="lowres-solve", regime="klein_gordon"):
    return simulate(regime, num=2, seed=5, shape=(32, 32), pooling=4, num_modes=2, sparsity=0.3, observed=observed)


def observation(fine: bool = True, **options) -> Observation:
    tree = cases(**options)
    return Observation.from_dataset(tree, fine_initial=tree["truth/initial"] if fine else None)


def arrays(fine, initial=None, **options):
    readings = np.zeros((8, 12))
    return Observation.from_arrays(readings, initial, noise_std=0.1, fine_initial=fine, **options)


def test_it_is_kept_sliced_and_turned_into_a_grid():
    data = observation()
    assert data.fine_initial is not None
    assert data.fine_initial.shape == (2, 32, 32)
    assert data.fine_grid.shape == (32, 32)
    second = data[1:]
    assert second.fine_initial is not None
    assert torch.equal(second.fine_initial[0], data.fine_initial[1])
    assert observation(fine=False).fine_initial is None
    assert arrays(np.ones((24, 36))).fine_grid.shape == (24, 36)


def test_the_coarse_state_follows_where_it_was_not_given():
    fine = np.random.default_rng(0).standard_normal((24, 36))
    data = arrays(fine)
    assert data.initial is not None
    np.testing.assert_allclose(data.initial[0, 0, 0], fine[:3, :3].mean())
    np.testing.assert_allclose(data.initial[0, 7, 11], fine[21:, 33:].mean())


@pytest.mark.parametrize(
    ("shape", "message"),
    [((12, 18), "whole number"), ((24, 24), "whole number"), ((8, 12), "at least 2"), ((3, 24, 36), "expected 1 fine")],
)
def test_shapes_that_do_not_refine_the_coarse_grid_are_refused(shape, message):
    with pytest.raises(DataError, match=message):
        arrays(np.ones(shape))


def test_states_that_are_not_finite_or_not_the_same_are_refused():
    rng = np.random.default_rng(0)
    fine = rng.standard_normal((24, 36)).cumsum(0).cumsum(1)
    coarse = average_pool(torch.from_numpy(fine), 3).numpy()
    assert arrays(fine, coarse).initial is not None
    assert arrays(fine, coarse + 0.1 * coarse.std() * rng.standard_normal(coarse.shape)) is not None
    for wrong in (fine[::-1], 3 * fine, fine + 2 * fine.std()):
        with pytest.raises(DataError, match="mixed up"):
            arrays(wrong.copy(), coarse)
    fine[0, 0] = np.nan
    with pytest.raises(DataError, match="fine initial state has 1 NaN"):
        arrays(fine, coarse)


@pytest.mark.parametrize("method", ["map", "exact"])
@pytest.mark.parametrize("observed", ["lowres-solve", "pooled", "point"])
def test_methods_that_decode_start_from_it(method, observed):
    """At time 0 the field is the fine state itself, which the coarse one cannot give."""
    data = observation(observed=observed)
    assert data.fine_initial is not None
    posterior = reconstruct(data, method=method, num_draws=2, num_modes=2, **QUICK[method])
    for start in (posterior.mean(32, times=[0.0]), posterior.draws(32, times=[0.0]).isel(draw=-1)):
        np.testing.assert_allclose(start.isel(time=0), data.fine_initial, atol=1e-6)
    plain = reconstruct(observation(False, observed=observed), method=method, num_modes=2, **QUICK[method])
    assert np.abs(plain.mean(32, times=[0.0]).isel(time=0) - data.fine_initial.numpy()).max() > 0.05


@pytest.mark.parametrize("method", ["map", "exact"])
def test_a_coarse_solve_does_not_hear_it_and_the_true_field_does(method):
    """Coefficients fitted to readings of a coarse solve are the same with and without it; of the field, not."""
    for observed, same in (("lowres-solve", True), ("pooled", False)):
        options = {"method": method, "num_draws": 2, "num_modes": 2, **QUICK[method]}
        theta = [reconstruct(observation(fine, observed=observed), **options).coefficients for fine in (True, False)]
        assert np.allclose(theta[0], theta[1], rtol=1e-9) == same


def test_with_it_the_truth_is_found_better():
    """A wave keeps fine structure, so much of the error was not knowing it."""
    tree = simulate("klein_gordon", num=3, seed=1, shape=(64, 64), sparsity=0.3, source=False)
    truth = tree["truth/field"].values
    errors = []
    for fine in (tree["truth/initial"], None):
        data = Observation.from_dataset(tree, fine_initial=fine)
        mean = reconstruct(data, method="exact", num_draws=1, sweep=256).mean(64).values
        errors.append(np.sqrt(((mean - truth) ** 2).mean()))
    assert errors[0] < 0.7 * errors[1]


def test_exact_takes_it_as_exact():
    with pytest.raises(UsageError, match="initial_noise_std"):
        reconstruct(observation(), method="exact", initial_noise_std=0.1)


def test_datasets_must_fit():
    tree = cases()
    fine = tree["truth/initial"]
    with pytest.raises(DataError, match="3 case"):
        Observation.from_dataset(tree, fine_initial=xr.concat([fine, fine.isel(case=[0])], "case"))
    with pytest.raises(DataError, match="same rectangle"):
        Observation.from_dataset(tree, fine_initial=fine.assign_coords(x=fine["x"] * 2))
    upside_down = fine.isel(y=slice(None, None, -1))
    turned = Observation.from_dataset(tree, fine_initial=upside_down).fine_initial
    np.testing.assert_array_equal(turned, observation().fine_initial)
    single = Observation.from_dataset(tree.isel(case=1), fine_initial=fine.isel(case=1))
    np.testing.assert_array_equal(single.fine_initial[0], observation().fine_initial[1])


@pytest.mark.parametrize("named", ["cases", "own"])
def test_on_the_command_line(named, tmp_path, run):
    """The file of cases, whose truth is read because it was named; or a file of one's own."""
    tree = cases()
    paths = {name: tmp_path / f"{name}.nc" for name in ("cases", "own", "out", "plain")}
    write_netcdf(tree, paths["cases"])
    write_netcdf(tree["truth"].to_dataset()[["initial"]], paths["own"])
    command = ["reconstruct", paths["cases"], "--method", "map", "-O", "num_steps=10", "-q", "--resolution", "32", "-o"]
    for arguments in ([paths["plain"]], [paths["out"], "--fine-initial", paths[named]]):
        assert run(*command, *arguments)[0] == 0
    expected = reconstruct(observation(), method="map", num_steps=10).mean(32)
    with xr.open_dataset(paths["out"]) as out, xr.open_dataset(paths["plain"]) as plain:
        np.testing.assert_allclose(out["mean"], expected, atol=1e-5)
        assert np.abs(out["mean"] - plain["mean"]).max() > 0.01


def test_files_without_one_are_refused(tmp_path, refused):
    write_netcdf(cases(), tmp_path / "cases.nc")
    write_netcdf(xr.Dataset({"speed": ("y", [1.0])}), tmp_path / "other.nc")
    for name, code, message in (("other.nc", 3, "expected a variable 'initial'"), ("none.nc", 2, "there is no file")):
        refused(code, message, "reconstruct", tmp_path / "cases.nc", "--fine-initial", tmp_path / name,
                "-o", tmp_path / "out.nc")  # fmt: skip


def test_a_grid_of_points_with_a_fine_state():
    grid = Grid((4, 4), (1.0, 1.0))
    fine = np.random.default_rng(0).standard_normal((8, 8))
    data = Observation.from_arrays([1.0], noise_std=0.1, grid=grid, positions=[[0.5, 0.5]], fine_initial=fine)
    assert data.refinement == 2
