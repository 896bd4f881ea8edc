"""What a page shows in tables: coefficients and levels with what the readings taught about them, readings that do not
fit, diagnostics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from latentpde.errors import UsageError
from latentpde.frame import Frame
from latentpde.observation.listing import Listing
from latentpde.posterior import PDEPosterior, Posterior
from latentpde.questions.identifiability import parameter_samples
from latentpde.report.film import time_label
from latentpde.report.source import source_unit
from latentpde.report.words import TIMES, known_to, number, place, suffixed, unit_in, with_error

OUTLIER = 3.5  # z-score beyond which a reading is said not to fit; of 2,000 right ones, one lies there
MOST_OUTLIERS = 12  # in a table
_WELL, _HARDLY = 0.25, 0.75  # posterior over prior standard deviation
_AT_BOUND = 0.02  # of the interval
_NUM_OF_SAMPLES = 1000  # equally likely ones, of weighted ones
_LEVELS = {
    "noise_std": ("standard deviation of the noise", "U"),
    "noise_std_of_source": ("the same of readings of the source", "1"),
    "initial_prior_std": ("how much the state at the start varies", "U"),
    "initial_prior_length": ("over what length it varies", "L"),
    "initial_prior_slope": ("slope of its spectrum", "1"),
    "source_prior_std": ("how much the source varies", "1"),
    "source_prior_length": ("over what length it varies", "L"),
    "source_prior_slope": ("slope of its spectrum", "1"),
}


@dataclass(frozen=True, eq=False)
class Parameter:
    """A coefficient or a level, with what the readings taught about it.

    Args:
        name, meaning, unit: of it.
        draws: of the posterior.
        bounds: between which it was equally likely beforehand; ``None`` where these are not at hand.
    """

    name: str
    meaning: str
    unit: str
    draws: np.ndarray
    bounds: tuple[float, float] | None

    @property
    def verdict(self) -> str:
        """How well it is identified, in words.

        >>> low = Parameter("vx", "velocity", "L/T", np.random.default_rng(0).normal(1.0, 0.01, 100), (-3.0, 3.0))
        >>> low.verdict
        'well determined'
        """
        if self.bounds is None or len(self.draws) < 2:
            return ""
        low, high = self.bounds
        if self.draws.std(ddof=1) < 1e-9 * (high - low):
            return "given"
        share = self.draws.std(ddof=1) / ((high - low) / np.sqrt(12))
        if share > _HARDLY:
            return "hardly determined: the bounds decide"
        ends = np.quantile(self.draws, [0.05, 0.95])
        edge = min(_AT_BOUND * (high - low), self.draws.std(ddof=1))
        if ends[0] < low + edge or ends[1] > high - edge:
            return "reaches its bound"
        return "well determined" if share < _WELL else "partly determined"

    def row(self) -> dict[str, str]:
        """Cells of a table."""
        mean, std = float(self.draws.mean()), float(self.draws.std(ddof=1)) if len(self.draws) > 1 else np.nan
        row = {"name": self.name, "meaning": self.meaning, "unit": self.unit, "verdict": self.verdict}
        row["estimate"] = suffixed(with_error(mean, std), self.unit)
        if len(self.draws) > 1:
            ends = np.quantile(self.draws, [0.05, 0.95], method="weibull").tolist()
            row["interval"] = " to ".join(known_to(end, std) for end in ends)
        return row


def parameters(posterior: Posterior, case: int) -> list[Parameter]:
    """The coefficients of a case, then what else was inferred."""
    if not isinstance(posterior, PDEPosterior):
        return []
    frame, latent = posterior.observation.frame or Frame(), posterior.latent
    theta = posterior.spread_thetas[case].numpy()
    found = [
        Parameter(c.name, c.meaning, unit_in(frame, c.unit), theta[:, k], (float(low), float(high)))
        for k, (c, (low, high)) in enumerate(zip(latent.family.coefficients, latent.bounds.tolist(), strict=True))
    ]
    for name, draws in _levels(posterior, case).items():
        base = name.rstrip("0123456789").rstrip("_")
        meaning, dimension = _LEVELS.get(base, (name.replace("_", " "), "1"))
        unit = source_unit(frame, latent.family.order) if base == "source_prior_std" else unit_in(frame, dimension)
        group = f", group {name.removeprefix(base).strip('_')}" if base != name else ""
        found.append(Parameter(name, meaning + group, unit, draws, None))
    return found


def _levels(posterior: Posterior, case: int) -> dict[str, np.ndarray]:
    """Levels that were inferred: of the method's own samples where it has them, which are many more than its draws."""
    found = posterior.levels_of(case)
    samples = parameter_samples(posterior, case)
    if not found or samples is None:
        return found
    ticks = (np.arange(_NUM_OF_SAMPLES) + 0.5) / _NUM_OF_SAMPLES
    drawn = samples.values[np.searchsorted(np.cumsum(samples.weights), ticks).clip(max=len(samples.weights) - 1)]
    return {n: drawn[:, samples.names.index(n)] if n in samples.names else draws for n, draws in found.items()}


