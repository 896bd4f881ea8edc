"""Files: what reading accepts, what writing promises."""

import json
import os
import stat

import h5py
import numpy as np
import pytest
import torch
import xarray as xr

import latentpde
from latentpde import DataError, Latent, Observation, UsageError, simulate
from latentpde.estimators.base import decoder_for, reconstruct
from latentpde.grid import unpool_spectrum
from latentpde.io.files import atomic_path, check_writable
from latentpde.io.netcdf import open_cases, open_observed, write_netcdf
from latentpde.io.streaming import append_cases
from latentpde.pde import get_family
from latentpde.posterior import QUANTILES, LatentPosterior
from latentpde.simulation import Simulation, simulate_to_file

SMALL = {"shape": (16, 24), "pooling": 4, "sparsity": 0.3}


@pytest.fixture(scope="module")
def cases() -> xr.DataTree:
    return simulate("balanced", num=3, seed=4, **SMALL)


@pytest.fixture(scope="module")
def posterior(cases) -> LatentPosterior:
    """Five draws of the prior per case: a spread without the work of a method."""
    observation = Observation.from_dataset(cases)
    latent = Latent(get_family("advection_diffusion"), bounds=observation.bounds, num_modes=3)
    z = latent.draw(15, generator=torch.Generator().manual_seed(0)).unflatten(0, (3, 5))
    return LatentPosterior(
        observation=observation,
        method="prior",
        settings={"width": 2, "seed": 7},
        diagnostics={"loss": np.arange(3.0), "steps": 9},
        decoder=decoder_for(observation, latent),
        z=z,
        initial_hat=lambda samples: unpool_spectrum(observation.initial, observation.grid, 4)[samples, None],
    )


# Writing


def test_atomic_path_replaces_at_the_end_only(tmp_path):
    path = tmp_path / "a.nc"
    path.write_text("old")
    with atomic_path(path) as temporary:
        temporary.write_text("new")
        assert temporary.parent == tmp_path  # a rename is atomic on one file system only
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert os.listdir(tmp_path) == ["a.nc"]


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, SystemExit])
def test_atomic_path_forgets_what_failed(tmp_path, error):
    path = tmp_path / "a.nc"
    path.write_text("old")

    def fail():
        with atomic_path(path) as temporary:
            temporary.write_text("half")
            raise error

    with pytest.raises(error):
        fail()
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["a.nc"]


def test_atomic_path_obeys_the_umask(tmp_path):
    before = os.umask(0o027)
    try:
        with atomic_path(tmp_path / "a") as temporary:
            temporary.touch()
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o640


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link.nc").symlink_to(tmp_path / "real" / "file.nc")
    with atomic_path(tmp_path / "link.nc") as temporary:
        temporary.write_text("new")
    assert (tmp_path / "link.nc").is_symlink()
    assert (tmp_path / "real" / "file.nc").read_text() == "new"


def test_only_files_are_replaced(tmp_path):
    """Renaming over a device or a pipe would destroy it for everyone."""
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UsageError, match="device or a pipe"):
        check_writable(tmp_path / "pipe")
    with pytest.raises(UsageError, match="device or a pipe"), atomic_path(tmp_path / "pipe"):
        pytest.fail("must not be entered")
    with pytest.raises(UsageError, match="folder"):
        check_writable(tmp_path)
    with pytest.raises(UsageError, match="does not exist"):
        check_writable(tmp_path / "no" / "a.nc")


def test_the_longest_name_can_be_written(tmp_path):
    path = tmp_path / ("a" * 255)
    with atomic_path(path) as temporary:
        temporary.write_text("new")
    assert path.read_text() == "new"


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


# out.nc


def test_reconstruction_file_has_the_documented_layout(posterior, tmp_path):
    posterior.to_netcdf(tmp_path / "out.nc", 8, command="latentpde reconstruct cases.nc -o out.nc")
    out = open_observed(tmp_path / "out.nc")
    fields = ("mean", "std", "source_mean", "source_std")
    assert set(out.data_vars) == {*fields, "quantiles", "coefficients", "diagnostic_loss"}
    for name in fields:
        assert out[name].dims == ("case", "y", "x")
    assert dict(out.sizes) == {"case": 3, "y": 8, "x": 12, "quantile": 5, "draw": 5, "coefficient": 3}
    assert out["quantiles"].dims == ("case", "quantile", "y", "x")
    assert tuple(out["quantile"].values) == QUANTILES == (0.05, 0.25, 0.5, 0.75, 0.95)
    assert out["coefficients"].dims == ("case", "draw", "coefficient")
    assert out["coefficient"].values.tolist() == ["vx", "vy", "kappa"]
    assert out["diagnostic_loss"].values.tolist() == [0, 1, 2]
    np.testing.assert_allclose(out["y"], (np.arange(8) + 0.5) / 8)
    assert out["time"].item() == 0.25
    for axis in ("y", "x"):
        assert out[axis].attrs["axis"] == axis.upper()
    for name in (*fields, "quantiles", "coefficients"):
        assert out[name].attrs["long_name"]
        assert np.isfinite(out[name]).all()

    assert out.attrs["Conventions"] == "CF-1.11"
    assert out.attrs["latentpde_version"] == latentpde.__version__
    assert out.attrs["method"] == "prior"
    assert out.attrs["seed"] == 7
    assert json.loads(out.attrs["options"]) == {"width": 2, "seed": 7}
    assert json.loads(out.attrs["diagnostics"]) == {"steps": 9}
    assert out.attrs["history"] == "latentpde reconstruct cases.nc -o out.nc"
    assert out.attrs["family"] == "advection_diffusion"
    assert out.attrs["has_spread"] == 1


