"""Options that say what a file of readings does not say itself; those of `latentpde.read`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer

_PANEL = "Reading the file"
Variable = Annotated[
    str | None, typer.Option(help="What was read, of a file with several variables.", rich_help_panel=_PANEL)
]
Columns = Annotated[
    str | None,
    typer.Option(help="Columns or axes by their roles: x=lon,y=lat,t=date,value=pm10.", rich_help_panel=_PANEL),
]
Select = Annotated[
    str | None,
    typer.Option(help="A part of a grid: time=2026-05-01/2026-05-03,level=850.", rich_help_panel=_PANEL),
]
ExcludedAreas = Annotated[
    str | None,
    typer.Option(
        help="Mask of areas to leave out: a variable or a file; ~NAME says what is kept.", rich_help_panel=_PANEL
    ),
]
TimeUnit = Annotated[
    str | None, typer.Option(help="Unit of times: h, or hours since 2026-05-01.", rich_help_panel=_PANEL)
]
TimeZone = Annotated[
    str | None, typer.Option(help="Zone of dates that name none. By default UTC.", rich_help_panel=_PANEL)
]
DateOrder = Annotated[
    str | None, typer.Option(help="Of dates such as 01/02/2026: day-first or month-first.", rich_help_panel=_PANEL)
]
Start = Annotated[
    str | None, typer.Option(help="When the model begins. By default at the first reading.", rich_help_panel=_PANEL)
]
Rectangle = Annotated[
    str | None,
    typer.Option(
        help="Of a table: y_low,y_high,x_low,x_high, which walls bound. By default around the readings.",
        rich_help_panel=_PANEL,
    ),
]
Separator = Annotated[
    str | None, typer.Option(help="Between columns: comma, semicolon, tab, bar.", rich_help_panel=_PANEL)
]
Decimal = Annotated[str | None, typer.Option(help="Mark of decimal fractions: point or comma.", rich_help_panel=_PANEL)]
KeepOutliers = Annotated[
    bool, typer.Option("--keep-outliers", help="Take values as they are that look like gaps, such as -9999.")
]
Encoding = Annotated[str | None, typer.Option(help="Of a text file that is not UTF-8.", rich_help_panel=_PANEL)]


_NAMES = (
    *("variable", "columns", "select", "excluded", "time_unit", "time_zone", "date_order", "start"),
    *("separator", "decimal", "encoding", "rectangle"),
)


def reading_options(given: Mapping[str, Any]) -> dict[str, Any]:
    """Those of a command's arguments that `latentpde.read` takes and that were given.

    >>> reading_options({"columns": "x=lon", "variable": None, "seed": 3})
    {'columns': 'x=lon'}
    """
    return {name: given[name] for name in _NAMES if given.get(name) is not None}
