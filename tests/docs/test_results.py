"""The README says what results/ holds."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def test_the_results_in_the_readme_are_not_stale():
    if not (ROOT / "results" / "tables" / "table1.json").exists():
        pytest.skip("no table 1 yet")
    done = subprocess.run(
        [sys.executable, ROOT / "tools" / "readme_results.py", "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
