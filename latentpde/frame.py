r"""The user's own coordinates, and the way there and back.

Inside, places lie on a plane with one unit of length, ``y`` and ``x`` both upwards, and times are numbers. A user has
latitudes that run downwards, longitudes up to 360, dates, kelvin. A `Frame` remembers what they had, and results go out
in it.

Longitude and latitude become lengths on the plane that touches the sphere along the parallel in the middle of the data,

.. math:: x = R \cos\varphi_0\,(\lambda - \lambda_0), \qquad y = R\,(\varphi - \varphi_0),

so a grid in degrees stays a grid, and a band around the globe closes on itself. Lengths along a parallel
:math:`\varphi` come out too long by :math:`\cos\varphi_0 / \cos\varphi`; `Projection.distortion` says how much.
"""

from __future__ import annotations

import math
import re
from dataclasses import asdict, dataclass, field, fields
from datetime import date, datetime
from typing import TYPE_CHECKING, Any

import numpy as np

from latentpde.errors import UsageError
from latentpde.quantities import TIMES, as_number, short_unit
from latentpde.validation import shortened

if TYPE_CHECKING:
    from latentpde.grid import Grid

PURE_NUMBER = "1"  # CF's unit of what has none
EARTH_RADIUS = 6371.0  # km, of the sphere with the Earth's area
_DATE = re.compile(r"\s*\d+[-/.]\d+[-/.]\d|.*:")
_DEGREE = math.radians(1.0) * EARTH_RADIUS


@dataclass(frozen=True)
class Axis:
    """One of the user's axes in space.

    >>> latitude = Axis("lat", "degrees_north", origin=50.0, scale=111.2, descending=True)
    >>> latitude.to_plane([51.0]), latitude.to_user([-111.2])
    (array([111.2]), array([49.]))

    Args:
        name: the user's name of it.
        unit: the user's; empty where nobody said.
        origin: the user's coordinate that is 0 on the plane.
        scale: of the plane's unit of length per unit of the user's.
        descending: whether the user has it running downwards, or to the left.
        period: after which the user's coordinate is the same place again, as 360 degrees of longitude are.
    """

    name: str
    unit: str = ""
    origin: float = 0.0
    scale: float = 1.0
    descending: bool = False
    period: float | None = None

    def __post_init__(self):
        object.__setattr__(self, "unit", "" if self.unit == PURE_NUMBER else self.unit)

    def to_plane(self, values: Any) -> np.ndarray:
        """Coordinates on the plane of the user's; longitudes of any turn."""
        away = np.asarray(values, dtype=float) - self.origin
        if self.period is not None:
            away = np.where(
                np.abs(away) > self.period / 2, (away + self.period / 2) % self.period - self.period / 2, away
            )
        return np.asarray(away * self.scale)

    def to_user(self, values: Any) -> np.ndarray:
        """The user's coordinates of those on the plane."""
        return np.asarray(np.asarray(values, dtype=float) / self.scale + self.origin)


@dataclass(frozen=True)
class Projection:
    """How longitude and latitude become lengths in km.

    >>> Projection(50.0, 10.0).distortion(45.0, 55.0)  # lengths along 55 degrees north come out 12 % too long
    0.12...

    Args:
        latitude, longitude: of the middle, in degrees; lengths are true along this parallel.
        is_band: whether the data go around the globe, so that x is periodic.
    """

    latitude: float
    longitude: float
    is_band: bool = False

    @property
    def km_per_degree(self) -> tuple[float, float]:
        """Along y and along x."""
        return _DEGREE, _DEGREE * math.cos(math.radians(self.latitude))

    def distortion(self, south: float, north: float) -> float:
        """By what share lengths along x are wrong at the worse of two parallels."""
        true = math.cos(math.radians(self.latitude))
        return max(abs(true / max(math.cos(math.radians(edge)), 1e-9) - 1) for edge in (south, north))


