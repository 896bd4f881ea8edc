"""Dates in the columns of a table, as moments in UTC. What can be read in two ways is asked for."""

from __future__ import annotations

import re
from dataclasses import dataclass
from zoneinfo import ZoneInfo

import numpy as np

from latentpde.errors import DataError, UsageError
from latentpde.io.clocks import in_nanoseconds
from latentpde.io.entries import COMPACT_DATE, MISSING, holds_numbers, is_missing
from latentpde.io.table import Table
from latentpde.validation import shortened

_TIME = r"(?:[T ]+(?P<clock>\d{1,2}:\d{2}(?::\d{2}(?:\.\d+)?)?))?"
_ZONE = r"\s*(?P<zone>Z|UTC|GMT|[+-]\d{2}:?\d{2}|[+-]\d{2})?"
_FORMS = {
    "year-month-day": re.compile(rf"(?P<y>\d{{4}})[-/](?P<m>\d{{1,2}})[-/](?P<d>\d{{1,2}}){_TIME}{_ZONE}", re.ASCII),
    "day.month.year": re.compile(rf"(?P<d>\d{{1,2}})\.(?P<m>\d{{1,2}})\.(?P<y>\d{{4}}){_TIME}{_ZONE}", re.ASCII),
    "slashes": re.compile(rf"(?P<a>\d{{1,2}})[/-](?P<b>\d{{1,2}})[/-](?P<y>\d{{4}}){_TIME}{_ZONE}", re.ASCII),
    "yearmonthday": COMPACT_DATE,
}
_SHORT_YEAR = re.compile(r"\d{1,2}[-./]\d{1,2}[-./]\d{2}(\s.*)?", re.ASCII)
_CLOCK_ONLY = re.compile(r"\d{1,2}:\d{2}(:\d{2}(\.\d+)?)?", re.ASCII)


def holds_dates(table: Table, name: str) -> bool:
    """Whether a column is of dates: by its kind, or because an entry looks like one."""
    if not table.is_text(name):
        return table.columns[name].dtype.kind == "M"
    if holds_numbers(table, name):  # 20260501 is a date in a column of that name
        there = [str(e).strip() for e in table.columns[name][~is_missing(table, name)]]
        return "date" in name.lower() and all(COMPACT_DATE.fullmatch(e) for e in there)
    return True


@dataclass(frozen=True)
class DateOptions:
    """What cannot be seen from dates themselves.

    Args:
        order: ``day-first`` or ``month-first``, for 01/02/2026.
        zone: the time zone of dates that name none, such as ``Europe/Berlin``; UTC by default.
    """

    order: str | None = None
    zone: str | None = None

    def __post_init__(self):
        if self.order not in (None, "day-first", "month-first"):
            raise UsageError(f"the order of dates is day-first or month-first; got {self.order!r}")
        if self.zone is not None:
            try:
                ZoneInfo(self.zone)
            except (KeyError, ValueError, OSError) as error:
                raise UsageError(f"there is no time zone {self.zone!r}; one is Europe/Berlin") from error


def dates(table: Table, name: str, options: DateOptions, clock: str | None = None) -> np.ndarray:
    """A column of dates as moments in UTC, NaT where an entry is missing.

    >>> table = Table(columns={"t": np.array(["2026-05-01T06:00+02:00"], dtype=object)}, origin="a.csv")
    >>> dates(table, "t", DateOptions())
    array(['2026-05-01T04:00:00.000000000'], dtype='datetime64[ns]')

    Args:
        table: that has the column.
        name: of the column.
        options: of what the dates do not say.
        clock: another column with the time of day.
    """
    import pandas as pd

    column, missing = table.columns[name], is_missing(table, name)
    if column.dtype.kind == "M":
        naive = pd.Series(in_nanoseconds(column, lambda row: table.where(row, name)))
        return _in_utc(naive, options, table, name).to_numpy()
    entries = [str(entry).strip() for entry in column]
    if clock is not None:
        entries = [f"{day}T{time}" for day, time in zip(entries, _clock_times(table, clock), strict=True)]
    forms = {row: _form(table, row, name, entries[row]) for row in np.flatnonzero(~missing).tolist()}
    _require_one_form(table, name, entries, forms)
    order = _order(table, name, entries, forms, options)
    written = pd.Series([None] * len(entries), dtype=object)
    for row, (form, match) in forms.items():
        written.iloc[row] = _iso(form, match.groupdict(), order)
    has_zone = any(match["zone"] for _, match in forms.values())
    moments = pd.to_datetime(written, format="ISO8601", utc=has_zone, errors="coerce")
    wrong = np.flatnonzero(moments.isna().to_numpy() & ~missing)
    if len(wrong):
        raise DataError(f"{table.where(wrong[0], name)}: there is no such date as {shortened(entries[wrong[0]])}")
    naive = (moments.dt.tz_localize(None) if has_zone else moments).to_numpy()
    found = in_nanoseconds(naive, lambda row: table.where(row, name))
    return found if has_zone else _in_utc(pd.Series(found), options, table, name).to_numpy()


