"""Readings from datasets and files: what the layout allows, and that the truth is not looked at."""

import h5py
import numpy as np
import pytest
import torch
import xarray as xr

from latentpde import DataError, Domain, Observation, UsageError, simulate
from latentpde.estimators.base import reconstruct
from latentpde.io.netcdf import open_cases, open_observed, write_netcdf

SMALL = {"shape": (16, 24), "pooling": 4, "sparsity": 0.3}


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


def test_degrees_are_not_taken_for_lengths():
    """A degree of latitude is 111.2 km, one of longitude less by the cosine of the latitude: on the sphere's surface
    the distance between two points is that of the haversine formula."""
    lat, lon = np.linspace(62.0, 58.0, 9), np.linspace(4.0, 10.0, 13)
    values = np.random.default_rng(0).normal(size=(9, 13))
    fields = {"observed": (("lat", "lon"), values), "initial": (("lat", "lon"), values)}
    data = xr.Dataset(fields, {"lat": lat, "lon": lon}, {"time": 3.0, "noise_std": 0.1})
    observation = Observation.from_dataset(data)
    half = np.radians(0.5) / 2
    along_lat = 2 * 6371.0 * half
    along_lon = 2 * 6371.0 * np.arcsin(np.cos(np.radians(60.0)) * np.sin(half))
    np.testing.assert_allclose(observation.grid.spacing, (along_lat, along_lon), rtol=1e-5)
    assert observation.frame is not None
    y, x = observation.frame.to_user(*observation.grid.coordinates())
    np.testing.assert_allclose(y, lat[::-1])
    np.testing.assert_allclose(x, lon)


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


def test_simulated_files_that_name_no_edges_are_periodic(cases):
    """Files of the simulator's first versions say a regime and no domain; they are of the torus all the same."""
    old = (
        cases.to_dataset().drop_attrs(deep=False).assign_attrs({k: v for k, v in cases.attrs.items() if k != "domain"})
    )
    assert Observation.from_dataset(old).domain == Domain.periodic()
    assert Observation.from_dataset(old.assign_attrs(domain="open")).domain == Domain()
    del old.attrs["regime"]
    assert Observation.from_dataset(old).domain is None, "a user's own file: open, by default"
