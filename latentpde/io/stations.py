"""Readings from a table: one row each, wherever and whenever they were taken."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from latentpde.domain import Domain
from latentpde.errors import DataError, LatentPDEWarning, UsageError
from latentpde.frame import Axis, Clock, Frame
from latentpde.grid import Grid
from latentpde.io.clocks import clock_of_dates, clock_of_numbers
from latentpde.io.columns import Columns, find_columns, is_geographic, plain
from latentpde.io.dates import DateOptions, dates, holds_dates
from latentpde.io.entries import is_missing, numbers
from latentpde.io.places import check_degrees, unwrapped
from latentpde.io.table import Table, bare
from latentpde.observation import Observation
from latentpde.observation.fill_values import refuse_fill_values
from latentpde.quantities import conversion

_KELVIN = 273.15
_CELLS = 32  # along the shorter side of a rectangle that is given


@dataclass(frozen=True, kw_only=True)
class TableOptions:
    """What a table does not say itself; as the arguments of `latentpde.io.read.read`."""

    columns: Mapping[str, str] = field(default_factory=dict)
    time_unit: str | None = None
    dates: DateOptions = field(default_factory=DateOptions)
    noise_std: float | None = None
    family: str | None = None
    domain: Domain | None = None
    start: Any = None
    rectangle: tuple[float, float, float, float] | None = None
    keep_outliers: bool = False


def observation_from_table(table: Table, options: TableOptions, excluded=None) -> Observation:
    """Readings of a table on a plane, with the frame that leads back.

    >>> columns = {"lat": np.array([50.0, 50.5, 51.0]), "lon": np.array([8.0, 9.0, 8.5])}
    >>> columns["pm10"] = np.array([9.0, 7.0, 8.0])
    >>> observation = observation_from_table(Table(columns=columns), TableOptions())
    >>> observation.frame.value, observation.frame.length_unit, observation.num_readings
    ('pm10', 'km', tensor([3]))

    Args:
        table: as it was found.
        options: what it does not say.
        excluded: makes an `Excluded` of a frame and the table's corners; ``None`` for no excluded areas.
    """
    columns = find_columns(table, options.columns)
    value = numbers(table, columns.value)
    there = ~np.isnan(value)
    if not there.any():
        raise DataError(f"{table.origin}: every entry of the column {columns.value!r} is missing")
    if columns.reads is not None:
        table = _with_times_of_source(table, columns, _reads(table, columns.reads) == "source")
    _require_entries(table, columns, there)
    table, value = table.subset(there), value[there]
    table, value = _without_repeats(table, columns, value)
    reads = None if columns.reads is None else _reads(table, columns.reads)
    if not options.keep_outliers:
        for kind in (np.full(len(value), True),) if reads is None else (reads == "field", reads == "source"):
            refuse_fill_values(value[kind], f"entries of column {columns.value!r} of {table.origin}")
            _refuse_two_scales(table.subset(kind), columns.value, value[kind])
    clock, t = _times(table, columns, options)
    frame, y, x = _places(table, columns, clock)
    frame = replace(
        frame,
        value=bare(columns.value) if plain(columns.value) else "value",
        value_unit=_value_unit(table, columns, reads),
        places=_station_names(table, columns, y, x),
        origin=table.origin,
    )
    sigma = options.noise_std if columns.sigma is None or options.noise_std is not None else _sigmas(table, columns)
    group = None if columns.group is None else table.columns[columns.group].astype(str)
    if excluded is not None:
        frame = replace(frame, excluded=excluded(frame))
        kept = ~frame.excluded_at(y, x)
        if not kept.any():
            raise DataError("every reading lies in the excluded area; is the mask the wrong way round?")
        if not kept.all():
            warnings.warn(
                f"{int((~kept).sum())} reading(s) lie in the excluded area and do not count",
                LatentPDEWarning,
                stacklevel=4,
            )
        y, x, value = y[kept], x[kept], value[kept]
        t = None if t is None else t[kept]
        sigma = sigma[kept] if isinstance(sigma, np.ndarray) else sigma
        group = None if group is None else group[kept]
        reads = None if reads is None else reads[kept]
        if frame.places is not None:
            frame = replace(frame, places=tuple(np.array(frame.places, dtype=object)[kept]))
    start = None if options.start is None or clock is None else clock.to_number(options.start, "the start")
    observation = Observation.from_table(
        value,
        y=y,
        x=x,
        t=t,
        sigma=sigma,
        group=group,
        reads=reads,
        start=start,
        grid=_band(frame, y) if options.rectangle is None else _rectangle(frame, options.rectangle),
        domain=options.domain or (Domain(x="periodic") if _is_band(frame) else None),
        family=options.family,
    )
    return replace(observation, frame=frame)


def _with_times_of_source(table: Table, columns: Columns, of_source: np.ndarray) -> Table:
    """The same with a time for readings of the source that have none: it is steady, so any will do."""
    filled = dict(table.columns)
    for name in (columns.t, columns.clock):
        if name is not None:
            missing = is_missing(table, name)
            if bool((missing & of_source).any()) and not missing.all():
                filled[name] = table.columns[name].copy()
                filled[name][missing & of_source] = filled[name][~missing][0]
    return replace(table, columns=filled)


def _require_entries(table: Table, columns: Columns, there: np.ndarray) -> None:
    for name in (columns.x, columns.y, columns.t, columns.clock):
        if name is not None:
            lacking = np.flatnonzero(is_missing(table, name) & there)
            if len(lacking):
                raise DataError(
                    f"{table.where(lacking[0], name)}: the entry is missing, and there is a reading "
                    f"({len(lacking)} such rows); fill it in, or delete the row"
                )


def _without_repeats(table: Table, columns: Columns, value: np.ndarray) -> tuple[Table, np.ndarray]:
    """The same without rows that repeat another one; what a place says twice at one time is kept, and said."""
    names = [n for n in (columns.x, columns.y, columns.t, columns.clock, columns.reads) if n is not None]
    keys = list(zip(*(table.columns[n].tolist() for n in names), strict=True))
    first: dict[tuple, int] = {}
    seen: dict[tuple, float] = {}
    repeated, differing = [], []
    for row, (key, number) in enumerate(zip(keys, value.tolist(), strict=True)):
        if (*key, number) in first:
            repeated.append(row)
        elif key in seen:
            differing.append(row)
        first.setdefault((*key, number), row)
        seen.setdefault(key, number)
    if differing:
        warnings.warn(
            f"{len(differing)} reading(s) are of a place and a time that another is of, with another value "
            f"({table.rows(differing)}); all of them count",
            LatentPDEWarning,
            stacklevel=5,
        )
    if not repeated:
        return table, value
    warnings.warn(
        f"{len(repeated)} row(s) repeat another one ({table.rows(repeated)}) and do not count again",
        LatentPDEWarning,
        stacklevel=5,
    )
    kept = np.setdiff1d(np.arange(len(value)), repeated)
    return table.subset(kept), value[kept]


def _refuse_two_scales(table: Table, name: str, value: np.ndarray) -> None:
    """Kelvin and Celsius in one column, which a gap of 273 between two heaps of values shows."""
    low, high = value < 100, value > 200
    if low.any() and high.any() and bool((low | high).all()) and value.min() > -90 and value.max() < 340:
        apart = float(np.median(value[high]) - np.median(value[low]))
        if abs(apart - _KELVIN) < 30:
            fewer = np.flatnonzero(low if low.sum() < high.sum() else high)
            raise DataError(
                f"{table.where(fewer[0], name)}: {value[fewer[0]]:g} and {len(fewer) - 1} more entries are 273 away "
                "from the others: are kelvin and degrees Celsius mixed? Convert them, or pass --keep-outliers"
            )


def _times(table: Table, columns: Columns, options: TableOptions) -> tuple[Clock | None, np.ndarray | None]:
    if columns.t is None:
        return None, None
    if columns.clock is not None or holds_dates(table, columns.t):
        return clock_of_dates(dates(table, columns.t, options.dates, columns.clock), bare(columns.t), options.time_unit)
    unit = options.time_unit or table.units.get(columns.t, "")
    return clock_of_numbers(numbers(table, columns.t), bare(columns.t), unit, table.origin)


def _places(table: Table, columns: Columns, clock: Clock | None) -> tuple[Frame, np.ndarray, np.ndarray]:
    y, x = numbers(table, columns.y), numbers(table, columns.x)
    if not is_geographic(table, columns):
        unit_y, unit_x = (table.units.get(name, "") for name in (columns.y, columns.x))
        factor = conversion(unit_y, unit_x) if unit_y != unit_x else 1.0
        if factor is None:
            raise DataError(
                f"{table.origin}: {columns.y!r} is in {unit_y or 'no unit'} and {columns.x!r} in {unit_x or 'no unit'}"
                "; give both in one unit of length"
            )
        frame = Frame(
            y=Axis(bare(columns.y), unit_y, scale=factor),
            x=Axis(bare(columns.x), unit_x),
            clock=clock,
            length_unit=unit_x,
        )
        return frame, *frame.to_plane(y, x)
    check_degrees(table, columns.y, y, columns.x, x)
    x, is_band = unwrapped(x)
    longitudes = (float(x.min()), float(x.max()))
    frame = Frame.geographic(
        latitudes=(float(y.min()), float(y.max())),
        longitudes=longitudes,
        names=(bare(columns.y), bare(columns.x)),
        is_band=is_band,
        clock=clock,
    )
    return frame, *frame.to_plane(y, x)


def _is_band(frame: Frame) -> bool:
    return frame.projection is not None and frame.projection.is_band


def _band(frame: Frame, y: np.ndarray) -> Grid | None:
    """The rectangle of readings that go around the globe; ``None`` where it follows from the readings."""
    if not _is_band(frame):
        return None
    width = 360.0 * frame.x.scale
    margin = 0.5 * np.sqrt(width * max(float(np.ptp(y)), 1e-3 * width) / len(y))
    height = float(np.ptp(y)) + 2 * margin
    cells = max(8, round(32 * width / height)) if height < width else 32
    return Grid((max(8, round(cells * height / width)), cells), (height, width), (float(y.min() - margin), -width / 2))


def _rectangle(frame: Frame, given: tuple[float, float, float, float]) -> Grid:
    """A rectangle that was given in the user's coordinates, on the plane."""
    low_y, high_y, low_x, high_x = given
    y, x = frame.to_plane(np.array([low_y, high_y]), np.array([low_x, high_x]))
    height, width = float(y[1] - y[0]), float(x[1] - x[0])
    if not (height > 0 and width > 0):
        raise UsageError(f"the rectangle is (y_low, y_high, x_low, x_high), each low below its high; got {given}")
    cells = tuple(max(1, round(_CELLS * side / min(height, width))) for side in (height, width))
    return Grid((cells[0], cells[1]), (height, width), (float(y[0]), float(x[0])))


