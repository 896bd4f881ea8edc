"""A table as it was found, before anybody says what its columns mean: of a CSV, a Parquet file or a DataFrame."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from latentpde.errors import DataError, UsageError
from latentpde.io.files import check_readable
from latentpde.needs import require_memory
from latentpde.quantities import LENGTHS, TIMES

if TYPE_CHECKING:
    import pandas as pd

MOST_ROWS = 1_000_000  # more readings than any method takes at once
_MOST_COLUMNS = 1000
_PLACES_AND_TIMES = "x|y|t|time|lon|lat|longitude|latitude|east|north|easting|northing|utm_?[xy]|[xy]_?coord"
#: Headings such as ``x_km``: a unit behind the name of a place or a time, and of nothing else.
_UNITS = "|".join([*LENGTHS, *TIMES, "sec", "hours?", "days?", "deg", "degrees"])
_WITH_UNIT = re.compile(f"({_PLACES_AND_TIMES})_({_UNITS})", re.IGNORECASE)


@dataclass(frozen=True, eq=False, kw_only=True)
class Table:
    """Columns of text, numbers or dates, with the place that each row came from.

    >>> table = Table(columns={"x": np.array([1.0, 2.0])}, origin="stations.csv", lines=np.array([2, 4]))
    >>> table.where(1, "x")
    "stations.csv, line 4, column 'x'"

    Args:
        columns: by name; text is an array of objects.
        units: of some columns, where the table says them.
        origin: the file, for messages.
        lines: of the file, from 1, that each row stands on; ``None`` where there is no file of lines.
        decimal: the mark of decimal fractions in text.
    """

    columns: dict[str, np.ndarray]
    units: dict[str, str] = field(default_factory=dict)
    origin: str = "the table"
    lines: np.ndarray | None = None
    decimal: str = "."

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), ()))

    def where(self, row: int | np.integer, column: str | None = None) -> str:
        """A row, and perhaps an entry of it, as a message names it."""
        place = f"row {row}" if self.lines is None else f"line {self.lines[row]}"
        return f"{self.origin}, {place}" + ("" if column is None else f", column {column!r}")

    def rows(self, rows: Any, most: int = 3) -> str:
        """Some rows, as a message names them."""
        numbers = [int(row if self.lines is None else self.lines[row]) for row in rows[:most]]
        more = f" and {len(rows) - most} more" if len(rows) > most else ""
        what = "row" if self.lines is None else "line"
        return f"{what}{'s' * (len(rows) > 1)} {', '.join(map(str, numbers))}{more}"

    def is_text(self, name: str) -> bool:
        return self.columns[name].dtype.kind in "OUST"

    def subset(self, rows: np.ndarray) -> Table:
        """Some of the rows."""
        lines = None if self.lines is None else self.lines[rows]
        columns = {name: column[rows] for name, column in self.columns.items()}
        return Table(columns=columns, units=self.units, origin=self.origin, lines=lines, decimal=self.decimal)


def table_of_frame(frame: pd.DataFrame, origin: str = "the table") -> Table:
    """A pandas DataFrame; an index that has a name is a column too.

    >>> import pandas as pd
    >>> table = table_of_frame(pd.DataFrame({"x": [1.0], "when": pd.to_datetime(["2026-05-01T02:00+02:00"])}))
    >>> table.columns["when"]  # in UTC
    array(['2026-05-01T00:00:00+00:00'], dtype=object)
    """
    if any(name is not None for name in frame.index.names):
        frame = frame.reset_index()
    if len(frame) > MOST_ROWS:
        raise DataError(f"{origin} has {len(frame):,} rows, and at most {MOST_ROWS:,} can be read; cut it to a part")
    names = [str(name) for name in frame.columns]
    check_headings(names, origin)
    if not len(frame):
        raise DataError(f"{origin} has no rows")
    columns = {name: _column(frame.iloc[:, i]) for i, name in enumerate(names)}
    return Table(columns=columns, units=heading_units(names), origin=origin)


def read_parquet(path: str | Path) -> Table:
    """A Parquet file, once it is clear that it fits into memory; raises `DataError` where it cannot be read."""
    check_readable(path, "Parquet file")
    try:
        import pyarrow.parquet as pq
    except ImportError as error:
        raise UsageError('Parquet files need pyarrow; install it with: pip install "latentpde[files]"') from error
    try:
        with pq.ParquetFile(path) as file:
            size = sum(file.metadata.row_group(i).total_byte_size for i in range(file.metadata.num_row_groups))
            if file.metadata.num_rows > MOST_ROWS or file.metadata.num_columns > _MOST_COLUMNS:
                raise DataError(
                    f"{path} says it has {file.metadata.num_rows:,} rows of {file.metadata.num_columns} columns; at "
                    f"most {MOST_ROWS:,} rows can be read: cut it to the region and the times that you need"
                )
            require_memory(10 * size, f"to read {path}", "cut it to the rows and columns that are needed")
            frame = file.read().to_pandas()
    except DataError:
        raise
    except Exception as error:  # Arrow has many kinds of its own
        raise DataError(f"cannot read {path}: {error}; it may be truncated or damaged") from error
    return table_of_frame(frame, str(path))


def check_headings(names: list[str], where: str) -> None:
    """Raise `DataError` where columns cannot be told apart by their names."""
    if len(names) > _MOST_COLUMNS:
        raise DataError(f"{where} has {len(names):,} columns; readings have a row each, not a column")
    for i, name in enumerate(names):
        if not name.strip():
            raise DataError(f"{where}: column {i + 1} has no name; give it one, or delete it")
        if name in names[:i]:
            raise DataError(
                f"{where}: columns {names.index(name) + 1} and {i + 1} are both called {name!r}; rename or delete one"
            )


def heading_units(names: list[str]) -> dict[str, str]:
    """Units that stand in headings such as ``x (km)``, ``t [h]`` and ``y_km``.

    >>> heading_units(["x (km)", "y_km", "value", "pm_h"])
    {'x (km)': 'km', 'y_km': 'km'}
    """
    found = {}
    for name in names:
        for opening, closing in ("()", "[]"):
            if name.rstrip().endswith(closing) and opening in name:
                found[name] = name.rstrip()[name.rindex(opening) + 1 : -1].strip()
        if with_unit := _WITH_UNIT.fullmatch(name.strip()):
            found[name] = with_unit[2]
    return found


def bare(name: str) -> str:
    """A heading without its unit.

    >>> bare("pm10 (ug/m3)"), bare("x"), bare("time_h")
    ('pm10', 'x', 'time')
    """
    if with_unit := _WITH_UNIT.fullmatch(name.strip()):
        return with_unit[1]
    for opening, closing in ("()", "[]"):
        if name.rstrip().endswith(closing) and name.rfind(opening) > 0:
            return name[: name.rindex(opening)].strip()
    return name


def _column(series: pd.Series) -> np.ndarray:
    """Numbers, dates or text of a column of pandas, whose kinds are many."""
    kind = getattr(series.dtype, "kind", "O")
    if kind == "M" and getattr(series.dtype, "tz", None) is not None:
        series = series.dt.tz_convert("UTC")
        return np.array(
            [None if moment is None or moment != moment else moment.isoformat() for moment in series], dtype=object
        )
    if kind in "mM":
        return series.to_numpy()
    if kind in "biuf":
        return series.to_numpy(dtype=float, na_value=np.nan)
    return np.array(["" if _is_missing(value) else str(value) for value in series], dtype=object)


def _is_missing(value: Any) -> bool:
    try:
        return value is None or bool(value != value)
    except (TypeError, ValueError):  # pandas' NA, arrays
        return type(value).__name__ == "NAType"
