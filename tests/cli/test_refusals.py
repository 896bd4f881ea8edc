"""What the program refuses, and how it says so."""

import os
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from program import TINY, with_attributes, without

from latentpde.cli import main

# Wrong usage: exit code 2


def _words(parameter) -> str | None:
    """Names a test by its arguments alone."""
    is_arguments = isinstance(parameter, list) and (parameter[0].startswith("-") or len(parameter) > 2)
    return " ".join(parameter) if is_arguments else ""


@pytest.mark.parametrize(
    ("arguments", "fragments"),
    [
        (["--pde", "foo"], ["unknown family 'foo'", "klein_gordon"]),
        (["--method", "foo"], ["unknown method 'foo'", "map"]),
        (["--method", "mpa"], "did you mean 'map'?"),
        (["--noise-std", "-1"], ["--noise-std must be positive and finite", "got -1"]),
        (["--noise-std", "0"], "--noise-std must be positive"),
        (["--noise-std", "nan"], "--noise-std must be positive"),
        (["--noise-std", "inf"], "--noise-std must be positive"),
        (["--noise-std", "abc"], "--noise-std"),
        (["--time", "-1"], "--time must be finite and not negative"),
        (["--time", "nan"], "--time must be finite and not negative"),
        (["--resolution", "0"], "--resolution"),
        (["--resolution", "1.5"], "--resolution"),
        (["--num-draws", "0"], "--num-draws"),
        (["--seed", "-1"], "--seed"),
        (["--seed", str(2**70)], "--seed"),
        (["--source-prior-std", "0"], "positive, got 0"),
        (["--source-prior-std", "nan"], "source_prior_std must be a finite number, got nan"),
        (["--num-modes", "-1"], "--num-modes"),
        (["--foo"], "No such option"),
        (["--bounds", "kappa"], ["name=lower:upper", "'kappa'"]),
        (["--bounds", "kappa=1:2:3"], "name=lower:upper"),
        (["--bounds", "kappa=a:b"], "name=lower:upper"),
        (["--bounds", "kappa=0.2:0.1"], ["lower one first", "kappa=0.2:0.1"]),
        (["--bounds", "kappa=nan:1"], "finite"),
        (["--bounds", "kappa=0:inf"], "finite"),
        (["--bounds", "foo=1:2"], ["no coefficient 'foo'", "vx, vy, kappa"]),
        (["-O", "foo=1"], ["has no option 'foo'", "num_steps"]),
        (["-O", "seed=3"], "has no option 'seed'"),
        (["-O", "=3"], "has no option ''"),
        (["-O", "num_steps"], "name=value"),
        (["-O", "num_steps=abc"], ["num_steps of map must be a whole number", "'abc'"]),
        (["-O", "num_steps="], "num_steps of map must be a whole number"),
        (["-O", "num_steps=1.5"], "num_steps of map must be a whole number"),
        (["-O", "num_steps=true"], "num_steps of map must be a whole number"),
        (["-O", "num_steps=-1"], "num_steps of map must be at least 1"),
        (["-O", "learning_rate=NaN"], "learning_rate of map must be a finite number"),
        (["-O", "learning_rate=Infinity"], "learning_rate of map must be a finite number"),
        (["-O", "learning_rate=abc"], "learning_rate of map must be a finite number"),
        (["-O", "learning_rate=0"], "learning_rate of map must be positive"),
    ],
    ids=_words,
)
def test_reconstruct_refuses_usage(refused, case_file, tmp_path, arguments, fragments):
    method = [] if "--method" in arguments else ["--method", "map"]
    refused(2, fragments, "reconstruct", case_file, "-o", tmp_path / "o.nc", *method, *arguments)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("arguments", "fragments"),
    [
        (["foo"], ["unknown regime 'foo'", "balanced"]),
        (["balanced", "--mask", "foo"], ["unknown mask 'foo'", "radial"]),
        (["balanced", "--split", "foo"], ["--split", "'validation'"]),
        (["balanced", "--observed", "foo"], ["--observed", "'pooled'"]),
        (["balanced", "--sparsity", "0"], "above 0 and at most 1"),
        (["balanced", "--sparsity", "nan"], "sparsity must be a finite number"),
        (["balanced", "--noise-std", "-1"], "must be positive"),
        (["balanced", "--noise-std", "inf"], "noise_std must be a finite number"),
        (["balanced", "--num", "0"], "--num"),
        (["balanced", "--resolution", "1"], "--resolution"),
        (["balanced", "--resolution", "33"], "cannot be pooled by 4"),
        (["balanced", "--time", "-1"], ">= 0"),
        (["balanced", "--seed", str(2**80)], "--seed"),
    ],
    ids=_words,
)
def test_simulate_refuses_usage(refused, tmp_path, arguments, fragments):
    refused(2, fragments, "simulate", *arguments, "-o", tmp_path / "s.nc")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("arguments", [["foo"], ["list", "foo"], ["reconstruct"], ["simulate", "balanced"]])