@dataclass(frozen=True)
class Clock:
    """The user's time.

    >>> clock = Clock("time", "h", np.datetime64("2026-05-01T00:00"))
    >>> clock.to_number("2026-05-01T06:00"), clock.to_number("90 min")
    (6.0, 1.5)
    >>> clock.to_user([6.0]).astype("datetime64[h]")
    array(['2026-05-01T06'], dtype='datetime64[h]')

    Args:
        name: the user's name of it.
        unit: of times as numbers; empty where nobody said.
        epoch: the date, in UTC, that is number 0; ``None`` where times are numbers.
    """

    name: str = "time"
    unit: str = ""
    epoch: np.datetime64 | None = None

    @property
    def seconds(self) -> float | None:
        """Of one unit; ``None`` where it is not known."""
        short = short_unit(self.unit, TIMES)
        return None if short is None else TIMES[short][0]

    def to_number(self, value: Any, what: str = "a time") -> float:
        """A time as the number that stands for it: of a date, a timestamp, text with a unit, or a number."""
        is_date = isinstance(value, date | np.datetime64) or (isinstance(value, str) and bool(_DATE.match(value)))
        if not is_date:
            return as_number(value, self.unit, what)
        if self.epoch is None or self.seconds is None:
            raise UsageError(f"{what} is {shortened(value)}, and the data have no dates; give it as a number")
        return float((_as_utc(value, what) - self.epoch) / np.timedelta64(1, "ns")) * 1e-9 / self.seconds

    def to_user(self, numbers: Any) -> np.ndarray:
        """Dates where the user has dates, else the numbers."""
        numbers = np.asarray(numbers, dtype=float)
        if self.epoch is None or self.seconds is None:
            return numbers
        nanoseconds = np.round(numbers * self.seconds * 1e6).astype("int64") * 1000  # to the microsecond
        return np.asarray(self.epoch.astype("datetime64[ns]") + nanoseconds.astype("timedelta64[ns]"))


@dataclass(frozen=True, eq=False)
class Excluded:
    """Where nothing is read and nothing is reported, such as land in a map of the sea.

    >>> land = Excluded(np.array([0.5, 1.5]), np.array([0.5, 1.5, 2.5]), np.array([[1, 0, 0], [1, 1, 0]], dtype=bool))
    >>> land.at(1.4, 1.2), land.at(0.1, 2.9), land.at(9.0, 9.0)
    (array(True), array(False), array(False))

    Args:
        y, x: centres of the cells on the plane, upwards.
        mask: true where a cell is excluded.
    """

    y: np.ndarray
    x: np.ndarray
    mask: np.ndarray

    def at(self, y: Any, x: Any) -> np.ndarray:
        """Whether places of the plane are excluded; what lies beyond the cells is not."""
        rows, above = _cells(self.y, np.asarray(y, dtype=float))
        cols, beside = _cells(self.x, np.asarray(x, dtype=float))
        return np.asarray(self.mask[rows, cols] & above & beside)