def _reads(table: Table, name: str) -> np.ndarray:
    """What each reading is of: ``field``, also where nothing is said, or ``source``."""
    missing = is_missing(table, name)
    entries = [
        "field" if empty else str(entry).strip().lower()
        for entry, empty in zip(table.columns[name], missing, strict=True)
    ]
    wrong = [row for row, entry in enumerate(entries) if entry not in ("field", "source")]
    if wrong:
        raise DataError(
            f"{table.where(wrong[0], name)}: a reading is of the 'field' or of the 'source', found "
            f"{entries[wrong[0]]!r} ({len(wrong)} such rows)"
        )
    return np.array(entries)


def _value_unit(table: Table, columns: Columns, reads: np.ndarray | None) -> str:
    """That of the field's readings; the source has another."""
    if columns.unit is None:
        return table.units.get(columns.value, "")
    table = table if reads is None else table.subset(reads == "field")
    if not len(table):
        return ""
    units = [str(entry).strip() for entry in table.columns[columns.unit]]
    others = [row for row, unit in enumerate(units) if unit != units[0]]
    if others:
        raise DataError(
            f"{table.where(others[0], columns.unit)}: the unit is {units[others[0]]!r}, and {units[0]!r} in "
            f"{table.rows([0])}; convert the readings to one unit"
        )
    return units[0]


def _sigmas(table: Table, columns: Columns) -> np.ndarray:
    assert columns.sigma is not None
    sigma = numbers(table, columns.sigma)
    wrong = np.flatnonzero(sigma <= 0)
    if len(wrong):
        raise DataError(
            f"{table.where(wrong[0], columns.sigma)}: a standard deviation is positive, found {sigma[wrong[0]]:g} "
            f"({len(wrong)} such rows); leave it empty where it is not known"
        )
    return sigma


def _station_names(table: Table, columns: Columns, y: np.ndarray, x: np.ndarray) -> tuple[str, ...] | None:
    if columns.station is None:
        return None
    names = [str(name) for name in table.columns[columns.station]]
    first: dict[str, int] = {}
    moved = {}
    for row, name in enumerate(names):
        seen = first.setdefault(name, row)
        if name not in moved and (y[row], x[row]) != (y[seen], x[seen]):
            moved[name] = (seen, row)
    if moved and 2 * len(moved) < len(first):  # ships and buoys all move
        name, (one, other) = next(iter(moved.items()))
        raise DataError(
            f"{table.where(other, columns.station)}: station {name!r} is at another place than in {table.rows([one])}; "
            "give it one place, or stations at two places two names"
        )
    return tuple(names)
