"""Text with columns: CSV and its relatives, read strictly. What is not clear is asked for, with the line it is on."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import numpy as np

from latentpde.errors import DataError, UsageError
from latentpde.io.files import check_readable
from latentpde.io.table import MOST_ROWS, Table, check_headings, heading_units
from latentpde.needs import require_memory
from latentpde.validation import shortened

_SEPARATORS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar", " ": "space"}
_DECIMALS = {"point": ".", "comma": ",", ".": ".", ",": ","}
_NUMBER = re.compile(r"\s*[-+\u2212]?(\d+[.,]?\d*|[.,]\d+)([eE][-+]?\d+)?\s*", re.ASCII)
_WITH_COMMA = re.compile(r"\s*[-+\u2212]?\d+,\d+\s*", re.ASCII)
_THOUSANDS = re.compile(r"\s*[-+\u2212]?\d{1,3}(,\d{3})+\s*", re.ASCII)
_LINE_END = re.compile(r"\r\n|\r|\n")
_SAMPLE = 200  # rows that decide what separates columns
_MOST_IN_A_LINE = 100_000  # characters
_WORDS_OF_UNITS = re.compile(r"[a-zA-Zµ°%][\w\s/*^.%°µ²³()-]*|1|-")


def read_delimited(
    path: str | Path, *, separator: str | None = None, decimal: str | None = None, encoding: str | None = None
) -> Table:
    """Read a file of text with columns.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "stations.csv"
    >>> _ = path.write_text("x (km);y (km);value\\n1,5;2;3,25\\n")
    >>> table = read_delimited(path)
    >>> table.columns["value"], table.decimal, table.units
    (array(['3,25'], dtype=object), ',', {'x (km)': 'km', 'y (km)': 'km'})

    Args:
        path: of the file. Its first line names the columns; empty lines, and lines that begin with ``#``, do not count.
        separator: between columns, where it is not clear: a character, or its name such as ``tab``.
        decimal: ``point`` or ``comma``, where it is not clear.
        encoding: of the text, where it is not UTF-8 and does not say.
    """
    text = _decoded(path, encoding)
    mark = _separator(text, path, separator)
    records = list(_limited(_records(text, mark, path), path))
    if not records:
        raise DataError(f"{path} is empty; expected a line of column names, and a line for each reading")
    (first, names), rows = records[0], records[1:]
    names = [name.strip() for name in names]
    while (
        rows
        and names
        and not names[-1]
        and all(len(row) < len(names) or not row[len(names) - 1].strip() for _, row in rows)
    ):
        names = names[:-1]  # a separator at the end of every line
        rows = [(line, row[: len(names)]) for line, row in rows]
    if all(_NUMBER.fullmatch(name) for name in names):
        names, rows = [str(i + 1) for i in range(len(names))], records  # to be named by --columns
    check_headings(names, f"{path}, line {first}")
    for line, row in rows:
        if len(row) != len(names):
            raise DataError(_wrong_count(path, line, row, names, mark))
    units = heading_units(names)
    if rows and len(rows) > 1 and _is_line_of_units(rows[0][1], rows[1][1]):
        units |= {name: unit.strip() for name, unit in zip(names, rows[0][1], strict=True) if unit.strip()}
        rows = rows[1:]
    if not rows:
        raise DataError(f"{path} has a line of column names and no readings")
    columns = {name: np.array([row[i].strip() for _, row in rows], dtype=object) for i, name in enumerate(names)}
    lines = np.array([line for line, _ in rows])
    table = Table(columns=columns, units=units, origin=str(path), lines=lines)
    return Table(columns=columns, units=units, origin=str(path), lines=lines, decimal=_decimal(table, mark, decimal))


def _decoded(path: str | Path, encoding: str | None) -> str:
    check_readable(path, "file of readings")
    size = Path(path).stat().st_size
    require_memory(30 * size, f"to read {path}", "cut it to the rows that are needed")
    content = Path(path).read_bytes()
    marks = ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"))
    found = encoding or next((name for mark, name in marks if content.startswith(mark)), "utf-8")
    try:
        text = content.decode(found)
    except LookupError as error:
        raise UsageError(f"there is no encoding {encoding!r}; usual ones are utf-8, utf-16 and latin-1") from error
    except UnicodeError as error:
        start = getattr(error, "start", 0)
        line = content.count(b"\n", 0, start) + 1
        column = start - (content.rfind(b"\n", 0, start) + 1) + 1
        raise DataError(
            f"{path}, line {line}, byte {column}: {content[start : start + 1]!r} is not {found.upper()} text; save the "
            "file as UTF-8, or say what it is, such as --encoding latin-1 for files of older Windows programs"
        ) from error
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise DataError(
            f"{path}, line {line}: there are zero bytes in it, so it is not a text file, or one in UTF-16: pass "
            "--encoding utf-16, or save it as UTF-8"
        )
    return text


def _content_lines(text: str) -> Iterator[str]:
    for line in _LINE_END.split(text):
        if line.strip() and not line.lstrip().startswith("#"):
            yield line


def _separator(text: str, path: str | Path, given: str | None) -> str:
    if given is not None:
        names = {name: mark for mark, name in _SEPARATORS.items()} | {mark: mark for mark in _SEPARATORS}
        if given not in names:
            raise UsageError(f"the separator must be one of {', '.join(_SEPARATORS.values())}; got {given!r}")
        return names[given]
    sample = [line for line, _ in zip(_content_lines(text), range(_SAMPLE), strict=False)]
    head = re.sub(r'"[^"]*"', "", sample[0]) if sample else ""
    found = [mark for mark in _SEPARATORS if mark in head and mark != " "]
    if len(found) > 1:  # the one that every line has as often as the first
        even = [m for m in found if len({re.sub(r'"[^"]*"', "", line).count(m) for line in sample}) == 1]
        if len(even) != 1:
            words = " and ".join(_SEPARATORS[m] for m in found)
            raise DataError(
                f"{path}, line 1: {shortened(sample[0])} has a {words}, and either could separate columns; pass "
                f"--separator {_SEPARATORS[found[0]]}, for instance"
            )
        found = even
    if found:
        return found[0]
    return " " if len(head.split()) > 1 else ","


def _records(text: str, mark: str, path: str | Path) -> Iterator[tuple[int, list[str]]]:
    """Line number and fields of each line that holds any."""
    if mark == " ":
        for number, line in enumerate(_LINE_END.split(text), 1):
            if line.strip() and not line.lstrip().startswith("#"):
                yield number, [field.strip('"') for field in line.split()]
        return
    reader = csv.reader(StringIO(text, newline=""), delimiter=mark, strict=True)
    start = 1
    try:
        for row in reader:
            if reader.line_num > start:
                raise DataError(
                    f"{path}, line {start}: a quotation mark is opened and closed on line {reader.line_num}; is one "
                    "missing?"
                )
            if any(field.strip() for field in row) and not row[0].lstrip().startswith("#"):
                yield start, row
            start = reader.line_num + 1
    except csv.Error as error:
        raise DataError(f"{path}, line {max(reader.line_num, 1)}: {error}; is a quotation mark missing?") from error


def _limited(records: Iterator[tuple[int, list[str]]], path: str | Path) -> Iterator[tuple[int, list[str]]]:
    for count, (line, row) in enumerate(records):
        if count > MOST_ROWS:
            raise DataError(
                f"{path} has more than {MOST_ROWS:,} rows; cut it to the region and the times that you need"
            )
        if len(row) > _MOST_IN_A_LINE:
            raise DataError(f"{path}, line {line} has {len(row):,} columns; readings have a line each")
        yield line, row


def _wrong_count(path: str | Path, line: int, row: list[str], names: list[str], mark: str) -> str:
    found = f"{path}, line {line}: expected {len(names)} columns ({', '.join(map(str, names[:6]))}), found {len(row)}"
    if mark == "," and len(row) > len(names) and all(_NUMBER.fullmatch(field) for field in row):
        return f"{found}; are there decimal commas? Separate columns by semicolons, or write decimal points"
    if len(row) > len(names):
        return f"{found}; does a text hold the separator {_SEPARATORS[mark]}? Put it in quotation marks"
    return f"{found}; is the line cut off, or is the separator not the {_SEPARATORS[mark]}?"


def _is_line_of_units(row: list[str], below: list[str]) -> bool:
    """Whether the line under the names says units, as those of ERDDAP and of many loggers do."""
    words = [field.strip() for field in row]
    if any(_NUMBER.fullmatch(word) and word != "1" for word in words) or not any(words):
        return False
    numbers_below = [i for i, field in enumerate(below) if _NUMBER.fullmatch(field)]
    return (
        len(numbers_below) >= 2
        and all(
            _WORDS_OF_UNITS.fullmatch(words[i]) and words[i].lower() not in ("nan", "na", "null", "none", "missing")
            for i in numbers_below
            if words[i]
        )
        and any(words[i] for i in numbers_below)
    )


def _decimal(table: Table, mark: str, given: str | None) -> str:
    if given is not None:
        if given not in _DECIMALS:
            raise UsageError(f"the mark of decimal fractions is point or comma; got {given!r}")
        return _DECIMALS[given]
    commas, points, clear = None, None, False
    for name, column in table.columns.items():
        numbers = [(row, entry) for row, entry in enumerate(column) if _NUMBER.fullmatch(entry)]
        for row, entry in numbers:
            if _WITH_COMMA.fullmatch(entry):
                commas = commas or (row, name, entry)
                clear = clear or not _THOUSANDS.fullmatch(entry)
            elif "." in entry:
                points = points or (row, name, entry)
    if commas is None:
        return "."
    where = f"{table.where(commas[0], commas[1])}: {commas[2]!r}"
    if points is not None:
        other = f"{table.where(points[0], points[1]).removeprefix(table.origin + ', ')}: {points[2]!r}"
        raise DataError(f"{where} has a comma and {other} a point; write all decimal fractions alike")
    if not clear:
        raise DataError(f"{where} can be a decimal fraction or a thousand; pass --decimal comma, or remove the commas")
    return ","