@dataclass(frozen=True, eq=False, kw_only=True)
class Frame:
    """The user's coordinates, and how to come back to them.

    >>> frame = Frame.geographic(latitudes=(40.0, 60.0), longitudes=(0.0, 20.0), clock=Clock("time", "h"))
    >>> [float(place.round(1)) for place in frame.to_plane(51.0, 10.0)]
    [111.2, 0.0]
    >>> frame.length_unit, frame.projection
    ('km', Projection(latitude=50.0, longitude=10.0, is_band=False))

    Args:
        y, x: the axes in space.
        clock: the axis in time; ``None`` where the data know none.
        length_unit: of the plane; empty where nobody said.
        projection: of longitude and latitude; ``None`` where places are lengths already.
        value: the user's name of what was read.
        value_unit: its unit.
        value_attributes: the rest of what the user says of it, such as ``long_name`` and ``standard_name``.
        order: of the user's axes, by their roles ``time``, ``y`` and ``x``.
        excluded: where nothing is reported.
        places: the user's names of the places of a table's readings, such as stations, in the order of the readings.
        origin: where the data came from, for people.
    """

    y: Axis = field(default_factory=lambda: Axis("y"))
    x: Axis = field(default_factory=lambda: Axis("x"))
    clock: Clock | None = None
    length_unit: str = ""
    projection: Projection | None = None
    value: str = "value"
    value_unit: str = ""
    value_attributes: dict[str, str] = field(default_factory=dict)
    order: tuple[str, ...] = ("time", "y", "x")
    excluded: Excluded | None = None
    places: tuple[str, ...] | None = None
    origin: str = ""

    def __post_init__(self):
        if self.value_unit == PURE_NUMBER:  # for files; people read it as a number
            object.__setattr__(self, "value_unit", "")
            object.__setattr__(self, "value_attributes", {**self.value_attributes, "units": PURE_NUMBER})
        if self.length_unit == PURE_NUMBER:
            object.__setattr__(self, "length_unit", "")

    @classmethod
    def geographic(
        cls,
        *,
        latitudes: tuple[float, float],
        longitudes: tuple[float, float],
        names: tuple[str, str] = ("lat", "lon"),
        descending: tuple[bool, bool] = (False, False),
        is_band: bool = False,
        **others: Any,
    ) -> Frame:
        """The frame of longitude and latitude in degrees.

        Args:
            latitudes, longitudes: the lowest and the highest; of longitudes that cross a seam, without the jump.
            names: of latitude and longitude.
            descending: whether each runs downwards.
            is_band: whether the longitudes go around the globe.
            others: as those of the class.
        """
        projection = Projection(sum(latitudes) / 2, sum(longitudes) / 2, is_band)
        along_y, along_x = projection.km_per_degree
        return cls(
            y=Axis(names[0], "degrees_north", projection.latitude, along_y, descending[0]),
            x=Axis(names[1], "degrees_east", projection.longitude, along_x, descending[1], 360.0),
            length_unit="km",
            projection=projection,
            **others,
        )

    def to_plane(self, y: Any, x: Any) -> tuple[np.ndarray, np.ndarray]:
        """Places on the plane of places as the user has them."""
        return self.y.to_plane(y), self.x.to_plane(x)

    def to_user(self, y: Any, x: Any) -> tuple[np.ndarray, np.ndarray]:
        """Places as the user has them of places on the plane."""
        return self.y.to_user(y), self.x.to_user(x)

    def to_number(self, time: Any) -> float:
        """A time as a number, on the clock that `latentpde.Observation.start` is on too."""
        return (self.clock or Clock()).to_number(time)

    def times_to_user(self, numbers: Any) -> np.ndarray:
        """Dates where the user has dates, else numbers."""
        return (self.clock or Clock()).to_user(numbers)

    @property
    def time_name(self) -> str:
        """The user's name of the axis in time."""
        return (self.clock or Clock()).name

    @property
    def time_unit(self) -> str:
        """Of times as numbers; empty where nobody said."""
        return "" if self.clock is None else self.clock.unit

    def excluded_at(self, y: Any, x: Any) -> np.ndarray:
        """Whether places of the plane are excluded."""
        y, x = np.broadcast_arrays(y, x)
        return np.zeros(y.shape, dtype=bool) if self.excluded is None else self.excluded.at(y, x)

    def excluded_cells(self, grid: Grid) -> np.ndarray:
        """Whether each cell of a grid is excluded: its centre is; axes ``(y, x)``."""
        y, x = (axis.numpy() for axis in grid.coordinates())
        return self.excluded_at(y[:, None], x)

    def to_dict(self) -> dict[str, Any]:
        """Everything but the excluded cells, as JSON can hold it."""
        found = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "excluded"}
        for name in ("y", "x", "projection", "clock"):
            found[name] = None if found[name] is None else asdict(found[name])
        if self.clock is not None and self.clock.epoch is not None:
            found["clock"]["epoch"] = str(self.clock.epoch.astype("datetime64[us]"))
        return found

    @classmethod
    def from_dict(cls, found: dict[str, Any], excluded: Excluded | None = None) -> Frame:
        """What `to_dict` made.

        >>> frame = Frame.geographic(latitudes=(40.0, 60.0), longitudes=(0.0, 20.0))
        >>> Frame.from_dict(frame.to_dict()).projection == frame.projection
        True
        """
        found = dict(found)
        found["y"], found["x"] = Axis(**found["y"]), Axis(**found["x"])
        found["projection"] = None if found["projection"] is None else Projection(**found["projection"])
        if (clock := found["clock"]) is not None:
            epoch = None if clock["epoch"] is None else np.datetime64(clock["epoch"])
            found["clock"] = Clock(clock["name"], clock["unit"], epoch)
        places = found["places"]
        found |= {"order": tuple(found["order"]), "places": None if places is None else tuple(places)}
        return cls(**found, excluded=excluded)


def _as_utc(value: str | date | datetime | np.datetime64, what: str) -> np.datetime64:
    """A moment in UTC; one without a time zone is taken to be in UTC already."""
    import pandas as pd

    try:
        moment = pd.Timestamp(value)
        if moment is pd.NaT:
            raise ValueError("not a time")
        moment = moment if moment.tzinfo is None else moment.tz_convert("UTC").tz_localize(None)
        return moment.to_datetime64()
    except (ValueError, TypeError, OverflowError) as error:
        raise UsageError(f"{what} must be a date such as 2026-05-01T06:00, got {shortened(value)}") from error


def _cells(centres: np.ndarray, places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The nearest cell of each place, and whether the place is in it."""
    edges = (centres[1:] + centres[:-1]) / 2
    first, last = (
        (centres[0], centres[-1]) if len(edges) == 0 else (2 * centres[0] - edges[0], 2 * centres[-1] - edges[-1])
    )
    slack = 1e-9 * (abs(last - first) + 1e-300)
    inside = (places >= first - slack) & (places <= last + slack) if len(edges) else np.ones(places.shape, dtype=bool)
    return np.asarray(np.searchsorted(edges, places)), np.asarray(inside)
