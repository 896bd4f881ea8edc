"""What is assumed is said, and what is probably a mistake is refused."""

import warnings

import numpy as np
import pytest
import xarray as xr

import latentpde as lp
from latentpde.io.observations import observation_from_dataset


def data(**changes):
    rng = np.random.default_rng(0)
    variables = {"observed": (("y", "x"), rng.standard_normal((6, 8))), **changes}
    return xr.Dataset(variables, attrs={"noise_std": 0.1, "time": 0.5, "family": "advection_diffusion"})


STATE = (("y", "x"), np.ones((6, 8)))


@pytest.mark.parametrize("name", ["inital", "Initial", "initial_", "intial", "initials"])
def test_a_misspelt_initial_state_is_refused(name):
    with pytest.raises(lp.DataError, match=f"the variable '{name}' looks like 'initial'"):
        observation_from_dataset(data(**{name: STATE}))


@pytest.mark.parametrize("name", ["u0", "start", "initial_state", "temperature"])
def test_a_variable_like_an_initial_state_is_refused(name):
    with pytest.raises(lp.DataError, match=f"there is no variable 'initial', and '{name}' has the shape"):
        observation_from_dataset(data(**{name: STATE}))


@pytest.mark.parametrize(
    "others",
    [
        {},
        {"initial": STATE},
        {"initial": STATE, "topography": STATE, "inital": STATE},  # nothing is missing
        {"quality": (("y", "x"), np.ones((6, 8), dtype=int))},
        {"mask_kind": ((), "radial"), "profile": ("y", np.ones(6))},
        {"gappy": (("y", "x"), np.where(np.eye(6, 8), np.nan, 1.0))},
    ],
)
def test_other_variables_are_no_concern(others):
    assert observation_from_dataset(data(**others)).initial is None or "initial" in others


@pytest.mark.parametrize(
    ("wrong", "right"),
    [("times", "time"), ("Time", "time"), ("noise_sdt", "noise_std"), ("familiy", "family"), ("poolin", "pooling")],
)
def test_a_misspelt_attribute_is_refused(wrong, right):
    tree = data(initial=STATE)
    tree.attrs = {name: value for name, value in tree.attrs.items() if name != right} | {wrong: 1}
    with pytest.raises(lp.DataError, match=f"the attribute '{wrong}' looks like '{right}', which is missing"):
        observation_from_dataset(tree)


def test_what_is_given_is_not_missing():
    tree = data(initial=STATE)
    tree.attrs = {"noise_std": 0.1, "times": 3.0}
    assert observation_from_dataset(tree, times=(0.5,), family="klein_gordon").times.tolist() == [0.5]


def test_an_assumed_time_is_said(run, tmp_path):
    tree = data(initial=STATE)
    del tree.attrs["time"]
    with pytest.warns(lp.LatentPDEWarning, match="time 0.25 is assumed, the default of advection_diffusion"):
        assert observation_from_dataset(tree).times.tolist() == [0.25]
    tree.to_netcdf(tmp_path / "data.nc", engine="h5netcdf")
    code, _, err = run("reconstruct", tmp_path / "data.nc", "-O", "sweep=32", "-o", tmp_path / "out.nc", "-q")
    assert code == 0
    assert err.count("time 0.25 is assumed") == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        observation_from_dataset(tree, family="helmholtz")  # a steady equation knows no time


def test_arrays_without_times():
    readings = np.ones((6, 8))
    with pytest.warns(lp.LatentPDEWarning, match="at time 1; pass times"):
        assert lp.Observation.from_arrays(readings, noise_std=0.1).times.tolist() == [1.0]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        lp.Observation.from_arrays(readings, noise_std=0.1, times=[1.0])
        lp.Observation.from_arrays(readings, noise_std=0.1, family="helmholtz")


@pytest.mark.parametrize("heading", ["x (km)", "x [km]", "x_km", "X_KM", "easting_km"])
def test_a_unit_in_a_heading_is_understood(tmp_path, heading):
    path = tmp_path / "stations.csv"
    path.write_text(f"{heading},y_km,time_h,value\n1,2,0,3\n4,6,1,2\n2,9,1,1\n")
    frame = lp.read(path).frame
    assert (frame.x.unit.lower(), frame.y.unit, frame.time_unit) == ("km", "km", "h")
    assert frame.x.name.lower() in ("x", "easting")
