"""A map of where further readings would tell most."""

from __future__ import annotations

import numpy as np
from matplotlib.colors import Normalize
from matplotlib.figure import Figure

from latentpde.observation.listing import Listing
from latentpde.questions.suggestion import Suggestion
from latentpde.report.style import MAGNITUDE_COLOURS, PALETTE, figure_of_panels, name_panel, round_ticks

_MOST_PANELS = 4


def plot_suggestion(suggestion: Suggestion) -> Figure:
    """What each candidate would explain by itself, where was read so far, and the chosen places in their order.

    >>> import latentpde as lp
    >>> cases = lp.simulate("diffusion", num=1, seed=2, shape=(32, 32), num_modes=3, sparsity=0.1)
    >>> len(plot_suggestion(lp.suggest(lp.reconstruct(cases), num=3)).axes)  # the map and its bar of colours
    2

    Args:
        suggestion: by `latentpde.suggest`.
    """
    frame, places = suggestion.observation.frame, suggestion.candidates
    chosen_times = places[suggestion.chosen, 2]
    times = np.unique(places[:, 2])
    if len(times) > _MOST_PANELS:  # those with most suggestions
        counts = [(chosen_times == time).sum() for time in times]
        times = np.sort(times[np.argsort(counts, kind="stable")[::-1][:_MOST_PANELS]])
    figure, panels = figure_of_panels(len(times), 2, width=5.2, height=4.4)
    read = Listing.of(suggestion.observation, suggestion.case).points
    share, drawn = 100 * suggestion.first, None
    limits = Normalize(0.0, max(float(share.max()), 1e-12))

    def shown(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        y, x = points[:, 0], points[:, 1]
        return frame.to_user(y, x) if frame is not None else (y, x)

    extent = suggestion.observation.grid.extent
    for axes, time in zip(panels, times, strict=True):
        here = places[:, 2] == time
        y, x = shown(places[here])
        side = 72 * 3.4 * np.sqrt(extent[0] * extent[1] / max(int(here.sum()), 1)) / max(extent)
        drawn = axes.scatter(
            x, y, c=share[here], s=side**2, marker="s", cmap=MAGNITUDE_COLOURS, linewidths=0, norm=limits
        )
        y, x = shown(np.unique(read, axis=0))
        axes.plot(x, y, "o", color="white", markeredgecolor="#222222", markersize=3.5, label="read so far")
        own = np.flatnonzero(chosen_times == time)
        y, x = shown(places[suggestion.chosen[own]])
        for rank, (number, at_y, at_x) in enumerate(zip(own + 1, y, x, strict=True)):  # the first lies on top
            above, label = 3 + 2 * (len(own) - rank), "suggested" if rank == 0 else None
            round_mark = {"color": PALETTE[1], "markeredgecolor": "white", "markersize": 12, "zorder": above}
            axes.plot([at_x], [at_y], "o", label=label, **round_mark)
            bold = {"ha": "center", "va": "center", "color": "white", "fontsize": 8, "weight": "bold"}
            axes.text(at_x, at_y, str(number), zorder=above + 1, **bold)
        words = f"{time:g}" if frame is None else str(frame.times_to_user(np.array([time]))[0])
        name_panel(axes, f"time {words}")
        axes.set_xlabel("x" if frame is None else frame.x.name)
        axes.set_ylabel("y" if frame is None else frame.y.name)
        axes.set_aspect("equal")
        axes.margins(0.03)
        axes.xaxis.set_major_locator(round_ticks(5))
        axes.yaxis.set_major_locator(round_ticks(5))
    assert drawn is not None
    bar = figure.colorbar(drawn, ax=panels, shrink=0.85)
    bar.set_label(f"variance of the {suggestion.target}\nthat a reading explains, %")
    marks = {words: mark for axes in panels for mark, words in zip(*axes.get_legend_handles_labels(), strict=True)}
    panels[0].legend(
        marks.values(),
        marks.keys(),
        loc="upper left",
        bbox_to_anchor=(0.0, -0.12),
        ncols=2,
        fontsize=8.5,
        frameon=False,
    )
    return figure
