"""The program as people meet it: what it prints and what it writes."""

import json
import subprocess
import sys
import time

import numpy as np
import pytest
import xarray as xr
from program import PROGRAM, TINY, with_attributes, without

from latentpde import __version__

COMMANDS = ["demo", "simulate", "check", "reconstruct", "suggest", "evaluate", "bench", "train", "list"]


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
        assert len(scores["per_case"][name]) == 2
    assert scores["rmse"] == pytest.approx(np.mean(scores["per_case"]["rmse"]))
    assert 0 < scores["rmse"] < 2
    assert sorted(p.name for p in tmp_path.iterdir()) == ["cases.nc", "out.nc"]


def test_reconstruct_json_says_what_was_done(run, case_file, tmp_path):
    code, out, _ = run("reconstruct", case_file, "-o", tmp_path / "o.nc", "--json", "--seed", "5", *TINY)
    summary = json.loads(out)
    assert code == 0
    assert summary["method"] == "map"
    assert summary["num_cases"] == 2
    assert summary["settings"]["num_steps"] == 2
    assert summary["settings"]["seed"] == 5


def test_evaluate_prints_a_table(run, case_file, tmp_path):
    run("reconstruct", case_file, "-o", tmp_path / "o.nc", "-q", *TINY)
    code, out, _ = run("evaluate", tmp_path / "o.nc", case_file)
    assert code == 0
    assert "RMSE" in out
    assert "floor 1e-12" in out
    assert "point estimate" in out


def test_quiet_says_nothing(run, case_file, tmp_path):
    assert run("reconstruct", case_file, "-o", tmp_path / "o.nc", "-q", *TINY) == (0, "", "")


def test_same_seed_same_result(run, case_file, tmp_path):
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        run("reconstruct", case_file, "-o", tmp_path / name, "-q", "--seed", seed, *TINY)
    a, b, c = (xr.load_dataset(tmp_path / name, engine="h5netcdf")["mean"].values for name in "abc")
    np.testing.assert_array_equal(a, b)
    assert (a != c).any()


def test_bare_list_says_what_can_be_listed(run):
    code, out, _ = run("list")
    assert code == 0
    for line in out.splitlines():
        assert run("list", line.split()[0])[0] == 0


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
    for option in ("--output", "--num-draws", "--bounds", "--json", "--sparsity"):
        assert option in done.stdout
    assert "<str>" in done.stdout
    assert "<bool>" not in done.stdout, "a flag takes no value"


def test_demo(run, tmp_path):
    done = subprocess.run([*PROGRAM, "demo", "-o", "new/demo"], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    folder = tmp_path / "new" / "demo"
    assert "Open in a browser: new/demo/report.html" in done.stdout
    assert sorted(p.name for p in folder.iterdir()) == ["cases.nc", "out.nc", "report.html"]
    assert (folder / "report.html").read_text().rstrip().endswith("</html>")
    rmse = json.loads(run("evaluate", folder / "out.nc", folder / "cases.nc", "--json")[1])["rmse"]
    assert f"RMSE {rmse:.3f}" in done.stdout
    assert rmse < 0.06, "the bundled case is of the torus, and must be solved there"


# What must work although it looks odd


def _coarse_times(ds):
    return ds.assign(observed=xr.concat([ds.observed] * 2, "time").assign_coords(time=[0.1, 0.25]))


@pytest.mark.parametrize(
    ("change", "arguments"),
    [
        (lambda ds: ds.transpose("x_obs", "case", "y_obs"), []),
        (lambda ds: ds.rename(y_obs="lat", x_obs="lon"), []),
        (lambda ds: ds.isel(y_obs=slice(None, None, -1)), []),
        (lambda ds: ds.drop_vars(["y_obs", "x_obs", "case"]), []),
        (lambda ds: ds.isel(case=0), []),
        (lambda ds: ds.assign(initial=ds.initial.isel(case=0, drop=True)), []),
        (lambda ds: ds.assign(observed=(ds.observed.fillna(0) * 10).astype("i4")), []),
        (lambda ds: ds.astype(">f4"), []),
        (lambda ds: ds.assign(mask=ds.observed.notnull().all("case")), []),
        (lambda ds: ds.assign(noise_std=0.2), []),
        (_coarse_times, []),
        (lambda ds: _coarse_times(ds).drop_vars("time"), ["--time", "0.1", "--time", "0.25"]),
        (without("noise_std"), ["--noise-std", "0.1"]),
        (without("family", "time"), ["--pde", "advection-diffusion"]),
        (with_attributes(family="foo"), ["--pde", "helmholtz"]),
        (with_attributes(), ["--pde", "Klein-Gordon"]),
        (with_attributes(), ["--num-modes", "0"]),
        (with_attributes(), ["--resolution", "1"]),
        (with_attributes(), ["--resolution", "3"]),
        (with_attributes(), ["--num-draws", "1000000"]),
        (with_attributes(), ["--bounds", "kappa=0.01:0.1", "--keep-draws"]),
    ],
)
def test_reconstruct_accepts(run, case_tree, tmp_path, change, arguments):
    change(case_tree.to_dataset()).to_netcdf(tmp_path / "in.nc", engine="h5netcdf")
    output = ["-o", tmp_path / "o.nc", "-q"]
    code, out, err = run("reconstruct", tmp_path / "in.nc", *output, *TINY, *arguments)
    assert (code, out) == (0, "")
    # two steps of map need not fit the readings, and a missing time is assumed: both are said
    assert all("does not fit its readings" in line or "is assumed" in line for line in err.splitlines())
    assert np.isfinite(xr.load_dataset(tmp_path / "o.nc", engine="h5netcdf")["mean"]).all()


@pytest.mark.parametrize(
    "arguments",
    [
        ["--observed", "point"],
        ["--observed", "pooled", "--mask", "single-patch"],
        ["--no-source"],
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


def test_reconstruct_warns_of_readings_that_nothing_explains(run, case_file, tmp_path):
    output, page = tmp_path / "out.nc", tmp_path / "report.html"
    code, _, err = run(
        "reconstruct", case_file, "--noise-std", "0.01", "--num-modes", "1", "-o", output, "--report", page
    )
    assert code == 0
    assert "warning: case 0: The readings are not explained" in err
    assert "The readings are not explained" in page.read_text()
