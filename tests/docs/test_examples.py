"""Every example runs by itself, in any folder, and saves its pictures there."""

import os
import subprocess
import sys

import pages
import pytest

EXAMPLES = sorted((pages.ROOT / "examples").glob("*.py"))
SLOW = ("air_temperature", "coefficients", "stations", "pm10")


@pytest.mark.parametrize(
    "example",
    [pytest.param(path, id=path.stem, marks=pytest.mark.slow if path.stem in SLOW else ()) for path in EXAMPLES],
)
def test_an_example_runs(example, tmp_path):
    done = subprocess.run(
        [sys.executable, example],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(pages.ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    assert done.stdout
    if done.stdout.startswith("Skipped"):  # data that are not installed
        pytest.skip(done.stdout)
    assert list(tmp_path.glob(f"{example.stem}-*.png"))


def test_the_gallery_shows_every_example_in_an_order_for_reading():
    source = (pages.ROOT / "docs" / "_ext" / "saved_figures.py").read_text()
    namespace = {}
    exec(next(line for line in source.splitlines() if line.startswith("ORDER")), namespace)
    assert sorted(namespace["ORDER"]) == [path.name for path in EXAMPLES]
