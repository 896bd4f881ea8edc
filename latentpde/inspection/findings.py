"""What `latentpde check` finds: described, estimated, assumed and ruled out."""

from __future__ import annotations

import math
import shlex
import warnings
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from latentpde.errors import LatentPDEError, LatentPDEWarning
from latentpde.estimators.base import DEFAULT_METHOD, make_estimator
from latentpde.estimators.setup import Setup
from latentpde.frame import Frame
from latentpde.inspection.variation import Variation, variation
from latentpde.io.read import read
from latentpde.needs import available_memory, duration
from latentpde.observation import Observation
from latentpde.observation.listing import Listing
from latentpde.observation.tables import typical_distance
from latentpde.pde import get_family

_DISTORTION = 0.1  # of lengths on the plane, from which on it is said
_OUTLIER = 8.0  # robust standard deviations


@dataclass(frozen=True)
class Findings:
    """What a file holds, and what would become of it.

    Args:
        contents, extents, quality, variation, assumed, cost: names with what was found, in words.
        notes: what was noticed when the file was read.
        doubts: what can go wrong.
        obstacles: what cannot work, with the reason and what to do.
        command: to run next.
        numbers: the same for programs.
    """

    contents: dict[str, str]
    extents: dict[str, str]
    quality: dict[str, str]
    variation: dict[str, str]
    assumed: dict[str, str]
    cost: dict[str, str]
    notes: list[str] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)
    obstacles: list[str] = field(default_factory=list)
    command: str = ""
    numbers: dict[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """All of it as JSON can hold it."""
        return asdict(self)

    def __repr__(self) -> str:
        parts = [self.contents, self.extents, self.quality, self.variation, self.assumed, self.cost]
        lines = [f"{name}: {words}" for part in parts for name, words in part.items()]
        lines += [f"note: {n}" for n in self.notes] + [f"doubt: {d}" for d in self.doubts]
        return "\n".join([*lines, *(f"cannot work: {o}" for o in self.obstacles), f"next: {self.command}"])


def check(data: Any, *, family: str | None = None, **options: Any) -> Findings:
    """Look at readings before they are reconstructed.

    >>> import pandas as pd
    >>> table = pd.DataFrame({"x": [0.0, 5.0, 2.0], "y": [0.0, 1.0, 4.0], "value": [1.0, 2.0, 1.5]})
    >>> found = check(table)
    >>> found.contents["readings"], found.obstacles
    ('3 of value, at 3 places', [])

    Args:
        data: anything that `latentpde.read` takes.
        family: the PDE; by default one that suits data with or without times.
        options: those of `latentpde.read`.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", LatentPDEWarning)
        observation = read(data, family=family, **options)
    notes = [str(one.message) for one in caught if issubclass(one.category, LatentPDEWarning)]
    listing, frame = Listing.of(observation), observation.frame or Frame()
    times = np.unique(listing.times)
    chosen = family or observation.family or ("advection_diffusion" if len(times) > 1 else "screened_poisson")
    found = variation(listing)
    spacing = _spacing(observation, listing)
    assumed, cost, obstacles = _prospects(observation, chosen, len(times))
    numbers = {
        "num_readings": len(listing),
        "num_places": int(listing.stations.max()) + 1,
        "num_times": len(times),
        "noise_std": None if found is None else found.noise_std,
        "std": float(listing.values.std()),
        "length": None if found is None else found.length,
        "spacing": spacing,
        "family": chosen,
        **cost,
    }
    extents = _extents(observation, frame, times)
    return Findings(
        contents=_contents(observation, listing, frame, times),
        extents=extents,
        quality=_quality(observation, listing, frame),
        variation=_variation_words(found, frame, spacing, times),
        assumed=assumed,
        cost={"time": f"about {duration(cost['seconds'])} on a core" if "seconds" in cost else "not known"}
        | ({"memory": f"about {cost['memory'] / 1e9:.2g} GB"} if "memory" in cost else {}),
        notes=notes,
        doubts=_doubts(observation, listing, frame, found, spacing, times),
        obstacles=obstacles,
        command=_command(data, chosen, options, len(listing)),
        numbers=numbers,
    )


def _contents(observation: Observation, listing: Listing, frame: Frame, times: np.ndarray) -> dict[str, str]:
    unit = f" ({frame.value_unit})" if frame.value_unit else ""
    places = int(listing.stations.max()) + 1
    when = "" if len(times) == 1 else f" and {len(times)} times"
    kind = "at" if observation.positions is not None else "in cells,"
    found = {"readings": f"{len(listing):,} of {frame.value}{unit}, {kind} {places:,} places{when}"}
    if observation.positions is None:
        ny, nx = observation.grid.shape
        found["grid"] = f"{ny} x {nx} cells ({frame.y.name}, {frame.x.name})"
    if observation.num_cases > 1:
        found["cases"] = f"{observation.num_cases}; what follows is of the first"
    low, high = float(listing.values.min()), float(listing.values.max())
    found["values"] = f"{low:.4g} to {high:.4g}, mean {listing.values.mean():.4g}, std {listing.values.std():.3g}"
    return found


def _extents(observation: Observation, frame: Frame, times: np.ndarray) -> dict[str, str]:
    found = {}
    height, width = observation.grid.extent
    low_y, low_x = observation.grid.origin
    for axis, low, size in ((frame.y, low_y, height), (frame.x, low_x, width)):
        start, stop = axis.to_user([low, low + size])
        unit = {"degrees_north": "°N", "degrees_east": "°E"}.get(axis.unit, axis.unit or "(no unit)")
        length = f", {size:,.4g} {frame.length_unit}" if frame.projection is not None else ""
        found[axis.name] = f"{start:.6g} to {stop:.6g} {unit}{length}"
    if frame.projection is not None:
        band = ", around the globe" if frame.projection.is_band else ""
        found["projection"] = f"a plane in km, true along {frame.projection.latitude:.4g}° of latitude{band}"
    if frame.clock is not None or len(times) > 1:
        first, last = frame.times_to_user(times[[0, -1]])
        step = f", steps of {_amount(float(np.median(np.diff(times))), frame.time_unit)}" if len(times) > 1 else ""
        zone = " UTC" if frame.clock is not None and frame.clock.epoch is not None else ""
        found[frame.time_name] = f"{_moment(first)} to {_moment(last)}{zone}{step}"
    return found


def _quality(observation: Observation, listing: Listing, frame: Frame) -> dict[str, str]:
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
    if observation.positions is not None and frame.excluded is not None:
        found["excluded"] = f"{frame.excluded_cells(observation.grid).mean():.1%} of the area"
    far = _outliers(listing)
    found["far from the others"] = (
        "no reading" if not len(far) else f"{len(far)} reading(s), such as {listing.values[far[0]]:.4g}"
    )
    known = np.isfinite(listing.noise_std)
    found["stated noise"] = (
        "none"
        if not known.any()
        else f"{np.median(listing.noise_std[known]):.3g}, of {known.mean():.0%} of the readings"
    )
    return found


def _variation_words(found: Variation | None, frame: Frame, spacing: float, times: np.ndarray) -> dict[str, str]:
    if found is None:
        return {"noise": "cannot be told beforehand: there are too few readings at one time"}
    unit = f" {frame.value_unit}" if frame.value_unit else ""
    words = {
        "noise": f"about {found.noise_std:.2g}{unit} (nugget of the variogram)",
        "field": f"varies by {found.std:.2g}{unit}",
    }
    if found.length is not None:
        length = _amount(found.length, frame.length_unit)
        words["length"] = f"about {length}; readings are {_amount(spacing, frame.length_unit)} apart"
        if len(times) > 1:
            step = float(np.median(np.diff(times)))
            speed = f"{found.length / step:.2g} {frame.length_unit}/{frame.time_unit}".rstrip("/ ")
            words["movement"] = f"a structure moves by its own length between snapshots at {speed}"
    return words


def _prospects(observation: Observation, family: str, num_times: int) -> tuple[dict[str, str], dict, list[str]]:
    """What is assumed, what it takes, and what cannot work."""
    obstacles = []
    frame = observation.frame or Frame()
    assumed = {"equation": f"{family}: {get_family(family).equation}"}
    if float(observation.values[observation.mask].std()) == 0:
        obstacles.append("all readings are the same: there is nothing to learn from them")
    places = len(np.unique(Listing.of(observation).points, axis=0))
    if places < 3:
        obstacles.append(f"{places} place(s) cannot tell how a field varies in space: at least 3 are needed, better 20")
    if get_family(family).order and num_times < 2 and observation.initial is None:
        obstacles.append(
            f"{family} describes a change in time, and the readings are of one time: take a steady family (--pde "
            "screened-poisson), or give the times of the readings"
        )
    cost: dict[str, Any] = {}
    try:
        setup = Setup.of(observation, family, observation.settings)
        assert setup.observation.domain is not None
        record = setup.record(setup.latent)
        assumed["edges"] = record["domain"]
        assumed["noise"] = str(record["noise_std"])
        assumed["start"] = (
            "unknown, at " + _moment(frame.times_to_user([observation.start])[0])
            if observation.initial is None
            else "given"
        )
        assumed["source"] = "unknown and steady, its strength inferred"
        assumed["coefficients"] = ", ".join(
            f"{n} {low:.3g} to {high:.3g}" for n, (low, high) in record["bounds"].items()
        )
        needs = make_estimator(DEFAULT_METHOD).needs(setup.observation, setup.latent, 12)
        cost = {"seconds": float(needs.seconds), "memory": float(needs.memory)}
        if needs.memory > available_memory():
            obstacles.append(
                f"{len(Listing.of(observation)):,} readings take {needs.memory / 1e9:.3g} GB, more than there is: take "
                "a part of them (--select, or fewer rows)"
            )
    except LatentPDEError as error:
        if not obstacles:
            obstacles.append(str(error))
    return assumed, cost, obstacles


def _doubts(
    observation: Observation, listing: Listing, frame: Frame, found: Variation | None, spacing: float, times: np.ndarray
) -> list[str]:
    doubts = []
    if frame.projection is not None:
        low, size = observation.grid.origin[0], observation.grid.extent[0]
        south, north = frame.y.to_user([low, low + size])
        wrong = frame.projection.distortion(float(max(south, -90)), float(min(north, 90)))
        if wrong > _DISTORTION:
            doubts.append(
                f"lengths along {frame.x.name} are wrong by up to {wrong:.0%} at the edges: take a narrower band of "
                "latitudes"
            )
    if len(_outliers(listing)):
        doubts.append("readings far from the others can spoil the rest: look at them")
    if found is not None and found.length is not None and found.length < spacing:
        doubts.append(
            f"the field varies within {_amount(found.length, frame.length_unit)}, and readings are "
            f"{_amount(spacing, frame.length_unit)} apart: between them little can be said"
        )
    if found is not None and found.noise_std > found.std:
        doubts.append("the noise is larger than what varies: expect wide intervals")
    if not frame.length_unit and observation.frame is not None:
        doubts.append(
            "the unit of lengths is not known, so coefficients come without one; write it in the heading, as in x (km)"
        )
    if len(listing) < 10:
        doubts.append(f"{len(listing)} readings are few: expect wide intervals")
    return doubts


def _command(data: Any, family: str, options: dict[str, Any], num_readings: int) -> str:
    if not isinstance(data, str | Path):
        return f'latentpde.reconstruct(data, "{family}")'
    words = ["latentpde", "reconstruct", str(data), "--pde", family.replace("_", "-")]
    for name, value in options.items():
        if value is not None and value is not False:
            words += [f"--{name.replace('_', '-')}"] + ([] if value is True else [str(value)])
    stem = Path(data).stem
    words += ["--holdout", "0.1"] * (num_readings >= 30)
    return shlex.join([*words, "-o", f"{stem}-out.nc", "--report", f"{stem}-report.html"])


def _spacing(observation: Observation, listing: Listing) -> float:
    return typical_distance(listing.points, observation.grid.extent)


def _outliers(listing: Listing) -> np.ndarray:
    middle = np.median(listing.values)
    scale = 1.4826 * np.median(np.abs(listing.values - middle))
    return np.flatnonzero(np.abs(listing.values - middle) > _OUTLIER * scale) if scale > 0 else np.array([], dtype=int)


def _amount(number: float, unit: str) -> str:
    return f"{number:.3g} {unit}".strip()


def _moment(value: Any) -> str:
    if isinstance(value, np.datetime64):
        return str(value.astype("datetime64[s]")).removesuffix(":00")
    return f"{float(value):.6g}" if math.isfinite(float(value)) else str(value)
