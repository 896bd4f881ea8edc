"""Figures of calibration: what `latentpde.scores.calibration` measures.

Each ``plot_*`` takes the dataset that it returns and gives a `matplotlib.figure.Figure`; the others take plain arrays,
for comparisons of methods.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from jaxtyping import Float, Int
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from latentpde.report.style import (
    BAND_COLOUR,
    GRID_COLOUR,
    MARKERS,
    PALETTE,
    REFERENCE_COLOUR,
    SMALL_TEXT,
    WIDTH,
    figure_of_panels,
    name_panel,
)
from latentpde.scores.calibration import grouped, ranks_of, standard_error, uniformity
from latentpde.scores.ranks import ecdf_band, rank_counts

if TYPE_CHECKING:
    import xarray as xr

#: Colours and markers by label.
Styles: TypeAlias = Mapping[str, tuple[str, str]]

_DASHES = ("-", "--", "-.", ":")


def plot_rank_histograms(dataset: xr.Dataset, *, level: float = 0.99, width: float = WIDTH) -> Figure:
    """Draw a histogram of each quantity's ranks, as a share of the count expected.

    The p-value is `latentpde.scores.ranks.rank_uniformity`'s, corrected for the number of panels.

    >>> import xarray as xr
    >>> ranks = np.stack([np.arange(40) % 10, np.zeros(40)], axis=1)  # of vx calibrated, of vy always the lowest
    >>> dataset = xr.Dataset(
    ...     {"rank": (("case", "quantity"), ranks)},
    ...     coords={"quantity": ["vx", "vy"], "quantity_kind": ("quantity", ["coefficient", "coefficient"])},
    ...     attrs={"num_draws": 9},
    ... )
    >>> [ax.get_title() for ax in plot_rank_histograms(dataset).axes]
    ['vx: p = 1', 'vy: p < 0.0001']

    Args:
        dataset: from `latentpde.scores.calibration.simulation_based_calibration`.
        level: probability with which all bars of a calibrated panel lie in the band; those outside are orange, hatched
            and topped by a diamond.
        width: of the figure, in inches.
    """
    from scipy.stats import binom  # it takes a second to load

    num_draws, table = int(dataset.attrs["num_draws"]), uniformity(dataset)
    num_columns = min(len(table), 4 if width > 9 else 2)
    figure, axes = figure_of_panels(len(table), num_columns, min(width / num_columns, 3.6), 2.1)
    for ax, name, p in zip(axes, table.index, table["p_holm"], strict=True):
        values = ranks_of(dataset, name)
        num_bins = _num_bins(len(values), num_draws + 1)
        edges = np.linspace(0, num_draws + 1, num_bins + 1).round().astype(int)
        expected = len(values) * np.diff(edges) / (num_draws + 1)
        tail = (1 - level) / (2 * num_bins)
        low, high = (binom.ppf(q, len(values), expected / len(values)) for q in (tail, 1 - tail))
        counts = np.add.reduceat(rank_counts(values, num_draws), edges[:-1])
        ends, middles, heights = edges - 0.5, (edges[1:] + edges[:-1] - 1) / 2, counts / expected
        bad = (counts < low) | (counts > high)
        ax.stairs(high / expected, ends, baseline=low / expected, fill=True, color=BAND_COLOUR)
        for some, colour, hatch in ((~bad, PALETTE[0], None), (bad, PALETTE[1], "////")):
            style = {"facecolor": colour, "edgecolor": "white", "hatch": hatch, "alpha": 0.85}
            ax.bar(middles[some], heights[some], 0.86 * np.diff(edges)[some], **style)
        if bad.any():
            ax.plot(middles[bad], heights[bad], "D", color=PALETTE[1], markeredgecolor="white", clip_on=False, zorder=3)
        ax.axhline(1, color=REFERENCE_COLOUR, linewidth=1)
        ax.set(xlim=(ends[0], ends[-1]), xlabel="rank", ylabel="count / expected")
        name_panel(ax, f"{name}: {_p_text(float(p))}")
    top = max(ax.get_ylim()[1] for ax in axes)
    for ax in axes:
        ax.set_ylim(0, top)
    return figure


def plot_rank_ecdf(dataset: xr.Dataset, *, level: float = 0.99, width: float = WIDTH) -> Figure:
    """Draw the empirical less the uniform distribution of the ranks; a panel for each kind of quantity.

    >>> import xarray as xr
    >>> dataset = xr.Dataset(
    ...     {"rank": (("case", "quantity"), np.arange(40)[:, None] % 10)},
    ...     coords={"quantity": ["vx"], "quantity_kind": ("quantity", ["coefficient"])},
    ...     attrs={"num_draws": 9},
    ... )
    >>> [ax.get_title() for ax in plot_rank_ecdf(dataset).axes]
    ['coefficient (99 % band)']

    Args:
        dataset: from `latentpde.scores.calibration.simulation_based_calibration`.
        level: probability with which the band holds one whole calibrated curve; curves that leave it are thick.
        width: of the figure, in inches.
    """
    num_draws, kinds = int(dataset.attrs["num_draws"]), dataset.quantity_kind.values
    panels = {}
    for kind in dict.fromkeys(kinds.tolist()):
        names = map(str, dataset.quantity.values[kinds == kind])
        panels[f"{kind} ({100 * level:g} % band)"] = {name: ranks_of(dataset, name) for name in names}
    figure, axes = figure_of_panels(len(panels), len(panels), min(width / len(panels), 6.5), 4.4)
    for ax, (title, curves) in zip(axes, panels.items(), strict=True):
        draw_rank_ecdf(ax, curves, num_draws, level=level)
        ax.legend(fontsize=SMALL_TEXT, edgecolor="none", ncols=2, loc="upper center", bbox_to_anchor=(0.5, -0.16))
        name_panel(ax, title)
    return figure


def draw_rank_ecdf(
    ax: Axes,
    curves: Mapping[str, Int[np.ndarray, " case"]],
    num_draws: int,
    *,
    level: float = 0.99,
    told_apart: bool = True,
) -> None:
    """Draw one panel of `plot_rank_ecdf`.

    >>> from matplotlib.figure import Figure
    >>> ax = Figure().subplots()
    >>> draw_rank_ecdf(ax, {"vx": np.arange(40) % 10, "vy": np.zeros(40, dtype=int)}, num_draws=9)
    >>> [line.get_label() for line in ax.lines[1:]]
    ['vx', 'vy, outside']

    Args:
        ax: where to.
        curves: ranks of each quantity, 0 to ``num_draws``, by its name.
        num_draws: draws that the truth was ranked among.
        level: as that of `plot_rank_ecdf`.
        told_apart: whether each curve has a colour and dashes of its own; otherwise those that leave the band are
            orange and the others blue.
    """
    uniform, x = np.arange(1, num_draws + 2) / (num_draws + 1), np.arange(-1, num_draws + 1)
    # Quantities of fewer cases have wider bands; the panel shows the widest and each curve keeps its own.
    low, high = ecdf_band(min(map(len, curves.values())), num_draws, level)
    ax.fill_between(x, _from_zero(low - uniform), _from_zero(high - uniform), color=BAND_COLOUR, linewidth=0)
    ax.axhline(0, color=REFERENCE_COLOUR, linewidth=1)
    for i, (name, ranks) in enumerate(curves.items()):
        low, high = ecdf_band(len(ranks), num_draws, level)
        ecdf = np.cumsum(rank_counts(ranks, num_draws)) / len(ranks)
        inside = bool(np.all((low <= ecdf) & (ecdf <= high)))
        if told_apart:
            style = {"color": PALETTE[i % 8], "linestyle": _DASHES[i // 8 % 4], "linewidth": 1.3 if inside else 2.8}
        else:
            style = {"color": PALETTE[0 if inside else 1], "linewidth": 0.8, "alpha": 0.8}
        ax.plot(x, _from_zero(ecdf - uniform), label=name if inside else f"{name}, outside", **style)
    ax.set(xlim=(-1, num_draws), xlabel="rank", ylabel="ECDF less uniform")


def plot_coverage(dataset: xr.Dataset, by: str | Sequence[str] = ("mask_kind",), *, width: float = WIDTH) -> Figure:
    """Draw nominal against empirical coverage of the field for each group of cases, and their difference.

    >>> import xarray as xr
    >>> dataset = xr.Dataset(
    ...     {"coverage": (("case", "level"), [[0.4, 0.9], [0.6, 0.8], [0.5, 0.9]])},
    ...     coords={"level": [0.5, 0.9], "mask_kind": ("case", ["line", "radial", "line"])},
    ... )
    >>> [text.get_text() for text in plot_coverage(dataset).axes[0].get_legend().get_texts()]
    ['line (2)', 'radial (1)']

    Args:
        dataset: from `latentpde.scores.calibration.simulation_based_calibration`.
        by: what groups differ in, as that of `latentpde.scores.calibration.expected_coverage`.
        width: of the figure, in inches.
    """
    groups = {label: dataset["coverage"].values[cases] for label, cases in _groups(dataset, by).items()}
    return coverage_figure(groups, dataset.level.values, width=width)


def coverage_figure(
    groups: Mapping[str, Float[np.ndarray, "_ level"]],
    levels: Sequence[float] | Float[np.ndarray, " level"],
    styles: Styles | None = None,
    *,
    width: float = WIDTH,
) -> Figure:
    """Draw what `plot_coverage` draws, of any groups: kinds of case, or methods. Bars are 2 standard errors.

    >>> covered = np.array([[0.4, 0.9], [0.6, 0.8]])  # two cases at two levels
    >>> figure = coverage_figure({"exact": covered, "map": covered - 0.2}, [0.5, 0.9])
    >>> [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    ['exact (2)', 'map (2)']

    Args:
        groups: share of the field inside the central interval, for each case and level, by the group's name.
        levels: nominal coverage, between 0 and 1.
        styles: colour and marker of groups; by default one after the other.
        width: of the figure, in inches.
    """
    figure, axes = figure_of_panels(2, 2, min(width / 2, 5.5), 4.4)
    percent = 100 * np.asarray(levels)
    step = 0.7 * np.min(np.diff(percent), initial=10)
    for i, (label, covered) in enumerate(groups.items()):
        colour, marker = _style(styles, label, i)
        style = {"color": colour, "marker": marker, "markersize": 5, "linewidth": 1.2, "capsize": 2}
        mean, bars = 100 * covered.mean(0), 200 * standard_error(covered)
        axes[0].errorbar(percent, mean, bars, label=f"{label} ({len(covered)})", **style)
        # Side by side, so that the bars of groups that agree stay legible.
        shift = step * ((i + 0.5) / len(groups) - 0.5)
        axes[1].errorbar(percent + shift, mean - percent, bars, **style)
    axes[0].plot([0, 100], [0, 100], color=REFERENCE_COLOUR, linewidth=1, linestyle="--", zorder=0)
    axes[1].axhline(0, color=REFERENCE_COLOUR, linewidth=1, linestyle="--", zorder=0)
    axes[0].set(xlim=(0, 100), ylim=(0, 102), xlabel="nominal coverage (%)", ylabel="empirical coverage (%)")
    axes[1].set(xlim=(0, 102), xlabel="nominal coverage (%)", ylabel="empirical less nominal (%)")
    axes[0].legend(fontsize=SMALL_TEXT, edgecolor="none", loc="upper left")
    name_panel(axes[0], "below the dashes: overconfident")
    name_panel(axes[1], "difference")
    return figure


def plot_spread_error(dataset: xr.Dataset, by: str | Sequence[str] = ("mask_kind",), *, width: float = 6.5) -> Figure:
    """Draw the ensemble's spread against its mean's error, one dot per case, and their means over cases.

    >>> import xarray as xr
    >>> dataset = xr.Dataset(
    ...     {"spread": ("case", [0.1, 0.2]), "error": ("case", [0.12, 0.19])},
    ...     coords={"mask_kind": ("case", ["line", "radial"])},
    ... )
    >>> [text.get_text() for text in plot_spread_error(dataset).axes[0].get_legend().get_texts()]
    ['line', 'radial', 'RMS of like cases']

    Args:
        dataset: from `latentpde.scores.calibration.simulation_based_calibration`.
        by: what groups differ in, as that of `latentpde.scores.calibration.expected_coverage`.
        width: of the figure, in inches.
    """
    spread, error = dataset["spread"].values, dataset["error"].values
    groups = {label: (spread[cases], error[cases]) for label, cases in _groups(dataset, by).items()}
    return spread_error_figure(groups, width=width, averages=True)


def spread_error_figure(
    groups: Mapping[str, tuple[Float[np.ndarray, " _"], Float[np.ndarray, " _"]]],
    styles: Styles | None = None,
    *,
    width: float = 6.5,
    averages: bool = False,
) -> Figure:
    """Draw what `plot_spread_error` draws, of any groups: kinds of case, or methods.

    >>> figure = spread_error_figure({"exact": (np.array([0.1, 0.2]), np.array([0.12, 0.3]))})
    >>> figure.axes[0].get_xscale()
    'log'

    Args:
        groups: spread of the ensemble and error of its mean for each case, by the group's name.
        styles: colour and marker of groups; by default one after the other.
        width: of the figure, in inches.
        averages: whether diamonds show root mean squares over cases of like spread, of all groups together, with bars
            of 2 standard errors. They lie on the diagonal where a wider ensemble is further from the truth by as much
            as it says; of several methods together they mean nothing.
    """
    figure, (ax,) = figure_of_panels(1, 1, width, 0.8 * width)
    for i, (label, (spread, error)) in enumerate(groups.items()):
        colour, marker = _style(styles, label, i)
        ax.scatter(spread, error, s=16, alpha=0.55, color=colour, marker=marker, linewidths=0, label=label)
    spread, error = (np.concatenate([group[i] for group in groups.values()]) for i in (0, 1))
    if averages:
        like = np.array_split(np.argsort(spread), int(np.clip(len(spread) // 10, 1, 8)))
        where, root = (np.array([math.sqrt(np.mean(values[some] ** 2)) for some in like]) for values in (spread, error))
        bars = np.array([standard_error(error[some] ** 2) for some in like]) / root  # d(e^2) = 2 e de
        style = {"fmt": "D", "color": REFERENCE_COLOUR, "markeredgecolor": "white", "capsize": 3, "zorder": 3}
        ax.errorbar(where, root, bars, label="RMS of like cases", **style)
    ends = 0.8 * min(spread.min(), error.min()), 1.25 * max(spread.max(), error.max())
    ax.plot(ends, ends, color=REFERENCE_COLOUR, linewidth=1, linestyle="--", zorder=0)
    ax.set(xscale="log", yscale="log", xlim=ends, ylim=ends, box_aspect=1)
    ax.set(xlabel="spread of the ensemble", ylabel="RMSE of its mean")
    ax.grid(which="major", color=GRID_COLOUR, linewidth=0.6)
    ax.set_axisbelow(True)
    ax.legend(fontsize=SMALL_TEXT, edgecolor="none", loc="upper left", bbox_to_anchor=(1.02, 1.0))
    name_panel(ax, "above the dashes: overconfident")
    return figure


def _groups(dataset: xr.Dataset, by: str | Sequence[str]) -> dict[str, np.ndarray]:
    """Positions of the cases of each group, by its label."""
    return {
        ", ".join(key) or "all cases": cases
        for key, cases in grouped(dataset, [by] if isinstance(by, str) else list(by))
    }


def _style(styles: Styles | None, label: str, place: int) -> tuple[str, str]:
    return styles[label] if styles else (PALETTE[place % 8], MARKERS[place % 8])


def _num_bins(num: int, num_ranks: int) -> int:
    """About 20 expected cases to a bin, 5 at least, and bins of equal width where a similar number allows it."""
    most = int(np.clip(max(num // 20, min(num // 5, 5)), 1, min(20, num_ranks)))
    return next((bins for bins in range(most, most // 2, -1) if num_ranks % bins == 0), most)


def _from_zero(difference: np.ndarray) -> np.ndarray:
    return np.concatenate([[0.0], difference])


def _p_text(p: float) -> str:
    return f"p = {p:.2g}" if p >= 1e-4 else "p < 0.0001"
