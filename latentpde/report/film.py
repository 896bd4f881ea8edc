"""A case in time, on a grid that a page can hold: mean, spread, quantiles and probabilities at every snapshot.

A page shows these as maps that a reader can point at, so the numbers themselves are in the page, to five digits, on a
grid as fine as its size allows.
"""

from __future__ import annotations

import base64
import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from jaxtyping import Float

from latentpde.frame import Frame
from latentpde.grid import Grid, resample
from latentpde.observation import Observation
from latentpde.observation.listing import Listing
from latentpde.posterior import PDEPosterior, Posterior
from latentpde.posterior.spread import spread_over_draws

MOST_FRAMES, FEWEST_FRAMES = 24, 7
FINEST, COARSEST = 96, 24  # cells along the shorter side
BYTES = 3_000_000  # of all maps of a page together
LEVELS = (0.05, 0.5, 0.95)
_MEMORY = 3e8  # bytes that decoding takes at once, about
_GAP = 65535
_FADED = 0.3
_SIGN_MATTERS = 0.1  # the smaller side of zero, as a share of the larger one


@dataclass(frozen=True, eq=False)
class Layer:
    """One quantity at every snapshot.

    Args:
        name: short, for the page's own use.
        title: on its button.
        values: NaN where it is not known, or not to be shown.
        scale: those layers that share one share their colours.
        what: it is, in a sentence that ends without a stop.
        unit: of the values.
    """

    name: str
    title: str
    values: Float[np.ndarray, "time y x"]
    scale: str
    what: str
    unit: str = ""


@dataclass(frozen=True, eq=False)
class Film:
    """What a page shows of one case in time.

    Args:
        case: its number, from 0.
        grid: where the values are.
        times: of the frames, as numbers on the user's clock.
        labels: of the frames, for people.
        layers: quantities, the mean first.
        area_means: mean over the area at each frame, for each draw.
        areas_above: share of the area above the threshold, likewise; ``None`` without one.
    """

    case: int
    grid: Grid
    times: Float[np.ndarray, " time"]
    labels: tuple[str, ...]
    layers: list[Layer]
    area_means: Float[np.ndarray, "draw time"]
    areas_above: Float[np.ndarray, "draw time"] | None = None
    scales: dict[str, tuple[float, float, str]] = field(default_factory=dict)

    def layer(self, name: str) -> np.ndarray | None:
        """The values of a layer, by its name."""
        return next((layer.values for layer in self.layers if layer.name == name), None)


def film_resolution(observation: Observation, num_cases: int, num_frames: int, num_layers: int) -> int:
    """Cells along the shorter side, so that all cases together fit into a page."""
    height, width = observation.grid.extent
    aspect = max(height, width) / min(height, width)
    num_cells = BYTES / (num_cases * num_frames * num_layers * 2 * 4 / 3)
    return int(np.clip(math.sqrt(num_cells / aspect), COARSEST, FINEST))


def film_times(posterior: Posterior, case: int, most: int = MOST_FRAMES) -> Float[np.ndarray, " time"]:
    """PDE times of the frames: those of the readings, some of them where they are very many, and some between where
    they are few and the method knows the field there."""
    observation = posterior.observation
    steady = isinstance(posterior, PDEPosterior) and posterior.latent.family.order == 0
    if steady:
        return observation.times[-1:].numpy()
    if observation.reading_times is None:
        known = observation.times.numpy()
    else:
        known = np.unique(observation.reading_times[case][observation.mask[case]].numpy())
    if len(known) > most:
        known = known[np.linspace(0, len(known) - 1, most).round().astype(int)]
    if not isinstance(posterior, PDEPosterior) or len(known) >= FEWEST_FRAMES - 1:
        return known
    between = np.linspace(0.0, known[-1], FEWEST_FRAMES)
    apart = np.abs(between[:, None] - known).min(1)
    return np.union1d(known, between[apart > 0.25 * known[-1] / (FEWEST_FRAMES - 1)])


