"""The program as people meet it: what it prints, what it writes, how it fails."""

import json
import os
import resource
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from latentpde import __version__, simulate
from latentpde.cli import main
from latentpde.estimators import methods, reconstruct
from latentpde.posterior import Posterior

PROGRAM = [sys.executable, "-c", "from latentpde.cli import main; main()"]
TINY = ["--resolution", "16", "--method", "map", "-O", "num_steps=2"]
COMMANDS = ["demo", "simulate", "reconstruct", "evaluate", "bench", "train", "list"]


@pytest.fixture(scope="module")
def cases() -> xr.DataTree:
    return simulate("balanced", num=2, seed=1, shape=(32, 32), pooling=4, sparsity=0.3)


@pytest.fixture(scope="module")
def good(cases, tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("cli") / "cases.nc"
    cases.to_netcdf(path, engine="h5netcdf")
    return path


@pytest.fixture
def run(capsys):
    """Runs the program inside this process; returns its exit code, output and errors."""

    def run(*arguments):
        with pytest.raises(SystemExit) as leaving:
            main([str(a) for a in arguments])
        captured = capsys.readouterr()
        return leaving.value.code or 0, captured.out, captured.err

    return run


@pytest.fixture
def refused(run):
    """Runs the program and expects one clean message with all the fragments."""

    def refused(code, fragments, *arguments):
        actual, out, err = run(*arguments)
        assert actual == code, out + err
        assert "Traceback" not in err
        assert "fault in latentpde" not in err
        unwrapped = " ".join(err.replace("│", " ").split())
        for fragment in [fragments] if isinstance(fragments, str) else fragments:
            assert fragment in unwrapped
        return err

    return refused


# The main path, as a new user walks it


def test_simulate_reconstruct_evaluate(tmp_path):
    def program(*arguments):
        done = subprocess.run([*PROGRAM, *arguments], capture_output=True, text=True, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert done.stderr == ""
        return done.stdout

    said = program("simulate", "balanced", "--num", "2", "--resolution", "32", "--pooling", "4", "-o", "cases.nc")
    assert "latentpde reconstruct cases.nc -o out.nc" in said  # what to do next
    said = program("reconstruct", "cases.nc", "-o", "out.nc", *TINY)
    assert "2 case(s) reconstructed by map in out.nc" in said
    scores = json.loads(program("evaluate", "out.nc", "cases.nc", "--json"))
    for name in ("rmse", "psd", "mae", "crps", "coverage90"):
        assert name in scores
        assert len(scores["per_sample"][name]) == 2
    assert scores["rmse"] == pytest.approx(np.mean(scores["per_sample"]["rmse"]))
    assert 0 < scores["rmse"] < 2
    assert sorted(p.name for p in tmp_path.iterdir()) == ["cases.nc", "out.nc"]


def test_reconstruct_json_says_what_was_done(run, good, tmp_path):
    code, out, _ = run("reconstruct", good, "-o", tmp_path / "o.nc", "--json", "--seed", "5", *TINY)
    summary = json.loads(out)
    assert code == 0
    assert summary["method"] == "map"
    assert summary["num_samples"] == 2
    assert summary["settings"]["num_steps"] == 2
    assert summary["settings"]["seed"] == 5


def test_evaluate_prints_a_table(run, good, tmp_path):
    run("reconstruct", good, "-o", tmp_path / "o.nc", "-q", *TINY)
    code, out, _ = run("evaluate", tmp_path / "o.nc", good)
    assert code == 0
    assert "RMSE" in out
    assert "floor 1e-12" in out
    assert "point estimate" in out


def test_quiet_says_nothing(run, good, tmp_path):
    assert run("reconstruct", good, "-o", tmp_path / "o.nc", "-q", *TINY) == (0, "", "")


def test_same_seed_same_result(run, good, tmp_path):
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        run("reconstruct", good, "-o", tmp_path / name, "-q", "--seed", seed, *TINY)
    a, b, c = (xr.load_dataset(tmp_path / name, engine="h5netcdf")["mean"].values for name in "abc")
    np.testing.assert_array_equal(a, b)
    assert (a != c).any()


@pytest.mark.parametrize("what", ["families", "regimes", "masks", "methods"])
def test_list(run, what):
    code, out, _ = run("list", what)
    rows = json.loads(run("list", what, "--json")[1])
    assert code == 0
    assert len(rows) == len(out.splitlines())
    for row, line in zip(rows, out.splitlines(), strict=True):
        assert line.startswith(row["name"])
        assert row["summary"]


def test_version(run):
    assert run("--version") == (0, f"latentpde {__version__}\n", "")


def test_help_of_every_command_needs_no_torch():
    probe = f"""
import sys
from latentpde.cli import main
for command in {COMMANDS}:
    try:
        main([command, "--help"])
    except SystemExit as leaving:
        assert not leaving.code
assert "torch" not in sys.modules and "xarray" not in sys.modules
"""
    start = time.monotonic()
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert time.monotonic() - start < 5
    for option in ("--output", "--num-samples", "--bounds", "--json", "--sparsity"):
        assert option in done.stdout


def test_demo(run, tmp_path, monkeypatch):
    monkeypatch.setattr("latentpde.demo.reconstruct", partial(reconstruct, num_steps=3))
    monkeypatch.setattr(Posterior, "report", lambda self, path, truth: path.touch())
    code, out, err = run("demo", "-o", tmp_path / "new" / "demo", "--method", "map")
    assert code == 0, err
    assert "RMSE" in out
    assert sorted(p.name for p in (tmp_path / "new" / "demo").iterdir()) == ["cases.nc", "out.nc", "report.html"]
    rmse = json.loads(run("evaluate", tmp_path / "new/demo/out.nc", tmp_path / "new/demo/cases.nc", "--json")[1])[
        "rmse"
    ]
    assert f"RMSE {rmse:.3f}" in out


@pytest.mark.slow
def test_demo_in_full(tmp_path):
    done = subprocess.run([*PROGRAM, "demo"], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "Open in a browser: demo/report.html" in done.stdout
    assert (tmp_path / "demo" / "report.html").read_text().rstrip().endswith("</html>")


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
        (["--noise-std", "-1"], "--noise-std must be positive and finite, got -1"),
        (["--noise-std", "0"], "--noise-std must be positive"),
        (["--noise-std", "nan"], "--noise-std must be positive"),
        (["--noise-std", "inf"], "--noise-std must be positive"),
        (["--noise-std", "abc"], "--noise-std"),
        (["--time", "-1"], "--time must be finite and not negative"),
        (["--time", "nan"], "--time must be finite and not negative"),
        (["--resolution", "0"], "--resolution"),
        (["--resolution", "1.5"], "--resolution"),
        (["--num-samples", "0"], "--num-samples"),
        (["--seed", "-1"], "--seed"),
        (["--seed", str(2**70)], "--seed"),
        (["--forcing-std", "0"], "positive, got 0"),
        (["--forcing-std", "nan"], "positive, got nan"),
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
        (["-O", "num_steps=abc"], ["num_steps must be a whole number", "'abc'"]),
        (["-O", "num_steps="], "num_steps must be a whole number"),
        (["-O", "num_steps=1.5"], "num_steps must be a whole number"),
        (["-O", "num_steps=true"], "num_steps must be a whole number"),
        (["-O", "num_steps=-1"], "at least one step"),
        (["-O", "learning_rate=NaN"], "learning_rate must be a finite number"),
        (["-O", "learning_rate=Infinity"], "learning_rate must be a finite number"),
        (["-O", "learning_rate=abc"], "learning_rate must be a finite number"),
        (["-O", "learning_rate=0"], "positive learning_rate"),
    ],
    ids=_words,
)
def test_reconstruct_refuses_usage(refused, good, tmp_path, arguments, fragments):
    method = [] if "--method" in arguments else ["--method", "map"]
    refused(2, fragments, "reconstruct", good, "-o", tmp_path / "o.nc", *method, *arguments)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("arguments", "fragments"),
    [
        (["foo"], ["unknown regime 'foo'", "balanced"]),
        (["balanced", "--mask", "foo"], ["unknown mask 'foo'", "radial"]),
        (["balanced", "--split", "foo"], ["--split", "'validation'"]),
        (["balanced", "--observed", "foo"], ["--observed", "'pooled'"]),
        (["balanced", "--sparsity", "0"], "above 0 and at most 1"),
        (["balanced", "--sparsity", "nan"], "above 0 and at most 1"),
        (["balanced", "--noise-std", "-1"], "must be positive"),
        (["balanced", "--noise-std", "inf"], "must be positive"),
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


@pytest.mark.parametrize("arguments", [["foo"], ["list", "foo"], ["list"], ["reconstruct"], ["simulate", "balanced"]])
def test_incomplete_commands_are_usage_errors(refused, arguments):
    refused(2, "latentpde", *arguments)


def test_outputs_that_cannot_be_written(refused, good, tmp_path):
    def reconstruct(fragment, output, *arguments):
        refused(2, fragment, "reconstruct", good, "-o", output, *arguments)

    pipe, link = tmp_path / "pipe", tmp_path / "link"
    os.mkfifo(pipe)
    link.symlink_to(pipe)
    before = good.read_bytes()
    reconstruct("does not exist; create it first", tmp_path / "no" / "o.nc")
    reconstruct("it is a folder", tmp_path)
    reconstruct("does not exist", good / "o.nc")
    reconstruct("a device or a pipe", pipe)
    reconstruct("a device or a pipe", link)
    reconstruct("too long", tmp_path / ("a" * 300))
    reconstruct("must be different files", good)
    reconstruct("must be different files", tmp_path / "o.nc", "--report", tmp_path / "o.nc")
    reconstruct("does not exist", tmp_path / "o.nc", "--report", tmp_path / "no" / "r.html")
    refused(2, "does not exist", "simulate", "balanced", "-o", tmp_path / "no" / "s.nc")
    refused(2, "cannot make the folder", "demo", "-o", good / "demo")
    refused(2, "unknown method", "demo", "-o", tmp_path / "demo", "--method", "foo")
    assert good.read_bytes() == before
    assert sorted(p.name for p in tmp_path.iterdir()) == ["link", "pipe"]
    assert pipe.is_fifo()


def test_no_permission(refused, good, tmp_path, monkeypatch):
    (tmp_path / "o.nc").touch()
    protected = [tmp_path / "o.nc"]
    monkeypatch.setattr(os, "access", lambda path, mode, **_: mode != os.W_OK or Path(path) not in protected)
    refused(2, "write-protected", "reconstruct", good, "-o", tmp_path / "o.nc")
    protected.append(tmp_path)
    refused(2, "no permission", "reconstruct", good, "-o", tmp_path / "o.nc")


# Bad data: exit code 3


def _without(*names):
    return lambda ds: ds.drop_attrs(deep=False).assign_attrs({k: v for k, v in ds.attrs.items() if k not in names})


def _attribute(**attributes):
    return lambda ds: ds.assign_attrs(attributes)


def _spoilt(name, value):
    def spoil(ds):
        ds = ds.copy(deep=True)
        ds[name][0, 0, 0] = value
        return ds

    return spoil


CELLS = ("sample", "y_obs", "x_obs")
BAD_DATA = {
    "initial NaN": (_spoilt("initial", np.nan), "initial state has 1 NaN"),
    "initial inf": (_spoilt("initial", np.inf), "initial state has 1 NaN or infinite"),
    "reading inf": (_spoilt("observed", np.inf), "mark missing readings with NaN"),
    "no reading": (lambda ds: ds.assign(observed=ds.observed.where(ds.sample > 0)), "no observation at all in sample"),
    "no observed": (lambda ds: ds.drop_vars("observed"), "expected a variable 'observed'"),
    "no initial": (lambda ds: ds.drop_vars("initial"), "initial state"),
    "nothing": (lambda ds: xr.Dataset(), "no variables"),
    "no noise": (_without("noise_std"), ["how noisy", "--noise-std"]),
    "no time": (_without("time", "family"), ["when they were taken", "--time"]),
    "text": (lambda ds: ds.assign(observed=(CELLS, np.full((2, 8, 8), "a", dtype=object))), "must hold real numbers"),
    "complex": (lambda ds: ds.assign(observed=ds.observed + 0j), "must hold real numbers"),
    "no samples": (lambda ds: ds.isel(sample=slice(0)), "'observed' is empty"),
    "no cells": (lambda ds: ds.isel(x_obs=slice(0)), "'observed' is empty"),
    "extra axis": (lambda ds: ds.expand_dims(level=2), "axis level"),
    "extra initial axis": (
        lambda ds: ds.assign(initial=ds.initial.expand_dims(level=2)),
        "'initial' has an axis level",
    ),
    "axis names": (lambda ds: ds.rename(y_obs="north"), ["y_obs, y, lat", "north"]),
    "initial shape": (
        lambda ds: ds.drop_vars("initial").assign(initial=(("sample", "y", "x"), np.zeros((2, 4, 4)))),
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
    "two times for one": (_attribute(time=[0.1, 0.2]), "1 snapshot(s)"),
    "one time for two": (
        lambda ds: ds.assign(observed=xr.concat([ds.observed] * 2, "time")),
        "2 snapshot(s)",
    ),
    "unknown family": (_attribute(family="foo"), ["unknown PDE family 'foo'", "--pde", "klein_gordon"]),
    **{
        f"{name}={value}": (_attribute(**{name: value}), f"the attribute {name} must be")
        for name, values in {
            "noise_std": (-1.0, 0.0, np.nan, np.inf, "abc", ""),
            "time": (-1.0, np.nan, "noon"),
            "extent": ([1.0, 2.0, 3.0], [-1.0, 1.0], [np.nan, 1.0], "wide", 2.0),
            "pooling": (0, -3, 2.5, "abc"),
            "forcing_std": (-1.0, np.nan, "a"),
            "coefficient_bounds": ([1.0, 2.0], [2.0, 1.0] * 3, [0.0, np.inf] * 3, [np.nan] * 6, "abc"),
        }.items()
        for value in values
    },
    "unknown kind": (_attribute(observed_kind="foo"), ["lowres-solve, pooled, point", "foo"]),
    "points without places": (_attribute(observed_kind="point"), "need sensor positions"),
}


@pytest.mark.parametrize("name", BAD_DATA)
def test_bad_data_is_refused(refused, cases, tmp_path, name):
    spoil, fragments = BAD_DATA[name]
    source, old = tmp_path / "in.nc", tmp_path / "o.nc"
    spoil(cases.to_dataset()).to_netcdf(source, engine="h5netcdf")
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
def test_files_that_are_none(refused, good, tmp_path, content, fragment):
    path = tmp_path / "in.nc"
    path.write_bytes(content(good.read_bytes()))
    refused(3, [str(path), fragment], "reconstruct", path, "-o", tmp_path / "o.nc")
    refused(3, [str(path), fragment], "evaluate", path, good)
    refused(3, [str(path), fragment], "evaluate", good, path)


def test_files_that_are_not_there(refused, good, tmp_path):
    os.mkfifo(tmp_path / "pipe")  # reading it would wait for ever
    refused(2, "there is no file", "reconstruct", tmp_path / "no.nc", "-o", tmp_path / "o.nc")
    refused(2, "is a folder", "reconstruct", tmp_path, "-o", tmp_path / "o.nc")
    refused(2, "a pipe, not a NetCDF file", "reconstruct", tmp_path / "pipe", "-o", tmp_path / "o.nc")
    refused(2, "there is no file", "evaluate", good, tmp_path / "no.nc")


def test_evaluate_refuses(refused, run, good, cases, tmp_path):
    run("reconstruct", good, "-o", tmp_path / "out.nc", "-q", *TINY)
    out = xr.load_dataset(tmp_path / "out.nc", engine="h5netcdf")

    def saved(data, name):
        data.to_netcdf(tmp_path / name, engine="h5netcdf")
        return tmp_path / name

    refused(3, "no truth to compare with", "evaluate", good, tmp_path / "out.nc")  # swapped
    refused(3, "no variable 'mean'", "evaluate", good, good)
    refused(3, "no truth", "evaluate", tmp_path / "out.nc", saved(cases.to_dataset(), "no_truth.nc"))
    refused(3, "has 1 sample(s), the cases 2", "evaluate", saved(out.isel(sample=[0]), "one.nc"), good)
    refused(3, "finite everywhere", "evaluate", saved(out.assign(mean=out["mean"] * np.nan), "nan.nc"), good)
    refused(3, "axes sample, y, x", "evaluate", saved(out.rename(y="lat"), "lat.nc"), good)
    spread = out.drop_vars("quantiles").assign_attrs(has_spread=1)
    refused(3, "no variable 'quantiles'", "evaluate", saved(spread, "spread.nc"), good)


def test_debug_shows_the_traceback(tmp_path):
    with pytest.raises(ValueError, match="there is no file"):
        main(["reconstruct", str(tmp_path / "no.nc"), "-o", str(tmp_path / "o.nc"), "--debug"])


# What must work although it looks odd


def _coarse_times(ds):
    return ds.assign(observed=xr.concat([ds.observed] * 2, "time").assign_coords(time=[0.1, 0.25]))


@pytest.mark.parametrize(
    ("change", "arguments"),
    [
        (lambda ds: ds.transpose("x_obs", "sample", "y_obs"), []),
        (lambda ds: ds.rename(y_obs="lat", x_obs="lon"), []),
        (lambda ds: ds.isel(y_obs=slice(None, None, -1)), []),
        (lambda ds: ds.drop_vars(["y_obs", "x_obs", "sample"]), []),
        (lambda ds: ds.isel(sample=0), []),
        (lambda ds: ds.assign(initial=ds.initial.isel(sample=0, drop=True)), []),
        (lambda ds: ds.assign(observed=(ds.observed.fillna(0) * 10).astype("i4")), []),
        (lambda ds: ds.astype(">f4"), []),
        (lambda ds: ds.assign(mask=ds.observed.notnull().all("sample")), []),
        (lambda ds: ds.assign(noise_std=0.2), []),
        (_coarse_times, []),
        (lambda ds: _coarse_times(ds).drop_vars("time"), ["--time", "0.1", "--time", "0.25"]),
        (_without("noise_std"), ["--noise-std", "0.1"]),
        (_without("family", "time"), ["--pde", "advection-diffusion"]),
        (_attribute(family="foo"), ["--pde", "helmholtz"]),
        (_attribute(), ["--pde", "Klein-Gordon"]),
        (_attribute(), ["--num-modes", "0"]),
        (_attribute(), ["--resolution", "1"]),
        (_attribute(), ["--resolution", "3"]),
        (_attribute(), ["--num-samples", "1000000000"]),
        (_attribute(), ["--bounds", "kappa=0.01:0.1", "--keep-samples"]),
    ],
)
def test_reconstruct_accepts(run, cases, tmp_path, change, arguments):
    change(cases.to_dataset()).to_netcdf(tmp_path / "in.nc", engine="h5netcdf")
    output = ["-o", tmp_path / "o.nc", "-q"]
    assert run("reconstruct", tmp_path / "in.nc", *output, *TINY, *arguments) == (0, "", "")
    assert np.isfinite(xr.load_dataset(tmp_path / "o.nc", engine="h5netcdf")["mean"]).all()


@pytest.mark.parametrize(
    "arguments",
    [
        ["--observed", "point"],
        ["--observed", "pooled", "--mask", "single-patch"],
        ["--no-forcing"],
        ["--time", "0.1", "--time", "0.2", "--observed", "point"],
        ["--split", "train", "--sparsity", "1"],
        ["--resolution", "9", "--pooling", "3"],
    ],
    ids=" ".join,
)
def test_every_kind_of_case_goes_all_the_way(run, tmp_path, arguments):
    base = ["klein-gordon", "--num", "1", "--resolution", "16"]
    assert run("simulate", *base, *arguments, "-o", tmp_path / "c.nc", "-q")[0] == 0
    assert run("reconstruct", tmp_path / "c.nc", "-o", tmp_path / "o.nc", "-q", *TINY)[0] == 0
    code, out, err = run("evaluate", tmp_path / "o.nc", tmp_path / "c.nc", "--json")
    assert code == 0, err
    assert json.loads(out)["rmse"] > 0


# Runs that end early leave nothing behind and destroy nothing


def _left(folder: Path) -> dict[str, str]:
    return {p.name: p.read_text() for p in folder.iterdir()}


def test_interrupted_reconstruction(refused, good, tmp_path, monkeypatch):
    (tmp_path / "o.nc").write_text("old")

    def interrupt(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(methods.get("map"), "minimise", interrupt)
    refused(
        130, "interrupted; nothing was overwritten", "reconstruct", good, "-o", tmp_path / "o.nc", "--method", "map"
    )
    assert _left(tmp_path) == {"o.nc": "old"}


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), pytest.param(signal.SIGTERM, 143, marks=pytest.mark.slow)]
)
def test_interrupted_simulation(tmp_path, number, code):
    (tmp_path / "s.nc").write_text("old")
    command = ["simulate", "balanced", "--num", "1000000", "--resolution", "32", "-o", str(tmp_path / "s.nc")]
    # A job in the background of a shell inherits a deaf ear to Ctrl-C; the program under test shall hear it.
    listening = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
    program = [*PROGRAM[:-1], listening + PROGRAM[-1]]
    with subprocess.Popen([*program, *command], stderr=subprocess.PIPE, text=True) as process:
        try:
            deadline = time.monotonic() + 60
            while not list(tmp_path.glob(".*.part")) and time.monotonic() < deadline:
                time.sleep(0.05)
            process.send_signal(number)
            _, err = process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == code
    assert "Traceback" not in err
    assert _left(tmp_path) == {"s.nc": "old"}


@pytest.mark.parametrize("command", ["simulate", "reconstruct"])
def test_full_disk(tmp_path, good, command):
    """HDF5 ends the whole process where a write fails, even at exit, so only another process shows it."""
    (tmp_path / "o.nc").write_text("old")
    arguments = {
        "simulate": ["simulate", "balanced", "--num", "64", "--resolution", "32"],
        "reconstruct": ["reconstruct", str(good), *TINY, "--resolution", "64"],
    }[command]
    done = subprocess.run(
        [*PROGRAM, *arguments, "-o", str(tmp_path / "o.nc")],
        capture_output=True,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, 40_000)),
    )
    assert done.returncode == 3, done.stderr
    assert done.stderr.startswith("error: cannot write")
    assert done.stderr.count("\n") == 1
    assert "what was there before is unchanged" in done.stderr
    assert _left(tmp_path) == {"o.nc": "old"}


