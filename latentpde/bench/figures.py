"""What figures of benchmarks share: the marks of methods, and fields side by side on scales that can be compared."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count, groupby
from typing import Any, Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import FormatStrFormatter, LogLocator, NullFormatter

from latentpde.bench.jobs import Job
from latentpde.bench.rows import Row
from latentpde.bench.solving import true_fields
from latentpde.bench.store import Store
from latentpde.estimators import methods
from latentpde.report.style import MAGNITUDE_COLOURS, MARKERS, PALETTE, SIGNED_COLOURS
from latentpde.scores.metrics import rmse


def styles(rows: Iterable[Row]) -> list[tuple[Row, str, str]]:
    """Rows with their colours and markers: a method has the same in every figure, its variants what is left.

    Example:
        >>> from latentpde.bench.rows import row
        >>> [(some.name, colour, marker) for some, colour, marker in styles([row("exact")])]
        [('exact', '#0072b2', 'o')]
    """
    names, rows = list(methods.names()), tuple(rows)
    places: list[int] = []
    for row in rows:
        place = names.index(methods.get(row.method).name)
        taken = place in places
        places.append(next(i for i in count(len(names)) if i not in places) if taken else place)
    return [(row, *style(place)) for row, place in zip(rows, places, strict=True)]


def style(place: int) -> tuple[str, str]:
    """The colour and the marker of the thing at a place in a list."""
    return PALETTE[place % len(PALETTE)], MARKERS[place % len(MARKERS)]


def nested(place: int, count: int) -> dict[str, Any]:
    """Hollow marks, each smaller than the one before, so that methods at the same point are all seen.

    Args:
        place: of the method in the list.
        count: length of the list.

    Example:
        >>> nested(0, 3)["markersize"] > nested(1, 3)["markersize"]
        True
    """
    return {"markerfacecolor": "none", "markersize": 10 - 6 * place / count}


def name_values(axis: Axis) -> None:
    """Ticks of a logarithmic axis at 1, 2 and 5 times powers of ten, written as plain numbers."""
    axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.set_major_formatter(FormatStrFormatter("%g"))
    axis.set_minor_formatter(NullFormatter())


@dataclass(frozen=True)
class Tile:
    """One field of a `tile_grid`.

    Args:
        title: above it.
        values: the field; or a word that stands in its place where there is none.
        signed: whether it is coloured around zero, or from zero on.
        scale: neighbours with the same word share their limits and their colour bar.
        sets_limits: whether it has a say in them; noisy readings would drown what they are readings of.
    """

    title: str
    values: np.ndarray | str
    signed: bool = True
    scale: str = "field"
    sets_limits: bool = True


_SIDE, _GAP, _TITLE, _LABEL = 1.4, 0.08, 0.37, 0.3  # of tiles, in inches
_BAR, _TICKS = 0.075, 0.55  # of colour bars


def tile_grid(rows: Mapping[str, Sequence[Tile]]) -> Figure:
    """Rows of tiles. Neighbours that name the same scale share a colour bar: around zero, or from zero on.

    They share axes too, and places are worked out here: a hundred axes with their ticks and layout take long to draw.

    Args:
        rows: by the label on the left.

    Example:
        >>> figure = tile_grid({"case 1": [Tile("truth", np.ones((4, 4))), Tile("mean", "failed")]})
        >>> len(figure.axes)  # the tiles, and their colour bar
        2
    """
    groups = {label: [list(g) for _, g in groupby(row, key=lambda tile: tile.scale)] for label, row in rows.items()}
    widths = [len(row) * (_SIDE + _GAP) + len(groups[label]) * (_BAR + _TICKS) for label, row in rows.items()]
    width, height = _LABEL + max(widths, default=1.0), max(len(rows), 1) * (_SIDE + _TITLE) + _GAP
    figure = Figure((width, height))

    def place(left: float, bottom: float, wide: float, high: float) -> Axes:
        return figure.add_axes((left / width, bottom / height, wide / width, high / height))

    for i, (label, row) in enumerate(groups.items()):
        left, bottom = _LABEL, height - (i + 1) * (_SIDE + _TITLE)
        figure.text(_LABEL / 2 / width, (bottom + _SIDE / 2) / height, label, rotation=90, ha="center", va="center",
                    fontsize=9)  # fmt: skip
        for tiles in row:
            wide, colours = len(tiles) * (_SIDE + _GAP) - _GAP, _colours(tiles)
            _draw(place(left, bottom, wide, _SIDE), tiles, colours)
            left += wide + _GAP
            bar = figure.colorbar(colours, cax=place(left, bottom + 0.08 * _SIDE, _BAR, 0.84 * _SIDE),
                                  extend=_beyond(tiles, colours))  # fmt: skip
            bar.ax.tick_params(labelsize=7)
            bar.outline.set_visible(False)  # pyright: ignore[reportCallIssue]
            left += _BAR + _TICKS
    return figure


def _colours(tiles: Sequence[Tile]) -> ScalarMappable:
    fields = [tile.values for tile in tiles if not isinstance(tile.values, str) and tile.sets_limits]
    limit = max((float(np.nanmax(np.abs(values))) for values in fields), default=1.0) or 1.0
    signed = tiles[0].signed
    return ScalarMappable(Normalize(-limit if signed else 0.0, limit), SIGNED_COLOURS if signed else MAGNITUDE_COLOURS)


def _beyond(tiles: Sequence[Tile], colours: ScalarMappable) -> Literal["neither", "max", "both"]:
    """At which ends of a colour bar there are values that it does not reach."""
    limit = colours.get_clim()[1]
    fields = [tile.values for tile in tiles if not isinstance(tile.values, str)]
    if not any(float(np.nanmax(np.abs(values))) > limit for values in fields):
        return "neither"
    return "both" if tiles[0].signed else "max"


def _draw(ax: Axes, tiles: Sequence[Tile], colours: ScalarMappable) -> None:
    """Draw tiles side by side, each of width and height one."""
    for i, tile in enumerate(tiles):
        left = i * (1 + _GAP / _SIDE)
        ax.add_patch(Rectangle((left, 0), 1, 1, facecolor="#dcdcdc", zorder=-1))
        ax.add_patch(Rectangle((left, 0), 1, 1, fill=False, linewidth=0.8, clip_on=False, zorder=2))
        ax.text(left + 0.5, 1.03, tile.title, ha="center", va="bottom", fontsize=8)
        if isinstance(tile.values, str):
            ax.text(left + 0.5, 0.5, tile.values, ha="center", va="center", fontsize=8)
        else:
            extent = (left, left + 1, 0.0, 1.0)
            image = ax.imshow(tile.values, origin="lower", extent=extent, aspect="auto", cmap=colours.cmap)
            image.set_clim(*colours.get_clim())
    ax.set(xlim=(0, len(tiles) + (len(tiles) - 1) * _GAP / _SIDE), ylim=(0, 1))
    ax.set_axis_off()


def field_grid(jobs: Mapping[str, Sequence[Job]], store: Store) -> Figure | None:
    """A row of fields for each setting: coarse initial state, readings, truth, and what each method makes of them.

    The truth alone sets the limits of colours, so that they are the same wherever the truth is.

    Args:
        jobs: one for each method, by the label of the setting; a typical case is shown (`Job.shown`).
        store: where the fields are kept. Where it has none of them, there is no figure.
    """
    if not any(store.picture(job) for some in jobs.values() for job in some):
        return None
    return tile_grid({label.replace("_", " "): _field_tiles(some, store) for label, some in jobs.items()})


def _field_tiles(jobs: Sequence[Job], store: Store) -> list[Tile]:
    cases = jobs[0].simulation.cases(jobs[0].shown, jobs[0].shown + 1)
    known = cases.to_dataset().isel(case=0)
    truth, readings = true_fields(cases)[0], known["observed"]
    readings = readings.isel(time=-1) if "time" in readings.dims else readings
    tiles = [
        Tile("coarse initial state", known["initial"].values, scale="initial"),
        Tile("readings", readings.values, sets_limits=False),
        Tile("truth", truth),
    ]
    for job in jobs:
        seen = store.picture(job)
        title = job.row.name if seen is None else f"{job.row.name}\nRMSE {rmse(seen.mean, truth):.3f}"
        tiles.append(Tile(title, _why_absent(job, store) if seen is None else seen.mean, sets_limits=False))
    return tiles


def _why_absent(job: Job, store: Store) -> str:
    """A word for the place of a field that is not kept: whether its method failed, or it is not there."""
    return "failed" if "failed" in store.find(job, 1).get(0, {}) else "not kept"