def make_film(
    posterior: Posterior,
    case: int,
    *,
    resolution: int | None = None,
    threshold: float | None = None,
    truth: Float[np.ndarray, "y x"] | None = None,
    most_frames: int = MOST_FRAMES,
    num_cases: int = 1,
) -> Film:
    """Decode one case at every snapshot.

    Args:
        posterior: of any method.
        case: its number, from 0.
        resolution: cells along the shorter side at most; by default as fine as the page's size allows.
        threshold: in the unit of the readings; adds the probability of lying above it.
        truth: the true field at the last time, on any grid of the same rectangle.
        most_frames: at most so many.
        num_cases: that share the page.
    """
    observation, frame = posterior.observation, posterior.observation.frame or Frame()
    when = film_times(posterior, case, most_frames)
    num_layers = 2 + 3 * posterior.has_spread + (threshold is not None) + 2 * (truth is not None)
    fitting = film_resolution(observation, num_cases, len(when), num_layers)
    grid = posterior.grid(fitting if resolution is None else min(fitting, resolution))
    hidden = frame.excluded_cells(grid)
    columns: dict[str, list[np.ndarray]] = {}
    area_means, above = [], []
    one = slice(case, case + 1)
    with torch.no_grad():
        # a few frames at once: draws of a start are made anew for each call, and a page must fit into little memory
        at_once = max(1, int(_MEMORY / (32 * math.prod(grid.shape) * posterior.num_spread_draws)))
        for times in torch.from_numpy(when).split(at_once):
            found = {"mean": posterior.means(one, grid, times)[0].numpy()}
            decoded = posterior.spread_fields(one, grid, times)
            draws = decoded[0].numpy()[..., ~hidden]
            area_means.append(draws.mean(-1))
            if posterior.has_spread:
                of_draws = posterior.has_spread_of_draws  # then they are decoded once for all that is shown
                spread = spread_over_draws(decoded, LEVELS) if of_draws else posterior.spreads(one, grid, times, LEVELS)
                found["std"] = spread.std[0].numpy()
                found |= {f"q{level:g}": q.numpy() for level, q in zip(LEVELS, spread.quantiles[0], strict=True)}
                if threshold is not None:
                    share = (decoded > threshold).double().mean(1) if of_draws else None
                    share = posterior.exceedances(one, grid, times, threshold) if share is None else share
                    found["above"] = share[0].numpy()
                    above.append((draws > threshold).mean(-1))
            for name, values in found.items():
                columns.setdefault(name, []).extend(np.where(hidden, np.nan, values))
    if truth is not None:
        columns |= _against_truth(truth, columns["mean"], grid)
    layers = _layers({name: np.stack(values) for name, values in columns.items()}, frame, threshold, posterior)
    readings = _reading_layer(observation, case, when, grid)
    user_times = when + observation.start
    return Film(
        case,
        grid,
        user_times,
        tuple(time_label(time, frame, user_times) for time in user_times),
        layers if readings is None else [*layers, readings],
        np.concatenate(area_means, axis=-1),
        np.concatenate(above, axis=-1) if above else None,
        _scales(layers, observation, case),
    )


def _against_truth(truth: np.ndarray, means: list[np.ndarray], grid: Grid) -> dict[str, list[np.ndarray]]:
    """The truth and the error at the last frame, and nothing before."""
    here = resample(torch.from_numpy(truth).double(), grid.with_shape(truth.shape), grid).numpy()
    unknown = [np.full(grid.shape, np.nan)] * (len(means) - 1)
    return {"truth": [*unknown, here], "error": [*unknown, np.abs(means[-1] - here)]}


def _layers(columns: dict[str, np.ndarray], frame: Frame, threshold: float | None, posterior: Posterior) -> list[Layer]:
    unit, spread = frame.value_unit, posterior.has_spread
    above = "" if threshold is None else f"{threshold:g}{' ' * bool(unit)}{unit}"
    words = {
        "mean": ("Mean" if spread else "Estimate", "field", "the expected value of the field", unit),
        "std": ("Uncertainty", "spread", "the posterior standard deviation: how far off the mean may well be", unit),
        "q0.05": ("Low (5 %)", "field", "the value that the field exceeds with a probability of 95 %", unit),
        "q0.5": ("Median", "field", "the value that the field exceeds with a probability of one half", unit),
        "q0.95": ("High (95 %)", "field", "the value that the field exceeds with a probability of 5 %", unit),
        "above": (f"P(> {above})", "probability", f"the probability that the field exceeds {above}", ""),
        "truth": ("Truth", "field", "the true field, which the reconstruction has not seen", unit),
        "error": ("Error", "spread", "the distance of the estimate from the truth", unit),
    }
    return [
        Layer(name, words[name][0], values, words[name][1], words[name][2], words[name][3])
        for name, values in columns.items()
    ]


