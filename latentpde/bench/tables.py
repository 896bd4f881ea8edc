"""Tables for the terminal, for Markdown and for the page; numbers with the error that they carry."""

from __future__ import annotations

import math
import sys
from dataclasses import asdict, dataclass
from typing import Any, TypeAlias

import numpy as np

NONE = "-"

#: A pandas.DataFrame of lines; checkers of types do not follow how those are indexed.
Frame: TypeAlias = Any


@dataclass(frozen=True)
class Table:
    """Words in rows and columns.

    Args:
        title: above it.
        columns: their heads; the first column names the rows.
        rows: as many words each.
        notes: sentences below it.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()

    def markdown(self) -> str:
        lines = [self.columns, ("---", *("---:" for _ in self.columns[1:])), *self.rows]
        body = "\n".join("| " + " | ".join(line) + " |" for line in lines)
        return "\n\n".join([f"**{self.title}**", body, *self.notes]) + "\n"

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    def print(self) -> None:
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
    """The mean and its standard error; NaN where there is too little for either."""
    values = np.asarray(values, dtype=float)
    values = values[np.isfinite(values)]
    if not values.size:
        return math.nan, math.nan
    error = float(values.std(ddof=1) / math.sqrt(values.size)) if values.size > 1 else math.nan
    return float(values.mean()), error


def mean_over_regimes(table: Frame, score: str) -> tuple[float, float]:
    """Regimes count alike, however many cases each has."""
    parts = [mean_and_error(some[score]) for _, some in table.groupby("regime", sort=False)]
    means, errors = np.array(parts).T
    return float(means.mean()), float(np.sqrt((errors**2).sum()) / len(parts))


def number(value: float | None, error: float = math.nan) -> str:
    """As many digits as the error allows, at least three that count."""
    if value is None or not math.isfinite(value):
        return NONE
    if not math.isfinite(error) or error <= 0:
        return f"{value:.3g}" if abs(value) >= 1e-3 else f"{value:.1e}"
    digits = min(max(0, 1 - math.floor(math.log10(error))), 5)
    return f"{value:.{digits}f} ± {error:.{digits}f}"
