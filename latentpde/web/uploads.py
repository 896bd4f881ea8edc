"""What a worker does with a user's file: look at it, reconstruct it, and write what can be shown and downloaded.

It works inside the file's own folder and names files by their names there, so that no path of the server is in a
message.
"""

from __future__ import annotations

import json
import os
import re
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from latentpde.errors import UsageError, no_warnings
from latentpde.frame import Frame
from latentpde.observation.listing import Listing
from latentpde.report.film import time_label
from latentpde.report.source import source_unit
from latentpde.report.words import place, unit_in
from latentpde.web.names import NETCDF, REPORT
from latentpde.web.picture import coefficient_results, encoded

if TYPE_CHECKING:
    from latentpde.observation import Observation
    from latentpde.posterior import PDEPosterior


_FRAMES = 9  # times that the slider can show
_MOST_READINGS, _MOST_PLACES = 2000, 500
_DEGREES = {"degrees_north": "°N", "degrees_east": "°E"}


def check_file(report: Any, folder: str, name: str, columns: str | None) -> dict:
    """What `latentpde check` says of a file, as `latentpde.web.models.Checked`."""
    from latentpde.inspection import check

    os.chdir(folder)
    found = check(Path(name), **_options(columns=columns))
    facts = {**found.contents, **found.extents, **found.quality, **found.variation, **found.assumed, **found.cost}
    suggested = re.search(r"--pde (\S+)", found.command)
    return {
        "findings": [{"kind": "obstacle", "about": None, "text": text} for text in found.obstacles]
        + [{"kind": "doubt", "about": None, "text": text} for text in found.doubts]
        + [{"kind": "fact", "about": key, "text": words} for key, words in facts.items()]
        + [{"kind": "note", "about": None, "text": text} for text in found.notes],
        "family": suggested[1].replace("-", "_") if suggested else None,
        "works": not found.obstacles,
    }


def reconstruct_file(
    report: Any,
    folder: str,
    name: str,
    columns: str | None,
    family: str,
    noise_std: float | None,
    resolution: int,
    seed: int,
) -> dict:
    """Reconstruct a file and write its pictures, its NetCDF and its report; `latentpde.web.models.Result` of it."""
    from latentpde.estimators import reconstruct
    from latentpde.io.read import read
    from latentpde.posterior import PDEPosterior

    os.chdir(folder)
    begun = time.perf_counter()
    report({"phase": "reading"})
    observation = read(Path(name), family=family, **_options(columns=columns, noise_std=noise_std))[0:1]
    if int(observation.num_readings[0]) > _MOST_READINGS:
        raise UsageError(
            f"the page takes at most {_MOST_READINGS:,} readings, and the file has "
            f"{int(observation.num_readings[0]):,}; use the command line, which takes more"
        )
    report({"phase": "searching"})
    with no_warnings():
        posterior = reconstruct(observation, family, seed=seed)
    assert isinstance(posterior, PDEPosterior)
    report({"phase": "decoding"})
    frame, times = observation.frame or Frame(), _write_frames(posterior, resolution)
    report({"phase": "writing"})
    posterior.to_netcdf(NETCDF, resolution=resolution, command="latentpde serve")
    posterior.report(REPORT, resolution=resolution)
    return {
        "equation": posterior.latent.family.equation,
        "times": times,
        "places": _places(observation),
        "num_readings": int(observation.num_readings[0]),
        "axes": _axes(observation),
        "value": frame.value,
        "unit": frame.value_unit,
        "source_unit": source_unit(frame, posterior.latent.family.order),
        "seconds": time.perf_counter() - begun,
    }


def _options(**given: Any) -> dict[str, Any]:
    return {name: value for name, value in given.items() if value is not None}


def _write_frames(posterior: PDEPosterior, resolution: int) -> list[str]:
    """A picture for each of a few times, as `latentpde.web.models.Picture`; returns the times in the user's words."""
    observation, one = posterior.observation, slice(0, 1)
    frame, last, grid = observation.frame or Frame(), float(observation.times[-1]), posterior.grid(resolution)
    steady = posterior.latent.family.order == 0 or last == 0
    times = torch.tensor([last], dtype=torch.float64) if steady else torch.linspace(0, last, _FRAMES).double()
    hidden = torch.from_numpy(frame.excluded_cells(grid))
    with torch.no_grad():
        source = posterior.source_means(one, grid)[0].masked_fill(hidden, torch.nan)
        means = [posterior.means(one, grid, when)[0, 0].masked_fill(hidden, torch.nan) for when in times.split(1)]
        stds = [posterior.spreads(one, grid, when).std[0, 0].masked_fill(hidden, torch.nan) for when in times.split(1)]
    seen = torch.stack(means)[:, ~hidden]
    common = {
        "scale": {"field": float(seen.abs().max()), "source": float(source[~hidden].abs().max()) or 1.0},
        "limits": [float(seen.min()), float(seen.max())],
        "coefficients": _coefficients(posterior, frame),
        "scores": None,
        "notes": posterior.warnings(0),
        "seconds": 0.0,
    }
    numbers = times.numpy() + observation.start
    listing = Listing.of(observation)
    for number, (moment, mean, std) in enumerate(zip(numbers, means, stds, strict=True)):
        layers = {"mean": encoded(mean), "std": encoded(std), "source": encoded(source)}
        picture = {"time": float(moment), "layers": layers, "readings": _readings_at(listing, moment), **common}
        Path(f"frame-{number}.json").write_text(json.dumps(picture, allow_nan=False))
    return [time_label(float(moment), frame, numbers) for moment in numbers]


def _coefficients(posterior: PDEPosterior, frame: Frame) -> list[dict]:
    return [one | {"unit": unit_in(frame, one["unit"])} for one in coefficient_results(posterior)]


def _readings_at(listing: Listing, time: float) -> list[dict]:
    """What each place read nearest to a time."""
    nearest: dict[int, int] = {}
    for i in np.argsort(-np.abs(listing.times - time), kind="stable"):
        nearest[int(listing.stations[i])] = int(i)
    return [{"id": place, "value": float(listing.values[i])} for place, i in sorted(nearest.items())[:_MOST_PLACES]]


def _places(observation: Observation) -> list[dict]:
    """Where readings were taken, as shares of the rectangle and in the user's words; each place once."""
    grid, frame, listing = observation.grid, observation.frame or Frame(), Listing.of(observation)
    found = []
    for number, i in enumerate(np.unique(listing.stations, return_index=True)[1][:_MOST_PLACES]):
        y, x = (listing.points[i] - grid.origin) / grid.extent
        name = "" if listing.names is None else listing.names[i]
        found.append({"id": number, "y": float(y), "x": float(x), "words": name or place(frame, listing.points[i])})
    return found


def _axes(observation: Observation) -> dict[str, dict]:
    """The user's coordinates of the rectangle's edges, as `latentpde.web.models.AxisWords` for y and x."""
    grid, frame = observation.grid, observation.frame or Frame()
    low = frame.to_user(*grid.origin)
    high = frame.to_user(*np.add(grid.origin, grid.extent))
    return {
        name: {"name": axis.name, "unit": _DEGREES.get(axis.unit, axis.unit), "low": float(a), "high": float(b)}
        for name, axis, a, b in zip("yx", (frame.y, frame.x), low, high, strict=True)
    }
