r"""Where to measure next.

Given the coefficients, the covariance of the target (the field, the source, a region) with what a new sensor would read
follows in closed form from what the readings leave. With coefficients uncertain too, it is

.. math:: \Sigma = \mathrm{E}_\theta[\Sigma_\theta] + \mathrm{Cov}_\theta[m_\theta],

closed forms averaged over draws, plus that of the conditional means :math:`m_\theta`, by which a reading tells of the
coefficients as well. A reading at :math:`j` with noise :math:`\sigma` lowers the variance of the target, by the best
linear estimate, by

.. math:: \sum_k \frac{\Sigma_{kj}^2}{\Sigma_{jj} + \sigma^2},

whatever it will read. With it some likely candidates are found among all, each after the ones before it (Krause, Singh
and Guestrin 2008). Of those, the ones that leave least together are chosen by what they would leave over all that they
may read (`latentpde.questions.lookahead`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from latentpde.errors import UsageError
from latentpde.estimators.exact.conditioned import ConditionedModes
from latentpde.estimators.exact.elsewhere import Elsewhere, whitened_readings
from latentpde.estimators.exact.parallel import on_one_thread
from latentpde.estimators.exact.posterior import ExactPosterior
from latentpde.posterior import Posterior
from latentpde.questions.lookahead import Lookahead, cells
from latentpde.questions.mixture import of_one_family
from latentpde.questions.suggestion import Suggestion
from latentpde.validation import Count, Positive, Real, check_value

Target = Literal["field", "coefficients", "region", "source"]
NUM_CANDIDATES = 1000
_NUM_TARGETS = 160  # places at which the target is looked at, at most
_CLOSED_FORMS = 6  # nodes that closed forms for all candidates are averaged over
_NODES = 256  # those that conditional means are, at most
_MOST_CELLS, _FEWEST_CELLS = 32, 8  # of nodes; closed forms for a few candidates are averaged over one node of each
_SHORTLIST, _MOST_LOOKAHEAD = 100, 20  # candidates that are looked at more closely, for at most so many readings
_ENOUGH, _MOST_COMPONENTS = 0.999, 32  # share of the target's variance that is looked at more closely
_OPERATIONS = 1e10  # that closed forms for a few candidates may take: a second


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
    posterior = of_one_family(posterior, "where to measure next")
    posterior.observation.require_case(case)
    check_value(Count, num, "num")
    check_value(Positive | None, noise_std, "noise_std")
    if target not in get_args(Target):
        raise UsageError(f"target must be one of {', '.join(get_args(Target))}; got {target!r}")
    if (region is not None) != (target == "region"):
        raise UsageError("target='region' needs region=(y_low, y_high, x_low, x_high), and no other target takes one")
    if target == "source" and not _has_source(posterior, case):
        raise UsageError("this PDE was reconstructed without a source, so nothing can be told of one")
    when = _times(posterior, times)
    points = _candidates(posterior, candidates, when)
    if num > len(points):
        raise UsageError(f"{num} readings are asked for, and there are {len(points)} candidates")
    asked = _asked(posterior, target, region, when)
    noise = float(posterior.noise_stds(case).median()) if noise_std is None else noise_std
    with on_one_thread():  # many small operations
        found = _Design(posterior, case, points, asked, target).choose(num, noise)
    return Suggestion(
        observation=posterior.observation,
        case=case,
        target=target,
        candidates=points,
        chosen=np.array(found.chosen),
        explained=np.array(found.explained),
        first=found.first,
        asked=asked[:, :2],
        before=found.before,
        after=found.after,
        noise_std=noise,
    )


def _has_source(posterior: ExactPosterior, case: int) -> bool:
    """Whether a source is among what is unknown."""
    unknown = posterior.model(case).likelihood.unknown
    modes = unknown.others if isinstance(unknown, ConditionedModes) else unknown
    return any(part.field == "source" and len(part.modes) for part, _ in modes.parts)


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


@dataclass(frozen=True, eq=False)
class _Chosen:
    """Candidates one after another, the share of the target's variance that is explained by then, what each would
    explain as the first, and the target's standard deviations before and after."""

    chosen: list[int]
    explained: list[float]
    first: Float[np.ndarray, " candidate"]
    before: Float[np.ndarray, " asked"]
    after: Float[np.ndarray, " asked"]


