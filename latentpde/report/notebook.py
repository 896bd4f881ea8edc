"""What a notebook shows of posteriors and observations: a picture and the main numbers."""

from __future__ import annotations

import base64
import io
from typing import Any

import numpy as np
from markupsafe import Markup, escape
from matplotlib.figure import Figure

from latentpde.frame import Frame
from latentpde.observation import Observation
from latentpde.observation.listing import Listing
from latentpde.posterior import Posterior, Resolution
from latentpde.report import words
from latentpde.report.fields import plot_observation
from latentpde.report.film import fitted_scale, make_film, time_label
from latentpde.report.style import SMALL_TEXT, figure_of_panels, name_panel, round_ticks

_COLOURS = {"value": "viridis", "signed": "RdBu_r"}
_MOST_TIMES = 8


def plot_posterior(posterior: Posterior, case: int, times: np.ndarray, resolution: Resolution = None) -> Figure:
    """Mean and standard deviation at some times, in the user's coordinates, with the readings of each time.

    Args:
        posterior: of any method.
        case: its number, from 0.
        times: numbers on the user's clock.
        resolution: as that of `Posterior.mean`.
    """
    observation = posterior.observation
    observation.require_case(case)
    frame, listing = observation.frame or Frame(), Listing.of(observation, case)
    when = times[np.linspace(0, len(times) - 1, min(len(times), _MOST_TIMES)).round().astype(int)]
    wanted: dict[str, Any] = {"resolution": resolution, "times": when.tolist()}
    shown = {"Mean" if posterior.has_spread else "Estimate": posterior.mean(**wanted)}
    if posterior.has_spread:
        shown["Standard deviation"] = posterior.std(**wanted)
    grid = posterior.grid(resolution)
    hidden = frame.excluded_cells(grid)
    (y0, x0), (height, width) = grid.origin, grid.extent
    ends = [frame.x.to_user([x0, x0 + width]), frame.y.to_user([y0, y0 + height])]
    box = (float(ends[0][0]), float(ends[0][1]), float(ends[1][0]), float(ends[1][1]))
    figure, axes = figure_of_panels(len(shown) * len(when), len(shown), 4.2, 3.6 * min(max(height / width, 0.5), 2.0))
    scales = {}
    for name, array in shown.items():
        values = array.values if "case" not in array.dims else array.isel(case=case).values
        values = np.where(hidden, np.nan, values)
        low, high = float(np.nanmin(values)), float(np.nanmax(values))
        signed = fitted_scale(low, high) if name != "Standard deviation" else (low * (low > 0.4 * high), high, "spread")
        scales[name] = (values, signed)
    for i, time in enumerate(when):
        for ax, (name, (values, (low, high, kind))) in zip(axes[len(shown) * i :], scales.items(), strict=False):
            colours: dict[str, Any] = {"cmap": _COLOURS.get(kind, "YlOrBr"), "vmin": low, "vmax": high}
            drawn = ax.imshow(np.ma.masked_invalid(values[i]), origin="lower", extent=box, **colours)
            ax.set_aspect(height / width * (box[1] - box[0]) / (box[3] - box[2]))
            here = np.isclose(listing.times, time)
            y, x = frame.to_user(*listing.points[here].T)
            dots: dict[str, Any] = {"c": listing.values[here], **colours} if kind != "spread" else {"c": "none"}
            if observation.positions is not None:
                ax.scatter(x, y, s=18, edgecolors="#222222", linewidths=0.6, **dots)
            ax.set(xlabel=_with_unit(frame.x), ylabel=_with_unit(frame.y), xlim=box[:2], ylim=box[2:])
            name_panel(ax, f"{name}, {time_label(float(time), frame, when)}")
            ax.xaxis.set_major_locator(round_ticks(4))
            bar = figure.colorbar(drawn, ax=ax, label=frame.value_unit, shrink=0.85)
            bar.ax.tick_params(labelsize=SMALL_TEXT)
    return figure


def _with_unit(axis) -> str:
    unit = {"degrees_north": "°", "degrees_east": "°"}.get(axis.unit, axis.unit)
    return f"{axis.name} ({unit})" if unit else axis.name


def posterior_html(posterior: Posterior) -> str:
    """A posterior in a notebook: what it says of its first case, in words and as a picture."""
    film = make_film(posterior, 0, resolution=48, most_frames=2)
    sentences = words.summary(posterior, film, None, None, None)
    last = film.times[-1:]
    picture = _picture(plot_posterior(posterior, 0, last, 96 if posterior.observation.positions is not None else None))
    num = posterior.observation.num_cases
    head = f"Posterior by {posterior.method}" + (f", case 0 of {num}" if num > 1 else "")
    notes = "".join(
        Markup('<p style="border-left: 4px solid #e69f00; padding-left: .6em">{}</p>').format(warning)
        for warning in posterior.warnings(0)
    )
    return f"<div><strong>{escape(head)}</strong>{notes}<p>{escape(' '.join(sentences))}</p>{picture}</div>"


def observation_html(observation: Observation) -> str:
    """An observation in a notebook: its readings as a picture, and what they are in words."""
    return f"<div><p>{escape(repr(observation))}</p>{_picture(plot_observation(observation, 0, width=9.0))}</div>"


def _picture(figure: Figure) -> Markup:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=80, bbox_inches="tight")
    source = base64.b64encode(buffer.getvalue()).decode()
    return Markup('<img alt="{}" src="data:image/png;base64,{}" style="max-width: 100%">').format("Maps", source)
