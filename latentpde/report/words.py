"""What a page says of a case in words: the summary, what was assumed, how to repeat it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from latentpde.domain import Domain
from latentpde.frame import Frame
from latentpde.observation import Observation
from latentpde.observation.listing import Listing
from latentpde.posterior import PDEPosterior, Posterior
from latentpde.report.film import Film, time_label
from latentpde.spectra import Spectrum

if TYPE_CHECKING:
    from latentpde.scores.holdout import Holdout

TIMES, MINUS, SPACE = "\u00d7", "\u2212", "\u00a0"
PLUS_MINUS = f"{SPACE}\u00b1{SPACE}"  # no line ends there
_KINDS = {
    "lowres-solve": "cells of a coarse-grid solution",
    "pooled": "averages over cells",
    "point": "readings at points",
}


def number(value: Any, digits: int = 4) -> str:
    """A number for people, with a proper minus sign.

    >>> number(0.123456), number(True), number(12345678.0)
    ('0.1235', 'yes', '1.235e+07')
    """
    value = np.asarray(value).item()
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.{digits}g}".replace("-", MINUS) if isinstance(value, float) else str(value)


def with_error(mean: float, std: float) -> str:
    """A value with its standard deviation, rounded to two digits of the latter.

    >>> with_error(3.14159, 0.0234).split(), with_error(1234.6, 56.0).split(), with_error(2.0, float("nan"))
    (['3.142', '±', '0.023'], ['1235', '±', '56'], '2')
    """
    if not np.isfinite(std) or std <= 0 or not np.isfinite(mean):
        return number(float(mean))
    return f"{known_to(mean, std)}{PLUS_MINUS}{known_to(std, std)}"


def known_to(value: float, std: float) -> str:
    """A number as precisely as it is known: to two digits of its standard deviation.

    >>> known_to(3.14159, 0.0234), known_to(2.0, float("nan")), known_to(3e7, 2e6)
    ('3.142', '2', '3e+07')
    """
    if not np.isfinite(std) or std <= 0:
        return number(float(value))
    if not 1e-4 <= max(abs(value), std) < 1e6:
        return number(float(value), 3)
    return f"{value:.{max(0, 1 - int(np.floor(np.log10(std))))}f}".replace("-", MINUS)


def unit_in(frame: Frame, unit: str) -> str:
    """A coefficient's unit in the user's units, where these are known.

    >>> unit_in(Frame(length_unit="km"), "L²/T"), unit_in(Frame(), "1")
    ('km²/T', '')
    """
    if unit == "1":
        return ""
    known = {"L": frame.length_unit, "T": frame.time_unit, "U": frame.value_unit}
    return re.sub(r"[LTU]", lambda letter: known[letter[0]] or letter[0], unit)


def suffixed(text: str, unit: str) -> str:
    """A number in words with its unit behind it, where it has one."""
    return f"{text}{SPACE}{unit}" if unit else text


def place(frame: Frame, point: np.ndarray) -> str:
    """A place of the plane in the user's coordinates."""
    if frame.projection is not None:
        latitude, longitude = (float(one) for one in frame.to_user(*point))
        longitude = (longitude + 180) % 360 - 180
        return f"{abs(latitude):.3f}° {'NS'[latitude < 0]}, {abs(longitude):.3f}° {'EW'[longitude < 0]}"
    y, x = (float(one) for one in frame.to_user(*point))
    parts = (f"{axis.name} = {suffixed(number(value), axis.unit)}" for axis, value in ((frame.x, x), (frame.y, y)))
    return ", ".join(parts)


def summary(
    posterior: Posterior, film: Film, holdout: Holdout | None, threshold: float | None, num_outliers: int | None
) -> list[str]:
    """The main numbers of a case, as sentences: what was read, the field, the PDE, and whether to believe it."""
    observation, case = posterior.observation, film.case
    frame, listing = observation.frame or Frame(), Listing.of(observation, case)
    unit, name = frame.value_unit, _name(frame)
    last = film.labels[-1]
    steady = isinstance(posterior, PDEPosterior) and posterior.latent.family.order == 0
    when = "" if steady else f" at {last}"
    mean, std = film.layers[0].values[-1], film.layer("std")
    sentences = [_what_was_read(listing, frame, observation, steady)]
    if listing.of_source is not None:
        sentences.append(f"Of these {int(listing.of_source.sum())} are readings of the source.")
    low, high = (np.unravel_index(f(mean), mean.shape) for f in (np.nanargmin, np.nanargmax))
    ends = [
        suffixed(with_error(float(mean[at]), np.nan if std is None else float(std[-1][at])), unit) for at in (low, high)
    ]
    typical = (
        ""
        if std is None
        else f"; at a typical place it is known to{PLUS_MINUS}"
        + suffixed(number(float(np.nanmedian(std[-1])), 2), unit)
    )
    sentences.append(
        f"{name[:1].upper()}{name[1:]}{when} averages {suffixed(_area_mean(film), unit)} over the area, "
        f"from {ends[0]} where it is lowest to {ends[1]} where it is highest{typical}."
    )
    if threshold is not None and film.areas_above is not None:
        share = np.percentile(100 * film.areas_above[:, -1], [5, 50, 95])
        sentences.append(
            f"It exceeds {suffixed(number(float(threshold)), unit)} on {share[1]:.0f} % of the area{when} (90 % "
            f"interval: {share[0]:.0f} % to {share[2]:.0f} %)."
        )
    if isinstance(posterior, PDEPosterior):
        sentences.append(_coefficients_sentence(posterior, case, frame))
    if holdout is not None:
        sentences.append(holdout.sentence)
    if num_outliers:
        sentences.append(
            f"{num_outliers} reading{'s do' if num_outliers > 1 else ' does'} not fit the others; see below."
        )
    return sentences


