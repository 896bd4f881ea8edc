"""Files of lines survive whatever ends a run."""

from __future__ import annotations

from latentpde.bench.lines import Entry, append_entries, read_entries

HEADER = {"method": "guess"}


def test_lines_survive_a_run_that_was_killed(tmp_path):
    path = tmp_path / "some.jsonl"
    assert read_entries(path) == []
    append_entries(path, [Entry(HEADER, {"a": 1}), Entry(HEADER, {"a": 2})])
    path.write_bytes(path.read_bytes()[:-4])  # the last line is cut short
    append_entries(path, [Entry(HEADER, {"a": 3})])
    assert [entry.line for entry in read_entries(path)] == [{"a": 1}, {"a": 3}]


def test_a_header_that_was_cut_short_is_written_again(tmp_path):
    path = tmp_path / "some.jsonl"
    append_entries(path, [Entry(HEADER, {})])
    path.write_bytes(path.read_bytes().splitlines()[0][:-3])
    append_entries(path, [Entry(HEADER, {"a": 1})])
    assert read_entries(path) == [Entry(HEADER, {"a": 1})]


def test_a_line_without_its_header_is_passed_over(tmp_path):
    path = tmp_path / "some.jsonl"
    append_entries(path, [Entry(HEADER, {"a": 1})])
    path.write_text(path.read_text().splitlines()[1] + "\n[1, 2]\nnonsense\n")
    assert read_entries(path) == []


def test_what_lines_share_is_written_once(tmp_path):
    path = tmp_path / "some.jsonl"
    other = {"method": "guess", "seed": 8}
    for header in (HEADER, other, HEADER):
        append_entries(path, [Entry(header, {"a": 1})])
    assert path.read_text().count("method") == 2
    assert [entry.header for entry in read_entries(path)] == [HEADER, other, HEADER]
