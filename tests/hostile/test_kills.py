"""Ctrl-C and kills at any moment: nothing is half written, and a run that is resumed ends as one that was not stopped.

Each command runs once undisturbed, which says how long it takes and what comes out. Then it is stopped at moments that
are spread over its whole run, its start included. Few of them run fast; `pytest -m "" tests/hostile/test_kills.py` does
200 in all.
"""

import json
import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest
from program import PROGRAM

from latentpde.io.tensors import read_tensors

# A job in the background of a shell inherits a deaf ear to Ctrl-C; the program under test shall hear it.
_LISTENING = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
_CONFIG = """
family = "helmholtz"
output = "run"
[data]
num_per_regime = 4
num_validation = 2
shape = [16, 16]
num_modes = 2
[encoder]
epochs = 4
batch_size = 2
[denoiser_map]
epochs = 4
batch_size = 2
num_steps = 20
beta_end = 0.3
map_steps = 5
map_restarts = 1
"""
_RECONSTRUCT = ["reconstruct", "cases.nc", "--method", "map", "-O", "num_steps=40", "--resolution", "64"]
_BENCH = ["bench", "table1", "--num", "2", "--methods", "map,enkf", "--regimes", "helmholtz,diffusion", "-o", "results"]
OLD = "what was there before"


@dataclass(frozen=True)
class Command:
    """A command to stop, and how to look at what it leaves.

    Args:
        arguments: of the program; they name files of the folder that it runs in.
        outputs: files that it writes, there before with other content.
        resumed: arguments that go on where it was stopped; empty where it starts anew.
    """

    arguments: list[str]
    outputs: tuple[str, ...] = ()
    resumed: list[str] | None = None

    def prepare(self, folder: Path, case_file: Path) -> None:
        (folder / "cases.nc").write_bytes(case_file.read_bytes())
        (folder / "config.toml").write_text(_CONFIG)
        for name in self.outputs:
            (folder / name).write_text(OLD)

    def start(self, folder: Path, *, resume: bool = False) -> subprocess.Popen:
        arguments = self.resumed if resume and self.resumed else self.arguments
        return subprocess.Popen(
            [*PROGRAM[:-1], _LISTENING + PROGRAM[-1], *arguments],
            cwd=folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,  # a terminal sends Ctrl-C to all processes of a command
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        )


COMMANDS = {
    "simulate": Command(["simulate", "balanced", "--num", "200", "--resolution", "32", "-o", "out.nc"], ("out.nc",)),
    "reconstruct": Command([*_RECONSTRUCT, "-o", "out.nc", "--report", "out.html"], ("out.nc", "out.html")),
    "store": Command([*_RECONSTRUCT, "-o", "out.zarr", "--workers", "2", "--resume", "--quiet"]),
    "train": Command(["train", "config.toml"], resumed=["train", "config.toml", "--resume"]),
    "bench": Command([*_BENCH]),
    "bench-workers": Command([*_BENCH, "--workers", "2"]),
}


def _finish(process: subprocess.Popen) -> tuple[int, str]:
    try:
        _, err = process.communicate(timeout=300)
    finally:
        process.kill()
    return process.returncode, err


def _stop(process: subprocess.Popen, moment: float, number: signal.Signals) -> tuple[int, str]:
    """Send a signal to all processes of a run, after so many seconds."""
    try:
        process.wait(timeout=moment)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, number)
    return _finish(process)


def _content(path: Path) -> object:
    """What a file holds, without what may differ between two runs that did the same."""
    if path.suffix == ".json" and path.parent.name == "run":
        manifest = json.loads(path.read_text())
        manifest["training"].pop("seconds")
        return manifest
    if path.suffix == ".jsonl":
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        lines = [{name: value for name, value in line.items() if name != "seconds"} for line in lines]
        return sorted(lines, key=json.dumps)
    if path.suffix == ".safetensors":
        tensors, metadata = read_tensors(path)
        return {name: tensor.numpy().tobytes() for name, tensor in tensors.items()}, metadata
    return path.read_bytes()


def _results(folder: Path) -> dict[str, object]:
    """Everything that a finished run has left, but for pictures and tables of seconds."""
    kept = [path for path in sorted(folder.rglob("*")) if path.is_file() and path.suffix not in (".png", ".toml")]
    kept = [path for path in kept if not any(part.endswith(".part") for part in path.parts)]  # a kill may leave some
    kept = [path for path in kept if path.parent.name not in ("tables", "figures") and path.name != "cases.nc"]
    return {str(path.relative_to(folder)): _content(path) for path in kept}


def _temporary(folder: Path) -> set[str]:
    return {path.name for path in folder.rglob("*.part")}


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory, case_file):
    """By the name of a command, what it leaves and how many seconds it takes."""
    known = {}

    def of(name: str):
        if name not in known:
            folder, command = tmp_path_factory.mktemp(name), COMMANDS[name]
            command.prepare(folder, case_file)
            start = time.monotonic()
            code, err = _finish(command.start(folder))
            assert code == 0, err
            known[name] = _results(folder), time.monotonic() - start
        return known[name]

    return of