def outliers(posterior: Posterior, case: int) -> dict[int, float] | None:
    """Numbers and z-scores of readings that the others and the PDE do not expect; ``None`` where they are not known."""
    try:
        z = posterior.leave_one_out(case)["z"].values
    except UsageError:
        return None
    return {int(i): float(z[i]) for i in np.argsort(-np.abs(z)) if abs(z[i]) > OUTLIER}


def z_scores(posterior: Posterior, case: int) -> np.ndarray | None:
    """Of all readings, each left out; ``None`` where they are not known."""
    try:
        return posterior.leave_one_out(case)["z"].values
    except UsageError:
        return None


def set_aside_sentence(posterior: Posterior, case: int) -> str:
    """How many readings hardly count since they are outliers; nothing where these were not looked for."""
    try:
        num = posterior.set_aside(case).sizes["reading"]
    except UsageError:
        return ""
    return f" Outliers were looked for (robust): {num} reading{' was' if num == 1 else 's were'} set aside."


def outlier_rows(posterior: Posterior, case: int, found: dict[int, float]) -> list[dict[str, str]]:
    """Readings that do not fit, the worst first."""
    observation = posterior.observation
    frame, listing = observation.frame or Frame(), Listing.of(observation, case)
    left_out = posterior.leave_one_out(case)
    rows = []
    for i, z in list(found.items())[:MOST_OUTLIERS]:
        rows.append(
            {
                "place": (listing.names[i] + ", " if listing.names else "") + place(frame, listing.points[i]),
                "time": time_label(float(listing.times[i]), frame, listing.times),
                "value": suffixed(number(float(listing.values[i])), frame.value_unit),
                "expected": f"{number(float(left_out['mean'][i]))} ± {number(float(left_out['std'][i]), 2)}",
                "z": number(z, 2),
            }
        )
    return rows


def diagnostics(posterior: Posterior, case: int) -> list[tuple[str, str]]:
    """What a method reports of itself."""
    rows = []
    for name, value in posterior.diagnostics.items():
        array = None if isinstance(value, str | dict) else np.asarray(value)
        if array is not None and array.ndim and len(array) == posterior.observation.num_cases:
            array = array[case]
        rows.append((str(name).replace("_", " "), _short(value if array is None else array)))
    return rows


def _short(value: Any, most: int = 6) -> str:
    """A value in a table's cell: numbers to four digits, the first few of many."""
    if not isinstance(value, np.ndarray | np.generic):
        text = str(value)
        return text if len(text) <= 200 else text[:200] + " …"
    if np.ndim(value) == 0:
        return number(value)
    flat = np.ravel(value)
    more = f" … ({f' {TIMES} '.join(map(str, np.shape(value)))} values)" if flat.size > most else ""
    return ", ".join(number(v) for v in flat[:most]) + more
