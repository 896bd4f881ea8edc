"""What fuzzing found, one test each; without its mending each of these hung or raised something else than a refusal."""

import json
import struct
import subprocess
import sys

import numpy as np
import pytest
import xarray as xr
from tiny_weights import write_tiny

from latentpde.bench import run_benchmark
from latentpde.bench.benchmark import Study, benchmarks
from latentpde.bench.lines import read_entries
from latentpde.bench.page import write_page
from latentpde.bench.tables import Table
from latentpde.errors import DataError
from latentpde.io.netcdf import open_cases, open_observed
from latentpde.io.observations import observation_from_dataset
from latentpde.nn.weights import load_weights
from latentpde.pde import get_family
from latentpde.training.log import TrainingLog

HELMHOLTZ = get_family("helmholtz")


@pytest.mark.parametrize("opened", [open_cases, open_observed])
def test_a_heap_without_an_end(opened, case_file, tmp_path):
    """HDF5 itself goes through such a heap for ever, and Ctrl-C does not reach it."""
    content = bytearray(case_file.read_bytes())
    start = content.index(b"GCOL")
    assert struct.unpack_from("<H", content, start + 16) != (0,), "the first object is in use"
    content[start + 16 : start + 32] = bytes(16)  # free space, of the length zero
    (tmp_path / "damaged.nc").write_bytes(content)
    with pytest.raises(DataError, match="a heap of it at byte"):
        opened(tmp_path / "damaged.nc")


