"""Figures of what was observed and what was reconstructed.

Every ``plot_*`` returns a `matplotlib.figure.Figure`, which a notebook shows by itself and ``savefig`` writes.

>>> import latentpde as lp
>>> cases = lp.simulate("diffusion", num=2, shape=(32, 32))
>>> posterior = lp.reconstruct(cases, method="map", num_steps=5)
>>> figure = plot_reconstruction(posterior, case=1, truth=cases["truth/field"])
>>> [ax.get_title() for ax in figure.axes if ax.get_title()]
['Truth', 'Point estimate', 'Absolute error']
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator

from latentpde.errors import UsageError
from latentpde.frame import Frame
from latentpde.grid import Grid, resample
from latentpde.observation import Observation
from latentpde.posterior import PDEPosterior, Posterior, Resolution
from latentpde.posterior.summary import Summary
from latentpde.report.maps import FieldMap, colour_limit, map_figure, maps_on_shared_scales
from latentpde.report.style import (
    DRAW_COLOUR,
    GRID_COLOUR,
    MEAN_COLOUR,
    PALETTE,
    SMALL_TEXT,
    TRUTH_COLOUR,
    WIDTH,
    figure_of_panels,
    name_panel,
    round_ticks,
)
from latentpde.report.words import unit_in
from latentpde.scores.metrics import PSD_FLOOR, radial_psd
from latentpde.scores.truth import last_true_field

MOST_SNAPSHOTS = 8  # that a figure shows
_MOST_SPECTRA = 30  # of draws


@dataclass(frozen=True, eq=False)
class CaseFields:
    """What figures show of one case at the last observed time: its part of a summary, and the truth beside it.

    Args:
        grid: where the fields are.
        mean, std: of the field.
        draws: of the field, axes ``(draw, y, x)``.
        source_mean, source_std: of the source; ``None`` where the method knows none.
        truth: the true field on the same grid, where it is known.
    """

    grid: Grid
    mean: np.ndarray
    std: np.ndarray
    draws: np.ndarray
    source_mean: np.ndarray | None
    source_std: np.ndarray | None
    truth: np.ndarray | None

    @property
    def has_spread(self) -> bool:
        return not bool(np.isnan(self.std).any())


def case_fields(
    posterior: Posterior, case: int = 0, truth=None, resolution: Resolution = None, summary: Summary | None = None
) -> CaseFields:
    """The fields of one case, from a summary that is there, or decoded for it.

    Args:
        posterior: of any method.
        case: its number, from 0.
        truth: the true field, ``([case,] [time,] y, x)``, on any grid of the same rectangle.
        resolution: of the output; by default the truth's own, else the posterior's.
        summary: of this posterior, with the draws of this case; its grid is then the output's.
    """
    observation = posterior.observation
    observation.require_case(case)
    truth = None if truth is None else last_true_field(truth, observation, case)
    if summary is None:
        resolution = truth.shape if truth is not None and resolution is None else resolution
        summary = Summary.of(posterior, resolution, cases=range(case, case + 1), draws_of=[case])
    if truth is not None and truth.shape != summary.grid.shape:
        truth = resample(torch.from_numpy(truth), summary.grid.with_shape(truth.shape), summary.grid).numpy()
    i = summary.cases.index(case)
    return CaseFields(
        grid=summary.grid,
        mean=summary.mean[i],
        std=summary.std[i],
        draws=summary.draws[case],
        source_mean=None if summary.source_mean is None else summary.source_mean[i],
        source_std=None if summary.source_std is None else summary.source_std[i],
        truth=truth,
    )


def shown_snapshots(observation: Observation) -> list[int]:
    """All snapshots, or some at even distances from first to last where there are many."""
    count = len(observation.times)
    return np.linspace(0, count - 1, min(count, MOST_SNAPSHOTS)).round().astype(int).tolist()


def observation_maps(
    observation: Observation, case: int = 0, initial_title: str = "Coarse initial state"
) -> list[FieldMap]:
    """Maps of the initial state and of the readings of each snapshot, which share one scale.

    Args:
        observation: the readings.
        case: its number, from 0.
        initial_title: what stands above the initial state.
    """
    observation.require_case(case)
    grid, maps = observation.grid, []
    if observation.initial is not None:
        initial = observation.initial[case].numpy()
        maps.append(FieldMap(initial_title, grid, initial, colour_limit(initial)))
    values, mask = observation.values[case].numpy(), observation.mask[case].numpy()
    if observation.of_source is not None and observation.positions is not None:  # with a scale of their own
        of_source = observation.of_source[case].numpy() & mask
        places = observation.positions[case].numpy()[of_source[0]]
        own = values[of_source]
        maps.append(FieldMap("Readings of the source", grid, own, colour_limit(own), places))
        mask = mask & ~of_source
        if not mask.any():
            return maps
    limit = colour_limit(values[mask])
    if observation.reading_times is not None and observation.positions is not None:
        times, positions = observation.reading_times[case].numpy()[mask], observation.positions[case].numpy()[mask[0]]
        for title, here in _parts_of_table(times + observation.start):
            maps.append(FieldMap(title, grid, values[mask][here], limit, positions[here]))
        return maps
    for i in shown_snapshots(observation):
        title = "Readings" if len(observation.times) == 1 else f"Readings, t = {observation.times[i]:.4g}"
        if observation.positions is None:
            maps.append(FieldMap(title, grid, np.ma.array(values[i], mask=~mask[i]), limit))
        else:
            positions = observation.positions[case].numpy()[mask[i]]
            maps.append(FieldMap(title, grid, values[i][mask[i]], limit, positions))
    return maps


def _parts_of_table(times: np.ndarray) -> list[tuple[str, np.ndarray]]:
    """Readings of a table by their times, or by spans of time where these are many: a title, and which they are."""
    known = np.unique(times)
    parts = []
    for some in np.array_split(known, min(len(known), MOST_SNAPSHOTS)):
        span = f"t = {some[0]:.4g}" if len(some) == 1 else f"t = {some[0]:.4g} to {some[-1]:.4g}"
        parts.append((f"Readings, {span}", (times >= some[0]) & (times <= some[-1])))
    return parts


def reconstruction_maps(fields: CaseFields) -> list[FieldMap]:
    """Maps of truth, mean, error and standard deviation, as far as there are any."""
    signed = [("Posterior mean" if fields.has_spread else "Point estimate", fields.mean)]
    magnitudes = [("Standard deviation", fields.std)] if fields.has_spread else []
    if fields.truth is not None:
        signed.insert(0, ("Truth", fields.truth))
        magnitudes.insert(0, ("Absolute error", np.abs(fields.mean - fields.truth)))
    return maps_on_shared_scales(fields.grid, signed, magnitudes)


def source_maps(fields: CaseFields) -> list[FieldMap]:
    """Maps of the source's mean and standard deviation, to the same limit: a mean that is nothing to it looks so."""
    if fields.source_mean is None or fields.source_std is None:
        raise UsageError("this method knows no source; methods that solve the PDE do")
    if not fields.has_spread:
        return maps_on_shared_scales(fields.grid, [("Point estimate", fields.source_mean)], [])
    limit = max(colour_limit(fields.source_mean), colour_limit(fields.source_std))
    return [
        FieldMap("Posterior mean", fields.grid, fields.source_mean, limit),
        FieldMap("Standard deviation", fields.grid, fields.source_std, limit, signed=False),
    ]


