"""The recorded version tells code from other code, and nothing else."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter

import pytest

from latentpde.bench import provenance, run_benchmark
from latentpde.bench.lines import read_entries
from latentpde.bench.provenance import code_version, describe_version


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A small package in place of this one; returns a function that writes a file of it and gives its version."""
    monkeypatch.setattr(provenance, "PACKAGE", tmp_path)

    def version(name, text, method=None):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        code_version.cache_clear()
        return code_version(method)

    yield version
    code_version.cache_clear()


def test_code_counts_and_words_do_not(package):
    first = package("pde/heat.py", "def k(x):\n    return 2 * x\n")
    assert (
        package("pde/heat.py", '"""About heat."""\n\n\ndef k(x):\n    """Twice."""\n    return (2 * x)  # twice\n')
        == first
    )
    changed = package("pde/heat.py", "def k(x):\n    return 3 * x\n")
    assert changed != first
    assert package("report/page.py", "COLOUR = 1\n") == changed, "no score passes through a report"
    assert package("cli/help.py", "WIDTH = 1\n") == changed, "nor through the command line"
    assert package("web/api.py", "PORT = 1\n") == changed, "nor through a web page"
    assert package("bench/studies/table.py", "TITLE = 1\n") == changed
    assert package("bench/solving.py", "SEED = 1\n") != changed, "but through this"
    before = code_version()
    assert package("nn/trained/some.json", "{}") != before, "other weights are other numbers"


def test_lines_of_a_method_outlast_changes_of_another(package):
    first = package("estimators/enkf.py", "CYCLES = 2\n", method="enkf")
    assert package("estimators/exact/search.py", "ROUNDS = 1\n", method="enkf") == first, "it runs no search"
    assert package("questions/design.py", "NEXT = 1\n", method="enkf") == first, "nor asks a question"
    assert package("grid/grid.py", "N = 1\n", method="enkf") != first, "but it has a grid"
    searched = package("grid/grid.py", "N = 1\n", method="exact")
    assert package("estimators/exact/search.py", "ROUNDS = 2\n", method="exact") != searched
    studied = package("grid/grid.py", "N = 1\n")
    assert package("questions/design.py", "NEXT = 2\n") != studied, "a study may run all of it"


@pytest.mark.slow
def test_the_version_is_the_same_in_another_process():
    program = "from latentpde.bench.provenance import code_version; print(code_version())"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == code_version()


def test_a_table_says_when_it_mixes_versions(tmp_path, guess, monkeypatch):
    options = {"methods": [guess], "regimes": ["diffusion"]}
    shown = run_benchmark("table1", tmp_path, num=1, **options)
    assert shown.versions == {guess: Counter({code_version(guess): 1})}
    assert not any("versions" in note for note in shown.tables[0].notes)
    monkeypatch.setattr(provenance, "code_version", lambda method=None: "0.1.0")
    shown = run_benchmark("table1", tmp_path, num=3, **options)
    (note,) = [note for note in shown.tables[0].notes if "versions" in note]
    assert f"{describe_version('0.1.0')}: 2; {code_version(guess)}: 1" in note
    assert "0.1.0, code unknown: 2" in note
    shown = run_benchmark("table1", tmp_path, num=3, again=True, **options)
    assert not any("versions" in note for note in shown.tables[0].notes)


def test_what_other_versions_made_is_run_anew_and_the_rest_is_kept(tmp_path, guess, monkeypatch):
    options, now = {"methods": [guess], "regimes": ["diffusion"]}, code_version(guess)
    with monkeypatch.context() as patch:
        patch.setattr(provenance, "code_version", lambda method=None: "0.1.0")
        run_benchmark("table1", tmp_path, num=2, **options)
    path = tmp_path / "runs" / f"{guess}.jsonl"
    run_benchmark("table1", tmp_path, num=1, outdated=True, **options)
    kept = [entry for entry in read_entries(path) if entry.line["index"] == 0]
    assert [entry.header["version"] for entry in kept] == [now]
    shown = run_benchmark("table1", tmp_path, num=2, outdated=True, **options)
    assert shown.versions == {guess: Counter({now: 2})}
    assert [entry for entry in read_entries(path) if entry.line["index"] == 0] == kept, "seconds and all"
