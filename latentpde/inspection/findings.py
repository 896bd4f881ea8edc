"""What `latentpde check` finds: described, estimated, assumed and ruled out."""

from __future__ import annotations

import shlex
import warnings
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from latentpde.errors import LatentPDEWarning
from latentpde.frame import Frame
from latentpde.inspection.contents import contents, doubts, extents, quality
from latentpde.inspection.prospects import prospects
from latentpde.inspection.variation import variation, variation_words
from latentpde.io.read import read
from latentpde.observation.listing import Listing
from latentpde.observation.tables import typical_distance

_ENOUGH_TO_HOLD_OUT = 30  # readings


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
    listing, frame = Listing.of(observation).of_the_field(), observation.frame or Frame()
    times = np.unique(listing.times)
    chosen = family or observation.family or ("advection_diffusion" if len(times) > 1 else "screened_poisson")
    found = variation(listing)
    spacing = typical_distance(listing.points, observation.grid.extent)
    holds_out = len(listing) >= _ENOUGH_TO_HOLD_OUT
    prospect = prospects(observation, listing, chosen, num_runs=2 if holds_out else 1)
    return Findings(
        contents=contents(observation, listing, frame, times),
        extents=extents(observation, frame, times),
        quality=quality(observation, listing, frame),
        variation=variation_words(found, frame, spacing, times),
        assumed=prospect.assumed,
        cost=prospect.cost,
        notes=notes,
        doubts=doubts(observation, listing, frame, found, spacing),
        obstacles=prospect.obstacles,
        command=_command(data, chosen, options, holds_out),
        numbers={
            "num_readings": len(listing),
            "num_places": int(listing.stations.max()) + 1,
            "num_times": len(times),
            "noise_std": None if found is None else found.noise_std,
            "std": float(listing.values.std()),
            "length": None if found is None else found.length,
            "spacing": spacing,
            "family": chosen,
            **prospect.numbers,
        },
    )


def _command(data: Any, family: str, options: dict[str, Any], holds_out: bool) -> str:
    if not isinstance(data, str | Path):
        return f'latentpde.reconstruct(data, "{family}")'
    words = ["latentpde", "reconstruct", str(data), "--pde", family.replace("_", "-")]
    for name, value in options.items():
        if value is not None and value is not False:
            words += [f"--{name.replace('_', '-')}"] + ([] if value is True else [str(value)])
    stem = Path(data).stem
    words += ["--holdout", "0.1"] * holds_out
    return shlex.join([*words, "-o", f"{stem}-out.nc", "--report", f"{stem}-report.html"])
