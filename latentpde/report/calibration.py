"""Figures of calibration: what `latentpde.scores.calibration` measures, for people who would rather look.

Every function returns a `matplotlib.figure.Figure`, in colours and marks that colour-blind readers can tell apart.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure

from latentpde.report.style import MARKERS, PALETTE, WIDTH, figure_of_panels, name_panel
from latentpde.scores.calibration import expected_coverage, grouped, ranks_of, standard_error, uniformity
from latentpde.scores.ranks import ecdf_band, rank_counts

if TYPE_CHECKING:
    import xarray as xr

_DASHES = ("-", "--", "-.", ":")
_BAND = "#d9d9d9"


def plot_rank_histograms(dataset: xr.Dataset, *, level: float = 0.99, width: float = WIDTH) -> Figure:
    """Ranks of each quantity as a share of the count expected.

    All bars of a calibrated panel lie in the band with at least the probability ``level``; those outside are
    orange, hatched and topped by a diamond. The p-value is `rank_uniformity`'s, corrected for the number of panels.
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
        ax.stairs(high / expected, ends, baseline=low / expected, fill=True, color=_BAND)
        for some, colour, hatch in ((~bad, PALETTE[0], None), (bad, PALETTE[1], "////")):
            style = {"facecolor": colour, "edgecolor": "white", "hatch": hatch, "alpha": 0.85}
            ax.bar(middles[some], heights[some], 0.86 * np.diff(edges)[some], **style)
        if bad.any():
            ax.plot(middles[bad], heights[bad], "D", color=PALETTE[1], markeredgecolor="white", clip_on=False, zorder=3)
        ax.axhline(1, color="#222222", linewidth=1)
        ax.set(xlim=(ends[0], ends[-1]), xlabel="rank", ylabel="count / expected")
        name_panel(ax, f"{name}: {_p_text(float(p))}")
    top = max(ax.get_ylim()[1] for ax in axes)
    for ax in axes:
        ax.set_ylim(0, top)
    return figure


