"""From many points of a box to the maxima of a smooth function near them, all at once."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np
from jaxtyping import Float
from numpy import ndarray

NEGLIGIBLE = 40.0  # in the logarithm of a density

_STEP = 1e-4  # of finite differences
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
