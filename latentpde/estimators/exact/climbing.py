"""Maxima of a posterior in normal coordinates, found by gradients, and where it is higher than these let expect."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from latentpde.estimators.exact.ascent import NEGLIGIBLE
from latentpde.estimators.exact.mixture import Mixture
from latentpde.estimators.exact.normal_box import FARTHEST, NormalDensity
from latentpde.estimators.exact.population import mixture_of_maxima

_STEP = 1e-4  # of finite differences of gradients
_SAME_TOP, _SAME_FLANK, _SAME_HEIGHT = 0.1, 9.0, 3.0  # of coordinates; of squared widths; nats
_SMALL_GAIN = 1e-4  # of a step, as a share of the value
_CURVATURES = (0.5, 1e14)  # of posteriors about as wide as the prior, and as narrow as any here
_TRUST = 4.0  # nats by which the mass of a maximum may well be wrong, as its curvature alone tells it

# Walks: only along axes on which the posterior is so wide that its curvature at the top does not tell its shape.
_WIDE, _STRIDE, _LEAST_STRIDE, _MOST_STRIDES = 0.1, 2.5, 0.7, 5
_FAR_BELOW, _KEPT_BELOW, _ABOVE_NORMAL = 12.0, 9.0, 1.0  # nats
_LONGEST_CORRECTION = 3.0  # in widths
_FLANK_POWER, _OF_STRIDE = 0.5, 0.6  # of the likelihood, whose width the flanks are given; the width along their walk


@dataclass(frozen=True, eq=False)
class Maxima:
    """Local maxima of a log posterior, the highest first, with minus its second derivatives there, made positive."""

    points: Float[ndarray, "top dim"]
    values: Float[ndarray, " top"]
    curvatures: Float[ndarray, "top dim dim"]

    @classmethod
    def joined(cls, several: list[Maxima]) -> Maxima:
        """Those of all, the highest first."""
        columns = [
            np.concatenate([getattr(one, name) for one in several]) for name in ("points", "values", "curvatures")
        ]
        order = np.argsort(-columns[1])
        return cls(*(column[order] for column in columns))

    def mixture(self, beta: float = 1.0) -> Mixture:
        """A component at each, as wide as the posterior is with a power of the likelihood."""
        return mixture_of_maxima(self.points, self.values, _tempered(self.curvatures, beta), trust=_TRUST)


def climb(
    density: NormalDensity,
    starts: Float[ndarray, "start dim"],
    most_steps: int,
    scale: Float[ndarray, " dim"] | float = 1.0,
    known: Maxima | None = None,
) -> Maxima:
    """The distinct maxima that a quasi-Newton method meets, and those that are known already.

    Args:
        density: differences of its logarithm far below one do not matter, and nothing that is lower by `NEGLIGIBLE`.
        starts: the most promising first. A climb that comes near the top of an earlier one ends there.
        most_steps: of each.
        scale: how wide the posterior is along each axis, about. After the first climb its curvature tells.
        known: maxima of the same density.
    """
    from scipy.optimize import minimize

    dim = starts.shape[1]
    tops: list[ndarray] = []
    values: list[float] = []
    curvatures: list[ndarray] = []
    latest: dict[bytes, float] = {}
    widths = np.diag(np.broadcast_to(scale, dim).astype(float))
    if known is not None:
        tops, values, curvatures = list(known.points), known.values.tolist(), list(known.curvatures)
        widths = _widths(curvatures[0])

    def downhill(white: ndarray) -> tuple[float, ndarray]:
        value, slope = density.with_slope((widths @ white)[None])
        usable = np.isfinite(value[0]) and np.isfinite(slope[0]).all()
        found = (-float(value[0]), -slope[0] @ widths) if usable else (1e30, np.zeros_like(white))
        latest[white.tobytes()] = found[0]
        return found

    def known_top(point: ndarray) -> float:
        """The value at the top that a point is at, or whose flank it is on; minus infinity where there is none."""
        near = [-np.inf]
        for top, value, curvature in zip(tops, values, curvatures, strict=True):
            away = point - top
            if np.abs(away).max() < _SAME_TOP or away @ curvature @ away < _SAME_FLANK:
                near.append(value)
        return max(near)

    def stop_at_known_top(white: ndarray) -> None:
        if -latest.get(white.tobytes(), np.inf) > known_top(widths @ white) - _SAME_HEIGHT > -np.inf:
            raise StopIteration

    options = {"maxiter": most_steps, "ftol": _SMALL_GAIN}
    for start in starts:
        latest.clear()
        begin = np.linalg.solve(widths, start)
        found = minimize(downhill, begin, jac=True, method="L-BFGS-B", callback=stop_at_known_top, options=options)
        top = widths @ found.x
        if known_top(top) == -np.inf:
            tops.append(top)
            values.append(-float(found.fun))
            curvatures.append(_curvature(density, top))
            if values[-1] == max(values):  # the next climbs are in units of the widths there
                widths = _widths(curvatures[-1])
    order = [i for i in np.argsort(values)[::-1] if values[i] > max(values) - NEGLIGIBLE]
    return Maxima(np.stack([tops[i] for i in order]), np.array(values)[order], np.stack([curvatures[i] for i in order]))


def flanks(density: NormalDensity, maxima: Maxima) -> Mixture | None:
    """Components where the posterior is higher than the curvature of its highest maximum says; ``None`` where it is
    nowhere.

    Levels have such places: as the source becomes weak the likelihood stays what it is without one, and all the lengths
    that the source might have are as good as each other. So from the top a walk goes out along each axis in either
    direction, and after each stride one Newton step in all other coordinates, with the curvature of the top, brings it
    back to the ridge.
    """
    top, highest, curvature = maxima.points[0], float(maxima.values[0]), maxima.curvatures[0]
    dim, covariance = len(top), np.linalg.inv(curvature)
    stds = np.sqrt(np.diag(covariance))
    axes = np.repeat(np.flatnonzero(stds >= _WIDE), 2)
    stride = np.maximum(_STRIDE * stds, _LEAST_STRIDE)[axes] * np.tile([-1.0, 1.0], len(axes) // 2)
    given = _given_each_axis(curvature)
    at, going, met, walkers = np.tile(top, (len(axes), 1)), np.arange(len(axes)), [], []
    for number in range(_MOST_STRIDES):
        if not len(going):
            break
        if number == 0:  # half of what the others would follow if all were normal
            at += 0.5 * covariance[axes] * (stride / stds[axes] ** 2)[:, None]
            at[going, axes] = top[axes]
        at[going, axes[going]] += stride[going]
        at = np.clip(at, -FARTHEST, FARTHEST)
        values, slopes = density.with_slope(at[going])
        step = np.einsum("nij,nj->ni", given[axes[going]], np.nan_to_num(slopes))
        gain = np.sqrt(np.maximum((slopes * step).sum(1), 1e-300))
        step *= np.minimum(1.0, _LONGEST_CORRECTION / gain)[:, None]
        expected = values + np.minimum(0.5 * gain**2, _LONGEST_CORRECTION * gain)
        inside = np.abs(at[going, axes[going]]) < FARTHEST
        on = (expected > highest - _FAR_BELOW) & inside
        going, step = going[on], step[on]
        at[going] += step
        met.append(at[going])
        walkers.append(going)
    points, walkers = np.concatenate(met or [np.empty((0, dim))]), np.concatenate(walkers or [np.empty(0, int)])
    if not len(points):
        return None
    values, own = density.log_posterior(points), axes[walkers]
    away = (points[np.arange(len(points)), own] - top[own]) / stds[own]
    kept = (values > highest - _KEPT_BELOW) & (values > highest - 0.5 * away**2 + _ABOVE_NORMAL)
    if not kept.any():
        return None
    points, values, own, walkers = points[kept], values[kept], own[kept], walkers[kept]
    covariances = _given_each_axis(_tempered(curvature[None], _FLANK_POWER)[0])[own]
    for walker in np.unique(walkers):  # where a walk goes far, all others may be as wide as they like by then
        (far,) = np.nonzero(walkers == walker)
        if len(far) > 1:
            there = _curvature(density, points[far[1]])
            covariances[far[1:]] = _given_each_axis(_tempered(there[None], _FLANK_POWER)[0])[axes[walker]]
    covariances[np.arange(len(own)), own, own] = (_OF_STRIDE * stride[walkers]) ** 2
    shares = np.exp((values - values.max()) / _TRUST)
    return Mixture.of(shares / shares.sum(), points, covariances)


def _widths(curvature: Float[ndarray, "dim dim"]) -> Float[ndarray, "dim dim"]:
    """The axes of a maximum, each as long as the posterior is wide along it."""
    scales, axes = np.linalg.eigh(curvature)
    return axes / np.sqrt(scales)


def _given_each_axis(curvature: Float[ndarray, "dim dim"]) -> Float[ndarray, "axis dim dim"]:
    """The covariance of all other coordinates given one, with zeros for that one."""
    dim = len(curvature)
    found = np.zeros((dim, dim, dim))
    for axis in range(dim):
        others = np.delete(np.arange(dim), axis)
        found[axis][np.ix_(others, others)] = np.linalg.inv(curvature[np.ix_(others, others)])
    return found


def _tempered(curvatures: Float[ndarray, "top dim dim"], beta: float) -> Float[ndarray, "top dim dim"]:
    """Curvatures with a power of the likelihood, beside which the prior has that of one."""
    scales, axes = np.linalg.eigh(curvatures)
    scales = np.where(scales > 1, 1 + beta * (scales - 1), scales)
    return axes * scales[:, None] @ axes.swapaxes(1, 2)


def _curvature(density: NormalDensity, point: Float[ndarray, " dim"]) -> Float[ndarray, "dim dim"]:
    axes = _STEP * np.eye(len(point))
    up, down = np.split(density.with_slope(point + np.concatenate([axes, -axes]))[1], 2)
    second = np.nan_to_num((down - up) / (2 * _STEP))
    scales, vectors = np.linalg.eigh((second + second.T) / 2)
    return vectors * np.clip(np.abs(scales), *_CURVATURES) @ vectors.T
