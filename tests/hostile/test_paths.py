"""Names of files and folders that cannot be read or written, for every command."""

import os
import shutil
from pathlib import Path

import pytest
from program import TINY

LONG = "a" * 300


def _loop() -> str:
    Path("one").symlink_to("two")
    Path("two").symlink_to("one")
    return "one"


def _dangling() -> str:
    Path("link").symlink_to("nowhere")
    return "link"


def _pipe() -> str:
    os.mkfifo("pipe")
    return "pipe"


#: What a name is like: the name, or what makes it and gives it.
NAMES = {
    "long": LONG,
    "very long": "a/" * 3000,
    "not UTF-8": "\udcff/\udcfe.nc",
    "with a NUL": "a\0b",
    "a device": "/dev/null",
    "the full device": "/dev/full",
    "a loop of links": _loop,
    "below a file": "o.nc/x.nc",
    "below nothing": "no/such/folder/x.nc",
    "a folder": ".",
    "a pipe": _pipe,
    "an address": "http://localhost/x.nc",
}
INPUTS = {**NAMES, "empty": "", "absent": "absent.nc", "a link to nothing": _dangling}

READ = {
    "reconstruct": (["reconstruct", None, "-o", "o.nc", *TINY], "o.nc"),
    "fine initial": (["reconstruct", "CASES", "-o", "o.nc", "--fine-initial", None, *TINY], "o.nc"),
    "evaluate": (["evaluate", None, "CASES"], "o.nc"),
    "evaluate cases": (["evaluate", "OUT", None], "o.nc"),
    "train": (["train", None], "o.nc"),
    "weights": (["reconstruct", "CASES", "-o", "o.nc", "--method", "enc", "-O", "weights={}"], "o.nc"),
}
WRITTEN = {
    "reconstruct": ["reconstruct", "CASES", "-o", None, *TINY],
    "report": ["reconstruct", "CASES", "-o", "other.nc", "--report", None, *TINY],
    "simulate": ["simulate", "balanced", "-o", None, "--num", "1"],
}
FOLDERS = {
    "demo": ["demo", "-o", None],
    "bench": ["bench", "table1", "--num", "1", "--methods", "map", "--regimes", "helmholtz", "-o", None],
}


def _filled(arguments, name, case_file, out_file):
    known = {None: name, "CASES": case_file, "OUT": out_file}
    return [known.get(a, a.format(name) if isinstance(a, str) else a) for a in arguments]


@pytest.mark.parametrize("what", INPUTS)
@pytest.mark.parametrize("command", READ)
def test_what_cannot_be_read(refuses, case_file, out_file, tmp_path, monkeypatch, command, what):
    monkeypatch.chdir(tmp_path)
    name = INPUTS[what]() if callable(INPUTS[what]) else INPUTS[what]
    arguments, old = READ[command]
    refuses(2, [], *_filled(arguments, name, case_file, out_file), old=old)


@pytest.mark.parametrize("what", NAMES)
@pytest.mark.parametrize("command", WRITTEN)
def test_what_cannot_be_written(refuses, case_file, out_file, tmp_path, monkeypatch, command, what):
    monkeypatch.chdir(tmp_path)
    name = NAMES[what]() if callable(NAMES[what]) else NAMES[what]
    words = [] if what == "with a NUL" else "cannot write"  # the shell's part of the program refuses it
    refuses(2, words, *_filled(WRITTEN[command], name, case_file, out_file))


@pytest.mark.parametrize(
    "what", ["long", "very long", "with a NUL", "a device", "a loop of links", "a pipe", "below a file"]
)
@pytest.mark.parametrize("command", FOLDERS)
def test_folders_that_cannot_be_made(refuses, tmp_path, monkeypatch, command, what):
    monkeypatch.chdir(tmp_path)
    name = NAMES[what]() if callable(NAMES[what]) else NAMES[what]
    words = [] if what == "with a NUL" else "cannot"
    refuses(2, words, *_filled(FOLDERS[command], name, None, None))


@pytest.mark.parametrize("taken", ["cases.nc", "out.nc", "report.html"])
def test_demo_checks_all_its_outputs_first(refuses, tmp_path, taken):
    (tmp_path / "demo" / taken).mkdir(parents=True)
    refuses(2, "it is a folder", "demo", "-o", "demo")
    shutil.rmtree(tmp_path / "demo")


def test_an_output_whose_name_is_not_utf8_is_written(run, case_file, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, _, err = run("reconstruct", case_file, "-o", "\udcff.nc", "-q", *TINY)
    assert (code, err) == (0, "")
    assert os.listdir(os.fsencode(tmp_path)) == [b"\xff.nc"]
