"""Maps of fields and of readings, each with its colour bar.

Signed fields are drawn in a diverging scale centred on zero, errors and standard deviations in a sequential one that
starts at zero.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.figure import Figure

from latentpde.grid import Grid
from latentpde.report.style import (
    MAGNITUDE_COLOURS,
    SIGNED_COLOURS,
    SMALL_TEXT,
    WIDTH,
    figure_of_panels,
    name_panel,
    round_ticks,
)

_UNREAD = "#e9e9e9"


@dataclass(frozen=True, eq=False)
class FieldMap:
    """One map of a figure.

    >>> field = FieldMap("Truth", Grid((2, 2)), np.array([[0.0, -3.0], [1.0, 2.0]]), limit=3.0)
    >>> map_figure([field]).axes[0].images[0].get_clim()
    (-3.0, 3.0)

    Args:
        title: above it.
        grid: the rectangle, and the cells where there are any.
        values: one per cell, axes ``(y, x)``, masked where unknown; or one per position.
        limit: the end of the colour scale, positive; the scale begins at ``-limit``, or at zero.
        positions: ``(y, x)`` of values that are not on cells.
        signed: whether the scale has two sides.
        low: the beginning of the scale, where it is neither.
        colours: matplotlib's name for them, where they are not those of the two kinds.
    """

    title: str
    grid: Grid
    values: np.ndarray
    limit: float
    positions: np.ndarray | None = None
    signed: bool = True
    low: float | None = None
    colours: str | None = None

    def draw(self, axes: Axes) -> ScalarMappable:
        """Draw it, and return what a colour bar needs."""
        low, cmap = (-self.limit, SIGNED_COLOURS) if self.signed else (0.0, MAGNITUDE_COLOURS)
        low, cmap = low if self.low is None else self.low, self.colours or cmap
        colours = {"cmap": cmap, "vmin": low, "vmax": self.limit}
        (y0, x0), (height, width) = self.grid.origin, self.grid.extent
        box = (x0, x0 + width, y0, y0 + height)
        if self.positions is None:
            if np.ma.is_masked(self.values):
                axes.patch.set(facecolor=_UNREAD, edgecolor="#c4c4c4", hatch="/////", linewidth=0)
            drawn = axes.imshow(self.values, origin="lower", extent=box, interpolation="none", **colours)
        else:
            y, x = self.positions.T
            axes.patch.set_facecolor(_UNREAD)
            drawn = axes.scatter(x, y, c=self.values, s=26, edgecolors="#222222", linewidths=0.6, zorder=3, **colours)
        axes.set(xlim=box[:2], ylim=box[2:], aspect="equal", xlabel="x", ylabel="y")
        return drawn


def maps_on_shared_scales(
    grid: Grid, signed: Sequence[tuple[str, np.ndarray]], magnitudes: Sequence[tuple[str, np.ndarray]]
) -> list[FieldMap]:
    """Maps of titled fields; those with a sign share their limits, and the magnitudes share theirs."""
    maps = []
    for group, is_signed in ((signed, True), (magnitudes, False)):
        limit = max((colour_limit(values) for _, values in group), default=1.0)
        maps += [FieldMap(title, grid, values, limit, signed=is_signed) for title, values in group]
    return maps


def colour_limit(values: np.ndarray) -> float:
    """The largest magnitude, or 1 where all is zero or unknown."""
    finite = np.abs(values[np.isfinite(values)])
    return float(finite.max(initial=0.0)) or 1.0


def map_figure(maps: Sequence[FieldMap], width: float = WIDTH) -> Figure:
    """A figure of maps of one rectangle, in rows that fit ``width`` inches, each with its colour bar."""
    height, length = maps[0].grid.extent
    upright = height > 1.6 * length
    margin, above_and_below = (1.25, 0.75) if upright else (0.65, 1.3)
    most = min(3.0 if height > 0.5 * length else 4.8, 4.0 * length / height) + margin
    num_columns = min(math.ceil(width / most), len(maps))
    panel_width = min(width / num_columns, most)
    map_height = max((panel_width - margin) * height / length, 0.3)
    figure, axes = figure_of_panels(len(maps), num_columns, panel_width, map_height + above_and_below)
    num_ticks = 4 if panel_width > 2.2 else 2
    for ax, field in zip(axes, maps, strict=True):
        drawn = field.draw(ax)
        name_panel(ax, field.title)
        ax.xaxis.set_major_locator(round_ticks(2 if upright else num_ticks))
        ax.yaxis.set_major_locator(round_ticks(4 if upright else num_ticks))
        where, aspect = ("right", 28) if upright else ("bottom", 20)
        bar = figure.colorbar(drawn, ax=ax, location=where, aspect=aspect, pad=0.04, ticks=round_ticks(num_ticks))
        bar.ax.tick_params(labelsize=SMALL_TEXT)
        bar.ax.spines[:].set_visible(False)
    return figure
