"""Options that say what a file of readings does not say itself; those of `latentpde.read`."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import Annotated, Any

import typer

_KEYWORD = Parameter.KEYWORD_ONLY
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
    bool,
    typer.Option(
        "--keep-outliers", help="Take values as they are that look like gaps, such as -9999.", rich_help_panel=_PANEL
    ),
]
Encoding = Annotated[str | None, typer.Option(help="Of a text file that is not UTF-8.", rich_help_panel=_PANEL)]


def _options(
    variable: Variable = None,
    columns: Columns = None,
    select: Select = None,
    excluded: ExcludedAreas = None,
    time_unit: TimeUnit = None,
    time_zone: TimeZone = None,
    date_order: DateOrder = None,
    start: Start = None,
    rectangle: Rectangle = None,
    separator: Separator = None,
    decimal: Decimal = None,
    encoding: Encoding = None,
    keep_outliers: KeepOutliers = False,
) -> None:
    """All of them with their defaults, in the order of the help."""


def takes_reading_options(command: Callable[..., None]) -> Callable[..., None]:
    """The command with all options above in the place of its argument ``of_file``, which gets those that are given.

    >>> @takes_reading_options
    ... def show(path: str, of_file: dict) -> None:
    ...     print(path, of_file)
    >>> show(path="a.csv", columns="x=lon", variable=None)
    a.csv {'columns': 'x=lon'}
    """
    options = [one.replace(kind=_KEYWORD) for one in signature(_options, eval_str=True).parameters.values()]
    own = [one.replace(kind=_KEYWORD) for one in signature(command, eval_str=True).parameters.values()]
    place = [one.name for one in own].index("of_file")

    @wraps(command)
    def with_options(**given: Any) -> None:
        found = {one.name: given.pop(one.name, one.default) for one in options}
        command(**given, of_file={name: value for name, value in found.items() if value not in (None, False)})

    with_options.__signature__ = Signature([*own[:place], *options, *own[place + 1 :]])  # type: ignore[attr-defined]
    return with_options
