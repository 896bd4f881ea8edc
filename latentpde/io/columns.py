"""What the columns of a table mean: found by the names that people give them, or told."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from latentpde.errors import DataError, UsageError
from latentpde.io.entries import holds_numbers, is_missing
from latentpde.io.table import Table, bare

#: Usual names of what a reading consists of, without case, marks and units.
NAMES = {
    "x": ("x", "lon", "long", "lng", "longitude", "easting", "east", "xcoord", "xcoordinate", "utmx", "degreeseast"),
    "y": ("y", "lat", "latitude", "northing", "north", "ycoord", "ycoordinate", "utmy", "degreesnorth"),
    "t": ("t", "time", "date", "datetime", "timestamp", "dateandtime", "datetimeutc", "timeutc", "utc", "when"),
    "value": ("value", "values", "reading", "readings", "observed", "observation", "obs", "measurement", "measured"),
    "sigma": ("sigma", "std", "stdev", "sd", "stddev", "noisestd", "uncertainty", "standarderror", "error", "stderr"),
    "group": ("group", "instrument", "network", "platform"),
    "reads": ("reads",),
    "station": ("station", "stationid", "stationname", "site", "siteid", "sensor", "sensorid", "id", "name", "code"),
}
ROLES = tuple(NAMES)
LONGITUDES = ("lon", "long", "lng", "longitude", "degreeseast")
LATITUDES = ("lat", "latitude", "degreesnorth")
_PLAIN = re.compile(r"[\[(].*?[\])]|[^a-z]")
#: Columns that say something of a reading and are none.
_ASIDE = (
    "unit",
    "units",
    "flag",
    "quality",
    "qc",
    "index",
    "row",
    "comment",
    "elevation",
    "altitude",
    "height",
    "depth",
)


@dataclass(frozen=True)
class Columns:
    """Names of the columns that play a role; ``None`` where none does. ``clock`` is a time of day beside the date."""

    x: str
    y: str
    value: str
    t: str | None = None
    clock: str | None = None
    sigma: str | None = None
    group: str | None = None
    reads: str | None = None
    station: str | None = None
    unit: str | None = None


def plain(name: str) -> str:
    """A name without case, marks and units.

    >>> plain("Latitude [deg]"), plain("station_id"), plain("x_km")
    ('latitude', 'stationid', 'x')
    """
    return _PLAIN.sub("", bare(name).lower())


def parse_columns(text: str | Mapping[str, str] | None) -> dict[str, str]:
    """Columns by their roles, as they are given: ``"x=lon,y=lat,value=pm10"`` or a mapping.

    >>> parse_columns("x=lon, y=lat")
    {'x': 'lon', 'y': 'lat'}
    """
    if text is None:
        return {}
    pairs = [item.split("=", 1) for item in text.split(",")] if isinstance(text, str) else [*text.items()]
    found = {}
    for pair in pairs:
        role, name = (str(part).strip() for part in pair) if len(pair) == 2 else ("", "")
        role = {"time": "t", "date": "t", "lon": "x", "lat": "y", "noise_std": "sigma"}.get(role, role)
        if role not in ROLES or not name:
            raise UsageError(
                f"columns are given as role=name with roles {', '.join(ROLES)}, such as x=lon,y=lat,value=pm10; got "
                f"{','.join('='.join(map(str, p)) for p in pairs)!r}"
            )
        if role in found:
            raise UsageError(f"columns give {role} twice")
        found[role] = name
    return found


def find_columns(table: Table, given: Mapping[str, str]) -> Columns:
    """The roles of a table's columns; raises `DataError` with a question where they are not clear.

    Args:
        table: as it was found.
        given: names of columns by their roles, which win.
    """
    for role, name in given.items():
        if name not in table.columns:
            raise UsageError(f"there is no column {name!r} for {role} in {table.origin}; there are: {_listed(table)}")
    if len(set(given.values())) < len(given):
        raise UsageError(f"one column is given two roles: {', '.join(f'{r}={n}' for r, n in given.items())}")
    found: dict[str, str | None] = dict(given)
    free = [name for name in table.columns if name not in given.values()]
    if "t" not in found:
        found |= _date_and_clock(free)
    taken = {name for name in found.values() if name}
    for role in ROLES:
        if role in found:
            continue
        matches = [name for name in free if name not in taken and plain(name) in NAMES[role]]
        matches = [name for name in matches if not is_missing(table, name).all()] or matches
        if len(matches) > 1 and role != "station":
            raise DataError(
                f"{table.origin}: each of the columns {', '.join(map(repr, matches))} can be {role}; say which, with "
                f"--columns {role}={matches[0]}"
            )
        if matches:
            found[role] = matches[0]
            taken.add(matches[0])
    for role in ("x", "y"):
        if role not in found:
            raise DataError(_lacking(table, role))
    if "value" not in found:
        found["value"] = _only_value(table, [name for name in free if name not in taken])
    unit = next((name for name in free if plain(name) in ("unit", "units") and name not in taken), None)
    columns = Columns(**found, unit=unit)  # pyright: ignore[reportArgumentType]
    for role in ("x", "y", "value", "t", "sigma"):
        name = getattr(columns, role)
        if name is not None and is_missing(table, name).all():
            if role in ("t", "sigma") and role not in given:
                columns = Columns(**{**columns.__dict__, role: None})
                continue
            raise DataError(f"{table.origin}: the column {name!r}, which is {role}, is empty")
    if columns.value in (columns.x, columns.y):
        raise DataError(f"{table.origin}: the column {columns.value!r} cannot be place and value at once")
    return columns


def is_geographic(table: Table, columns: Columns) -> bool:
    """Whether places are longitude and latitude, by the names or the units of their columns."""
    kinds = []
    for name, names in ((columns.x, LONGITUDES), (columns.y, LATITUDES)):
        unit = table.units.get(name, "").lower()
        kinds.append(plain(name) in names or unit.startswith(("deg", "°")))
    if kinds[0] != kinds[1]:
        degrees, other = (columns.x, columns.y) if kinds[0] else (columns.y, columns.x)
        raise DataError(
            f"{table.origin}: {degrees!r} is in degrees and {other!r} is not, by their names; rename them, or say "
            "which columns are meant with --columns x=...,y=..."
        )
    return kinds[0]


def _date_and_clock(free: list[str]) -> dict[str, str | None]:
    """A column of dates with one for the time of day beside it, as loggers write them."""
    dates = [name for name in free if plain(name) in ("date", "day")]
    clocks = [name for name in free if plain(name) in ("time", "timeofday", "hourminute")]
    return {"t": dates[0], "clock": clocks[0]} if len(dates) == len(clocks) == 1 else {}


def _only_value(table: Table, others: list[str]) -> str:
    """The one column that can be what was read."""
    numeric = [n for n in others if plain(n) not in _ASIDE and holds_numbers(table, n)]
    if len(numeric) == 1:
        return numeric[0]
    if numeric:
        raise DataError(
            f"{table.origin}: each of the columns {', '.join(map(repr, numeric[:8]))} can be what was read; say which, "
            f"with --columns value={numeric[0]}"
        )
    broken = [n for n in others if plain(n) not in _ASIDE]
    if len(broken) == 1:
        return broken[0]  # what is wrong with its entries is said when they are read
    raise DataError(
        f"{table.origin}: no column is what was read; name it 'value', or pass --columns value=NAME. There are: "
        f"{_listed(table)}"
    )


def _lacking(table: Table, role: str) -> str:
    if all(name.isdigit() for name in table.columns):
        return (
            f"{table.origin}: the first line has numbers and not the names of columns; add a line such as x,y,t,value, "
            "or say which is which by numbers: --columns x=1,y=2,value=3"
        )
    usual = ", ".join(NAMES[role][:6])
    hint = ""
    if len(table.columns) == 1:
        hint = "; there is a single column: is the separator another one? Pass --separator"
    return (
        f"{table.origin}: no column is {role} by its name (such as {usual}); pass --columns {role}=NAME. There are: "
        f"{_listed(table)}{hint}"
    )


def _listed(table: Table) -> str:
    names = [repr(name) for name in table.columns]
    return ", ".join(names[:12]) + (f" and {len(names) - 12} more" if len(names) > 12 else "")
