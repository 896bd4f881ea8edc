"""What surrounds the program: terminals, disks, permissions, environment. Each test is a process of its own."""

import os
import subprocess
import sys

import pytest
from program import PROGRAM, TINY

from latentpde import registry


def _run(*arguments, **options):
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "timeout": 120, **options}
    return subprocess.run([*PROGRAM, *map(str, arguments)], check=False, **options)


ASCII = {**os.environ, "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "LC_ALL": "C"}


@pytest.mark.parametrize("arguments", [["list", "families"], ["reconstruct", "--help"]], ids=["list", "help"])
def test_a_terminal_that_is_ascii_only(arguments):
    done = _run(*arguments, env=ASCII)
    assert done.returncode == 0, done.stderr
    assert done.stdout.isascii()
    assert done.stderr == ""


def test_messages_on_a_terminal_that_is_ascii_only(tmp_path):
    done = _run("reconstruct", tmp_path / "übung.nc", "-o", tmp_path / "o.nc", env=ASCII)
    assert done.returncode == 2
    assert done.stderr.startswith("error: there is no file")
    assert done.stderr.count("\n") == 1


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no device that is full")
@pytest.mark.parametrize("arguments", [["list", "regimes"], ["--help"], ["--version"]], ids=lambda row: row[0])
def test_a_full_disk_behind_standard_output(arguments):
    with open("/dev/full", "w") as full:
        done = _run(*arguments, stdout=full)
    assert done.returncode == 3
    assert done.stderr == "error: cannot write the output: No space left on device\n"


def test_a_backend_of_matplotlib_that_does_not_exist(case_file, tmp_path):
    environment = {**os.environ, "MPLBACKEND": "nonsense"}
    page = ["--report", tmp_path / "r.html"]
    done = _run("reconstruct", case_file, "-o", tmp_path / "o.nc", "-q", *TINY, *page, env=environment)
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "r.html").read_text("utf-8").startswith("<!DOCTYPE html>")


def test_an_output_of_bytes_that_are_no_utf8(case_file, tmp_path):
    arguments = [b"reconstruct", os.fsencode(case_file), b"-o", b"\xff.nc", *map(os.fsencode, TINY)]
    program = [*map(os.fsencode, PROGRAM), *arguments]
    done = subprocess.run(program, check=False, capture_output=True, cwd=tmp_path, timeout=120)
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"\\udcff.nc" in done.stdout
    assert os.listdir(os.fsencode(tmp_path)) == [b"\xff.nc"]


CLOSED = {
    "reconstruct": ["reconstruct", "closed/in.nc", "-o", "o.nc"],
    "output": ["reconstruct", "CASES", "-o", "closed/o.nc"],
    "report": ["reconstruct", "CASES", "-o", "o.nc", "--report", "closed/r.html"],
    "evaluate": ["evaluate", "closed/in.nc", "CASES"],
    "simulate": ["simulate", "balanced", "-o", "closed/o.nc"],
    "train": ["train", "closed/c.toml"],
    "bench": ["bench", "table1", "--draw-only", "-o", "closed"],
    "bench report": ["bench", "report", "-o", "closed"],
    "demo": ["demo", "-o", "closed"],
    "demo below": ["demo", "-o", "closed/demo"],
    "weights": ["reconstruct", "CASES", "-o", "o.nc", "--method", "enc", "-O", "weights=closed"],
}


_QUICK = ("reconstruct", "bench")  # a process each; the others run with the slow tests


@pytest.mark.parametrize(
    "what", [what if what in _QUICK else pytest.param(what, marks=pytest.mark.slow) for what in CLOSED]
)
def test_a_folder_that_may_not_be_entered(case_file, tmp_path, what):
    (tmp_path / "closed").mkdir()
    (tmp_path / "closed").chmod(0)
    (tmp_path / "cases.nc").write_bytes(case_file.read_bytes())
    arguments = [{"CASES": "cases.nc"}.get(word, word) for word in CLOSED[what]]
    # files of the program are read first, because nobody else may be allowed to
    leave = "import os; os.getuid() or (os.setegid(65534), os.seteuid(65534))"
    loaded = "latentpde.demo, latentpde.bench.page, latentpde.training.loop, latentpde.estimators.learned.enc"
    others = "importlib.readers, concurrent.futures.process, tomllib"
    command = f"import {others}, {loaded}; {leave}; from latentpde.cli import main; main()"
    try:
        for folder in (tmp_path, tmp_path.parent, tmp_path.parent.parent):
            folder.chmod(0o755)
        program = [sys.executable, "-c", command, *arguments]
        done = subprocess.run(program, check=False, capture_output=True, text=True, cwd=tmp_path, timeout=120)
    finally:
        (tmp_path / "closed").chmod(0o755)
    assert done.returncode in (2, 3), done.stderr
    assert done.stderr.startswith("error: ")
    assert "fault in latentpde" not in done.stderr
    assert not list((tmp_path / "closed").iterdir())


# Plugins


class _Entry:
    def __init__(self, name, error):
        self.name, self.value, self._error = name, f"broken_package:{name}", error

    def load(self):
        raise self._error


@pytest.mark.parametrize("error", [ImportError("no such thing"), RuntimeError("broken"), SystemExit(5)], ids=repr)
def test_a_plugin_that_cannot_be_imported(monkeypatch, error):
    monkeypatch.setattr(registry, "entry_points", lambda group: [_Entry("theirs", error)])
    table = registry.Registry("method", "methods", "latentpde.methods")
    table.register("ours", 1)
    assert list(table) == [1]
    assert table.get("ours") == 1
    with pytest.raises(registry.UsageError, match="broken_package:theirs, which cannot be imported"):
        table.get("theirs")


def test_list_says_why_a_plugin_is_not_there(monkeypatch, run):
    from latentpde.estimators import methods

    entry = _Entry("theirs", RuntimeError("broken"))
    monkeypatch.setitem(methods._things, "theirs", None)
    monkeypatch.setitem(methods._loaders, "theirs", entry.load)
    monkeypatch.setitem(methods._plugins, "theirs", entry.value)
    code, out, _ = run("list", "methods")
    assert code == 0
    assert "exact" in out
    assert "not available: the method 'theirs' comes from another package" in out