def _reading_layer(observation: Observation, case: int, when: np.ndarray, grid: Grid) -> Layer | None:
    """Cells that were read, as a layer of their own; stations are drawn on the others."""
    if observation.positions is not None:
        return None
    coarse, frame = observation.grid, observation.frame or Frame()
    rows, cols = (
        np.minimum((np.arange(n) + 0.5) * m / n, m - 1).astype(int)
        for n, m in zip(grid.shape, coarse.shape, strict=True)
    )
    values = torch.where(observation.mask[case], observation.values[case], torch.nan).numpy()
    known = observation.times.numpy()
    shown = np.full((len(when), *grid.shape), np.nan)
    for i, time in enumerate(when):
        nearest = int(np.abs(known - time).argmin())
        if abs(known[nearest] - time) <= 1e-9 * (1 + abs(time)):
            shown[i] = values[nearest][rows[:, None], cols]
    what = "the readings, cell by cell; hatched cells were not read"
    return Layer("readings", "Readings", shown, "field", what, frame.value_unit)


def _scales(layers: list[Layer], observation: Observation, case: int) -> dict[str, tuple[float, float, str]]:
    """Ends and colours of each scale: fitted to the data, and centred on zero only where the sign matters."""
    mean = layers[0].values
    listing = Listing.of(observation, case)
    of_field = listing.of_field if len(listing.of_field) else slice(None)
    read = np.percentile(listing.values[of_field], [1, 99])
    shown = [layer.values for layer in layers if layer.name in ("mean", "truth")]
    low = float(min(*(np.nanmin(v) for v in shown), read[0])) if np.isfinite(mean).any() else 0.0
    high = float(max(*(np.nanmax(v) for v in shown), read[1])) if np.isfinite(mean).any() else 1.0
    found = {"field": fitted_scale(low, high), "probability": (0.0, 1.0, "probability")}
    spreads = [layer.values for layer in layers if layer.scale == "spread" and np.isfinite(layer.values).any()]
    if spreads:
        least, most = min(float(np.nanmin(v)) for v in spreads), max(float(np.nanmax(v)) for v in spreads)
        found["spread"] = (least if least > 0.4 * most else 0.0, most if most > least else most + 1.0, "spread")
    return found


def fitted_scale(low: float, high: float) -> tuple[float, float, str]:
    """Ends of a scale and its colours: two-sided about zero where values of both signs are of one size.

    >>> fitted_scale(271.0, 294.0), fitted_scale(-2.0, 3.0)
    ((271.0, 294.0, 'value'), (-3.0, 3.0, 'signed'))
    """
    if low < 0 < high and min(-low, high) > _SIGN_MATTERS * max(-low, high):
        return -max(-low, high), max(-low, high), "signed"
    return (low, high, "value") if high > low else (low - 0.5, high + 0.5, "value")


def time_label(time: float, frame: Frame, others: np.ndarray) -> str:
    """A time for people: a date as short as all of them allow, or a number with its unit.

    >>> time_label(0.25, Frame(), np.array([0.25]))
    't = 0.25'
    """
    if frame.clock is not None and frame.clock.epoch is not None:
        moments = frame.times_to_user(np.atleast_1d(others)).astype("datetime64[s]")
        moment = frame.times_to_user(np.array([time])).astype("datetime64[s]")[0]
        if (moments == moments.astype("datetime64[D]")).all():
            return str(moment.astype("datetime64[D]"))
        fine = "s" if (moments != moments.astype("datetime64[m]")).any() else "m"
        return str(np.datetime_as_string(moment, unit=fine)).replace("T", " ") + " UTC"
    return f"t = {time:.4g}{' ' * bool(frame.time_unit)}{frame.time_unit}"