def test_incomplete_commands_are_usage_errors(refused, arguments):
    refused(2, "latentpde", *arguments)


def test_outputs_that_cannot_be_written(refused, case_file, tmp_path):
    def reconstruct(fragment, output, *arguments):
        refused(2, fragment, "reconstruct", case_file, "-o", output, *arguments)

    pipe, link = tmp_path / "pipe", tmp_path / "link"
    os.mkfifo(pipe)
    link.symlink_to(pipe)
    before = case_file.read_bytes()
    reconstruct("does not exist; create it first", tmp_path / "no" / "o.nc")
    reconstruct("it is a folder", tmp_path)
    reconstruct("does not exist", case_file / "o.nc")
    reconstruct("a device or a pipe", pipe)
    reconstruct("a device or a pipe", link)
    reconstruct("too long", tmp_path / ("a" * 300))
    reconstruct("must be different files", case_file)
    reconstruct("must be different files", tmp_path / "o.nc", "--report", tmp_path / "o.nc")
    reconstruct("does not exist", tmp_path / "o.nc", "--report", tmp_path / "no" / "r.html")
    refused(2, "does not exist", "simulate", "balanced", "-o", tmp_path / "no" / "s.nc")
    refused(2, "cannot make the folder", "demo", "-o", case_file / "demo")
    refused(2, "unknown method", "demo", "-o", tmp_path / "demo", "--method", "foo")
    assert case_file.read_bytes() == before
    assert sorted(p.name for p in tmp_path.iterdir()) == ["link", "pipe"]
    assert pipe.is_fifo()


def test_no_permission(refused, case_file, tmp_path, monkeypatch):
    (tmp_path / "o.nc").touch()
    protected = [tmp_path / "o.nc"]
    monkeypatch.setattr(os, "access", lambda path, mode, **_: mode != os.W_OK or Path(path) not in protected)
    refused(2, "write-protected", "reconstruct", case_file, "-o", tmp_path / "o.nc")
    protected.append(tmp_path)
    refused(2, "no permission", "reconstruct", case_file, "-o", tmp_path / "o.nc")


# Bad data: exit code 3


def _spoilt(name, value):
    def spoil(ds):
        ds = ds.copy(deep=True)
        ds[name][0, 0, 0] = value
        return ds

    return spoil


