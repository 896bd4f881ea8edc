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

import torch

from latentpde.errors import UsageError, no_warnings
from latentpde.web.names import NETCDF, REPORT
from latentpde.web.picture import coefficient_results, encoded

if TYPE_CHECKING:
    from latentpde.observation import Observation
    from latentpde.posterior import PDEPosterior


_FRAMES = 9  # times that the slider can show
_MOST_READINGS = 2000


def check_file(report: Any, folder: str, name: str, columns: str | None) -> dict:
    """What `latentpde check` says of a file, as `latentpde.web.models.Checked`."""
    from latentpde.inspection import check

    os.chdir(folder)
    found = check(Path(name), **_options(columns=columns))
    facts = {**found.contents, **found.extents, **found.quality, **found.variation, **found.assumed, **found.cost}
    suggested = re.search(r"--pde (\S+)", found.command)
    return {
        "findings": [{"kind": "fact", "text": f"{key}: {words}"} for key, words in facts.items()]
        + [{"kind": "note", "text": text} for text in found.notes]
        + [{"kind": "doubt", "text": text} for text in found.doubts]
        + [{"kind": "obstacle", "text": text} for text in found.obstacles],
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
    times = _write_frames(posterior, resolution)
    report({"phase": "writing"})
    posterior.to_netcdf(NETCDF, resolution=resolution, command="latentpde serve")
    posterior.report(REPORT, resolution=resolution)
    return {
        "equation": posterior.latent.family.equation,
        "times": times,
        "places": _places(observation),
        "extent": list(observation.grid.extent),
        "origin": list(observation.grid.origin),
        "seconds": time.perf_counter() - begun,
    }


def _options(**given: Any) -> dict[str, Any]:
    return {name: value for name, value in given.items() if value is not None}


def _write_frames(posterior: PDEPosterior, resolution: int) -> list[float]:
    """A picture for each of a few times, as `latentpde.web.models.Picture`; returns the times."""
    observation, one = posterior.observation, slice(0, 1)
    last, grid = float(observation.times[-1]), posterior.grid(resolution)
    steady = posterior.latent.family.order == 0 or last == 0
    times = torch.tensor([last], dtype=torch.float64) if steady else torch.linspace(0, last, _FRAMES).double()
    with torch.no_grad():
        source = encoded(posterior.source_means(one, grid)[0])
        source_size = float(posterior.source_means(one, grid).abs().max()) or 1.0
        means = [posterior.means(one, grid, when)[0, 0] for when in times.split(1)]
        stds = [posterior.spreads(one, grid, when).std[0, 0] for when in times.split(1)]
    everything = torch.stack(means)
    common = {
        "scale": {"field": float(everything.abs().max()), "source": source_size},
        "limits": [float(everything.min()), float(everything.max())],
        "coefficients": coefficient_results(posterior),
        "readings": [{"id": i, "value": v} for i, v in enumerate(observation.values[observation.mask].tolist())],
        "scores": None,
        "notes": posterior.warnings(0),
        "seconds": 0.0,
    }
    for number, (mean, std) in enumerate(zip(means, stds, strict=True)):
        layers = {"mean": encoded(mean), "std": encoded(std), "source": source}
        frame = {"time": float(times[number]) + observation.start, "layers": layers, **common}
        Path(f"frame-{number}.json").write_text(json.dumps(frame))
    return (times + observation.start).tolist()


def _places(observation: Observation) -> list[dict]:
    """Where readings were taken, as shares of the rectangle; each place once."""
    grid = observation.grid
    if observation.positions is not None:
        points = observation.positions[0]
    else:
        y, x = grid.coordinates()
        rows, columns = observation.mask[0].any(0).nonzero(as_tuple=True)
        points = torch.stack([y[rows], x[columns]], -1)
    shares = (points - torch.tensor(grid.origin)) / torch.tensor(grid.extent)
    return [{"id": i, "y": y, "x": x} for i, (y, x) in enumerate(shares.unique(dim=0)[:500].tolist())]