def _form(table: Table, row: int, name: str, text: str) -> tuple[str, re.Match]:
    for form, pattern in _FORMS.items():
        if match := pattern.fullmatch(text):
            return form, match
    if _SHORT_YEAR.fullmatch(text):
        mend = "write the year with four digits, as in 2026-05-01"
    elif _CLOCK_ONLY.fullmatch(text):
        mend = "this is a time of day without a date; give the date too, or hours as numbers"
    elif re.search(r"[A-Za-z]{3,}", text) and re.search(r"\d", text):
        mend = "write months and zones as numbers, as in 2026-05-01T06:00+02:00"
    else:
        mend = "write it as 2026-05-01T06:00, or leave the whole line out if it is not known"
    raise DataError(f"{table.where(row, name)}: expected a date, found {shortened(text)}; {mend}")


def _require_one_form(table: Table, name: str, entries: list[str], forms: dict[int, tuple[str, re.Match]]) -> None:
    """Dates of one column are written alike, and all of them name a time zone, or none."""
    first: dict[object, int] = {}
    for row, (form, match) in forms.items():
        for key in (form, match["zone"] is not None):
            first.setdefault(key, row)
    written = [key for key in first if isinstance(key, str)]
    if len(written) > 1:
        (one, other) = (first[key] for key in written[:2])
        raise DataError(
            f"{table.where(other, name)}: {entries[other]!r} is written {written[1]}, and {entries[one]!r} "
            f"({table.rows([one])}) {written[0]}; write all dates alike, best as 2026-05-01T06:00"
        )
    if True in first and False in first:
        raise DataError(
            f"{table.where(first[False], name)}: {entries[first[False]]!r} names no time zone, and "
            f"{entries[first[True]]!r} ({table.rows([first[True]])}) does; give all dates one, or none and --time-zone"
        )


def _order(table: Table, name: str, entries: list[str], forms: dict, options: DateOptions) -> str:
    pairs = [(row, int(match["a"]), int(match["b"])) for row, (form, match) in forms.items() if form == "slashes"]
    if not pairs:
        return "day-first"
    day_first = [row for row, a, _ in pairs if a > 12]
    month_first = [row for row, _, b in pairs if b > 12]
    if day_first and month_first:
        raise DataError(
            f"{table.where(month_first[0], name)}: {entries[month_first[0]]!r} has the month first, and "
            f"{entries[day_first[0]]!r} ({table.rows(day_first[:1])}) the day; write all dates as 2026-05-01"
        )
    if options.order is None and not day_first and not month_first:
        raise DataError(
            f"{table.where(pairs[0][0], name)}: {entries[pairs[0][0]]!r} can have the day or the month first; pass "
            "--date-order day-first or --date-order month-first, or write dates as 2026-05-01"
        )
    return options.order or ("day-first" if day_first else "month-first")


def _iso(form: str, parts: dict[str, str | None], order: str) -> str:
    if form == "slashes":
        day, month = ("a", "b") if order == "day-first" else ("b", "a")
        parts = {**parts, "d": parts[day], "m": parts[month]}
    clock = parts.get("clock") or (f"{parts['hh']}:{parts['mm']}" if parts.get("hh") else "00:00")
    zone = parts.get("zone") or ""
    zone = "+00:00" if zone in ("Z", "UTC", "GMT") else zone
    clock = clock if clock[2] == ":" else f"0{clock}"
    return f"{parts['y']}-{int(parts['m'] or 0):02}-{int(parts['d'] or 0):02}T{clock}{zone}"


def _clock_times(table: Table, name: str) -> list[str]:
    found = []
    for row, entry in enumerate(table.columns[name]):
        text = str(entry).strip()
        if not _CLOCK_ONLY.match(text) and text.lower() not in MISSING:
            raise DataError(f"{table.where(row, name)}: expected a time of day such as 06:30, found {shortened(text)}")
        found.append(text)
    return found


def _in_utc(moments, options: DateOptions, table: Table, name: str):
    if options.zone is None:
        return moments
    try:
        return moments.dt.tz_localize(options.zone).dt.tz_convert("UTC").dt.tz_localize(None)
    except Exception as error:  # an hour that is there twice, or not at all, when clocks are changed
        raise DataError(
            f"column {name!r} of {table.origin} has a time that {options.zone} has twice or not at all ({error}); "
            "write dates with their offset, as in 2026-05-01T06:00+02:00"
        ) from error
