"""The commands on a Dask cluster that is not theirs: a scheduler and two workers, started as on any cluster."""

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest
import xarray as xr
from program import PROGRAM

from latentpde.bench.studies.cluster import digest
from latentpde.scheduling.workers import connect

RECONSTRUCT = ["reconstruct", "cases.zarr", "--method", "kriging", "--resolution", "16"]
BENCH = ["bench", "table1", "--num", "2", "--methods", "kriging,3dvar", "--regimes", "helmholtz"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("cluster")


@pytest.fixture(scope="module")
def scheduler(folder):
    """The scheduler's file; its workers start in another folder, as they would on another machine."""
    path, elsewhere = folder / "scheduler.json", folder / "elsewhere"
    elsewhere.mkdir()
    dask, of_file = [sys.executable, "-m", "dask"], ["--scheduler-file", str(path)]
    commands = (
        [*dask, "scheduler", *of_file, "--host", "127.0.0.1", "--port", "0", "--no-dashboard"],
        [*dask, "worker", *of_file, "--nworkers", "2", "--nthreads", "1", "--no-dashboard"],
    )
    processes = [subprocess.Popen(command, cwd=elsewhere, stderr=subprocess.DEVNULL) for command in commands]
    try:
        with connect(_written(path)) as client:
            client.wait_for_workers(2, timeout=60)
        yield str(path)
    finally:
        for process in reversed(processes):
            process.terminate()
        for process in reversed(processes):
            process.wait(timeout=30)


def _written(path: Path) -> str:
    for _ in range(600):
        if path.exists() and path.read_text().endswith("}"):
            return str(path)
        time.sleep(0.1)
    raise AssertionError("the scheduler has not started")


def _run(folder: Path, *arguments: str) -> str:
    done = subprocess.run([*PROGRAM, *arguments], cwd=folder, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_simulate_and_reconstruct_give_the_same_bits_on_a_cluster_as_here(folder, scheduler):
    """By the scheduler's file and by its address; in chunks that one worker does not do alone."""
    simulate = ["simulate", "diffusion", "--num", "70", "--resolution", "32"]
    _run(folder, *simulate, "-o", "cases.zarr", "--scheduler", scheduler)
    _run(folder, *simulate, "-o", "here.zarr", "--workers", "1")
    assert digest(folder / "cases.zarr") == digest(folder / "here.zarr")
    address = json.loads(Path(scheduler).read_text())["address"]
    found = _run(folder, *RECONSTRUCT, "--scheduler", address, "-o", "there.zarr", "--json")
    assert json.loads(found)["num_new"] == 70
    assert len(json.loads(found)["memory_mb"]) == 2, "both workers have worked"
    _run(folder, *RECONSTRUCT, "--workers", "1", "-o", "out.zarr")
    with xr.open_zarr(folder / "there.zarr") as there, xr.open_zarr(folder / "out.zarr") as here:
        assert there.done.all()
        assert there.load().equals(here.load())


@pytest.mark.slow
def test_a_benchmark_scores_the_same_on_a_cluster_as_here(folder, scheduler):
    _run(folder, *BENCH, "--scheduler", scheduler, "-o", "there")
    _run(folder, *BENCH, "-o", "here")
    assert _scores(folder / "there") == _scores(folder / "here")


def _scores(results: Path) -> list[dict]:
    lines = [json.loads(line) for path in sorted(results.rglob("*.jsonl")) for line in path.read_text().splitlines()]
    scores = [{k: v for k, v in line.items() if k not in ("seconds", "run")} for line in lines if "index" in line]
    assert scores
    return sorted(scores, key=json.dumps)