def test_failure_while_writing(run, good, tmp_path, monkeypatch):
    (tmp_path / "o.nc").write_text("old")

    def fail(*args, **kwargs):
        raise RuntimeError("boom")

    monkeypatch.setattr(Posterior, "summary", fail)
    code, _, err = run("reconstruct", good, "-o", tmp_path / "o.nc", *TINY)
    assert code == 1
    assert "RuntimeError: boom" in err
    assert "--debug shows where" in err
    assert "Traceback" not in err
    assert _left(tmp_path) == {"o.nc": "old"}


def test_out_of_memory(run, good, tmp_path, monkeypatch):
    def fail(*args, **kwargs):
        raise RuntimeError("[enforce fail at alloc_cpu.cpp] DefaultCPUAllocator: can't allocate memory")

    monkeypatch.setattr(Posterior, "summary", fail)
    code, _, err = run("reconstruct", good, "-o", tmp_path / "o.nc", *TINY)
    assert code == 1
    assert err == "error: not enough memory; ask for a lower --resolution, or for fewer cases or draws\n"


def test_a_field_that_is_not_finite_is_not_written(refused, good, tmp_path):
    grows = ["--bounds", "kappa=-5000:-4000"]
    refused(1, "found no finite field", "reconstruct", good, "-o", tmp_path / "o.nc", *TINY, *grows)
    assert not list(tmp_path.iterdir())


def test_reader_that_leaves_early():
    process = subprocess.Popen([*PROGRAM, "list", "regimes"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    process.stdout.close()
    err = process.stderr.read()
    process.stderr.close()
    assert process.wait(timeout=60) != 0
    assert err == ""


def test_reconstruct_warns_of_readings_that_nothing_explains(run, good, tmp_path):
    output, page = tmp_path / "out.nc", tmp_path / "report.html"
    code, _, err = run("reconstruct", good, "--noise-std", "0.01", "--num-modes", "1", "-o", output, "--report", page)
    assert code == 0
    assert "warning, case 0: The readings are not explained" in err
    assert "The readings are not explained" in page.read_text()
