"""Figures of fields: truths and reconstructions side by side, on scales that can be compared."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count

import numpy as np
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure

from latentpde.bench.rows import Row
from latentpde.bench.runs import Job, Store, true_fields
from latentpde.estimators import methods
from latentpde.metrics import rmse
from latentpde.plotting import MAGNITUDE, MARKERS, PALETTE, SIGNED


def looks(rows: Iterable[Row]) -> list[tuple[Row, str, str]]:
    """Rows with their colours and markers: a method has the same in every figure, its variants what is left."""
    names, rows = list(methods.names()), tuple(rows)
    places: list[int] = []
    for row in rows:
        place = names.index(methods.get(row.method).name)
        taken = place in places
        places.append(next(i for i in count(len(names)) if i not in places) if taken else place)
    return [(row, *look(place)) for row, place in zip(rows, places, strict=True)]


def look(place: int) -> tuple[str, str]:
    """A colour and a marker."""
    return PALETTE[place % len(PALETTE)], MARKERS[place % len(MARKERS)]


@dataclass(frozen=True)
class Panel:
    """A field with its title.

    Args:
        title: above it.
        values: None where a method failed.
        signed: whether it is coloured around zero.
        scale: panels of a row with the same word share their limits.
        sets_limits: whether it has a say in them; noisy readings would drown what they are readings of.
    """

    title: str
    values: np.ndarray | None
    signed: bool = True
    scale: str = "field"
    sets_limits: bool = True


def panel_grid(rows: Mapping[str, Sequence[Panel]]) -> Figure:
    """Rows of panels. Those of a row that name the same scale share a colour bar: around zero, or from zero on."""
    num_columns = max(len(panels) for panels in rows.values())
    figure = Figure((1.55 * num_columns + 1.3, 1.75 * len(rows) + 0.25), layout="constrained")
    axes = figure.subplots(len(rows), num_columns, squeeze=False)
    for (label, panels), line in zip(rows.items(), axes, strict=True):
        for scale in dict.fromkeys(panel.scale for panel in panels):
            of_kind = [(ax, p) for ax, p in zip(line, panels, strict=False) if p.scale == scale]
            fields = [p.values for _, p in of_kind if p.values is not None and p.sets_limits]
            signed = of_kind[0][1].signed
            limit = max((float(np.nanmax(np.abs(values))) for values in fields), default=1.0) or 1.0
            norm = Normalize(-limit if signed else 0.0, limit)
            colours = ScalarMappable(norm, SIGNED if signed else MAGNITUDE)
            for ax, panel in of_kind:
                ax.set_facecolor("#dcdcdc")
                ax.set(xticks=[], yticks=[])
                ax.set_title(panel.title, fontsize=8)
                if panel.values is None:
                    ax.text(0.5, 0.5, "failed", ha="center", va="center", transform=ax.transAxes, fontsize=8)
                else:
                    ax.imshow(panel.values, origin="lower", extent=(0, 1, 0, 1), cmap=colours.cmap, norm=norm)
            bar = figure.colorbar(colours, ax=[ax for ax, _ in of_kind], shrink=0.85, aspect=18, pad=0.01)
            bar.ax.tick_params(labelsize=7)
            bar.outline.set_visible(False)  # pyright: ignore[reportCallIssue]
        line[0].set_ylabel(label, fontsize=9)
        for ax in line[len(panels) :]:
            ax.remove()
    return figure


def field_grid(jobs: Mapping[str, Sequence[Job]], store: Store) -> Figure:
    """A row for each setting: coarse initial state, readings, truth, and what each method makes of them."""
    return panel_grid({label.replace("_", " "): field_panels(some, store) for label, some in jobs.items()})


def field_panels(jobs: Sequence[Job], store: Store) -> list[Panel]:
    """Of the first case."""
    cases = jobs[0].simulation.cases(0, 1)
    known = cases.to_dataset().isel(sample=0)
    truth, readings = true_fields(cases)[0], known["observed"]
    readings = readings.isel(time=-1) if "time" in readings.dims else readings
    panels = [
        Panel("coarse initial state", known["initial"].values, scale="initial"),
        Panel("readings", readings.values, sets_limits=False),
        Panel("truth", truth),
    ]
    for job in jobs:
        mean = store.picture(job)
        title = job.row.name if mean is None else f"{job.row.name}\nRMSE {rmse(mean, truth):.3f}"
        panels.append(Panel(title, mean))
    return panels
