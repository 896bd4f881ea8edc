"""Figures of fields: truths and reconstructions side by side, on scales that can be compared."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count, groupby

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from latentpde.bench.jobs import Job, picture, true_fields
from latentpde.bench.rows import Row
from latentpde.bench.store import Store
from latentpde.estimators import methods
from latentpde.report.fields import MAGNITUDE_COLOURS, MARKERS, PALETTE, SIGNED_COLOURS
from latentpde.scores.metrics import rmse


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


_SIDE, _GAP, _TITLE, _LABEL = 1.4, 0.08, 0.37, 0.3  # of panels, in inches
_BAR, _TICKS = 0.075, 0.47  # of colour bars


def panel_grid(rows: Mapping[str, Sequence[Panel]]) -> Figure:
    """Rows of panels. Neighbours that name the same scale share a colour bar: around zero, or from zero on.

    They share axes too, and places are worked out here: a hundred axes with their ticks and layout take long to draw.
    """
    groups = {label: [list(g) for _, g in groupby(row, key=lambda panel: panel.scale)] for label, row in rows.items()}
    widths = [len(row) * (_SIDE + _GAP) + len(groups[label]) * (_BAR + _TICKS) for label, row in rows.items()]
    width, height = _LABEL + max(widths, default=1.0), max(len(rows), 1) * (_SIDE + _TITLE) + _GAP
    figure = Figure((width, height))

    def place(left: float, bottom: float, wide: float, high: float) -> Axes:
        return figure.add_axes((left / width, bottom / height, wide / width, high / height))

    for i, (label, row) in enumerate(groups.items()):
        left, bottom = _LABEL, height - (i + 1) * (_SIDE + _TITLE)
        figure.text(_LABEL / 2 / width, (bottom + _SIDE / 2) / height, label, rotation=90, ha="center", va="center",
                    fontsize=9)  # fmt: skip
        for panels in row:
            wide, colours = len(panels) * (_SIDE + _GAP) - _GAP, _colours(panels)
            _draw(place(left, bottom, wide, _SIDE), panels, colours)
            left += wide + _GAP
            bar = figure.colorbar(colours, cax=place(left, bottom + 0.08 * _SIDE, _BAR, 0.84 * _SIDE))
            bar.ax.tick_params(labelsize=7)
            bar.outline.set_visible(False)  # pyright: ignore[reportCallIssue]
            left += _BAR + _TICKS
    return figure


def _colours(panels: Sequence[Panel]) -> ScalarMappable:
    fields = [panel.values for panel in panels if panel.values is not None and panel.sets_limits]
    limit = max((float(np.nanmax(np.abs(values))) for values in fields), default=1.0) or 1.0
    signed = panels[0].signed
    return ScalarMappable(Normalize(-limit if signed else 0.0, limit), SIGNED_COLOURS if signed else MAGNITUDE_COLOURS)


def _draw(ax: Axes, panels: Sequence[Panel], colours: ScalarMappable) -> None:
    """Side by side, each of width and height one."""
    for i, panel in enumerate(panels):
        left = i * (1 + _GAP / _SIDE)
        ax.add_patch(Rectangle((left, 0), 1, 1, facecolor="#dcdcdc", zorder=-1))
        ax.add_patch(Rectangle((left, 0), 1, 1, fill=False, linewidth=0.8, clip_on=False, zorder=2))
        ax.text(left + 0.5, 1.03, panel.title, ha="center", va="bottom", fontsize=8)
        if panel.values is None:
            ax.text(left + 0.5, 0.5, "failed", ha="center", va="center", fontsize=8)
        else:
            extent = (left, left + 1, 0.0, 1.0)
            image = ax.imshow(panel.values, origin="lower", extent=extent, aspect="auto", cmap=colours.cmap)
            image.set_clim(*colours.get_clim())
    ax.set(xlim=(0, len(panels) + (len(panels) - 1) * _GAP / _SIDE), ylim=(0, 1))
    ax.set_axis_off()


def field_grid(jobs: Mapping[str, Sequence[Job]], store: Store) -> Figure:
    """A row for each setting: coarse initial state, readings, truth, and what each method makes of them."""
    return panel_grid({label.replace("_", " "): field_panels(some, store) for label, some in jobs.items()})


def field_panels(jobs: Sequence[Job], store: Store) -> list[Panel]:
    """Of the first case."""
    cases = jobs[0].simulation.cases(0, 1)
    known = cases.to_dataset().isel(case=0)
    truth, readings = true_fields(cases)[0], known["observed"]
    readings = readings.isel(time=-1) if "time" in readings.dims else readings
    panels = [
        Panel("coarse initial state", known["initial"].values, scale="initial"),
        Panel("readings", readings.values, sets_limits=False),
        Panel("truth", truth),
    ]
    for job in jobs:
        seen = picture(job, store)
        title = job.row.name if seen is None else f"{job.row.name}\nRMSE {rmse(seen.mean, truth):.3f}"
        panels.append(Panel(title, None if seen is None else seen.mean))
    return panels
