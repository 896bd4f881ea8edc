"""Figures of what was observed and what was reconstructed.

Every ``plot_*`` returns a `matplotlib.figure.Figure`, which a notebook shows by itself and ``savefig`` writes;
nothing here touches pyplot or its global state. Signed fields are drawn in a diverging map centred on zero,
errors and standard deviations in a sequential one that starts at zero; both are safe for colour-blind readers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import LogLocator, MaxNLocator

from latentpde.errors import DataError, UsageError
from latentpde.grid import Grid, resample
from latentpde.observation import Observation
from latentpde.posterior import PDEPosterior, Posterior
from latentpde.scores.metrics import PSD_FLOOR, radial_psd

SIGNED_COLOURS = "RdBu_r"  # of fields with a sign: white at zero
MAGNITUDE_COLOURS = "viridis"  # of errors and standard deviations: dark at zero, which is the least
#: Okabe and Ito's, apart for the colour-blind too, and some more.
PALETTE = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#222222", "#7f7f7f", "#8c6d31", "#5e3c99")
MARKERS = "os^vPX*pD<"
MEAN_COLOUR, DRAW_COLOUR, TRUTH_COLOUR = PALETTE[0], PALETTE[5], PALETTE[6]
WIDTH = 11.0  # inches
MOST_SNAPSHOTS = 8
_MOST_SPECTRA = 30
_SMALL = 8.5  # points


@dataclass(frozen=True, eq=False)
class CaseFields:
    """The draws of one case at the last observed time, and the truth on the same grid where it is known."""

    grid: Grid
    mean: np.ndarray
    draws: np.ndarray
    truth: np.ndarray | None

    @property
    def has_spread(self) -> bool:
        return len(self.draws) > 1

    @property
    def std(self) -> np.ndarray:
        return self.draws.std(0, ddof=1)


def case_fields(posterior: Posterior, case: int = 0, truth=None, resolution=None) -> CaseFields:
    """Decode one case.

    Args:
        case: which one.
        truth: the true field, ``([case,] [time,] y, x)``, on any grid of the same rectangle.
        resolution: of the output; by default the truth's own, else the posterior's.
    """
    observation = posterior.observation
    check_case(observation, case)
    truth = None if truth is None else _one_truth(truth, observation, case)
    grid = posterior.grid(truth.shape if truth is not None and resolution is None else resolution)
    one, when = slice(case, case + 1), observation.times[-1:]
    with torch.no_grad():
        mean = posterior.means(one, grid, when)[0, -1].numpy()
        draws = posterior.fields(one, grid, when)[0, :, -1].numpy()
    if truth is not None and truth.shape != grid.shape:
        truth = resample(torch.from_numpy(truth), grid.with_shape(truth.shape), grid).numpy()
    return CaseFields(grid, mean, draws, truth)


def check_case(observation: Observation, case: int) -> None:
    if not 0 <= case < observation.num_cases:
        raise UsageError(f"there is no case {case}; the cases are 0 to {observation.num_cases - 1}")


@dataclass(frozen=True, eq=False)
class FieldMap:
    """One map of a figure: a field on a grid, masked where unknown, or values at ``positions`` ``(y, x)``."""

    title: str
    grid: Grid
    values: np.ndarray
    limit: float
    positions: np.ndarray | None = None
    signed: bool = True

    def draw(self, axes) -> Any:
        low, cmap = (-self.limit, SIGNED_COLOURS) if self.signed else (0.0, MAGNITUDE_COLOURS)
        style = {"cmap": cmap, "vmin": low, "vmax": self.limit}
        (y0, x0), (height, width) = self.grid.origin, self.grid.extent
        box = (x0, x0 + width, y0, y0 + height)
        if self.positions is None:
            if np.ma.is_masked(self.values):
                axes.patch.set(facecolor="#e9e9e9", edgecolor="#c4c4c4", hatch="/////", linewidth=0)
            mappable = axes.imshow(self.values, origin="lower", extent=box, interpolation="none", **style)
        else:
            y, x = self.positions.T
            axes.patch.set_facecolor("#e9e9e9")
            mappable = axes.scatter(x, y, c=self.values, s=26, edgecolors="#222222", linewidths=0.6, zorder=3, **style)
        axes.set(xlim=box[:2], ylim=box[2:], aspect="equal", xlabel="x", ylabel="y")
        return mappable


def map_figure(panels: Sequence[FieldMap], width: float = WIDTH) -> Figure:
    """Maps in rows that fit ``width`` inches, each with its colour bar."""
    height, length = panels[0].grid.extent
    upright = height > 1.6 * length
    margin, above_and_below = (1.25, 0.75) if upright else (0.65, 1.3)
    most = min(3.0 if height > 0.5 * length else 4.8, 4.0 * length / height) + margin
    num_columns = min(math.ceil(width / most), len(panels))
    panel_width = min(width / num_columns, most)
    map_height = max((panel_width - margin) * height / length, 0.3)
    figure, axes = figure_of_panels(len(panels), num_columns, panel_width, map_height + above_and_below)
    num_ticks = 4 if panel_width > 2.2 else 2
    for ax, panel in zip(axes, panels, strict=True):
        mappable = panel.draw(ax)
        name_panel(ax, panel.title)
        ax.xaxis.set_major_locator(_ticks(2 if upright else num_ticks))
        ax.yaxis.set_major_locator(_ticks(4 if upright else num_ticks))
        where, aspect = ("right", 28) if upright else ("bottom", 20)
        bar = figure.colorbar(mappable, ax=ax, location=where, aspect=aspect, pad=0.04, ticks=_ticks(num_ticks))
        bar.ax.tick_params(labelsize=_SMALL)
        bar.ax.spines[:].set_visible(False)
    return figure


def shown_snapshots(observation: Observation) -> list[int]:
    """All snapshots, or some spread evenly from first to last where there are many."""
    count = len(observation.times)
    return np.linspace(0, count - 1, min(count, MOST_SNAPSHOTS)).round().astype(int).tolist()


def observation_maps(
    observation: Observation, case: int = 0, initial_title: str = "Coarse initial state"
) -> list[FieldMap]:
    check_case(observation, case)
    grid, panels = observation.grid, []
    if observation.initial is not None:
        initial = observation.initial[case].numpy()
        panels.append(FieldMap(initial_title, grid, initial, _limit(initial)))
    values, mask = observation.values[case].numpy(), observation.mask[case].numpy()
    limit = _limit(values[mask])
    for i in shown_snapshots(observation):
        title = "Readings" if len(observation.times) == 1 else f"Readings, t = {observation.times[i]:.4g}"
        if observation.positions is None:
            panels.append(FieldMap(title, grid, np.ma.array(values[i], mask=~mask[i]), limit))
        else:
            positions = observation.positions[case].numpy()[mask[i]]
            panels.append(FieldMap(title, grid, values[i][mask[i]], limit, positions))
    return panels


def reconstruction_maps(fields: CaseFields) -> list[FieldMap]:
    signed = [("Posterior mean" if fields.has_spread else "Point estimate", fields.mean)]
    magnitudes = [("Standard deviation", fields.std)] if fields.has_spread else []
    if fields.truth is not None:
        signed.insert(0, ("Truth", fields.truth))
        magnitudes.insert(0, ("Absolute error", np.abs(fields.mean - fields.truth)))
    return _maps_on_shared_scales(fields.grid, signed, magnitudes)


def source_maps(posterior: PDEPosterior, case: int = 0, resolution=None) -> list[FieldMap]:
    check_case(posterior.observation, case)
    grid = posterior.grid(resolution)
    with torch.no_grad():
        draws = posterior.sources(slice(case, case + 1), grid)[0].numpy()
    spread = [("Standard deviation", draws.std(0, ddof=1))] if len(draws) > 1 else []
    return _maps_on_shared_scales(grid, [("Posterior mean" if spread else "Point estimate", draws.mean(0))], spread)


def plot_observation(observation: Observation, case: int = 0, *, width: float = WIDTH) -> Figure:
    """The coarse initial state and the readings."""
    return map_figure(observation_maps(observation, case), width)


def plot_reconstruction(
    posterior: Posterior, case: int = 0, truth=None, resolution=None, *, width: float = WIDTH
) -> Figure:
    """The mean and, where there are any, its standard deviation, the truth and the error."""
    return map_figure(reconstruction_maps(case_fields(posterior, case, truth, resolution)), width)


def plot_source(posterior: PDEPosterior, case: int = 0, resolution=None, *, width: float = WIDTH) -> Figure:
    """The source term and, where there are several draws, its standard deviation."""
    return map_figure(source_maps(posterior, case, resolution), width)


def plot_coefficients(posterior: PDEPosterior, case: int = 0, *, width: float = WIDTH) -> Figure:
    """Draws of each coefficient within its bounds; a marker where there is only one."""
    check_case(posterior.observation, case)
    latent = posterior.latent
    theta = posterior.thetas[case].numpy()
    num_columns = min(latent.num_coefficients, 3 if width > 7 else 1)
    panel_width = min(width / num_columns, 3.6)
    figure, axes = figure_of_panels(latent.num_coefficients, num_columns, panel_width, 1.7 if len(theta) > 1 else 0.9)
    for ax, values, (low, high), coefficient in zip(
        axes, theta.T, latent.bounds.tolist(), latent.family.coefficients, strict=True
    ):
        ax.axhline(0, color="#999999", linewidth=1.5)
        strip = 0.0
        if len(values) > 1:
            heights, _, _ = ax.hist(values, np.linspace(low, high, 41).tolist(), density=True, color=DRAW_COLOUR)
            strip = -0.16 * np.max(heights)
            ax.axhline(1 / (high - low), color="#555555", linewidth=1, linestyle="--")
            ax.plot(values, np.full_like(values, strip), "|", color=TRUTH_COLOUR, markersize=8, alpha=0.5)
        ax.plot(values.mean(), strip, "D", color=MEAN_COLOUR, markersize=7, markeredgecolor="white", clip_on=False)
        ax.set(xlim=(low, high), ylim=(2 * strip or -1, None if strip else 1), yticks=[])
        ax.spines[["left", "right", "top"]].set_visible(False)
        ax.xaxis.set_major_locator(_ticks(6))
        name_panel(ax, f"{coefficient.name} ({coefficient.unit})")
    return figure


def plot_psd(posterior: Posterior, case: int = 0, truth=None, resolution=None, *, width: float = 6.5) -> Figure:
    """Radially averaged power spectra, with the finest scale that the coarse grid resolves."""
    fields = case_fields(posterior, case, truth, resolution)
    return psd_figure(fields, posterior.observation.grid, width=width)


def psd_figure(fields: CaseFields, coarse: Grid, *, width: float = 6.5) -> Figure:
    figure, (ax,) = figure_of_panels(1, 1, width, min(4.0, 0.9 * width))
    draws = fields.draws[:_MOST_SPECTRA] if fields.has_spread else ()
    curves = [("draws" if i == 0 else None, u, DRAW_COLOUR, 0.7) for i, u in enumerate(draws)]
    if fields.truth is not None:
        curves.append(("truth", fields.truth, TRUTH_COLOUR, 2.4))
    curves.append(("mean" if fields.has_spread else "point estimate", fields.mean, MEAN_COLOUR, 1.8))
    modes = np.arange(1, min(fields.grid.shape) // 2 + 1)
    for name, field, colour, thickness in curves:
        power = radial_psd(field)
        ax.loglog(modes, np.where(power > PSD_FLOOR, power, np.nan), color=colour, linewidth=thickness, label=name)
    nyquist = min(coarse.shape) / 2
    ax.axvline(nyquist, color="#d55e00", linestyle="--", linewidth=1.4, label="coarse grid's Nyquist")
    ax.set(xlim=(1, max(modes[-1], 1.1 * nyquist)), xlabel="mode number (periods across the domain)", ylabel="power")
    ax.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    ax.xaxis.set_major_formatter("{x:g}")
    ax.xaxis.set_minor_formatter("")
    ax.grid(which="major", color="#dddddd", linewidth=0.6)
    ax.legend(fontsize=_SMALL, edgecolor="none")
    name_panel(ax, "")
    return figure


def _maps_on_shared_scales(grid: Grid, signed: list, magnitudes: list) -> list[FieldMap]:
    """Panels whose signed fields share their limits, and whose magnitudes share theirs."""
    panels = []
    for group, is_signed in ((signed, True), (magnitudes, False)):
        limit = max((_limit(values) for _, values in group), default=1.0)
        panels += [FieldMap(title, grid, values, limit, signed=is_signed) for title, values in group]
    return panels


def _limit(values: np.ndarray) -> float:
    finite = np.abs(values[np.isfinite(values)])
    return float(finite.max(initial=0.0)) or 1.0


def figure_of_panels(count: int, num_columns: int, width: float, height: float) -> tuple[Figure, list]:
    """A figure with ``count`` axes of ``width`` x ``height`` inches, in rows as even as they can be."""
    num_rows = math.ceil(count / num_columns)
    num_columns = math.ceil(count / num_rows)
    figure = Figure((num_columns * width, num_rows * height), layout=ConstrainedLayoutEngine(w_pad=0.1, h_pad=0.06))
    axes = figure.subplots(num_rows, num_columns, squeeze=False).ravel().tolist()
    for spare in axes[count:]:
        spare.remove()
    return figure, axes[:count]


def name_panel(ax, title: str) -> None:
    ax.set_title(title, fontsize=10.5, parse_math=False)
    ax.tick_params(labelsize=_SMALL)


def _ticks(most: int) -> MaxNLocator:
    return MaxNLocator(most, steps=[1, 2, 2.5, 5, 10])


def _one_truth(truth, observation: Observation, case: int) -> np.ndarray:
    """The case's true field at the last time, from an array with or without those axes."""
    if hasattr(truth, "dims"):
        leading = [axis for axis in ("case", "time") if axis in truth.dims]
        if set(truth.dims) != {*leading, "y", "x"}:
            raise DataError(f"expected a truth with axes ([case,] [time,] y, x), got {truth.dims}")
        truth = truth.transpose(*leading, "y", "x")
    else:
        leading = {3: ["case" if observation.batched else "time"], 4: ["case", "time"]}.get(np.ndim(truth), [])
    try:
        array = np.asarray(truth, dtype=np.float64)
    except (TypeError, ValueError, RuntimeError) as error:
        raise DataError(f"the truth must be an array of numbers, got {type(truth).__name__}: {error}") from error
    sizes = {"case": observation.num_cases, "time": len(observation.times)}
    if array.ndim < 2 or array.shape[:-2] != tuple(sizes[axis] for axis in leading) or min(array.shape[-2:]) < 2:
        wanted = " and ".join(f"{count} {axis}(s)" for axis, count in sizes.items())
        raise DataError(f"expected a truth with axes ([case,] [time,] y, x), {wanted}; got shape {array.shape}")
    array = array[tuple(case if axis == "case" else -1 for axis in leading)]
    if not np.isfinite(array).all():
        raise DataError(f"the truth of case {case} has {(~np.isfinite(array)).sum()} NaN or infinite values")
    return array
