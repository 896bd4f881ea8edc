r"""How a field varies, by its variogram: noise, length and size, estimated in a second and without any physics.

Half the mean square difference of two readings of one time is fitted, as a function of their distance :math:`h`, by a
nugget, which is the noise's variance, and a Matern field,

.. math:: \gamma(h) = \sigma^2 + s^2 \left(1 - (1 + \sqrt 3 h / \ell)\, e^{-\sqrt 3 h / \ell}\right).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from latentpde.frame import Frame
from latentpde.observation.listing import Listing

_MOST_READINGS, _NUM_BINS, _FEWEST_PAIRS = 1500, 15, 30
_LEAST_NOISE = 0.02  # of the field's own variation


@dataclass(frozen=True)
class Variation:
    """A rough estimate, for orientation.

    Args:
        noise_std: standard deviation of what two readings at one place would differ by, in the field's unit.
        std: of the field around its mean.
        length: its correlation length, Matern's; ``None`` where the readings do not reach that far.
    """

    noise_std: float
    std: float
    length: float | None


def variation(listing: Listing, seed: int = 0) -> Variation | None:
    """Fit the variogram of some readings; ``None`` where there are too few pairs of one time.

    >>> rng = np.random.default_rng(1)
    >>> points = rng.random((300, 2)) * 10
    >>> values = np.sin(points[:, 0] / 2) + np.cos(points[:, 1] / 3) + 0.3 * rng.standard_normal(300)
    >>> none = np.full(300, np.nan)
    >>> found = variation(Listing(values, points, np.zeros(300), none, np.arange(300), None))
    >>> 0.2 < found.noise_std < 0.4
    True

    Args:
        listing: readings of one case.
        seed: of the choice of readings, where there are too many to take all pairs.
    """
    from scipy.optimize import nnls

    chosen = np.arange(len(listing))
    if len(chosen) > _MOST_READINGS:  # whole snapshots would be few: some readings of all of them
        chosen = np.sort(np.random.default_rng(seed).choice(chosen, _MOST_READINGS, replace=False))
    times, points = listing.times[chosen], listing.points[chosen]
    values = listing.values[chosen].astype(float)
    first, second = np.triu_indices(len(chosen), 1)
    together = times[first] == times[second]
    first, second = first[together], second[together]
    if len(first) < _FEWEST_PAIRS:
        return None
    distance = np.sqrt(((points[first] - points[second]) ** 2).sum(-1))
    squares = 0.5 * (values[first] - values[second]) ** 2
    near = distance <= 0.7 * distance.max()
    distance, squares = distance[near], squares[near]
    edges = np.unique(np.quantile(distance, np.linspace(0, 1, _NUM_BINS + 1) ** 1.5))
    bins = np.clip(np.searchsorted(edges, distance, side="right") - 1, 0, max(len(edges) - 2, 0))
    counts = np.bincount(bins)
    filled = counts > 0
    h = np.bincount(bins, distance)[filled] / counts[filled]
    gamma = np.bincount(bins, squares)[filled] / counts[filled]
    if len(h) < 3 or not gamma.max() > 0:
        return None
    weights = 1 / (gamma + 0.05 * gamma.max())  # a mean of squares is uncertain by a share of itself
    best = None
    for length in np.geomspace(max(h[0], 1e-3 * h[-1]) / 2, 3 * h[-1], 40):
        r = np.sqrt(3) * h / length
        columns = np.stack([np.ones_like(h), 1 - (1 + r) * np.exp(-r)], -1)
        found, misfit = nnls(columns * weights[:, None], gamma * weights)
        if best is None or misfit < best[0]:
            best = (misfit, float(length), found)
    assert best is not None
    nugget, sill = best[2]
    reached = best[1] < 2.5 * h[-1] and sill > 0
    return Variation(float(np.sqrt(nugget)), float(np.sqrt(sill)), best[1] if reached else None)


def variation_words(found: Variation | None, frame: Frame, spacing: float, times: np.ndarray) -> dict[str, str]:
    """What was found, in the user's units.

    Args:
        found: by `variation`.
        frame: the user's.
        spacing: how far apart readings are.
        times: that were read, each once, in order.
    """
    if found is None:
        return {"noise": "cannot be told beforehand: there are too few readings at one time"}
    unit = frame.value_unit
    words = {"noise": f"about {amount(found.noise_std, unit, 2)} (nugget of the variogram)"}
    if found.noise_std < _LEAST_NOISE * found.std:
        words["noise"] = "too small to be told beforehand"
    words["field"] = f"varies by {amount(found.std, unit, 2)}"
    if found.length is not None:
        length = amount(found.length, frame.length_unit)
        words["length"] = f"about {length}; readings are {amount(spacing, frame.length_unit)} apart"
        if len(times) > 1:
            speed = found.length / float(np.median(np.diff(times)))
            unit = f"{frame.length_unit}/{frame.time_unit}" if frame.length_unit and frame.time_unit else ""
            words["movement"] = f"at {amount(speed, unit, 2)} things move by that length from one time to the next"
    return words


def amount(number: float, unit: str, digits: int = 3) -> str:
    """A number with its unit, where there is one.

    >>> amount(12.345, "km"), amount(480.04, "km"), amount(0.5, "")
    ('12.3 km', '480 km', '0.5')
    """
    text = f"{number:,.0f}" if 10**digits <= abs(number) < 1e6 else f"{number:.{digits}g}"
    return f"{text} {unit}".strip()