CELLS = ("case", "y_obs", "x_obs")
BAD_DATA = {
    "initial NaN": (_spoilt("initial", np.nan), "initial state has 1 NaN"),
    "initial inf": (_spoilt("initial", np.inf), "initial state has 1 NaN or infinite"),
    "reading inf": (_spoilt("observed", np.inf), "mark missing readings with NaN"),
    "no reading": (lambda ds: ds.assign(observed=ds.observed.where(ds.case > 0)), "no observation at all in case"),
    "no observed": (lambda ds: ds.drop_vars("observed"), "expected a variable 'observed'"),
    "no initial": (lambda ds: ds.drop_vars("initial"), "initial state"),
    "nothing": (lambda ds: xr.Dataset(), "no variables"),
    "no noise": (without("noise_std"), ["map needs the noise", "noise_std"]),
    "no time": (without("time", "family"), ["when they were taken", "--time"]),
    "text": (lambda ds: ds.assign(observed=(CELLS, np.full((2, 8, 8), "a", dtype=object))), "must hold real numbers"),
    "complex": (lambda ds: ds.assign(observed=ds.observed + 0j), "must hold real numbers"),
    "no samples": (lambda ds: ds.isel(case=slice(0)), "'observed' is empty"),
    "no cells": (lambda ds: ds.isel(x_obs=slice(0)), "'observed' is empty"),
    "extra axis": (lambda ds: ds.expand_dims(level=2), "axis level"),
    "extra initial axis": (
        lambda ds: ds.assign(initial=ds.initial.expand_dims(level=2)),
        "'initial' has an axis level",
    ),
    "axis names": (lambda ds: ds.rename(y_obs="north"), ["y_obs, y, lat", "north"]),
    "initial shape": (
        lambda ds: ds.drop_vars("initial").assign(initial=(("case", "y", "x"), np.zeros((2, 4, 4)))),
        "must agree",
    ),
    "initial elsewhere": (
        lambda ds: ds.assign(initial=ds.initial.rename(y_obs="y", x_obs="x").assign_coords(x=ds.x_obs.values + 3)),
        "must lie on the same cells",
    ),
    "x uneven": (lambda ds: ds.assign_coords(x_obs=ds.x_obs**2), "evenly spaced, found steps from"),
    "x NaN": (lambda ds: ds.assign_coords(x_obs=ds.x_obs.where(ds.x_obs < 0.5)), "evenly spaced"),
    "x text": (lambda ds: ds.assign_coords(x_obs=list("abcdefgh")), "'x_obs' must hold real numbers"),
    "half the domain": (lambda ds: ds.isel(x_obs=slice(4)), ["0.5 along x", "extent says 1"]),
    "mask of other axes": (lambda ds: ds.assign(mask=(("a", "b"), np.ones((4, 4), bool))), "'mask' has an axis a, b"),
    "mask on NaN": (lambda ds: ds.assign(mask=xr.ones_like(ds.observed)), "the mask marks as observed are NaN"),
    "mask of text": (lambda ds: ds.assign(mask=("x_obs", list("abcdefgh"))), "'mask' must hold real numbers"),
    "noise of other axes": (lambda ds: ds.assign(noise_std=("q", [0.1, 0.2])), "'noise_std' has an axis q"),
    "noise negative somewhere": (lambda ds: ds.assign(noise_std=xr.full_like(ds.observed, -1.0)), "positive"),
    "initial has time": (lambda ds: ds.assign(initial=ds.initial.expand_dims(time=[0.1, 0.2])), "axis time"),
    "dates": (
        lambda ds: ds.assign(observed=ds.observed.expand_dims(time=[np.datetime64("2020-01-01", "ns")])),
        "not dates",
    ),
    "two times for one": (with_attributes(time=[0.1, 0.2]), "1 snapshot(s)"),
    "one time for two": (
        lambda ds: ds.assign(observed=xr.concat([ds.observed] * 2, "time")),
        "2 snapshot(s)",
    ),
    "unknown family": (with_attributes(family="foo"), ["unknown PDE family 'foo'", "--pde", "klein_gordon"]),
    **{
        f"{name}={value}": (with_attributes(**{name: value}), f"the attribute {name} must be")
        for name, values in {
            "noise_std": (-1.0, 0.0, np.nan, np.inf, "abc", ""),
            "time": (-1.0, np.nan, "noon"),
            "extent": ([1.0, 2.0, 3.0], [-1.0, 1.0], [np.nan, 1.0], "wide", 2.0),
            "pooling": (0, -3, 2.5, "abc"),
            "source_prior_std": (-1.0, np.nan, "a"),
            "coefficient_bounds": ([1.0, 2.0], [2.0, 1.0] * 3, [0.0, np.inf] * 3, [np.nan] * 6, "abc"),
        }.items()
        for value in values
    },
    "unknown kind": (with_attributes(observed_kind="foo"), ["lowres-solve, pooled, point", "foo"]),
    "points without places": (with_attributes(observed_kind="point"), "need sensor positions"),
}