def plot_observation(observation: Observation, case: int = 0, *, width: float = WIDTH) -> Figure:
    """Draw the coarse initial state and the readings of one case.

    >>> import latentpde as lp
    >>> cases = lp.simulate("diffusion", num=1, shape=(16, 16), num_modes=2, sparsity=0.5)
    >>> figure = plot_observation(lp.Observation.from_dataset(cases))
    >>> [ax.get_title() for ax in figure.axes if ax.get_title()]
    ['Coarse initial state', 'Readings']

    Args:
        observation: the readings.
        case: its number, from 0.
        width: of the figure, in inches.
    """
    return map_figure(observation_maps(observation, case), width)


def plot_reconstruction(
    posterior: Posterior, case: int = 0, truth=None, resolution: Resolution = None, *, width: float = WIDTH
) -> Figure:
    """Draw the mean and, where there are any, its standard deviation, the truth and the error.

    >>> import latentpde as lp
    >>> cases = lp.simulate("diffusion", num=1, shape=(16, 16), num_modes=2, sparsity=0.5)
    >>> posterior = lp.reconstruct(cases, method="map", num_steps=5)
    >>> figure = plot_reconstruction(posterior, truth=cases["truth/field"], resolution=16)
    >>> [ax.get_title() for ax in figure.axes if ax.get_title()]
    ['Truth', 'Point estimate', 'Absolute error']

    Args:
        posterior, case, truth, resolution: as those of `case_fields`.
        width: of the figure, in inches.
    """
    return map_figure(reconstruction_maps(case_fields(posterior, case, truth, resolution)), width)


