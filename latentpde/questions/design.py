r"""Where to measure next.

Given the coefficients, the covariance of the target (the field, the source, a region) with what a new sensor would read
follows in closed form from what the readings leave. With coefficients uncertain too, it is

.. math:: \Sigma = \mathrm{E}_\theta[\Sigma_\theta] + \mathrm{Cov}_\theta[m_\theta],

closed forms averaged over draws, plus that of the conditional means :math:`m_\theta`, by which a reading tells of the
coefficients as well. A reading at :math:`j` with noise :math:`\sigma` lowers the variance of the target, by the best
linear estimate, by

.. math:: \sum_k \frac{\Sigma_{kj}^2}{\Sigma_{jj} + \sigma^2},

whatever it will read. Of several sensors each is chosen after the ones before it (Krause, Singh and Guestrin 2008).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, get_args

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from latentpde.errors import UsageError
from latentpde.estimators.exact.elsewhere import Elsewhere, whitened_readings
from latentpde.estimators.exact.posterior import ExactPosterior
from latentpde.posterior import Posterior
from latentpde.questions.suggestion import Suggestion
from latentpde.validation import Count, Positive, Real, check_value

Target = Literal["field", "coefficients", "region", "source"]
NUM_CANDIDATES = 1000
_NUM_TARGETS = 160  # places at which the target is looked at, at most
_CLOSED_FORMS = 6  # draws that closed forms are averaged over
_NODES = 64  # and those that conditional means are


def suggest(
    posterior: Posterior,
    num: int = 5,
    *,
    target: str = "field",
    times: Sequence[Any] | Any = None,
    candidates: Any = None,
    region: Sequence[float | int] | None = None,
    noise_std: float | None = None,
    case: int = 0,
) -> Suggestion:
    """The places and times at which further readings tell most.

    Args:
        posterior: by the method ``exact``.
        num: how many readings.
        target: what they are to tell of: the ``field`` at the last time that was read or asked for, the
            ``coefficients``, the field in a ``region``, or the ``source``.
        times: at which readings can be taken, in the user's time; by default the last one that was read.
        candidates: ``(y, x)`` or ``(y, x, time)`` of each that is possible, in the user's coordinates; by default about
            1,000 over the rectangle. Those in excluded cells are left out.
        region: ``(y_low, y_high, x_low, x_high)``, for the target ``region``.
        noise_std: of a new reading; by default that of a typical one so far.
        case: its number, from 0.

    Example:
        >>> import latentpde as lp
        >>> cases = lp.simulate("diffusion", num=1, seed=2, shape=(32, 32), num_modes=3, sparsity=0.1)
        >>> found = lp.suggest(lp.reconstruct(cases), num=3)
        >>> found.to_dataframe().columns.tolist()
        ['y', 'x', 'time', 'explained']
        >>> bool(found.explained[-1] > found.explained[0] > 0)
        True
    """
    if not isinstance(posterior, ExactPosterior):
        raise UsageError(f"where to measure next needs the posterior of the method exact, not of {posterior.method}")
    posterior.observation.require_case(case)
    check_value(Count, num, "num")
    check_value(Positive | None, noise_std, "noise_std")
    if target not in get_args(Target):
        raise UsageError(f"target must be one of {', '.join(get_args(Target))}; got {target!r}")
    if (region is not None) != (target == "region"):
        raise UsageError("target='region' needs region=(y_low, y_high, x_low, x_high), and no other target takes one")
    if target == "source" and not posterior.latent.num_modes:
        raise UsageError("this PDE was reconstructed without a source, so nothing can be told of one")
    when = _times(posterior, times)
    points = _candidates(posterior, candidates, when)
    if num > len(points):
        raise UsageError(f"{num} readings are asked for, and there are {len(points)} candidates")
    asked = _asked(posterior, target, region, when)
    noise = float(posterior.noise_stds(case).median()) if noise_std is None else noise_std
    chosen, explained, first, before, after = _Design(posterior, case, points, asked, target).greedy(num, noise)
    return Suggestion(
        observation=posterior.observation,
        case=case,
        target=target,
        candidates=points,
        chosen=np.array(chosen),
        explained=np.array(explained),
        first=first,
        asked=asked[:, :2],
        before=before,
        after=after,
        noise_std=noise,
    )


def _times(posterior: ExactPosterior, times: Any) -> Float[np.ndarray, " time"]:
    """As numbers on the user's clock."""
    observation = posterior.observation
    if times is None:
        return np.array([float(observation.times[-1]) + observation.start])
    frame = observation.frame
    listed = [times] if isinstance(times, str) or not isinstance(times, Sequence | np.ndarray) else list(times)
    numbers = [frame.to_number(t) if frame is not None else check_value(Real, t, "times") for t in listed]
    if not numbers or min(numbers) < observation.start:
        raise UsageError(f"times are needed from {observation.start:g} on, where the PDE starts; got {listed}")
    return np.array(numbers, dtype=np.float64)