@pytest.mark.parametrize("name", BAD_DATA)
def test_bad_data_is_refused(refused, case_tree, tmp_path, name):
    spoil, fragments = BAD_DATA[name]
    source, old = tmp_path / "in.nc", tmp_path / "o.nc"
    spoil(case_tree.to_dataset()).to_netcdf(source, engine="h5netcdf")
    old.write_text("old")
    refused(3, fragments, "reconstruct", source, "-o", old, *TINY)
    assert old.read_text() == "old"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["in.nc", "o.nc"]


@pytest.mark.parametrize(
    ("content", "fragment"),
    [
        (lambda whole: b"", "it is empty"),
        (lambda whole: b"hello", "begins with 'hello'"),
        (lambda whole: b"<!DOCTYPE html><html>", "begins with '<!DOCTYP'"),
        (lambda whole: b"\x1f\x8b\x08\x00", "not a NetCDF file"),
        (lambda whole: b"CDF\x01", "truncated or damaged"),
        (lambda whole: whole[:100], "truncated or damaged"),
        (lambda whole: whole[:-10], "truncated or damaged"),
    ],
    ids=["empty", "text", "html", "gzip", "netcdf3 header", "header", "truncated"],
)
def test_files_that_are_none(refused, case_file, tmp_path, content, fragment):
    path = tmp_path / "in.nc"
    path.write_bytes(content(case_file.read_bytes()))
    refused(3, [str(path), fragment], "reconstruct", path, "-o", tmp_path / "o.nc")
    refused(3, [str(path), fragment], "evaluate", path, case_file)
    refused(3, [str(path), fragment], "evaluate", case_file, path)


def test_files_that_are_not_there(refused, case_file, tmp_path):
    os.mkfifo(tmp_path / "pipe")  # reading it would wait for ever
    refused(2, "there is no file", "reconstruct", tmp_path / "no.nc", "-o", tmp_path / "o.nc")
    refused(2, "is a folder", "reconstruct", tmp_path, "-o", tmp_path / "o.nc")
    refused(2, "a pipe, not a file of readings", "reconstruct", tmp_path / "pipe", "-o", tmp_path / "o.nc")
    refused(2, "there is no file", "evaluate", case_file, tmp_path / "no.nc")


def test_evaluate_refuses(refused, run, case_file, case_tree, tmp_path):
    run("reconstruct", case_file, "-o", tmp_path / "out.nc", "-q", *TINY)
    out = xr.load_dataset(tmp_path / "out.nc", engine="h5netcdf")

    def saved(data, name):
        data.to_netcdf(tmp_path / name, engine="h5netcdf")
        return tmp_path / name

    refused(3, "no truth to compare with", "evaluate", case_file, tmp_path / "out.nc")  # swapped
    refused(3, "no variable 'mean'", "evaluate", case_file, case_file)
    refused(3, "no truth", "evaluate", tmp_path / "out.nc", saved(case_tree.to_dataset(), "no_truth.nc"))
    refused(3, "has 1 case(s), the cases 2", "evaluate", saved(out.isel(case=[0]), "one.nc"), case_file)
    refused(3, "finite everywhere", "evaluate", saved(out.assign(mean=out["mean"] * np.nan), "nan.nc"), case_file)
    refused(3, "axes case, y, x", "evaluate", saved(out.rename(y="lat"), "lat.nc"), case_file)
    spread = out.drop_vars("quantiles").assign_attrs(has_spread=1)
    refused(3, "no variable 'quantiles'", "evaluate", saved(spread, "spread.nc"), case_file)


def test_debug_shows_the_traceback(tmp_path):
    with pytest.raises(ValueError, match="there is no file"):
        main(["reconstruct", str(tmp_path / "no.nc"), "-o", str(tmp_path / "o.nc"), "--debug"])