def _name(frame: Frame) -> str:
    return "the field" if frame.value == "value" else frame.value_attributes.get("long_name", frame.value)


def _std(values: np.ndarray) -> float:
    return float(values.std(ddof=1)) if len(values) > 1 else np.nan


def _what_was_read(listing: Listing, frame: Frame, observation: Observation, steady: bool) -> str:
    num, num_places = len(listing), int(listing.stations.max()) + 1
    where = "at {} station" if observation.positions is not None else "in {} cell"
    times = np.unique(listing.times)
    span = ""
    if not steady:
        first, last = (time_label(float(t), frame, times) for t in (times[0], times[-1]))
        span = f" at {last}" if len(times) == 1 else f" from {first} to {last}"
    places = f"{where.format(num_places)}{'s' * (num_places > 1)}"
    return f"Made from {num:,} reading{'s' * (num > 1)} {places}{span}.".replace(",", "\u202f" if num >= 10_000 else "")


def _coefficients_sentence(posterior: PDEPosterior, case: int, frame: Frame) -> str:
    family, theta = posterior.latent.family, posterior.spread_thetas[case].numpy()
    parts = []
    for k, coefficient in enumerate(family.coefficients):
        value = with_error(float(theta[:, k].mean()), _std(theta[:, k]))
        parts.append(f"{coefficient.name} = {suffixed(value, unit_in(frame, coefficient.unit))}")
    return f"The equation's coefficients: {', '.join(parts)}."


def assumptions(posterior: Posterior, case: int) -> list[tuple[str, str]]:
    """What the result rests on: each with what was taken, and where it came from."""
    observation = posterior.observation
    frame = observation.frame or Frame()
    rows = []
    latent = posterior.latent if isinstance(posterior, PDEPosterior) else None
    if latent is not None:
        guess = f"; those of {listed(latent.guessed)} suit the size of the area and the times" if latent.guessed else ""
        bounds = ", ".join(
            f"{c.name} {number(low, 3)} to {suffixed(number(high, 3), unit_in(frame, c.unit))}"
            for c, (low, high) in zip(latent.family.coefficients, latent.bounds.tolist(), strict=True)
        )
        rows += [
            ("Equation", f"{latent.family.name.replace('_', ' ')}: {latent.family.equation}, the same coefficients "
             "everywhere and at all times"),
            ("Coefficients", f"equally likely between their bounds ({bounds}){guess}"),
        ]  # fmt: skip
        rows.append(("Source", _prior(posterior, "source") or _given_source(latent)))
        if latent.family.order:
            rows.append(("State at the start", _initial(posterior, observation)))
    domain = observation.domain or Domain.periodic()
    edges = [(axis, getattr(domain, axis), getattr(domain, f"on_{axis}")) for axis in ("y", "x")]
    held = {axis: f" ({on[0]:g} at the lower end, {on[1]:g} at the upper)" if any(on) else "" for axis, _, on in edges}
    beyond = "; what lies beyond an open edge is unknown, like the rest" if domain.is_open else ""
    rows.append(("Edges", ", ".join(f"{axis}: {kind}{held[axis]}" for axis, kind, _ in edges) + beyond))
    given = observation.noise_std[case][observation.mask[case]]
    unknown = bool(given.isnan().any())
    noise = suffixed(_range(posterior.noise_stds(case).numpy(), 2 if unknown else 4), frame.value_unit)
    rows.append(("Noise", "independent, standard deviation "
                 + (f"about {noise}, inferred with the rest" if unknown else f"{noise}, as given")))  # fmt: skip
    if posterior.call.get("robust"):
        rows.append(("Outliers", "some readings may be: those are set aside, by noise of heavy tails"))
    rows.append(("Readings", _KINDS[observation.observed]))
    trend = posterior.call.get("trend")
    if trend and trend != "none":
        rows.append(("Trend", f"{trend}, with a flat prior"))
    if frame.projection is not None:
        at = frame.projection
        rows.append(("Map", f"plane in km that is true along {at.latitude:.2f}° of latitude"))
    (height, width), (ny, nx) = observation.grid.extent, observation.grid.shape
    size = suffixed(f"{number(width)} {TIMES} {number(height)}", frame.length_unit)
    rows.append(("Area, width and height", f"{size}, {nx} {TIMES} {ny} cells"))
    rows.append(("Method", f"{posterior.method}, seed {posterior.settings.get('seed', 'not recorded')}"))
    return rows


