"""The recorded version tells code from other code, and nothing else."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter

import pytest

from latentpde.bench import provenance, run_benchmark
from latentpde.bench.provenance import code_version, describe_version


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A small package in place of this one; returns a function that writes a file of it and gives its version."""
    monkeypatch.setattr(provenance, "PACKAGE", tmp_path)

    def version(name, text):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        code_version.cache_clear()
        return code_version()

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
    assert package("bench/studies/table.py", "TITLE = 1\n") == changed
    assert package("bench/solving.py", "SEED = 1\n") != changed, "but through this"
    before = code_version()
    assert package("nn/trained/some.json", "{}") != before, "other weights are other numbers"


@pytest.mark.slow
def test_the_version_is_the_same_in_another_process():
    program = "from latentpde.bench.provenance import code_version; print(code_version())"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == code_version()


def test_a_table_says_when_it_mixes_versions(tmp_path, guess, monkeypatch):
    options = {"methods": [guess], "regimes": ["diffusion"]}
    shown = run_benchmark("table1", tmp_path, num=1, **options)
    assert shown.versions == Counter({code_version(): 1})
    assert not any("versions" in note for note in shown.tables[0].notes)
    monkeypatch.setattr(provenance, "code_version", lambda: "0.1.0")
    shown = run_benchmark("table1", tmp_path, num=3, **options)
    (note,) = [note for note in shown.tables[0].notes if "versions" in note]
    assert f"{describe_version('0.1.0')}: 2; {code_version()}: 1" in note
    assert "0.1.0, code unknown: 2" in note
    shown = run_benchmark("table1", tmp_path, num=3, again=True, **options)
    assert not any("versions" in note for note in shown.tables[0].notes)