def _moments(num: int, length: float, seed: str) -> list[tuple[float, signal.Signals]]:
    """Moments in even parts of a run's length, at random within each; Ctrl-C and kill in turn."""
    rng = random.Random(seed)
    numbers = (signal.SIGKILL, signal.SIGINT)
    return [(length * (i + rng.random()) / num, numbers[i % 2]) for i in range(num)]


@pytest.mark.parametrize("name", ["simulate", "reconstruct"])
@pytest.mark.parametrize("num", [2, pytest.param(50, marks=pytest.mark.slow)])
def test_a_stopped_command_leaves_whole_files(name, num, undisturbed, tmp_path, case_file):
    """What was there before, or what an undisturbed run writes; after Ctrl-C nothing else."""
    (expected, length), command = undisturbed(name), COMMANDS[name]
    for i, (moment, number) in enumerate(_moments(num, length, name)):
        folder = tmp_path / str(i)
        folder.mkdir()
        command.prepare(folder, case_file)
        code, err = _stop(command.start(folder), moment, number)
        for output in command.outputs:
            assert (folder / output).read_bytes() == OLD.encode() or _content(folder / output) == expected[output]
        _check_the_end(folder, code, err, number, set())


@pytest.mark.parametrize(
    ("name", "num"),
    [
        ("store", 1),
        ("train", 1),
        ("bench", 1),
        pytest.param("store", 34, marks=pytest.mark.slow),
        pytest.param("train", 34, marks=pytest.mark.slow),
        pytest.param("bench", 34, marks=pytest.mark.slow),
        pytest.param("bench-workers", 32, marks=pytest.mark.slow),
    ],
)
def test_a_resumed_run_ends_as_one_that_was_not_stopped(name, num, undisturbed, tmp_path, case_file):
    """Stopped again and again until it is done, as often as it takes."""
    (expected, length), command = undisturbed(name), COMMANDS[name]
    moments, folder, number = _moments(num, length, name), None, 0
    random.Random(name).shuffle(moments)
    for moment, which in moments:
        if folder is None:
            folder, number = tmp_path / str(number), number + 1
            folder.mkdir()
            command.prepare(folder, case_file)
        before = _temporary(folder)  # a kill may leave some
        code, err = _stop(command.start(folder, resume=True), moment, which)
        _check_the_end(folder, code, err, which, before)
        if code == 0:
            assert _results(folder) == expected
            folder = None
    if folder is not None:
        code, err = _finish(command.start(folder, resume=True))
        assert code == 0, err
        assert _results(folder) == expected


def test_processes_of_a_killed_run_end_with_it(tmp_path):
    """Where the system kills the program alone, as for want of memory, nobody would tell them."""
    arguments = ["bench", "table1", "--num", "20", "--methods", "pinn", "-o", "results", "--workers", "2"]
    process = Command(arguments).start(tmp_path)
    try:
        deadline = time.monotonic() + 120
        while len(workers := _workers(process.pid)) < 2 and time.monotonic() < deadline:
            time.sleep(0.2)
        assert len(workers) == 2
    finally:
        process.kill()
        process.communicate()
    while (left := [pid for pid in workers if Path(f"/proc/{pid}/cmdline").exists()]) and time.monotonic() < deadline:
        time.sleep(0.2)
    assert not left


def _workers(pid: int) -> list[int]:
    """The processes that a run has started to work for it."""
    children = [
        child for thread in Path(f"/proc/{pid}/task").iterdir() for child in (thread / "children").read_text().split()
    ]
    commands = {int(child): Path(f"/proc/{child}/cmdline").read_text() for child in children}
    return [child for child, command in commands.items() if "spawn_main" in command]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_that_python_loses_is_sent_again(number):
    """As in the tidying up of an object, where an exception goes nowhere."""
    program = f"""
import signal, sys, time
from latentpde.cli.interrupts import send_lost_interrupts_again
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
send_lost_interrupts_again()
class Tidied:
    def __del__(self):
        signal.raise_signal({int(number)})
try:
    Tidied()
    time.sleep(60)
except (KeyboardInterrupt, SystemExit) as heard:
    print(type(heard).__name__)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=50)
    assert done.stdout.strip() == ("KeyboardInterrupt" if number is signal.SIGINT else "SystemExit")
    assert not done.stderr


def _check_the_end(folder: Path, code: int, err: str, number: signal.Signals, before: set[str]) -> None:
    """How a process ended that was sent a signal, or was done before it came."""
    if number is signal.SIGKILL:
        assert code in (0, -signal.SIGKILL), err
        return
    # Python itself ends by the signal before it listens and when it has said goodbye
    assert code in (0, 130, -signal.SIGINT) or _before_main(err), err
    assert _temporary(folder) <= before
    assert "Traceback" not in err or _before_main(err), err


def _before_main(err: str) -> bool:
    """Whether Python itself was interrupted, while it started or imported the program."""
    return err.rstrip().endswith("KeyboardInterrupt") and "in main" not in err