def test_kept_draws_are_what_the_summaries_summarise(posterior):
    out = posterior.summary(8, keep_draws=True)
    assert out["draws"].dims == ("case", "draw", "y", "x")
    np.testing.assert_allclose(out["mean"], out["draws"].mean("draw"), atol=1e-6)
    np.testing.assert_allclose(out["std"], out["draws"].std("draw", ddof=1), atol=1e-6)
    np.testing.assert_allclose(
        out["quantiles"], out["draws"].quantile(QUANTILES, "draw").transpose("case", ...), atol=1e-6
    )


def test_a_point_estimate_has_no_spread(cases):
    out = reconstruct(cases, method="map", num_steps=1).summary(8)
    assert out.attrs["has_spread"] == 0
    assert out["std"].isnull().all()
    assert out.sizes["draw"] == 1


def test_without_case_axis_none_is_invented(cases, tmp_path):
    one = cases.to_dataset().isel(case=0)
    for data in (one, one.assign(observed=one.observed.expand_dims(time=[0.25]))):
        out = reconstruct(data, method="map", num_steps=1).summary(8)
        assert out["mean"].dims == ("y", "x")
        assert out["coefficients"].dims == ("draw", "coefficient")


# Reading


def test_reconstruct_never_reads_the_truth(cases, tmp_path, monkeypatch):
    """The same readings give the same bits whatever the truth beside them says."""
    monkeypatch.setattr(xr, "open_datatree", lambda *args, **kwargs: pytest.fail("groups were read"))
    results = []
    for name in ("kept", "deleted", "wrong"):
        path = tmp_path / name
        write_netcdf(cases, path)
        with h5py.File(path, "r+") as file:
            if name == "deleted":
                del file["truth"]
            elif name == "wrong":
                file["truth/field"][...] = np.nan
                file["truth/coefficients"][...] = 1e30
        results.append(reconstruct(open_observed(path), method="map", num_steps=2).mean(16))
    for other in results[1:]:
        xr.testing.assert_identical(results[0], other)


def test_observed_holds_nothing_of_the_truth(cases, tmp_path):
    write_netcdf(cases, tmp_path / "cases.nc")
    assert set(open_observed(tmp_path / "cases.nc").data_vars) == {"observed", "initial"}


@pytest.mark.parametrize("observed", ["lowres-solve", "pooled", "point"])
def test_observation_survives_a_file(tmp_path, observed):
    tree = simulate("klein_gordon", num=2, observed=observed, times=(0.5, 1.0), **SMALL)
    write_netcdf(tree, tmp_path / "cases.nc")
    _assert_same(Observation.from_dataset(open_observed(tmp_path / "cases.nc")), Observation.from_dataset(tree))


CHANGES = {
    "order of axes": lambda ds: ds.transpose("x_obs", "case", "y_obs"),
    "only one in another order": lambda ds: ds.assign(initial=ds.initial.transpose()),
    "downwards": lambda ds: ds.isel(y_obs=slice(None, None, -1), x_obs=slice(None, None, -1)),
    "names": lambda ds: ds.rename(y_obs="latitude", x_obs="longitude"),
    "no coordinates": lambda ds: ds.drop_vars(["y_obs", "x_obs"]),
    "no extent": lambda ds: ds.drop_attrs(deep=False).assign_attrs(
        {k: v for k, v in ds.attrs.items() if k != "extent"}
    ),
    "mask": lambda ds: ds.assign(mask=ds.observed.notnull().transpose(), observed=ds.observed.fillna(9.0)),
    "mask with gaps": lambda ds: ds.assign(mask=ds.observed.notnull().where(ds.observed.notnull())),
    "noise of each reading": lambda ds: ds.assign(noise_std=xr.full_like(ds.observed, 0.15).transpose()),
    "noise of each case": lambda ds: ds.assign(noise_std=("case", [0.15] * 3)),
    "noise for all": lambda ds: ds.assign(noise_std=0.15),
    "noise as text": lambda ds: ds.assign_attrs(noise_std="0.15"),
    "a time axis": lambda ds: ds.assign(observed=ds.observed.expand_dims(time=[0.25])),
    "a time left over": lambda ds: ds.assign_coords(time=0.25).assign_attrs(time=[0.1, 0.25]),
    "the family's own time": lambda ds: ds.drop_attrs(deep=False).assign_attrs(
        {k: v for k, v in ds.attrs.items() if k != "time"}
    ),
}