def packed(film: Film, posterior: Posterior, outliers: dict[int, float]) -> dict[str, Any]:
    """What the page's script needs of a film, for JSON.

    Args:
        film: of a case.
        posterior: where the readings are.
        outliers: z-scores of readings that do not fit, by their numbers.
    """
    observation = posterior.observation
    frame = observation.frame or Frame()
    (y0, x0), (height, width) = film.grid.origin, film.grid.extent
    excluded = frame.excluded_cells(film.grid)
    return {
        "shape": list(film.grid.shape),
        "box": [x0, y0, width, height],
        "axes": {
            name: {"name": axis.name, "unit": _shown_unit(axis.unit), "origin": axis.origin, "scale": axis.scale}
            for name, axis in (("x", frame.x), ("y", frame.y))
        },
        "times": film.times.tolist(),
        "labels": list(film.labels),
        "short": _without_common_start(film.labels),
        "scales": {name: list(scale) for name, scale in film.scales.items()},
        "layers": [
            {"name": one.name, "title": one.title, "scale": one.scale, "what": one.what, "unit": one.unit}
            | _quantised(one.values)
            for one in film.layers
        ],
        "excluded": base64.b64encode(np.packbits(excluded).tobytes()).decode() if excluded.any() else None,
        "stations": _stations(observation, film, outliers),
        "cells": observation.positions is None,
        "same": _fades(film.layers[0].values) > _FADED,
        "spread": posterior.has_spread,
    }


def _without_common_start(labels: tuple[str, ...]) -> list[str]:
    """Dates without the day, or the year, that all of them share.

    >>> _without_common_start(("2026-05-01 06:00 UTC", "2026-05-01 12:00 UTC"))
    ['06:00', '12:00']
    """
    plain = [label.removesuffix(" UTC") for label in labels]
    if len(labels) == 1 or not all(label[:1].isdigit() for label in plain):
        return plain
    shared = next((n for n in (11, 5) if len({label[:n] for label in plain}) == 1 and len(plain[0]) > n), 0)
    return [label[shared:] for label in plain]


def _fades(mean: np.ndarray) -> float:
    """The range of the last frame as a share of that of all: one scale for all hides a field that fades away."""
    whole = np.nanmax(mean) - np.nanmin(mean)
    return float((np.nanmax(mean[-1]) - np.nanmin(mean[-1])) / whole) if whole > 0 else 1.0


def _shown_unit(unit: str) -> str:
    return {"degrees_north": "°", "degrees_east": "°"}.get(unit, unit)


def _quantised(values: np.ndarray) -> dict[str, Any]:
    finite = values[np.isfinite(values)]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 0.0)
    step = (high - low) / (_GAP - 1) or 1.0
    with np.errstate(invalid="ignore"):
        numbers = np.where(np.isfinite(values), np.round((values - low) / step), _GAP).astype("<u2")
    return {"low": low, "step": step, "data": base64.b64encode(numbers.tobytes()).decode()}


def _stations(observation: Observation, film: Film, outliers: dict[int, float]) -> list[dict[str, Any]]:
    """Places with their readings of the field, each at its nearest frame."""
    listing = Listing.of(observation, film.case)
    if observation.positions is None and len(listing) > 4000:
        return []  # dense grids have a layer of their own
    nearest = np.abs(listing.times[:, None] - film.times).argmin(1)
    found: dict[int, dict[str, Any]] = {}
    for i in listing.of_field.tolist():
        (y, x), station = listing.points[i].tolist(), int(listing.stations[i])
        place = found.setdefault(station, {"x": x, "y": y, "readings": []})
        if listing.names is not None:
            place["name"] = listing.names[i]
        reading = [int(nearest[i]), float(f"{listing.values[i]:.6g}"), float(listing.times[i])]
        place["readings"].append([*reading, round(outliers[i], 1)] if i in outliers else reading)
    return list(found.values())
