"""Reconstructions and cases that `evaluate` cannot compare, a row each."""

import numpy as np
import pytest
import xarray as xr

from latentpde import simulate


def _levels(values):
    return lambda out: out.assign_coords(quantile=values)


def _draws(shape, axes=("case", "draw", "y", "x")):
    return lambda out: out.drop_dims("draw").assign(draws=(axes, np.zeros(shape))).assign_attrs(has_spread=1)


RECONSTRUCTIONS = {
    "no levels": lambda out: out.drop_vars("quantile"),
    "levels of text": _levels(list("abcde")),
    "levels above 1": _levels([5.0, 6.0, 7.0, 8.0, 9.0]),
    "levels of NaN": _levels([np.nan] * 5),
    "the same level": _levels([0.5] * 5),
    "no axis of levels": lambda out: out.assign(quantiles=out["mean"]),
    "no quantiles": lambda out: out.drop_vars("quantiles"),
    "quantiles of text": lambda out: out.assign(quantiles=out["quantiles"].astype(str)),
    "quantiles of NaN": lambda out: out.assign(quantiles=out["quantiles"] * np.nan),
    "no mean": lambda out: out.drop_vars("mean"),
    "mean of text": lambda out: out.assign(mean=out["mean"].astype(str)),
    "mean of NaN": lambda out: out.assign(mean=out["mean"] * np.nan),
    "no cases": lambda out: out.isel(case=slice(0)),
    "fewer cases": lambda out: out.isel(case=[0]),
    "no rows": lambda out: out.isel(y=slice(0)),
    "half of it": lambda out: out.isel(x=slice(8)),
    "other axes": lambda out: out.rename(y="lat"),
    "cases in another order": lambda out: out.isel(case=[1, 0]),
    "draws on another grid": _draws((2, 3, 8, 8), ("case", "draw", "b", "a")),
    "draws of other cases": _draws((3, 3, 16, 16), ("other", "draw", "y", "x")),
    "another family and readings": lambda out: out.assign(readings_crc32=out["readings_crc32"] + 1),
}


@pytest.mark.parametrize("what", RECONSTRUCTIONS)
def test_reconstructions(refuses, spread_file, case_file, tmp_path, what):
    RECONSTRUCTIONS[what](xr.load_dataset(spread_file, engine="h5netcdf")).to_netcdf("x.nc", engine="h5netcdf")
    refuses(3, [], "evaluate", "x.nc", case_file)


def _with_truth(change):
    return lambda cases: xr.DataTree.from_dict({"/": cases.to_dataset(), "/truth": change(cases["truth"].to_dataset())})


CASES = {
    "no truth": lambda cases: xr.DataTree(cases.to_dataset()),
    "a variable called truth": lambda cases: xr.DataTree(cases.to_dataset().assign(truth=1)),
    "no field": _with_truth(lambda truth: truth.drop_vars("field")),
    "field of NaN": _with_truth(lambda truth: truth.assign(field=truth["field"] * np.nan)),
    "field of text": _with_truth(lambda truth: truth.assign(field=truth["field"].astype(str))),
    "a part of the field": _with_truth(lambda truth: truth.isel(x=slice(5))),
    "no times": _with_truth(lambda truth: truth.assign(field=truth["field"].expand_dims(time=0))),
    "no rows": _with_truth(lambda truth: truth.isel(y=slice(0))),
    "another axis": _with_truth(lambda truth: truth.rename(y="lat")),
    "fewer cases": lambda cases: cases.isel(case=[0]),
}
SETS = {
    "another seed": ("balanced", {"seed": 2}),
    "another family": ("klein_gordon", {"seed": 1}),
    "another split": ("balanced", {"seed": 1, "split": "validation"}),
    "another noise": ("balanced", {"seed": 1, "noise_std": 0.3}),
}


@pytest.mark.parametrize("what", CASES)
def test_cases(refuses, out_file, case_tree, tmp_path, what):
    CASES[what](case_tree).to_netcdf("x.nc", engine="h5netcdf")
    refuses(3, [], "evaluate", out_file, "x.nc")


@pytest.mark.parametrize("what", SETS)
def test_cases_of_another_set(refuses, out_file, tmp_path, what):
    regime, options = SETS[what]
    simulate(regime, num=2, shape=(32, 32), sparsity=0.3, **options).to_netcdf("x.nc", engine="h5netcdf")
    refuses(3, "made from other readings", "evaluate", out_file, "x.nc")
