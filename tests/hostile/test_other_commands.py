"""Wrong inputs of `simulate`, `train`, `bench`, `list` and `demo`, a row each."""

import json
import os
from pathlib import Path

import pytest

HUGE = str(10**30)
SURROGATE = "\udcff"

SIMULATE = {
    "--num": [HUGE, "1000000000", "0", "-1", "abc", ""],
    "--seed": [HUGE, "-1", "4294967296", "abc"],
    "--sparsity": ["0", "1.1", "-1", "nan", "inf", "abc"],
    "--noise-std": ["5e-324", "1e300", "0", "nan", "inf", "-1"],
    "--resolution": [HUGE, "1000000", "100000", "5", "1", "abc"],
    "--pooling": [HUGE, "0", "3", "129", "abc"],
    "--time": ["1e300", "nan", "inf", "-1", "abc"],
    "--mask": ["", "foo", "a" * 300, SURROGATE],
    "--split": ["foo", ""],
    "--observed": ["foo", ""],
}
ROWS = [
    *(["simulate", "balanced", option, value] for option, values in SIMULATE.items() for value in values),
    *(["simulate", regime] for regime in ("", "foo", "../balanced", "a" * 300, SURROGATE)),
    ["simulate", "balanced", "--num", "10000000"],
]


def _name(row) -> str:
    return " ".join(map(str, row)).encode("ascii", "replace")[:50].decode()


@pytest.mark.parametrize("arguments", ROWS, ids=_name)
def test_simulate(refuses, arguments):
    refuses(2, [], *arguments, "-o", "o.nc")


BENCH = [
    *(["table1", "--num", value] for value in (HUGE, "1000000000", "0", "-1", "abc")),
    *(["table1", "--workers", value] for value in (HUGE, "0", "-1", "abc")),
    *(["table1", "--methods", value] for value in ("", ",", "foo", "exact,,map", "exact,foo", "a" * 300, SURROGATE)),
    *(["table1", "--regimes", value] for value in ("", ",", "foo", SURROGATE)),
    *([name] for name in ("", "foo", "tabel1", "a" * 300, SURROGATE)),
]
OTHERS = [
    ["list", "foo"],
    ["list", ""],
    ["list", "families", "x"],
    ["list", "--foo"],
    ["demo", "x"],
    ["demo", "-o", ""],
    ["demo", "--output="],
    ["bench", "table1", "-o", ""],
    ["demo", "--method", ""],
    ["demo", "--method", "foo"],
    ["demo", "--method", SURROGATE],
    ["evaluate"],
    ["evaluate", "one.nc"],
    ["evaluate", "a", "b", "c"],
    ["train"],
    ["reconstruct"],
    ["foo"],
    [""],
    ["--foo"],
    [SURROGATE],
]


@pytest.mark.parametrize("arguments", [["bench", *row, "-o", "results"] for row in BENCH] + OTHERS, ids=_name)
def test_bench_and_others(refuses, arguments):
    refuses(2, [], *arguments)


HEADER = '{"id": "a", "method": "exact", "regime": "balanced", "version": "1"}\n'


@pytest.mark.parametrize(
    "content",
    [
        b"\xff\xfe\x00\n",
        b"",
        b"hello\n",
        b"[1, 2]\n",
        b'{"id": [1]}\n',
        b'{"run": [1], "index": 0}\n',
        HEADER.encode() + b'{"run": "a", "index": "x"}\n',
        HEADER.encode() + b'{"run": "a", "index": [0]}\n',
        b'{"id": "a", "method": [5]}\n{"run": "a", "index": 0}\n',
        b"[" * 100_000 + b"\n",
    ],
    ids=["binary", "empty", "text", "list", "id", "run", "index", "list of index", "method", "brackets"],
)
def test_lines_of_runs_that_are_none(refuses, tmp_path, content):
    (tmp_path / "results" / "runs").mkdir(parents=True)
    (tmp_path / "results" / "runs" / "exact.jsonl").write_bytes(content)
    refuses(3, "nothing of table1 has been run", "bench", "table1", "--draw-only", "-o", "results")


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir], ids=["pipe", "folder"])
def test_lines_of_runs_that_cannot_be_read(refuses, tmp_path, make):
    (tmp_path / "results" / "runs").mkdir(parents=True)
    make(tmp_path / "results" / "runs" / "exact.jsonl")
    refuses(2, "exact.jsonl is a", "bench", "table1", "--draw-only", "-o", "results")


TABLE = {"title": "a", "columns": ["b"], "rows": [[1]]}