def _prior(posterior: Posterior, which: str) -> str:
    given = posterior.call.get(which)
    if isinstance(given, Spectrum):
        return f"Gaussian with the prior {given.describe()}"
    found = [name for name in posterior.levels_of(0) if name.startswith(f"{which}_prior")]
    if not found:
        return ""
    what = [name.removeprefix(f"{which}_prior_").replace("std", "strength") for name in found]
    return f"unknown, Gaussian (Matern); {' and '.join(what)} inferred"


def _given_source(latent) -> str:
    if not latent.num_modes:
        return "none"
    return (
        f"unknown and steady, Gaussian, of strength {number(latent.source_prior_std)}, with {latent.num_modes} Fourier "
        "modes per half axis"
    )


def _initial(posterior: Posterior, observation: Observation) -> str:
    if observation.has_whole_initial:
        return "known, as given with the readings" + (", also finer" if observation.fine_initial is not None else "")
    gaps = "" if observation.initial is None else "known in part; elsewhere "
    return gaps + (_prior(posterior, "initial") or "unknown")


def listed(words: Sequence[str]) -> str:
    """
    >>> listed(["a", "b", "c"])
    'a, b and c'
    """
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def _range(values: np.ndarray, digits: int) -> str:
    low, high = number(values.min(), digits), number(values.max(), digits)
    return low if low == high else f"{low} to {high}"


def repeated(posterior: Posterior, command: str) -> tuple[str, str]:
    """The command that repeats a result, or the call in Python, and which of the two it is."""
    if command:
        return command, "sh"
    call = dict(posterior.call)
    family = call.pop("family", None)
    spelt = ", ".join(f"{name}={_spelt(value)}" for name, value in call.items())
    return f"latentpde.reconstruct(observation, {family!r}, {spelt})" if family else "", "python"


def _spelt(value: Any) -> str:
    if isinstance(value, Spectrum):
        return f"latentpde.{value.describe()}"
    return f"latentpde.{value!r}" if isinstance(value, Domain) else repr(value)


def short(posterior: Posterior, film: Film) -> str:
    """One case in a few words, for an index."""
    unit = (posterior.observation.frame or Frame()).value_unit
    return f"{int(posterior.observation.num_readings[film.case])} readings, mean {suffixed(_area_mean(film), unit)}"


def _area_mean(film: Film) -> str:
    """The mean over the area at the last time, as precisely as it is known, or as the range of the field asks for."""
    centre, std = float(film.area_means[:, -1].mean()), _std(film.area_means[:, -1])
    if np.isfinite(std) and std > 0:
        return with_error(centre, std)
    shown = film.layers[0].values[-1]
    return known_to(centre, 0.01 * float(np.nanmax(shown) - np.nanmin(shown)))


def film_note(posterior: Posterior, film: Film) -> str:
    """Which times the film shows."""
    listing = Listing.of(posterior.observation, film.case)
    known = np.unique(listing.times)
    near = np.abs(film.times[:, None] - known).min(1) <= 1e-9 * (1 + np.abs(film.times).max())
    if len(known) > near.sum():
        return f"{int(near.sum())} of the {len(known)} times that were read, evenly chosen."
    if not near.all():
        return "Every time that was read, and times between, which follow from the equation."
    return "Every time that was read."


def source(film: Film) -> str:
    """What is known of a source, in words."""
    mean, std = film.layers[0].values[0], film.layer("std")
    text = "The steady source that, with the coefficients above, drives the field."
    if std is None:
        return text
    up, down = (100 * float(np.nanmean(sign * mean > 2 * std[0])) for sign in (1, -1))
    ends = [film.scales[name][1] for name in ("field", "spread")]
    scales = "Both maps run to the same value."
    if ends[0] != ends[1]:
        scales = f"The map of the mean runs to {ends[0]:.2g}, that of the uncertainty to {ends[1]:.2g}."
    if up + down < 1:
        return f"{text} Nowhere is it certain to be there at all: the readings tell little about it. {scales}"
    return (
        f"{text} It is certainly positive (by two standard deviations) on {up:.0f} % of the area, and certainly "
        f"negative on {down:.0f} %. {scales}"
    )
