"""Numbers of results/, looked up by where they stand; `write_results.py` puts them into README and docs."""

import json
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


@cache
def read_json(path: Path) -> dict:
    return json.loads(path.read_text(encoding="utf-8"))


@cache
def tables(name: str) -> list[dict]:
    """The tables of a benchmark."""
    path = ROOT / "results" / "tables" / f"{name}.json"
    if not path.exists():
        raise KeyError(f"there is no {path.relative_to(ROOT)}")
    return read_json(path)["tables"]


def cell(table: str, title: str, row: str, column: str) -> str:
    """A cell of a table, as it stands there."""
    for found in tables(table):
        if found["title"].startswith(title):
            break
    else:
        raise KeyError(f"no table of {table} has a title that begins with {title!r}")
    base = column.removesuffix(" paper")
    if base not in found["columns"]:
        raise KeyError(f"{table} has no column {base!r}, but {', '.join(found['columns'])}")
    place = found["columns"].index(base) + (base != column)
    rows = {cells[0]: cells for cells in found["rows"]}
    if row not in rows:
        raise KeyError(f"{table} has no row {row!r}, but {', '.join(rows)}")
    return rows[row][place]


def value(table: str, title: str, row: str, column: str) -> float:
    """The number in a cell, without its error."""
    return float(number_in(cell(table, title, row, column)))


def number_in(text: str) -> str:
    """What stands before an error, a unit or a note."""
    return text.split(" ")[0].replace(",", "").lstrip("[").rstrip("%")
