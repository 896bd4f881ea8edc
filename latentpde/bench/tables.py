"""Tables for the terminal, for Markdown and for the page; numbers with the error that they carry."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

NONE = "-"

#: A pandas.DataFrame of lines; checkers of types do not follow how those are indexed.
Frame: TypeAlias = Any


@dataclass(frozen=True)
class Table:
    """Words in rows and columns.

    Args:
        title: what stands above it.
        columns: the heads of the columns, of which the first names the rows.
        rows: for each row as many words as there are columns.
        notes: sentences below it.

    Example:
        >>> print(Table("errors", ("method", "RMSE"), (("exact", "0.05"),), ("A note.",)).markdown())
        **errors**
        <BLANKLINE>
        | method | RMSE |
        | --- | ---: |
        | exact | 0.05 |
        <BLANKLINE>
        A note.
        <BLANKLINE>
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()

    def markdown(self) -> str:
        """The table as Markdown, with its title above and its notes below."""
        lines = [self.columns, ("---", *("---:" for _ in self.columns[1:])), *self.rows]
        body = "\n".join("| " + " | ".join(line) + " |" for line in lines)
        return "\n\n".join([f"**{self.title}**", body, *self.notes]) + "\n"

    def print(self) -> None:
        """Print it to the terminal, or whole where the output goes elsewhere."""
        from rich.console import Console
        from rich.table import Table as RichTable

        table = RichTable(title=self.title, title_justify="left", title_style="bold")
        for i, name in enumerate(self.columns):
            table.add_column(name, justify="left" if i == 0 else "right", no_wrap=True)
        for cells in self.rows:
            table.add_row(*cells)
        # a pipe has no width of its own, and a table cut to 80 columns is of no use in a file
        console = Console() if sys.stdout.isatty() else Console(width=400)
        console.print(table)
        for note in self.notes:
            console.print(note, style="dim", soft_wrap=True, markup=False)


def mean_and_error(values: Frame | np.ndarray) -> tuple[float, float]:
    """The mean of some numbers and its standard error; NaN where there are too few for either.

    Example:
        >>> mean_and_error(np.array([1.0, 2.0, 3.0, np.nan]))
        (2.0, 0.5773502691896258)
    """
    values = np.asarray(values, dtype=float)
    values = values[np.isfinite(values)]
    if not values.size:
        return math.nan, math.nan
    error = float(values.std(ddof=1) / math.sqrt(values.size)) if values.size > 1 else math.nan
    return float(values.mean()), error


def mean_over_regimes(table: Frame, score: str) -> tuple[float, float]:
    """The mean of a score and its standard error, in which regimes count alike however many cases each has.

    Args:
        table: lines, as `latentpde.bench.store.frame` gives them.
        score: a column of it.
    """
    parts = [mean_and_error(some[score]) for _, some in table.groupby("regime", sort=False)]
    means, errors = np.array(parts).T
    return float(means.mean()), float(np.sqrt((errors**2).sum()) / len(parts))


def number(value: float | None, error: float = math.nan) -> str:
    """A number in words, with as many digits as its error allows, or with three where there is none.

    Example:
        >>> number(0.123456, 0.0123), number(1234.5), number(None)
        ('0.123 ± 0.012', '1.23e+03', '-')
    """
    if value is None or not math.isfinite(value):
        return NONE
    if not math.isfinite(error) or error <= 0:
        return f"{value:.3g}" if abs(value) >= 1e-3 else f"{value:.1e}"
    digits = min(max(0, 1 - math.floor(math.log10(error))), 5)
    return f"{value:.{digits}f} ± {error:.{digits}f}"