def test_a_damaged_head_of_the_root_group_leaves_no_traceback(case_file, tmp_path):
    """h5netcdf left an object behind that could not be closed, and Python said so after the message."""
    content = bytearray(case_file.read_bytes())
    content[content.index(b"OHDR") + 40] ^= 0xFF
    (tmp_path / "damaged.nc").write_bytes(content)
    program = "import sys; from latentpde.cli import main; main()"
    command = [sys.executable, "-c", program, "reconstruct", "damaged.nc", "-o", "out.nc"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 3, done.stderr
    assert done.stderr.startswith("error: cannot read damaged.nc")
    assert done.stderr.count("\n") == 1


def test_a_name_with_a_slash_in_a_file_of_the_old_format(tmp_path):
    data = xr.Dataset({"obsXrved": (("y", "x"), np.zeros((2, 2)))})
    data.to_netcdf(tmp_path / "old.nc", engine="scipy", format="NETCDF3_CLASSIC")
    (tmp_path / "old.nc").write_bytes((tmp_path / "old.nc").read_bytes().replace(b"obsXrved", b"obs/rved"))
    with pytest.raises(DataError, match="obs/rved"):
        open_cases(tmp_path / "old.nc")


def test_a_family_that_is_an_empty_list():
    values = (("y", "x"), np.ones((3, 3)))
    data = xr.Dataset({"observed": values, "initial": values}, attrs={"noise_std": 0.1, "family": np.array([])})
    with pytest.raises(DataError, match="family"):
        observation_from_dataset(data)


@pytest.mark.parametrize(
    "change",
    [
        {"schedule": {"num_steps": 20, "beta_start": 1e-3, "betA_end": 0.3}},
        {"schedule": {"num_steps": 1e8, "beta_start": 1e-3, "beta_end": 0.3}},
        {"schedule": {"beta_start": 1e-3, "beta_end": 0.3}},
        {"schedule": {"num_steps": 20, "beta_start": 0.5, "beta_end": 0.3}},
        {"std": [0.0] * 19},
        {"mean": [float("nan")] * 19},
        {"num_modes": 10**8},
        {"num_modes": -1},
    ],
    ids=lambda change: " ".join(change),
)
def test_manifests_with_other_values(change, tmp_path):
    path = write_tiny(tmp_path, HELMHOLTZ, "denoiser_true")
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(DataError):
        load_weights("denoiser_true", HELMHOLTZ, tmp_path)


@pytest.mark.parametrize(
    ("name", "value"),
    [("denoiser_blocks", 10**8), ("encoder_layers", 10**8), ("denoiser_width", 10**15), ("groups", 0), ("pool", "two")],
)
def test_manifests_of_impossible_networks(name, value, tmp_path):
    path = write_tiny(tmp_path, HELMHOLTZ, "denoiser_true")
    manifest = json.loads(path.read_text())
    manifest["size"][name] = value
    path.write_text(json.dumps(manifest))
    with pytest.raises(DataError):
        load_weights("denoiser_true", HELMHOLTZ, tmp_path)


@pytest.mark.parametrize(
    "content",
    [
        "3",
        "{}x",
        '{"tables": [{}]}',
        '{"tables": 3}',
        '{"tables": [{"title": 1, "columns": [], "rows": []}]}',
        "[" * 5000,
    ],
)
def test_stored_tables_that_are_damaged(content, tmp_path):
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables" / "table1.json").write_text(content)
    with pytest.raises(DataError, match=r"table1.json is damaged.*latentpde bench table1"):
        write_page(tmp_path)
    assert not (tmp_path / "bench.html").exists()


@pytest.mark.parametrize(
    "damage",
    [
        lambda line: line.replace(b"rmse", b"rm\xffse"),
        lambda line: line.replace(b'"index": 0', b'"index": [0]'),
        lambda line: line.replace(b'"rmse": ', b'"rmse": "text", "old": '),
        lambda line: line.replace(b'"run": ', b'"run": [], "old": '),
        lambda line: b"[" * 5000 + line,
    ],
)
def test_stored_lines_that_are_damaged_are_run_again(damage, tmp_path, guess):
    options = {"num": 1, "methods": [guess], "regimes": ["diffusion"]}
    before = run_benchmark("table1", tmp_path, **options).tables
    path = tmp_path / "runs" / f"{guess}.jsonl"
    header, line = path.read_bytes().splitlines()
    path.write_bytes(header + b"\n" + damage(line) + b"\n")
    again = run_benchmark("table1", tmp_path, **options)
    assert not again.missing
    assert [cells[1] for cells in again.tables[0].rows] == [cells[1] for cells in before[0].rows]


def test_a_log_of_training_that_is_cut_or_lost(tmp_path):
    path = tmp_path / "log.jsonl"
    log = TrainingLog(path, epoch=0)
    for epoch in (1, 2):
        log.add(epoch, {"loss": 0.5}, {"loss": 0.25}, seconds=1.0)
    first = path.read_text().splitlines()[0]
    path.write_text(first + "\n" + first.partition('"seconds"')[0].rstrip(", "))  # ends in a brace
    assert [row["epoch"] for row in TrainingLog(path, epoch=2).rows] == [1]
    path.unlink()
    assert TrainingLog(path, epoch=2).summary() == {}


def test_a_study_that_is_stopped_while_it_runs_anew_keeps_what_it_had(tmp_path, guess):
    class Counting(Study):
        name, title, timed, fails = "counting", "a study", True, False

        def missing_tasks(self, plan):
            return [number for number in (1, 2) if number not in [line["number"] for line in self.lines(plan)]]

        def run_task(self, task):
            if self.fails and task == 2:
                raise KeyboardInterrupt
            return [{"number": task}]

        def show(self, plan):
            return [Table("numbers", ("number",), tuple((str(line["number"]),) for line in self.lines(plan)))]

    study = Counting()
    benchmarks.register("counting", study)
    try:
        run_benchmark("counting", tmp_path)
        study.fails = True
        with pytest.raises(KeyboardInterrupt):
            run_benchmark("counting", tmp_path, again=True)
        path = tmp_path / "runs" / "counting.jsonl"
        assert [entry.line["number"] for entry in read_entries(path)] == [1, 2, 1]
        study.fails = False
        assert len(run_benchmark("counting", tmp_path, again=True).tables[0].rows) == 2
    finally:
        benchmarks.unregister("counting")
