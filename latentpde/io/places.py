"""Longitudes and latitudes: whether they can be such, and where the seam of the globe is put."""

from __future__ import annotations

import numpy as np

from latentpde.errors import DataError
from latentpde.io.table import Table

_BAND = 30.0  # degrees between neighbours at most, where readings are said to go around the globe


def check_degrees(table: Table, name_y: str, y: np.ndarray, name_x: str, x: np.ndarray) -> None:
    """Raise `DataError` where latitudes or longitudes cannot be such."""
    for name, values, low, high in ((name_y, y, -90.0, 90.0), (name_x, x, -180.0, 360.0)):
        wrong = np.flatnonzero((values < low) | (values > high))
        if not len(wrong):
            continue
        found = f"{table.where(wrong[0], name)}: {values[wrong[0]]:g} is outside {low:g} to {high:g} degrees"
        if np.abs(values).max() > 1000:
            mend = "are these metres? Then name the columns easting (m) and northing (m)"
        elif name == name_y and np.abs(x).max() <= 90:
            mend = f"are {name_y!r} and {name_x!r} swapped?"
        else:
            mend = "correct it, or delete the row"
        raise DataError(f"{found} ({len(wrong)} such rows); {mend}")


def unwrapped(longitudes: np.ndarray) -> tuple[np.ndarray, bool]:
    """Longitudes without the jump at the seam, and whether they go around the globe.

    >>> unwrapped(np.array([179.0, -179.0]))
    (array([179., 181.]), False)
    >>> unwrapped(np.array([-10.0, 10.0]))[0]
    array([-10.,  10.])
    """
    turned = np.sort(np.unique(longitudes % 360.0))
    gaps = np.diff(np.append(turned, turned[0] + 360.0))
    widest = int(gaps.argmax())
    if gaps[widest] <= _BAND and len(turned) > 2:
        return longitudes, True
    first = turned[(widest + 1) % len(turned)]
    span = 360.0 - gaps[widest]
    if np.ptp(longitudes) <= span + 1e-9:
        return longitudes, False
    moved = first + (longitudes - first) % 360.0
    if moved.min() > 180.0 and longitudes.min() < 0:
        moved = moved - 360.0
    return moved, False


def axis_unwrapped(longitudes: np.ndarray) -> np.ndarray:
    """The longitudes of a grid without a jump, so that they run one way.

    >>> axis_unwrapped(np.array([350.0, 355.0, 0.0, 5.0]))
    array([350., 355., 360., 365.])
    """
    steps = np.diff(longitudes)
    if len(steps) < 2:
        return longitudes
    usual = np.median(steps)
    jumps = np.where(np.abs(steps - usual) > 180.0, np.round((usual - steps) / 360.0) * 360.0, 0.0)
    moved = longitudes + np.append(0.0, np.cumsum(jumps))
    return moved - 360.0 if moved.min() >= 180.0 and longitudes.min() < 0 else moved
