"""Times as numbers: of dates, and of numbers with a unit."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np

from latentpde.errors import DataError, UsageError
from latentpde.frame import Clock
from latentpde.quantities import TIMES, short_unit

_SINCE = re.compile(r"\s*(\w+)\s+since\s+(.+?)\s*")
#: The unit of dates that lie at least so many seconds apart, one from the next; or else at most so many altogether.
_BY_STEP = ((0.9 * 86400.0, "d"), (0.9 * 3600.0, "h"))
_BY_SPAN = ((600.0, "s"), (3 * 3600.0, "min"), (10 * 86400.0, "h"))


def in_nanoseconds(moments: np.ndarray, where: Callable[[int], str]) -> np.ndarray:
    """Dates to the nanosecond, which is good for 1678 to 2261; raises `DataError` for others.

    >>> in_nanoseconds(np.array(["2026-05-01"], dtype="datetime64[s]"), str)
    array(['2026-05-01T00:00:00.000000000'], dtype='datetime64[ns]')

    Args:
        moments: NaT where there is none.
        where: says of the number of a date where it stands.
    """
    first, last = np.datetime64("1678-01-01", "s"), np.datetime64("2262-01-01", "s")
    seconds = moments.astype("datetime64[s]")
    wrong = np.flatnonzero(~np.isnat(seconds) & ((seconds < first) | (seconds >= last)))
    if len(wrong):
        raise DataError(
            f"{where(int(wrong[0]))}: {moments[wrong[0]]} is beyond the dates that can be told, 1678 to 2261"
        )
    return moments.astype("datetime64[ns]")


def clock_of_dates(moments: np.ndarray, name: str, unit: str | None = None) -> tuple[Clock, np.ndarray]:
    """A clock that starts at the first of some dates, and their numbers on it.

    >>> clock, t = clock_of_dates(np.array(["2026-05-01T06", "2026-05-01T12"], dtype="datetime64[ns]"), "date")
    >>> clock.unit, t
    ('h', array([0., 6.]))

    Args:
        moments: in UTC.
        name: the user's name of them.
        unit: that the numbers are to have; by default the usual one: hours of hourly readings, days of daily ones.
    """
    epoch = moments.min()
    chosen = _usual_unit(moments) if unit is None else short_unit(unit, TIMES)
    if chosen is None:
        raise UsageError(f"dates can be counted in {', '.join(TIMES)}; got the unit {unit!r}")
    numbers = (moments - epoch) / np.timedelta64(1, "ns") * 1e-9 / TIMES[chosen][0]
    return Clock(name, chosen, epoch), np.asarray(numbers, dtype=float)


def _usual_unit(moments: np.ndarray) -> str:
    """What people count such dates in: by the usual step from one to the next, or where that is short by the span."""
    steps = np.diff(np.unique(moments)) / np.timedelta64(1, "ns") * 1e-9
    if not len(steps):
        return "h"
    for least, unit in _BY_STEP:
        if np.median(steps) >= least:
            return unit
    return next((unit for most, unit in _BY_SPAN if steps.sum() <= most), "d")


def clock_of_numbers(numbers: np.ndarray, name: str, unit: str, origin: str) -> tuple[Clock, np.ndarray]:
    """A clock of times that are numbers already; ``hours since 2026-05-01`` makes dates of them.

    >>> clock_of_numbers(np.array([6.0]), "t", "hours since 2026-05-01", "a.csv")[0].epoch
    np.datetime64('2026-05-01T06:00:00.000000000')
    """
    since = _SINCE.fullmatch(unit)
    if since:
        short = short_unit(since[1], TIMES)
        if short is None:
            raise UsageError(f"there is no unit of time {since[1]!r}; there are {', '.join(TIMES)}")
        zero = Clock(name, short, np.datetime64(0, "ns"))
        first = zero.to_number(since[2], "the date that times are counted from")
        return clock_of_dates(zero.to_user(numbers + first), name, short)
    if unit and short_unit(unit, TIMES) is None:
        raise UsageError(f"there is no unit of time {unit!r}; there are {', '.join(TIMES)}, and hours since 2026-05-01")
    if numbers.min() > 1e8 and not unit:
        raise DataError(
            f"{origin}: times in {name!r} are near {numbers.min():.10g}; are they seconds since 1970? Then pass "
            '--time-unit "s since 1970-01-01", else their unit, such as --time-unit s'
        )
    return Clock(name, short_unit(unit, TIMES) or "", None), numbers