def plot_source(
    posterior: PDEPosterior, case: int = 0, resolution: Resolution = None, *, width: float = WIDTH
) -> Figure:
    """Draw the source and, where there are several draws, its standard deviation.

    >>> import latentpde as lp
    >>> cases = lp.simulate("diffusion", num=1, shape=(16, 16), num_modes=2, sparsity=0.5)
    >>> posterior = lp.reconstruct(cases, method="map", num_steps=5)
    >>> [ax.get_title() for ax in plot_source(posterior, resolution=16).axes if ax.get_title()]
    ['Point estimate']

    Args:
        posterior: of a method that knows the PDE.
        case, resolution: as those of `case_fields`.
        width: of the figure, in inches.
    """
    return map_figure(source_maps(case_fields(posterior, case, None, resolution)), width)


def plot_coefficients(posterior: PDEPosterior, case: int = 0, *, width: float = WIDTH) -> Figure:
    """Draw each coefficient's draws within its bounds; a mark where there is only one.

    >>> import latentpde as lp
    >>> cases = lp.simulate("diffusion", num=1, shape=(16, 16), num_modes=2, sparsity=0.5)
    >>> posterior = lp.reconstruct(cases, method="map", num_steps=5)
    >>> [ax.get_title() for ax in plot_coefficients(posterior).axes]
    ['vx (L/T)', 'vy (L/T)', 'kappa (L²/T)']

    Args:
        posterior: of a method that knows the PDE.
        case: its number, from 0.
        width: of the figure, in inches.
    """
    posterior.observation.require_case(case)
    latent = posterior.latent
    theta = posterior.spread_thetas[case].numpy()
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
        ax.xaxis.set_major_locator(round_ticks(6))
        unit = unit_in(posterior.observation.frame or Frame(), coefficient.unit)
        name_panel(ax, f"{coefficient.name} ({unit})" if unit else coefficient.name)
    return figure


def plot_psd(
    posterior: Posterior, case: int = 0, truth=None, resolution: Resolution = None, *, width: float = 6.5
) -> Figure:
    """Draw radially averaged power spectra, with the finest scale that the coarse grid resolves.

    >>> import latentpde as lp
    >>> cases = lp.simulate("diffusion", num=1, shape=(16, 16), num_modes=2, sparsity=0.5)
    >>> posterior = lp.reconstruct(cases, method="map", num_steps=5)
    >>> figure = plot_psd(posterior, truth=cases["truth/field"], resolution=16)
    >>> [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    ['truth', 'point estimate', "coarse grid's Nyquist"]

    Args:
        posterior, case, truth, resolution: as those of `case_fields`.
        width: of the figure, in inches.
    """
    fields = case_fields(posterior, case, truth, resolution)
    return psd_figure(fields, posterior.observation.grid, width=width)


def psd_figure(fields: CaseFields, coarse: Grid, *, width: float = 6.5) -> Figure:
    """Draw what `plot_psd` draws, of fields that are decoded already.

    Args:
        fields: of one case.
        coarse: the grid of the readings, whose finest scale is marked.
        width: of the figure, in inches.
    """
    figure, (ax,) = figure_of_panels(1, 1, width, min(4.0, 0.9 * width))
    draws = fields.draws[:_MOST_SPECTRA] if fields.has_spread else ()
    curves = [("draws" if i == 0 else None, u, DRAW_COLOUR, 0.7) for i, u in enumerate(draws)]
    if fields.truth is not None:
        curves.append(("truth", fields.truth, TRUTH_COLOUR, 2.4))
    curves.append(("mean" if fields.has_spread else "point estimate", fields.mean, MEAN_COLOUR, 1.8))
    numbers = np.arange(1, min(fields.grid.shape) // 2 + 1)
    for name, field, colour, thickness in curves:
        power = radial_psd(field)
        ax.loglog(numbers, np.where(power > PSD_FLOOR, power, np.nan), color=colour, linewidth=thickness, label=name)
    nyquist = min(coarse.shape) / 2
    ax.axvline(nyquist, color=PALETTE[1], linestyle="--", linewidth=1.4, label="coarse grid's Nyquist")
    ax.set(xlim=(1, max(numbers[-1], 1.1 * nyquist)), xlabel="mode number (periods across the domain)", ylabel="power")
    ax.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    ax.xaxis.set_major_formatter("{x:g}")
    ax.xaxis.set_minor_formatter("")
    ax.grid(which="major", color=GRID_COLOUR, linewidth=0.6)
    ax.legend(fontsize=SMALL_TEXT, edgecolor="none")
    name_panel(ax, "")
    return figure
