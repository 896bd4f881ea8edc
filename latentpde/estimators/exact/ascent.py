"""From many points of a box to the maxima of a smooth function near them, all at once."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np
from jaxtyping import Float
from numpy import ndarray

NEGLIGIBLE = 40.0  # in the logarithm of a density

_STEP = 1e-4  # of finite differences
_SAME_TOP, _SAME_FLANK, _SAME_HEIGHT = 0.05, 9.0, 3.0  # in units of the box; of squared widths; nats
_LEAST_SCALE = 1e-4
_SMALL_GAIN = 1e-4  # of a step, as a share of the value
_CURVATURES = (4.0, 1e14)  # of functions as wide as the box, and as narrow as any here


def ascend(
    function: Callable[[Float[ndarray, "point dim"]], Float[ndarray, " point"]],
    points: Float[ndarray, "point dim"],
    reach: Float[ndarray, " point"],
    num_steps: int,
) -> tuple[Float[ndarray, "point dim"], Float[ndarray, " point"], Float[ndarray, "point dim dim"]]:
    """Newton's method within the unit box, with derivatives by differences: where it ends, the value there, and the
    curvature, made positive.

    Args:
        function: of a batch of points; not a number and minus infinity are as low as can be.
        points: to begin with.
        reach: how far the first step may go. A step that does not lead up is taken back and the next one shorter.
        num_steps: each evaluates the function ``(dim + 1) * (dim + 2) / 2`` times for each point.
    """
    reach = reach.copy()
    best, value, slope, curvature = points, *_derivatives(function, points)
    for _ in range(num_steps):
        step = _bounded_step(slope, curvature, -best, 1 - best)
        length = np.linalg.norm(step, axis=1)
        step *= np.minimum(1.0, reach / np.maximum(length, 1e-300))[:, None]
        trial = np.clip(best + step, 0.0, 1.0)
        found = _derivatives(function, trial)
        higher = found[0] > value
        reach = np.where(higher, np.maximum(reach, 2 * length), np.minimum(reach, length) / 4)
        best = np.where(higher[:, None], trial, best)
        value = np.where(higher, found[0], value)
        slope = np.where(higher[:, None], found[1], slope)
        curvature = np.where(higher[:, None, None], found[2], curvature)
    return best, value, curvature


def climb(
    function: Callable[[Float[ndarray, "point dim"]], tuple[Float[ndarray, " point"], Float[ndarray, "point dim"]]],
    points: Float[ndarray, "point dim"],
    most_steps: int,
    scale: Float[ndarray, " dim"] | float = 1.0,
) -> tuple[Float[ndarray, "top dim"], Float[ndarray, " top"], Float[ndarray, "top dim dim"]]:
    """A quasi-Newton method within the unit box, for functions of more variables, with a gradient: the distinct maxima
    that it meets, their values and curvatures, as `ascend`.

    Args:
        function: a logarithm, of a batch of points, with its gradient. Differences far below one do not matter, and
            nothing that is lower by `NEGLIGIBLE`.
        points: to begin with, the most promising first. A climb that comes near the top of an earlier one ends there.
        most_steps: of each.
        scale: how wide the function is along each axis, about; the better that is known, the fewer steps it takes.
    """
    from scipy.optimize import minimize

    tops: list[ndarray] = []
    values: list[float] = []
    curvatures: list[ndarray] = []
    latest = {}
    scale = np.broadcast_to(scale, points.shape[1])

    def downhill(scaled: ndarray) -> tuple[float, ndarray]:
        value, slope = function(np.clip(scaled * scale, 0.0, 1.0)[None])
        found = (-float(value[0]), -slope[0] * scale) if np.isfinite(value[0]) else (1e30, np.zeros_like(scaled))
        latest[scaled.tobytes()] = found[0]
        return found

    def known_top(point: ndarray) -> float:
        """The value at the top that a point is at, or whose flank it is on; minus infinity where there is none."""
        near = [-np.inf]
        for top, value, curvature in zip(tops, values, curvatures, strict=True):
            away = point - top
            if np.abs(away).max() < _SAME_TOP or away @ curvature @ away < _SAME_FLANK:
                near.append(value)
        return max(near)

    def stop_at_known_top(scaled: ndarray) -> None:
        if -latest.get(scaled.tobytes(), np.inf) > known_top(scaled * scale) - _SAME_HEIGHT > -np.inf:
            raise StopIteration

    options = {"maxiter": most_steps, "ftol": _SMALL_GAIN}
    for point in points:
        latest.clear()
        found = minimize(
            downhill,
            point / scale,
            jac=True,
            method="L-BFGS-B",
            bounds=[(0.0, 1.0 / s) for s in scale],
            callback=stop_at_known_top,
            options=options,
        )
        top = np.clip(found.x * scale, 0.0, 1.0)
        if known_top(top) == -np.inf:
            tops.append(top)
            values.append(-float(found.fun))
            curvatures.append(_curvatures_by_slopes(function, top[None])[0])
            if values[-1] == max(values):  # the next climbs are in units of the width there
                scale = np.clip(1 / np.sqrt(np.diag(curvatures[-1])), _LEAST_SCALE, 1.0)
    order = [i for i in np.argsort(values)[::-1] if values[i] > max(values) - NEGLIGIBLE]
    return np.stack([tops[i] for i in order]), np.array(values)[order], np.stack([curvatures[i] for i in order])


def _curvatures_by_slopes(function, points: Float[ndarray, "point dim"]) -> Float[ndarray, "point dim dim"]:
    middle = np.clip(points, _STEP, 1 - _STEP)
    axes = _STEP * np.eye(points.shape[1])
    around = (middle[:, None] + np.concatenate([axes, -axes])).reshape(-1, points.shape[1])
    slopes = function(around)[1].reshape(len(points), 2, *axes.shape)
    second = (slopes[:, 0] - slopes[:, 1]) / (2 * _STEP)
    return _made_positive((second + second.swapaxes(1, 2)) / 2)


def _made_positive(second: Float[ndarray, "point dim dim"]) -> Float[ndarray, "point dim dim"]:
    """Second derivatives with their signs removed, and not too small."""
    eigenvalues, vectors = np.linalg.eigh(second)
    return vectors * np.clip(np.abs(eigenvalues), *_CURVATURES)[:, None] @ vectors.swapaxes(1, 2)


def _derivatives(function, points: ndarray) -> tuple[ndarray, ndarray, ndarray]:
    """Value, gradient and minus the second derivatives with their signs removed; of the quadratic through points
    beside ``points``, shifted where those would leave the box."""
    num, dim = points.shape
    middle = np.clip(points, _STEP, 1 - _STEP)
    axes = _STEP * np.eye(dim)
    rows, cols = np.triu_indices(dim, 1)
    offsets = np.concatenate([np.zeros((1, dim)), axes, -axes, axes[rows] + axes[cols]])
    values = function((middle[:, None] + offsets).reshape(-1, dim)).reshape(num, -1)
    values = np.where(np.isfinite(values), values, -1e30)
    centre, up, down, both = np.split(values, [1, 1 + dim, 1 + 2 * dim], axis=1)
    slope = (up - down) / (2 * _STEP)
    second = np.zeros((num, dim, dim))
    second[:, range(dim), range(dim)] = (up - 2 * centre + down) / _STEP**2
    second[:, rows, cols] = second[:, cols, rows] = (both - up[:, rows] - up[:, cols] + centre) / _STEP**2
    shift = points - middle
    bent = np.einsum("nij,nj->ni", second, shift)
    value = centre[:, 0] + ((slope + bent / 2) * shift).sum(1)
    return value, slope + bent, _made_positive(second)


def _bounded_step(slope: ndarray, curvature: ndarray, lower: ndarray, upper: ndarray) -> Float[ndarray, "point dim"]:
    """Where the quadratic is highest within the bounds: each axis is free or at one of its two bounds, and of all such
    choices, few in few dimensions, the best is taken."""
    num, dim = slope.shape
    best, highest = np.zeros((num, dim)), np.full(num, -np.inf)
    for choice in product((False, None, True), repeat=dim):
        free = np.array([at is None for at in choice])
        step = np.where(np.array([bool(at) for at in choice]), upper, lower)
        step[:, free] = 0.0
        slope_there = slope - np.einsum("nij,nj->ni", curvature, step)
        step[:, free] = np.linalg.solve(curvature[:, free][:, :, free], slope_there[:, free, None])[:, :, 0]
        inside = ((step >= lower) & (step <= upper)).all(1)
        height = ((slope - 0.5 * np.einsum("nij,nj->ni", curvature, step)) * step).sum(1)
        better = inside & (height > highest)
        best[better], highest[better] = step[better], height[better]
    return best