def _candidates(posterior: ExactPosterior, given: Any, times: np.ndarray) -> Float[np.ndarray, "candidate 3"]:
    """Places on the plane and times on the user's clock, without those that are excluded."""
    observation, frame = posterior.observation, posterior.observation.frame
    grid = observation.grid
    if given is None:
        places = _lattice(posterior, max(1, NUM_CANDIDATES // len(times)))
        points = np.concatenate([np.column_stack([places, np.full(len(places), t)]) for t in times])
    else:
        points = np.asarray(given, dtype=np.float64)
        if points.ndim != 2 or points.shape[1] not in (2, 3) or not len(points) or not np.isfinite(points).all():
            raise UsageError(
                "candidates are finite numbers (y, x) or (y, x, time), a row for each; got an array of shape "
                f"{points.shape}"
            )
        y, x = points[:, 0], points[:, 1]
        y, x = frame.to_plane(y, x) if frame is not None else (y, x)
        when = points[:, 2:] if points.shape[1] == 3 else np.repeat(times, len(points))[:, None]
        y, x = (np.tile(c, len(when) // len(points)) for c in (y, x))
        points = np.column_stack([y, x, when])
        low, high = np.array(grid.origin), np.array(grid.origin) + np.array(grid.extent)
        outside = ((points[:, :2] < low) | (points[:, :2] > high)).any(1)
        if outside.any():
            raise UsageError(
                f"{int(outside.sum())} candidate(s) lie outside the rectangle that was reconstructed, "
                f"y {low[0]:g} to {high[0]:g} and x {low[1]:g} to {high[1]:g}; the first is number {outside.argmax()}"
            )
        if points[:, 2].min() < observation.start:
            raise UsageError(f"a candidate's time is before {observation.start:g}, where the PDE starts")
    if frame is not None:
        points = points[~frame.excluded_at(points[:, 0], points[:, 1])]
    if not len(points):
        raise UsageError("all candidates lie in excluded cells")
    return points


def _lattice(posterior: ExactPosterior, num: int) -> Float[np.ndarray, "place 2"]:
    """About as many cell centres over the rectangle, excluded cells included."""
    grid = posterior.observation.grid
    side = np.sqrt(grid.extent[0] * grid.extent[1] / num)
    coarse = grid.with_shape((max(1, round(grid.extent[0] / side)), max(1, round(grid.extent[1] / side))))
    y, x = (c.numpy() for c in coarse.coordinates())
    return np.stack(np.meshgrid(y, x, indexing="ij"), axis=-1).reshape(-1, 2)


def _asked(
    posterior: ExactPosterior, target: str, region: Sequence[float | int] | None, times: np.ndarray
) -> Float[np.ndarray, "asked 3"]:
    """Where and when the target is looked at."""
    frame, places = posterior.observation.frame, _lattice(posterior, _NUM_TARGETS)
    y, x = frame.to_user(places[:, 0], places[:, 1]) if frame is not None else places.T
    inside = np.ones(len(places), dtype=bool) if frame is None else ~frame.excluded_at(*places.T)
    if region is not None:
        bounds = check_value(tuple[Real, Real, Real, Real], tuple(region), "region")
        inside &= (y >= bounds[0]) & (y <= bounds[1]) & (x >= bounds[2]) & (x <= bounds[3])
    if not inside.any():
        raise UsageError(f"the target holds no place of the rectangle that was reconstructed: region {region}")
    last = max(float(times.max()), float(posterior.observation.times[-1]) + posterior.observation.start)
    return np.column_stack([places[inside], np.full(int(inside.sum()), last)])


class _Design:
    """Covariances of the target with all candidates, and of the candidates with one of them."""

    def __init__(self, posterior: ExactPosterior, case: int, points: np.ndarray, asked: np.ndarray, target: str):
        model, observation = posterior.model(case), posterior.observation
        extent = observation.grid.extent
        corner = torch.tensor(observation.grid.origin, dtype=torch.float64)

        def places(rows: np.ndarray, is_source: bool = False) -> Elsewhere:
            where, when = torch.from_numpy(rows[:, :2]) - corner, torch.from_numpy(rows[:, 2]) - observation.start
            return Elsewhere.of(model, where, when, extent, is_source=is_source)

        users = torch.cat([posterior.thetas[case], posterior.level_draws[case]], dim=-1)[:_CLOSED_FORMS]
        nodes = users / model.units_of_parameters
        with torch.no_grad():
            at_points = places(points)
            at_asked = None if target == "coefficients" else places(asked, target == "source")
            self._points, self._readings, within, variance, of_target = [], [], 0.0, 0.0, 0.0
            for node in nodes[:, None]:
                rows, readings = at_points.rows(node), whitened_readings(model, node)
                left = rows - (rows @ readings.T) @ readings
                self._points.append(rows)
                self._readings.append(left)
                variance = variance + (rows * left).sum(-1) / len(nodes)
                if at_asked is not None:
                    wanted = at_asked.rows(node)
                    within = within + wanted @ left.T / len(nodes)
                    of_target = of_target + (wanted * (wanted - (wanted @ readings.T) @ readings)).sum(-1) / len(nodes)
            self._means = _centred(_means(posterior, case, points))
            wanted = _centred(_wanted(posterior, case, asked, target))
        num = len(wanted)
        self.cross = within + wanted.T @ self._means / num
        self.variance = variance + (self._means**2).mean(0)
        self.of_target = of_target + (wanted**2).mean(0)

    def column(self, chosen: int) -> Float[Tensor, " candidate"]:
        """Covariance of all candidates with one."""
        parts = [left @ rows[chosen] for left, rows in zip(self._readings, self._points, strict=True)]
        return torch.stack(parts).mean(0) + self._means.T @ self._means[:, chosen] / len(self._means)

    def greedy(self, num: int, noise_std: float) -> tuple[list[int], list[float], np.ndarray, np.ndarray, np.ndarray]:
        """Candidates one after another, the share of the target's variance that is explained by then, what each would
        explain as the first, and the target's standard deviations before and after."""
        cross, variance, total = self.cross.clone(), self.variance.clone(), float(self.of_target.sum())
        gone, gains, chosen, explained, first = torch.zeros_like(self.of_target), [], [], [], np.zeros(0)
        for _ in range(num):
            drop = (cross**2).sum(0) / (variance.clamp(min=0) + noise_std**2)
            if not len(first):
                first = (drop / max(total, 1e-300)).numpy()
            drop[chosen] = -1.0  # one reading at one place and time
            best = int(drop.argmax())
            column = self.column(best) - sum(gain * gain[best] for gain in gains)
            scale = torch.sqrt(variance[best].clamp(min=0) + noise_std**2)
            gain, of_target = column / scale, cross[:, best] / scale
            gone = gone + of_target**2
            cross, variance = cross - of_target[:, None] * gain, variance - gain**2
            gains.append(gain)
            chosen.append(best)
            explained.append(float(gone.sum()) / max(total, 1e-300))
        before = torch.sqrt(self.of_target.clamp(min=0))
        return chosen, explained, first, before.numpy(), torch.sqrt((self.of_target - gone).clamp(min=0)).numpy()


def _means(posterior: ExactPosterior, case: int, points: np.ndarray) -> Float[Tensor, "node point"]:
    """Conditional means of the field at places, for some of the nodes."""
    return posterior.node_means(case, torch.from_numpy(points[:, :2]), torch.from_numpy(points[:, 2]), _NODES)


def _wanted(posterior: ExactPosterior, case: int, asked: np.ndarray, target: str) -> Float[Tensor, "node asked"]:
    """Conditional means of the target."""
    if target == "coefficients":
        theta = posterior.latent.theta(posterior.mean_z[case, :_NODES])
        return theta / theta.std(0).clamp(min=1e-300)
    if target == "source":
        grid = posterior.observation.grid
        fields = posterior.decoder.source(posterior.mean_z[case : case + 1, :_NODES], grid)[0]
        rows, cols = (
            ((torch.from_numpy(asked[:, i]) - grid.origin[i]) / grid.spacing[i]).long().clamp(0, grid.shape[i] - 1)
            for i in (0, 1)
        )
        return fields[:, rows, cols]
    return _means(posterior, case, asked)


def _centred(values: Tensor) -> Tensor:
    return values - values.mean(0)