class _Design:
    """Covariances of the target with all candidates, and of the candidates with one of them, and those of a few
    candidates under many nodes."""

    def __init__(self, posterior: ExactPosterior, case: int, points: np.ndarray, asked: np.ndarray, target: str):
        self._posterior, self._case, self._model = posterior, case, posterior.model(case)
        self._points_at, self._asked, self._target = points, asked, target
        nodes = self._nodes(_CLOSED_FORMS)
        with torch.no_grad():
            at_points = self._places(points)
            at_asked = None if target == "coefficients" else self._places(asked, target == "source")
            self._points, self._readings, within, variance, among = [], [], 0.0, 0.0, 0.0
            for node in nodes[:, None]:
                rows, readings = at_points.rows(node), whitened_readings(self._model, node)
                left = rows - (rows @ readings.T) @ readings
                self._points.append(rows)
                self._readings.append(left)
                variance = variance + (rows * left).sum(-1) / len(nodes)
                if at_asked is not None:
                    wanted = at_asked.rows(node)
                    within = within + wanted @ left.T / len(nodes)
                    seen = wanted @ readings.T
                    among = among + (wanted @ wanted.T - seen @ seen.T) / len(nodes)
            self._means = _centred(_means(posterior, case, points))
            self._wanted = _wanted(posterior, case, asked, target)
        wanted = _centred(self._wanted)
        num = len(wanted)
        self.cross = within + wanted.T @ self._means / num
        self.variance = variance + (self._means**2).mean(0)
        self._among = among + wanted.T @ wanted / num
        self.of_target = self._among.diagonal()

    def _nodes(self, num: int) -> Float[Tensor, "node parameter"]:
        """Of some nodes, in the model's units."""
        return self._posterior.node_parameters(self._case, num) / self._model.units_of_parameters

    def _places(self, rows: np.ndarray, is_source: bool = False) -> Elsewhere:
        observation = self._posterior.observation
        corner = torch.tensor(observation.grid.origin, dtype=torch.float64)
        where, when = torch.from_numpy(rows[:, :2]) - corner, torch.from_numpy(rows[:, 2]) - observation.start
        return Elsewhere.of(self._model, where, when, observation.grid.extent, is_source=is_source)

    def column(self, chosen: int) -> Float[Tensor, " candidate"]:
        """Covariance of all candidates with one."""
        parts = [left @ rows[chosen] for left, rows in zip(self._readings, self._points, strict=True)]
        return torch.stack(parts).mean(0) + self._means.T @ self._means[:, chosen] / len(self._means)

    def lookahead(self, few: np.ndarray, noise_std: float, components: Tensor) -> Lookahead:
        """Some components of the target and some candidates, in as many cells as the time allows."""
        at_asked = None if self._target == "coefficients" else self._places(self._asked, self._target == "source")
        at_points, k = self._places(self._points_at[few]), components.shape[1]
        means = torch.cat([_centred(self._wanted) @ components, self._means[:, few]], dim=1)
        num_readings, num = len(self._model.likelihood.values), means.shape[1]
        operations = 2 * self._points[0].shape[1] * (num_readings + num + len(self._asked)) * (num_readings + num)
        found = cells(means[:, k:], max(_FEWEST_CELLS, min(_MOST_CELLS, int(_OPERATIONS / operations))))
        nodes = self._nodes(len(means))
        covariance = torch.zeros((len(found), num, num), dtype=torch.float64)
        with torch.no_grad():
            for own, members in zip(covariance, found, strict=True):
                deviations = _centred(means[members])
                middle = members[(deviations[:, k:] ** 2).sum(1).argmin()]
                node = nodes[middle, None]
                rows = at_points.rows(node)
                if at_asked is not None:
                    rows = torch.cat([components.T @ at_asked.rows(node), rows])
                seen = rows @ whitened_readings(self._model, node).T
                own[-len(rows) :, -len(rows) :] = rows @ rows.T - seen @ seen.T
                own += deviations.T @ deviations / len(members)
        weight = torch.tensor([len(members) for members in found], dtype=torch.float64) / len(means)
        mean = torch.stack([means[members].mean(0) for members in found])
        return Lookahead(weight, mean, covariance, k, noise_std)

    def choose(self, num: int, noise_std: float) -> _Chosen:
        """The likely candidates by the best linear estimate, of those the ones that leave least together; the linear
        estimate then says in which order they explain most, and how much."""
        linear, likely = self._greedy(num, noise_std)
        if num > _MOST_LOOKAHEAD:
            return linear
        few = np.array(sorted(likely))
        best = self.lookahead(few, noise_std, _components(self._among)).choose(num)
        return self._greedy(num, noise_std, few[best])[0]

    def _greedy(self, num: int, noise_std: float, few: np.ndarray | None = None) -> tuple[_Chosen, set[int]]:
        """By the best linear estimate, of all candidates or of a few, and those that come next at each step as well."""
        cross, variance, total = self.cross.clone(), self.variance.clone(), float(self.of_target.sum())
        gone, gains, chosen, explained, first = torch.zeros_like(self.of_target), [], [], [], np.zeros(0)
        likely, at_once = set[int](), min(len(variance), max(1, _SHORTLIST // num))
        for _ in range(num):
            drop = (cross**2).sum(0) / (variance.clamp(min=0) + noise_std**2)
            if not len(first):
                first = (drop / max(total, 1e-300)).numpy()
            drop[chosen] = -1.0  # one reading at one place and time
            if few is not None:
                drop[np.setdiff1d(np.arange(len(drop)), few)] = -1.0
            likely |= set(drop.topk(at_once).indices.tolist())
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
        after = torch.sqrt((self.of_target - gone).clamp(min=0))
        return _Chosen(chosen, explained, first, before.numpy(), after.numpy()), likely


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


def _components(covariance: Float[Tensor, "asked asked2"]) -> Float[Tensor, "asked component"]:
    """The principal components that hold nearly all of the target's variance."""
    values, vectors = torch.linalg.eigh(covariance)
    values, vectors = values.flip(0).clamp(min=0), vectors.flip(1)
    enough = int((values.cumsum(0) < _ENOUGH * values.sum()).sum()) + 1
    return vectors[:, : min(enough, _MOST_COMPONENTS)]


def _centred(values: Tensor) -> Tensor:
    return values - values.mean(0)
