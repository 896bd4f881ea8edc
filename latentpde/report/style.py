"""How figures look: colours, marks and sizes that all of them share.

Figures are made without pyplot and its global state. Colours, maps and marks are safe for colour-blind readers.
"""

from __future__ import annotations

import math

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import MaxNLocator

SIGNED_COLOURS = "RdBu_r"  # of fields with a sign: white at zero
MAGNITUDE_COLOURS = "viridis"  # of errors and standard deviations: dark at zero, which is the least
#: Okabe and Ito's, and some more; lines differ in mark or dash too.
PALETTE = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#222222", "#7f7f7f", "#8c6d31", "#5e3c99")
MARKERS = "os^vPX*pD<"
MEAN_COLOUR, DRAW_COLOUR, TRUTH_COLOUR = PALETTE[0], PALETTE[5], PALETTE[6]
REFERENCE_COLOUR = "#222222"  # of lines that say where a calibrated method would be
BAND_COLOUR = "#d9d9d9"  # of bands in which it would stay
GRID_COLOUR = "#dddddd"

WIDTH = 11.0  # of a figure on a screen, in inches
SMALL_TEXT = 8.5  # points


def figure_of_panels(count: int, num_columns: int, width: float, height: float) -> tuple[Figure, list[Axes]]:
    """A figure with several axes, in rows as even as they can be.

    >>> figure, axes = figure_of_panels(5, num_columns=4, width=2.0, height=1.5)
    >>> len(axes), figure.get_size_inches().tolist()
    (5, [6.0, 3.0])

    Args:
        count: how many axes.
        num_columns: how many of them fit side by side.
        width, height: of one of them, in inches.
    """
    num_rows = math.ceil(count / num_columns)
    num_columns = math.ceil(count / num_rows)
    figure = Figure((num_columns * width, num_rows * height), layout=ConstrainedLayoutEngine(w_pad=0.1, h_pad=0.06))
    axes = figure.subplots(num_rows, num_columns, squeeze=False).ravel().tolist()
    for spare in axes[count:]:
        spare.remove()
    return figure, axes[:count]


def name_panel(ax: Axes, title: str) -> None:
    """Put a title above one of a figure's axes, as it stands: names of variables are not formulas."""
    ax.set_title(title, fontsize=10.5, parse_math=False)
    ax.tick_params(labelsize=SMALL_TEXT)


def round_ticks(most: int) -> MaxNLocator:
    """At most so many intervals between ticks, at round numbers."""
    return MaxNLocator(most, steps=[1, 2, 2.5, 5, 10])