@pytest.mark.parametrize(
    "content",
    [
        "{",
        "[]",
        '"abc"',
        "\x00",
        json.dumps({"tables": [{}]}),
        json.dumps({"tables": [{**TABLE, "rows": 5}]}),
        json.dumps({"tables": [{**TABLE, "columns": [1]}]}),
        json.dumps({"tables": [{**TABLE, "title": None}]}),
        json.dumps({"title": "a"}),
    ],
    ids=lambda content: content[:50].replace("\x00", "NUL"),
)
def test_stored_tables(refuses, tmp_path, content):
    (tmp_path / "results" / "tables").mkdir(parents=True)
    (tmp_path / "results" / "tables" / "table1.json").write_text(content)
    refuses(3, ["table1.json is damaged", "make it again"], "bench", "report", "-o", "results")


# Configurations of trainings

TOP = 'family = "helmholtz"\noutput = "run"\n'
CONFIGURATIONS = {
    "": "",
    "not TOML": "a =",
    "brackets": "a = " + "[" * 20_000,
    "no family": 'output = "x"\n[encoder]\n',
    "family of a number": 'family = 5\noutput = "x"\n[encoder]\n',
    "unknown family": 'family = "foo"\noutput = "x"\n[encoder]\n',
    "no stage": TOP,
    "unknown key": f"{TOP}foo = 1\n[encoder]\n",
    "stage of a number": f"{TOP}encoder = 5\n",
    "data of a number": f"{TOP}data = 5\n[encoder]\n",
    "unknown preset": f'preset = "foo"\n{TOP}[encoder]\n',
    "regime of another family": f'regimes = ["balanced"]\n{TOP}[encoder]\n',
    "unknown regime": f'regimes = ["foo"]\n{TOP}[encoder]\n',
    "precision": f'mixed_precision = "fp8"\n{TOP}[encoder]\n',
    **{f"seed {value}": f"seed = {value}\n{TOP}[encoder]\n" for value in (-1, HUGE, 2**32, '"a"', 1.5)},
    **{
        f"encoder {line}": f"{TOP}[encoder]\n{line}\n"
        for line in (
            "epochs = 0",
            f"epochs = {HUGE}",
            "epochs = 1.5",
            f"batch_size = {HUGE}",
            "learning_rate = nan",
            "learning_rate = inf",
            "learning_rate = 1e300",
            "learning_rate = 0",
            "weight_decay = 1e300",
            "warmup = nan",
            "warmup = 2",
            "latent_weight = inf",
            "clip = 0",
            "foo = 1",
        )
    },
    **{
        f"data {line}": f"{TOP}[data]\n{line}\n[encoder]\n"
        for line in (
            f"num_per_regime = {HUGE}",
            "num_per_regime = 1000000000000",
            "num_per_regime = 0",
            "shape = [0, 0]",
            "shape = [-4, 4]",
            "shape = [4, 4, 4]",
            "shape = [4, 4]",
            "shape = [8, 8]",
            'shape = "ab"',
            "shape = [1000000000000, 4]",
            f"pooling = {HUGE}",
            f"num_modes = {HUGE}",
            "noise_std = nan",
            "noise_std = inf",
            "noise_std = 1e300",
            "noise_std = 0",
        )
    },
    **{
        f"denoiser {line}": f"{TOP}[denoiser_true]\n{line}\n"
        for line in (
            "beta_start = 0.5\nbeta_end = 0.1",
            "beta_start = nan",
            "num_steps = 100000000",
            f"noises_per_case = {HUGE}",
            "drop = 1",
        )
    },
    **{f"fundps {line}": f"{TOP}[fundps]\n{line}\n" for line in ("log_sigma_mean = nan", f"coarsening = {HUGE}")},
}


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_configurations(refuses, tmp_path, name):
    (tmp_path / "c.toml").write_text(CONFIGURATIONS[name])
    refuses(2, [], "train", "c.toml")


@pytest.mark.parametrize("output", ["a\\u0000b", "a" * 300, "c.toml", "c.toml/x", "/dev/null"], ids=lambda o: o[:12])
def test_folders_of_trainings(refuses, tmp_path, output):
    (tmp_path / "c.toml").write_text(f'family = "helmholtz"\noutput = "{output}"\n[encoder]\n')
    refuses(2, "cannot make the folder", "train", "c.toml")


@pytest.mark.parametrize(
    "arguments", [["foo"], ["c.toml", "--stage", "foo"], ["c.toml", "--stage", "fundps"]], ids=_name
)
def test_trainings(refuses, tmp_path, arguments):
    Path(tmp_path / "c.toml").write_text(f"{TOP}[encoder]\nepochs = 1\n")
    refuses(2, [], "train", *arguments)
