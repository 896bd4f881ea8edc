"""README and docs say what results/ holds, and results/ holds what the lines give."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from latentpde.bench import benchmarks, run_benchmarks

ROOT = Path(__file__).parents[2]
TOOL = ROOT / "tools" / "write_results.py"
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def checked(root: Path) -> subprocess.CompletedProcess:
    tool = root / "tools" / TOOL.name
    return subprocess.run([sys.executable, tool, "--check"], capture_output=True, text=True, check=False)


def test_no_number_of_readme_and_docs_is_stale():
    done = checked(ROOT)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_tables_are_what_the_lines_give(tmp_path):
    """`make results` has been run since the lines or the way to draw them changed."""
    shutil.copytree(ROOT / "results" / "runs", tmp_path / "runs")
    list(run_benchmarks([benchmark.name for benchmark in benchmarks], tmp_path, draw_only=True))
    kept, drawn = (
        {path.name: path for path in (root / "tables").glob("*.json")} for root in (ROOT / "results", tmp_path)
    )
    assert kept.keys() == drawn.keys()
    for name, path in kept.items():
        assert path.read_text() == drawn[name].read_text(), name


@pytest.fixture
def copy(tmp_path):
    """README, docs and results in another place, to be spoilt."""
    for name in ("tools", "docs"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("_build", "images"))
    shutil.copytree(
        ROOT / "results", tmp_path / "results", ignore=shutil.ignore_patterns("runs", "figures", "pictures")
    )
    shutil.copy(ROOT / "README.md", tmp_path)
    return tmp_path


def test_a_stale_number_is_found_and_written_anew(copy):
    path = copy / "results" / "tables" / "table1.json"
    table = json.loads(path.read_text())
    rows = {cells[0]: cells for cells in table["tables"][1]["rows"]}
    rows["exact"][1] = "0.1234 ± 0.0015"
    path.write_text(json.dumps(table))
    done = checked(copy)
    assert done.returncode == 1
    assert re.search(r"docs/benchmarks.md: table1/klein/exact/RMSE: '[\d.]+', now '0.1234'", done.stderr)
    subprocess.run([sys.executable, copy / "tools" / TOOL.name], check=True)
    assert checked(copy).returncode == 0
    assert "| 0.1234 |" in (copy / "README.md").read_text()


@pytest.mark.parametrize(
    ("text", "fragment"),
    [
        ("It is <!--r table1/klein/nobody/RMSE-->1<!--/r-->.", "no row 'nobody'"),
        ("It is <!--r table9//exact/RMSE-->1<!--/r-->.", "there is no results/tables/table9.json"),
        ("It is <!--r nonsense-->1<!--/r-->.", "neither a cell"),
        ("It is <!--r table1/klein/exact/RMSE-->1.", "has no end"),
        ("It is\n<!--r table1/klein/exact/RMSE-->1<!--/r-->.", "begins a line"),
    ],
    ids=["row", "table", "name", "end", "line"],
)
def test_a_number_that_cannot_be_written_is_refused(text, fragment, copy):
    (copy / "docs" / "page.md").write_text(f"# Page\n\n{text}\n")
    done = checked(copy)
    assert done.returncode == 1
    assert fragment in done.stderr
    assert "docs/page.md" in done.stderr


def test_the_tables_of_the_reference_are_those_of_the_docstrings():
    done = subprocess.run(
        [sys.executable, ROOT / "tools" / "write_reference.py", "--check"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_the_figures_that_are_kept_are_those_that_pages_show():
    kept = set(re.findall(r"^!/results/figures/(.+)$", (ROOT / ".gitignore").read_text(), re.MULTILINE))
    shown = {
        name for page in PAGES for name in re.findall(r"\]\((?:\.\./)?results/figures/([^)]+)\)", page.read_text())
    }
    assert kept == shown
    assert all((ROOT / "results" / "figures" / name).is_file() for name in kept)
