"""Lengths and times with their units, as people write them: ``"6 h"``, ``"12 km"``."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

from latentpde.errors import UsageError
from latentpde.validation import shortened

#: Usual spellings of units, by their short names, with what one of each is in metres, or in seconds.
LENGTHS = {
    "mm": (1e-3, ("millimetre", "millimeter")),
    "cm": (1e-2, ("centimetre", "centimeter")),
    "m": (1.0, ("metre", "meter")),
    "km": (1e3, ("kilometre", "kilometer")),
    "ft": (0.3048, ("foot", "feet")),
    "mi": (1609.344, ("mile",)),
    "nmi": (1852.0, ("nautical_mile", "nautical mile")),
}
TIMES = {
    "us": (1e-6, ("microsecond", "µs", "usec")),
    "ms": (1e-3, ("millisecond", "msec")),
    "s": (1.0, ("second", "sec")),
    "min": (60.0, ("minute",)),
    "h": (3600.0, ("hour", "hr")),
    "d": (86400.0, ("day",)),
    "week": (604800.0, ()),
    "yr": (31557600.0, ("year", "a")),  # Julian, as astronomers and UDUNITS' "Julian_year" have it
}
_QUANTITY = re.compile(r"\s*([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)\s*([a-zA-Zµ°_ ]+?)?\s*")


def short_unit(name: str, units: dict[str, tuple[float, tuple[str, ...]]]) -> str | None:
    """The short name of a unit of a table however it is spelt; ``None`` where it is of another kind.

    >>> short_unit("Kilometers", LENGTHS), short_unit("hours", TIMES), short_unit("kelvin", LENGTHS)
    ('km', 'h', None)
    """
    wanted = name.strip()
    for spelling in (wanted, wanted.lower()):
        for short, (_, others) in units.items():
            if spelling in (short, *others) or (len(spelling) > 2 and spelling.removesuffix("s") in (short, *others)):
                return short
    return None


def conversion(unit: str, into: str) -> float | None:
    """What one of a unit is in another; ``None`` where they measure different things, or one is not known.

    >>> conversion("km", "m"), conversion("days", "h"), conversion("km", "h")
    (1000.0, 24.0, None)
    """
    for units in (LENGTHS, TIMES):
        one, other = short_unit(unit, units), short_unit(into, units)
        if one is not None and other is not None:
            return units[one][0] / units[other][0]
    return None


def as_number(value: Any, unit: str, what: str) -> float:
    """A length or a time as a number of a unit.

    >>> as_number("6 h", "min", "the step"), as_number(2.5, "km", "the margin")
    (360.0, 2.5)

    Args:
        value: a number, which is of this unit already; text with a number and its unit; a length of time of Python,
            NumPy or pandas.
        unit: that the number is to have; empty where it is not known, and text must then have none either.
        what: it is called in messages.
    """
    if isinstance(value, timedelta) or type(value).__name__ == "timedelta64":
        seconds = value.total_seconds() if isinstance(value, timedelta) else float(value / type(value)(1, "us")) * 1e-6
        return seconds * _converted("s", unit, what, value)
    if isinstance(value, str):
        found = _QUANTITY.fullmatch(value)
        if not found:
            raise UsageError(f'{what} must be a number, or one with its unit such as "6 h" or "12 km"; got {value!r}')
        number, own = float(found[1]), found[2]
        return number if own is None else number * _converted(own, unit, what, value)
    try:
        return float(value)
    except (TypeError, ValueError) as error:
        raise UsageError(f"{what} must be a number, or text with a unit; got {shortened(value)}") from error


def _converted(own: str, unit: str, what: str, value: Any) -> float:
    factor = conversion(own, unit)
    if factor is None:
        known = unit or "no unit that is known"
        raise UsageError(f"{what} is {shortened(value)}, and the data have {known}: give it as a number of that unit")
    return factor
