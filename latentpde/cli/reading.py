"""Options that say what a file of readings does not say itself; those of `latentpde.read`."""

from __future__ import annotations

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
Encoding = Annotated[str | None, typer.Option(help="Of a text file that is not UTF-8.", rich_help_panel=_PANEL)]


def reading_options(**given: Any) -> dict[str, Any]:
    """Those that were given, for `latentpde.read`.

    >>> reading_options(columns="x=lon", variable=None)
    {'columns': 'x=lon'}
    """
    return {name: value for name, value in given.items() if value is not None}


def option_words(given: dict[str, Any]) -> list[str]:
    """Options of `latentpde.read` as words of a command line.

    >>> option_words({"columns": "x=lon,y=lat", "time_unit": "h"})
    ['--columns', 'x=lon,y=lat', '--time-unit', 'h']
    """
    words = []
    for name, value in given.items():
        words += [f"--{name.replace('_', '-')}"] + ([] if value is True else [str(value)])
    return words
