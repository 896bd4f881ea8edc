"""docs/benchmarks.md names every benchmark, and says which of them `latentpde bench all` leaves out."""

from __future__ import annotations

import re
from pathlib import Path

from latentpde.bench import benchmarks

PAGE = (Path(__file__).parents[2] / "docs" / "benchmarks.md").read_text()


def names_in(text: str) -> set[str]:
    return set(re.findall(r"`([a-z0-9-]+)`", text))


def test_every_benchmark_is_a_row_of_the_table():
    section = PAGE.split("## The benchmarks")[1].split("### Data")[0]
    rows = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    assert names_in(" ".join(rows)) == {benchmark.name for benchmark in benchmarks}


def test_what_all_leaves_out_is_listed():
    (listed,) = re.findall(r"It leaves out what takes hours[^:]*:(.*?)\.\s", PAGE, re.DOTALL)
    assert names_in(listed) == {benchmark.name for benchmark in benchmarks if not benchmark.in_all}