@pytest.mark.parametrize("change", CHANGES)
def test_the_same_readings_in_another_guise(cases, change):
    dataset = cases.to_dataset()
    _assert_same(Observation.from_dataset(CHANGES[change](dataset)), Observation.from_dataset(dataset))


def test_encoded_values_are_decoded(cases, tmp_path):
    packed = {"dtype": "i2", "scale_factor": 1e-4, "_FillValue": -32768}
    cases.to_dataset().to_netcdf(tmp_path / "a.nc", engine="h5netcdf", encoding={"observed": packed, "initial": packed})
    actual, expected = Observation.from_dataset(open_observed(tmp_path / "a.nc")), Observation.from_dataset(cases)
    assert torch.equal(actual.mask, expected.mask)
    torch.testing.assert_close(actual.values, expected.values, atol=1e-4, rtol=0)


def test_old_format_is_read(cases, tmp_path):
    cases.to_dataset().to_netcdf(tmp_path / "a.nc", engine="scipy", format="NETCDF3_64BIT")
    _assert_same(Observation.from_dataset(open_observed(tmp_path / "a.nc")), Observation.from_dataset(cases))
    assert not open_cases(tmp_path / "a.nc").children


def test_times_with_units_stay_numbers(cases, tmp_path):
    dataset = cases.to_dataset()
    dataset = dataset.assign(observed=dataset.observed.expand_dims(time=[0.25]))
    dataset["time"].attrs["units"] = "s"
    dataset.to_netcdf(tmp_path / "a.nc", engine="h5netcdf")
    assert Observation.from_dataset(open_observed(tmp_path / "a.nc")).times.tolist() == [0.25]


def test_coordinates_fix_the_rectangle(cases):
    dataset = cases.to_dataset().drop_attrs().assign_attrs(family="helmholtz", noise_std=0.1)
    dataset = dataset.assign_coords(y_obs=10 + 2.0 * np.arange(4), x_obs=0.5 * np.arange(6))
    grid = Observation.from_dataset(dataset).grid
    assert grid.extent == (8.0, 3.0)
    assert grid.origin == (9.0, -0.25)
    assert Observation.from_dataset(dataset, extent=(1.0, 1.0)).grid.extent == (1.0, 1.0)


def test_one_initial_state_serves_all_samples(cases):
    dataset = cases.to_dataset()
    shared = Observation.from_dataset(dataset.assign(initial=dataset.initial.isel(case=1, drop=True))).initial
    assert shared.shape == (3, 4, 6)
    assert torch.equal(shared[0], shared[2])


def test_another_family_forgets_what_the_data_know_of_theirs(cases):
    same = Observation.from_dataset(cases, family="advection-diffusion")
    other = Observation.from_dataset(cases, family="klein-gordon")
    assert same.bounds is not None
    assert same.source_prior_std == 0.4
    assert other.family == "klein_gordon"
    assert other.bounds is None
    assert other.source_prior_std is None
    with pytest.raises(UsageError, match="unknown family"):
        Observation.from_dataset(cases, family="foo")
    with pytest.raises(DataError, match="unknown PDE family 'foo'"):
        Observation.from_dataset(cases.to_dataset().assign_attrs(family="foo"))


def test_sensors_may_share_their_places(cases):
    tree = simulate("balanced", num=2, observed="point", **SMALL).to_dataset()
    tree["sensor_x"] = tree["sensor_x"].isel(case=0)
    assert Observation.from_dataset(tree).positions.shape == (2, tree.sizes["sensor"], 2)
    for spoilt, message in (
        (tree.drop_vars("sensor_x"), "need sensor_x"),
        (tree.drop_vars("initial"), "need an 'initial' state"),
        (tree.assign(sensor_x=("other", [0.5])), "'sensor_x' has an axis other"),
        (tree.assign(sensor_x=tree.sensor_x + 5), "outside the domain"),
    ):
        with pytest.raises(DataError, match=message):
            Observation.from_dataset(spoilt)


def _assert_same(actual: Observation, expected: Observation) -> None:
    for name in ("values", "mask", "noise_std", "times", "initial", "positions", "bounds"):
        a, b = getattr(actual, name), getattr(expected, name)
        assert (a is None) == (b is None), name
        if a is not None:
            torch.testing.assert_close(a, b, rtol=1e-12, atol=1e-12, msg=name)
    for name in ("grid", "observed", "pooling", "family", "source_prior_std", "regime", "batched"):
        assert getattr(actual, name) == getattr(expected, name), name
