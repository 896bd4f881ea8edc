"""What a file holds, in words: how much, from where to where, how good, and what can go wrong with it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from latentpde.frame import Frame
from latentpde.inspection.variation import Variation, amount
from latentpde.observation import Observation
from latentpde.observation.listing import Listing

_DISTORTION = 0.1  # of lengths on the plane, from which on it is said
_OUTLIER = 8.0  # robust standard deviations


def contents(observation: Observation, listing: Listing, frame: Frame, times: np.ndarray) -> dict[str, str]:
    """How many readings of what."""
    unit = f" ({frame.value_unit})" if frame.value_unit else ""
    places = int(listing.stations.max()) + 1
    cells = observation.positions is None
    when = "" if len(times) == 1 else f"{' at' if cells else ' and'} {len(times)} times"
    where = f"in {places:,} cells" if cells else f"at {places:,} places"
    found = {"readings": f"{len(listing):,} of {frame.value}{unit}, {where}{when}"}
    if observation.positions is None:
        ny, nx = observation.grid.shape
        found["grid"] = f"{ny} x {nx} cells ({frame.y.name}, {frame.x.name})"
    if observation.num_cases > 1:
        found["cases"] = f"{observation.num_cases}; what follows is of the first"
    low, high = float(listing.values.min()), float(listing.values.max())
    found["values"] = f"{low:.4g} to {high:.4g}, mean {listing.values.mean():.4g}, std {listing.values.std():.3g}"
    if observation.of_source is not None:
        own = observation.values[0][observation.of_source[0] & observation.mask[0]]
        found["of the source"] = f"{len(own):,} more, {float(own.min()):.4g} to {float(own.max()):.4g}"
        if listing.of_source is not None:
            found["of the source"] = "all of these readings"
    return found


def extents(observation: Observation, frame: Frame, times: np.ndarray) -> dict[str, str]:
    """From where to where, and from when to when."""
    found = {}
    height, width = observation.grid.extent
    low_y, low_x = observation.grid.origin
    for axis, low, size in ((frame.y, low_y, height), (frame.x, low_x, width)):
        start, stop = axis.to_user([low, low + size]).tolist()
        if frame.projection is None:
            found[axis.name] = f"{start:.6g} to {stop:.6g} {axis.unit or '(no unit)'}"
        else:
            ends = (_degrees(end, axis.unit) for end in (start, stop))
            found[axis.name] = f"{' to '.join(ends)}, {amount(size, frame.length_unit)}"
    if frame.projection is not None:
        band = ", around the globe" if frame.projection.is_band else ""
        found["projection"] = f"a plane in km, true along {frame.projection.latitude:.4g}° of latitude{band}"
    if frame.clock is not None or len(times) > 1:
        first, last = frame.times_to_user(times[[0, -1]])
        step = f", steps of {amount(float(np.median(np.diff(times))), frame.time_unit)}" if len(times) > 1 else ""
        zone = " UTC" if frame.clock is not None and frame.clock.epoch is not None else ""
        until = f" to {moment(last)}" if len(times) > 1 else ""
        found[frame.time_name] = f"{moment(first)}{until}{zone}{step}"
    return found


def quality(observation: Observation, listing: Listing, frame: Frame) -> dict[str, str]:
    """Gaps, repeated and odd readings, and the noise that is stated."""
    found = {}
    if observation.positions is None:
        out = frame.excluded_cells(observation.grid)
        total = int((~out).sum()) * len(observation.times)
        found["missing"] = f"{1 - len(listing) / max(total, 1):.1%} of the cells that are not excluded"
        if out.any():
            found["excluded"] = f"{out.mean():.1%} of the cells"
    else:
        places, times = len(np.unique(listing.stations)), len(np.unique(listing.times))
        if len(listing) * 3 > places * times > places:  # places that are read again and again
            found["missing"] = f"{max(0.0, 1 - len(listing) / (places * times)):.1%} of what {places} places could say"
        if frame.excluded is not None:
            found["excluded"] = f"{frame.excluded_cells(observation.grid).mean():.1%} of the area"
        distinct = len(set(zip(listing.stations.tolist(), listing.times.tolist(), strict=True)))
        found["repeated"] = _readings(len(listing) - distinct, "at a place and time of another")
    far = outliers(listing)
    found["far from the others"] = _readings(len(far), f"such as {listing.values[far[0]]:.4g}" if len(far) else "")
    known = np.isfinite(listing.noise_std)
    found["stated noise"] = (
        "none"
        if not known.any()
        else f"{np.median(listing.noise_std[known]):.3g}, of {known.mean():.0%} of the readings"
    )
    return found


def doubts(
    observation: Observation, listing: Listing, frame: Frame, found: Variation | None, spacing: float
) -> list[str]:
    """What can go wrong, as sentences."""
    said = []
    if frame.projection is not None:
        low, size = observation.grid.origin[0], observation.grid.extent[0]
        south, north = frame.y.to_user([low, low + size])
        wrong = frame.projection.distortion(float(max(south, -90)), float(min(north, 90)))
        if wrong > _DISTORTION:
            said.append(
                f"lengths along {frame.x.name} are wrong by up to {wrong:.0%} at the edges: take a narrower band of "
                "latitudes"
            )
    if len(outliers(listing)):
        said.append(
            "readings far from the others can spoil the rest: look at them, or let the method set them aside with "
            "--robust"
        )
    if found is not None and found.length is not None and found.length < spacing:
        said.append(
            f"the field varies within {amount(found.length, frame.length_unit)}, and readings are "
            f"{amount(spacing, frame.length_unit)} apart: between them little can be said"
        )
    if found is not None and found.noise_std > found.std:
        said.append("the noise is larger than what varies: expect wide intervals")
    if not frame.length_unit and observation.frame is not None:
        said.append(
            "the unit of lengths is not known, so coefficients come without one; write it in the heading, as in x (km)"
            + (f"; if {frame.x.name} and {frame.y.name} are degrees, call them lon and lat" * _may_be_degrees(listing))
        )
    if len(listing) < 10:
        said.append(f"{len(listing)} readings are few: expect wide intervals")
    return said


def _may_be_degrees(listing: Listing) -> bool:
    """Whether places far from the origin could be longitudes and latitudes; those of a drawn square begin at zero."""
    y, x = listing.points.T
    inside = abs(y).max() <= 90 and x.min() >= -180 and x.max() <= 360
    return bool(inside and max(abs(y).min(), abs(x).min()) > max(np.ptp(y), np.ptp(x)))


def outliers(listing: Listing) -> np.ndarray:
    """Numbers of readings far from the median of all."""
    middle = np.median(listing.values)
    scale = 1.4826 * np.median(np.abs(listing.values - middle))
    return np.flatnonzero(np.abs(listing.values - middle) > _OUTLIER * scale) if scale > 0 else np.array([], dtype=int)


def moment(value: Any) -> str:
    """A date, or a number that stands for a time.

    >>> moment(np.datetime64("2026-05-01T06:00:00")), moment(1.5)
    ('2026-05-01T06:00', '1.5')
    """
    if isinstance(value, np.datetime64):
        return str(value.astype("datetime64[s]")).removesuffix(":00")
    return f"{float(value):.6g}" if math.isfinite(float(value)) else str(value)


def _degrees(value: float, unit: str) -> str:
    """
    >>> _degrees(357.25, "degrees_east"), _degrees(52.0, "degrees_north")
    ('2.75° W', '52° N')
    """
    if unit == "degrees_east":
        value = value if -180 <= value <= 180 else (value + 180) % 360 - 180
    letters = "EW" if unit == "degrees_east" else "NS"
    return f"{abs(value):.6g}° {letters[value < 0]}"


def _readings(number: int, which: str) -> str:
    return "no reading" if not number else f"{number:,} reading{'s' * (number > 1)}, {which}"