def plot_rank_ecdf(dataset: xr.Dataset, *, level: float = 0.99, width: float = WIDTH) -> Figure:
    """Empirical less uniform distribution of the ranks, with the band in which a calibrated curve lies.

    The band holds one whole curve with the probability ``level``; curves that leave it are drawn thick.
    """
    num_draws, kinds = int(dataset.attrs["num_draws"]), list(dict.fromkeys(dataset.quantity_kind.values.tolist()))
    figure, axes = figure_of_panels(len(kinds), len(kinds), min(width / len(kinds), 6.5), 4.4)
    uniform = np.arange(1, num_draws + 2) / (num_draws + 1)
    x = np.arange(-1, num_draws + 1)
    for ax, kind in zip(axes, kinds, strict=True):
        names = dataset.quantity.values[dataset.quantity_kind.values == kind]
        samples = [ranks_of(dataset, str(name)) for name in names]
        # Quantities of fewer cases have wider bands; the panel shows the widest and each curve keeps its own.
        low, high = ecdf_band(min(map(len, samples)), num_draws, level)
        ax.fill_between(x, _from_zero(low - uniform), _from_zero(high - uniform), color=_BAND, linewidth=0)
        ax.axhline(0, color="#222222", linewidth=1)
        for i, (name, values) in enumerate(zip(names, samples, strict=True)):
            low, high = ecdf_band(len(values), num_draws, level)
            ecdf = np.cumsum(rank_counts(values, num_draws)) / len(values)
            inside = bool(np.all((low <= ecdf) & (ecdf <= high)))
            style = {"color": PALETTE[i % 8], "linestyle": _DASHES[i // 8 % 4], "linewidth": 1.3 if inside else 2.8}
            ax.plot(x, _from_zero(ecdf - uniform), label=name if inside else f"{name}, outside", **style)
        ax.set(xlim=(-1, num_draws), xlabel="rank", ylabel="ECDF less uniform")
        ax.legend(fontsize=8.5, edgecolor="none", ncols=2, loc="upper center", bbox_to_anchor=(0.5, -0.16))
        name_panel(ax, f"{kind} ({100 * level:g} % band)")
    return figure


def plot_coverage(dataset: xr.Dataset, by: str | Sequence[str] = ("mask_kind",), *, width: float = WIDTH) -> Figure:
    """Nominal against empirical coverage of the field per group, and their difference; bars are 2 standard errors."""
    names = [by] if isinstance(by, str) else list(by)
    table = expected_coverage(dataset, names).reset_index("level")
    groups = [((), table)] if not names else list(table.groupby(level=list(range(len(names)))))
    figure, axes = figure_of_panels(2, 2, min(width / 2, 5.5), 4.4)
    levels = 100 * dataset.level.values
    step = 0.7 * np.min(np.diff(levels), initial=10)
    for i, (key, rows) in enumerate(groups):
        label = ", ".join(map(str, key if isinstance(key, tuple) else (key,))) or "all cases"
        style = {"color": PALETTE[i % 8], "marker": MARKERS[i % 8], "markersize": 5, "linewidth": 1.2, "capsize": 2}
        mean, bars = 100 * rows["coverage"].to_numpy(), 200 * rows["standard_error"].to_numpy()
        axes[0].errorbar(levels, mean, bars, label=f"{label} ({rows['num'].iloc[0]})", **style)
        # Side by side, so that the bars of groups that agree stay legible.
        shift = step * ((i + 0.5) / len(groups) - 0.5)
        axes[1].errorbar(levels + shift, mean - levels, bars, **style)
    axes[0].plot([0, 100], [0, 100], color="#222222", linewidth=1, linestyle="--", zorder=0)
    axes[1].axhline(0, color="#222222", linewidth=1, linestyle="--", zorder=0)
    axes[0].set(xlim=(0, 100), ylim=(0, 102), xlabel="nominal coverage (%)", ylabel="empirical coverage (%)")
    axes[1].set(xlim=(0, 102), xlabel="nominal coverage (%)", ylabel="empirical less nominal (%)")
    axes[0].legend(fontsize=8.5, edgecolor="none", loc="upper left")
    name_panel(axes[0], "below the dashes: overconfident")
    name_panel(axes[1], "difference")
    return figure


def plot_spread_error(dataset: xr.Dataset, by: str | Sequence[str] = ("mask_kind",), *, width: float = 6.5) -> Figure:
    """The ensemble's spread against its mean's error, one dot per case.

    Diamonds are root mean squares over cases of like spread, with bars of 2 standard errors: they lie on the diagonal
    where a wider ensemble is also further from the truth by as much as it says.
    """
    figure, (ax,) = figure_of_panels(1, 1, width, 0.8 * width)
    spread, error = dataset["spread"].values, dataset["error"].values
    for i, (key, positions) in enumerate(grouped(dataset, [by] if isinstance(by, str) else list(by))):
        style = {"s": 16, "alpha": 0.55, "color": PALETTE[i % 8], "marker": MARKERS[i % 8], "linewidths": 0}
        ax.scatter(spread[positions], error[positions], label=", ".join(key) or "cases", **style)
    like = np.array_split(np.argsort(spread), int(np.clip(len(spread) // 10, 1, 8)))
    where, root = (np.array([math.sqrt(np.mean(values[some] ** 2)) for some in like]) for values in (spread, error))
    bars = np.array([standard_error(error[some] ** 2) for some in like]) / root  # d(e^2) = 2 e de
    style = {"fmt": "D", "color": "#222222", "markeredgecolor": "white", "capsize": 3, "zorder": 3}
    ax.errorbar(where, root, bars, label="RMS of like cases", **style)
    ends = np.array([0.8 * min(spread.min(), error.min()), 1.25 * max(spread.max(), error.max())])
    ax.plot(ends, ends, color="#222222", linewidth=1, linestyle="--", zorder=0)
    ax.set(xscale="log", yscale="log", xlim=ends, ylim=ends, box_aspect=1)
    ax.set(xlabel="spread of the ensemble", ylabel="RMSE of its mean")
    ax.grid(which="major", color="#dddddd", linewidth=0.6)
    ax.set_axisbelow(True)
    figure.legend(fontsize=8.5, edgecolor="none", loc="outside right upper")
    name_panel(ax, "above the dashes: overconfident")
    return figure


def _num_bins(num: int, num_ranks: int) -> int:
    """About 20 expected cases to a bin, 5 at least, and bins of equal width where a similar number allows it."""
    most = int(np.clip(max(num // 20, min(num // 5, 5)), 1, min(20, num_ranks)))
    return next((bins for bins in range(most, most // 2, -1) if num_ranks % bins == 0), most)


def _from_zero(difference: np.ndarray) -> np.ndarray:
    return np.concatenate([[0.0], difference])


def _p_text(p: float) -> str:
    return f"p = {p:.2g}" if p >= 1e-4 else "p < 0.0001"
