"""Runs that end early leave nothing behind and destroy nothing."""

import gc
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from program import PROGRAM, TINY

from latentpde.estimators import methods
from latentpde.io.streaming import _HDF5File, append_cases, signals_wait
from latentpde.posterior.summary import Summary
from latentpde.simulation import Simulation


def _left(folder: Path) -> dict[str, str]:
    return {p.name: p.read_text() for p in folder.iterdir()}


def test_interrupted_reconstruction(refused, case_file, tmp_path, monkeypatch):
    (tmp_path / "o.nc").write_text("old")

    def interrupt(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(methods.get("map"), "minimise", interrupt)
    refused(
        130,
        "interrupted; nothing was overwritten",
        "reconstruct",
        case_file,
        "-o",
        tmp_path / "o.nc",
        "--method",
        "map",
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
def test_full_disk(tmp_path, case_file, command):
    """HDF5 ends the whole process where a write fails, even at exit, so only another process shows it."""
    (tmp_path / "o.nc").write_text("old")
    arguments = {
        "simulate": ["simulate", "balanced", "--num", "64", "--resolution", "32"],
        "reconstruct": ["reconstruct", str(case_file), *TINY, "--resolution", "64"],
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


def test_failure_while_writing(run, case_file, tmp_path, monkeypatch):
    (tmp_path / "o.nc").write_text("old")

    def fail(*args, **kwargs):
        raise RuntimeError("boom")

    monkeypatch.setattr(Summary, "of", fail)
    code, _, err = run("reconstruct", case_file, "-o", tmp_path / "o.nc", *TINY)
    assert code == 1
    assert "RuntimeError: boom" in err
    assert "--debug shows where" in err
    assert "Traceback" not in err
    assert _left(tmp_path) == {"o.nc": "old"}


def test_out_of_memory(run, case_file, tmp_path, monkeypatch):
    def fail(*args, **kwargs):
        raise RuntimeError("[enforce fail at alloc_cpu.cpp] DefaultCPUAllocator: can't allocate memory")

    monkeypatch.setattr(Summary, "of", fail)
    code, _, err = run("reconstruct", case_file, "-o", tmp_path / "o.nc", *TINY)
    assert code == 1
    assert err == "error: not enough memory; ask for a lower --resolution, or for fewer cases or draws\n"


def test_a_field_that_is_not_finite_is_not_written(refused, case_file, tmp_path):
    grows = ["--bounds", "kappa=-5000:-4000"]
    refused(3, "found no finite field", "reconstruct", case_file, "-o", tmp_path / "o.nc", *TINY, *grows)
    assert not list(tmp_path.iterdir())


def test_reader_that_leaves_early():
    process = subprocess.Popen([*PROGRAM, "list", "regimes"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    process.stdout.close()
    err = process.stderr.read()
    process.stderr.close()
    assert process.wait(timeout=60) != 0
    assert err == ""


@pytest.fixture
def hears_ctrl_c():
    """A job in the background of a shell does not."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("hears_ctrl_c")
@pytest.mark.parametrize(("method", "call"), [("write", 1), ("write", 9), ("seek", 5), ("truncate", 1)])
def test_ctrl_c_inside_hdf5_waits_until_the_file_can_be_closed(tmp_path, monkeypatch, method, call):
    path = tmp_path / "cases.nc"
    path.write_text("old")
    original, calls, unraisable = getattr(_HDF5File, method), [], []

    def interrupted(self, *args):
        calls.append(method)
        if len(calls) == call:
            signal.raise_signal(signal.SIGINT)
        return original(self, *args)

    simulation = Simulation(regime="balanced", shape=(16, 24), pooling=4, sparsity=0.3)
    monkeypatch.setattr(_HDF5File, method, interrupted)
    monkeypatch.setattr(sys, "unraisablehook", unraisable.append)
    with pytest.raises(KeyboardInterrupt):
        append_cases(simulation.batches(4, size=1), path, 4)
    gc.collect()
    assert len(calls) >= call
    assert not unraisable
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["cases.nc"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.usefixtures("hears_ctrl_c")
def test_signals_that_waited_leave_the_handlers_as_they_were(monkeypatch):
    """Both at once, and another while handlers are put back: each is heard, and none stays deaf."""
    heard = []
    before = signal.signal(signal.SIGTERM, lambda number, _: heard.append(number))
    mine = signal.getsignal(signal.SIGTERM)
    set_handler = signal.signal

    def interrupted(number, handler):
        result = set_handler(number, handler)
        if handler in (mine, signal.default_int_handler):
            signal.raise_signal(signal.SIGINT)
        return result

    def both():
        with signals_wait():
            signal.raise_signal(signal.SIGTERM)
            signal.raise_signal(signal.SIGINT)
            assert not heard

    monkeypatch.setattr(signal, "signal", interrupted)
    try:
        with pytest.raises(KeyboardInterrupt):
            both()
        assert heard == [signal.SIGTERM]
        assert signal.getsignal(signal.SIGTERM) is mine
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        monkeypatch.undo()
        signal.signal(signal.SIGTERM, before)
