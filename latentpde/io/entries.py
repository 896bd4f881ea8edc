"""Numbers in the columns of a table; what is none is named with the line that it is on."""

from __future__ import annotations

import re

import numpy as np

from latentpde.errors import DataError
from latentpde.io.table import Table
from latentpde.validation import shortened

MISSING = frozenset(("", "na", "n/a", "#n/a", "nan", "null", "none", "nil", "-", "--", "---", "missing", "nd", "n.d."))
_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?", re.ASCII)
COMPACT_DATE = re.compile(
    r"(?P<y>\d{4})(?P<m>\d{2})(?P<d>\d{2})(?:T?(?P<hh>\d{2})(?P<mm>\d{2})(?:\d{2})?)?(?P<zone>Z)?", re.ASCII
)
_LIKE_A_DATE = re.compile(r"\d{1,4}[-./]\d{1,2}[-./]\d{1,4}(\D.*)?|.*\d:\d\d.*", re.ASCII)


def numbers(table: Table, name: str) -> np.ndarray:
    """A column of numbers, NaN where an entry is missing.

    >>> table = Table(columns={"v": np.array(["1.5", "NA", "2e3"], dtype=object)}, origin="a.csv")
    >>> numbers(table, "v")
    array([1.5e+00,     nan, 2.0e+03])
    """
    column = table.columns[name]
    if column.dtype.kind in "biuf":
        found = column.astype(float)
    elif column.dtype.kind in "mM":
        raise DataError(f"column {name!r} of {table.origin} must hold numbers, and it holds dates; is it the time?")
    else:
        found = np.array([_number(table, row, name, entry) for row, entry in enumerate(column)], dtype=float)
    infinite = np.flatnonzero(np.isinf(found))
    if len(infinite):
        raise DataError(
            f"{table.where(infinite[0], name)}: the number is infinite; leave the entry empty if it is missing"
        )
    return found


def is_missing(table: Table, name: str) -> np.ndarray:
    """Where a column has no entry."""
    column = table.columns[name]
    if column.dtype.kind in "biuf":
        return np.isnan(column.astype(float))
    if column.dtype.kind in "mM":
        return np.isnat(column)
    return np.array([entry is None or str(entry).strip().lower() in MISSING for entry in column], dtype=bool)


def holds_numbers(table: Table, name: str) -> bool:
    """Whether all entries of a column that are there are numbers."""
    if not table.is_text(name):
        return table.columns[name].dtype.kind in "biuf"
    there = table.columns[name][~is_missing(table, name)]
    return bool(len(there)) and all(_NUMBER.fullmatch(_with_point(table, str(entry))) for entry in there)


def _number(table: Table, row: int, name: str, entry) -> float:
    text = "" if entry is None else str(entry).strip()
    if text.lower() in MISSING:
        return np.nan
    number = _with_point(table, text)
    if _NUMBER.fullmatch(number):
        return float(number)
    raise DataError(f"{table.where(row, name)}: expected a number, found {shortened(text)}; {_hint(table, text)}")


def _with_point(table: Table, text: str) -> str:
    text = text.strip().replace("\u2212", "-")
    return text.replace(",", ".") if table.decimal == "," and text.count(",") == 1 and "." not in text else text


def _hint(table: Table, text: str) -> str:
    if text.lower().lstrip("+-") in ("inf", "infinity"):
        return "infinity is no reading: leave the entry empty"
    if text[0] in "<>":
        return "what is below a limit of detection is no number: leave it empty, or write half the limit"
    if _LIKE_A_DATE.fullmatch(text):
        return "this is a date or a time: which column is what? Pass --columns t=NAME,value=NAME"
    if re.fullmatch(r"[-+]?\d+,\d+", text):
        return "is that a decimal comma? Pass --decimal comma if it is one everywhere, or write a point"
    if re.match(r"[-+]?\d*[.,]?\d+\s*[^\d\s]", text):
        return "write the number alone, and its unit in the heading, as in 'value (K)'"
    return "leave the entry empty if it is missing"
