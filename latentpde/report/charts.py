"""Small charts as SVG inside a page: their colours are the page's, so they are right in the dark and on paper too."""

from __future__ import annotations

import math

import numpy as np
from markupsafe import Markup, escape

from latentpde.report.words import number


def density(draws: np.ndarray, bounds: tuple[float, float] | None, label: str) -> Markup:
    """Draws of one parameter as a histogram between its bounds, with the flat prior, mean and 90 % interval.

    >>> "polyline" in density(np.array([0.1, 0.2, 0.3]), (0.0, 1.0), "kappa")
    False

    Args:
        draws: of the parameter.
        bounds: the ends of the axis; around the draws where there are none.
        label: for screen readers.
    """
    width, height, base = 240, 56, 40
    if bounds is None:
        room = 0.6 * (np.ptp(draws) or abs(draws.mean()) or 1.0)
        low, high = float(draws.min() - room), float(draws.max() + room)
        low = max(low, 0.0) if draws.min() > 0 else low
    else:
        low, high = bounds

    def at(value: float) -> float:
        return round(4 + (width - 8) * float(np.clip((value - low) / (high - low), 0, 1)), 1)

    parts = [f'<line class="axis" x1="4" x2="{width - 4}" y1="{base}" y2="{base}"/>']
    if len(draws) > 1:
        counts, edges = np.histogram(draws, 40, (low, high))
        most = max(int(counts.max()), 1)
        for count, left, right in np.stack([counts, edges[:-1], edges[1:]], axis=1).tolist():
            if count:
                tall = round(30 * count / most, 1)
                parts.append(
                    f'<rect class="bar" x="{at(left)}" y="{base - tall}" width="{max(at(right) - at(left), 1):.1f}" '
                    f'height="{tall}"/>'
                )
        if bounds is not None:
            flat = round(base - 30 * len(draws) / 40 / most, 1)
            parts.append(f'<line class="prior" x1="4" x2="{width - 4}" y1="{flat}" y2="{flat}"/>')
        q05, q95 = np.quantile(draws, [0.05, 0.95], method="weibull").tolist()
        parts.append(f'<line class="interval" x1="{at(q05)}" x2="{at(q95)}" y1="{base}" y2="{base}"/>')
    parts.append(f'<circle class="mean" cx="{at(float(draws.mean()))}" cy="{base}" r="4"/>')
    for anchor, x, value in (("start", 4, low), ("end", width - 4, high)):
        parts.append(f'<text x="{x}" y="{base + 14}" text-anchor="{anchor}">{escape(number(float(value), 3))}</text>')
    return _svg(parts, width, height, label, "density")


def histogram_of_z(z: np.ndarray, label: str) -> Markup:
    """z-scores as a histogram, beside the standard normal density that they have where the model is right."""
    width, height, base, reach = 340, 150, 122, 5.0
    counts, edges = np.histogram(np.clip(z, -reach + 1e-9, reach - 1e-9), 40, (-reach, reach))
    places = np.linspace(-reach, reach, 81)
    expected = len(z) * (edges[1] - edges[0]) * np.exp(-(places**2) / 2) / math.sqrt(2 * math.pi)
    most = float(max(counts.max(), expected.max(), 1))

    def at(value: float) -> float:
        return round(10 + (width - 20) * (value + reach) / (2 * reach), 1)

    def up(count: float) -> float:
        return round(base - 110 * count / most, 1)

    parts = [f'<line class="axis" x1="10" x2="{width - 10}" y1="{base}" y2="{base}"/>']
    parts += [
        f'<rect class="{"odd" if abs(left + right) / 2 > 3.5 else "bar"}" x="{at(left)}" y="{up(count)}" '
        f'width="{at(right) - at(left) - 1:.1f}" height="{base - up(count):.1f}"/>'
        for count, left, right in zip(
            counts.astype(float).tolist(), edges[:-1].tolist(), edges[1:].tolist(), strict=True
        )
        if count
    ]
    curve = " ".join(f"{at(x)},{up(e)}" for x, e in zip(places.tolist(), expected.tolist(), strict=True))
    parts.append(f'<polyline class="prior" points="{curve}"/>')
    parts += [
        f'<text x="{at(t)}" y="{base + 16}" text-anchor="middle">{number(t)}</text>'
        for t in (-4.0, -2.0, 0.0, 2.0, 4.0)
    ]
    return _svg(parts, width, height, label, "zs")


def predicted_and_read(mean: np.ndarray, std: np.ndarray, value: np.ndarray, unit: str, label: str) -> Markup:
    """Held-out readings against their predictions with 90 % intervals; on the diagonal they agree."""
    size, edge = 300, 46
    known = np.nan_to_num(1.645 * std)
    low, high = float(min(value.min(), mean.min())), float(max(value.max(), mean.max()))
    room = 0.06 * (high - low or 1.0)
    low, high = low - room, high + room

    def at(v: float) -> float:
        return round(edge + (size - edge - 8) * float(np.clip((v - low) / (high - low), 0, 1)), 1)

    def up(v: float) -> float:
        return round(size - at(v), 1)

    parts = [
        f'<rect class="frame" x="{at(low)}" y="{up(high)}" width="{at(high) - at(low):.1f}" '
        f'height="{up(low) - up(high):.1f}"/>',
        f'<line class="prior" x1="{at(low)}" y1="{up(low)}" x2="{at(high)}" y2="{up(high)}"/>',
    ]
    for m, w, v in np.stack([mean, known, value], axis=1)[:500].tolist():
        far = " far" if w and abs(v - m) > w else ""
        parts.append(f'<line class="whisker{far}" x1="{at(v)}" x2="{at(v)}" y1="{up(m - w)}" y2="{up(m + w)}"/>')
        parts.append(f'<circle class="dot{far}" cx="{at(v)}" cy="{up(m)}" r="2.6"/>')
    for t in nice_ticks(low, high, 4):
        parts.append(f'<text x="{at(t)}" y="{up(low) + 16}" text-anchor="middle">{number(t)}</text>')
        parts.append(f'<text x="{at(low) - 5}" y="{up(t) + 4}" text-anchor="end">{number(t)}</text>')
    shown = f" ({escape(unit)})" if unit else ""
    parts.append(f'<text x="{(at(low) + at(high)) / 2}" y="{size - 4}" text-anchor="middle">read{shown}</text>')
    middle = (up(low) + up(high)) / 2
    parts.append(f'<text transform="translate(11 {middle}) rotate(-90)" text-anchor="middle">predicted</text>')
    return _svg(parts, size, size, label, "scatter")


def nice_ticks(low: float, high: float, most: int) -> list[float]:
    """Round numbers between two others.

    >>> nice_ticks(0.0, 1.0, 4)
    [0.0, 0.5, 1.0]
    """
    step = (high - low) / most
    power = 10.0 ** math.floor(math.log10(step))
    step = next(m * power for m in (1, 2, 5, 10) if m * power >= step * 0.999)
    first = math.ceil(low / step - 1e-9)
    return [float(f"{k * step:.12g}") for k in range(first, math.floor(high / step + 1e-9) + 1)]


def _svg(parts: list[str], width: int, height: int, label: str, kind: str) -> Markup:
    return Markup(
        f'<svg class="chart {kind}" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img" '
        f'aria-label="{escape(label)}">{"".join(parts)}</svg>'
    )
