"""Whether the readings fit better with a usual mistake undone: the initial state turned, shifted, or in other units.

Each is the same model of other data, whose evidence is compared. Factors are between units of one quantity that are
often mixed up. A shift has many values: the likeliest few are found at parameters of the posterior and of the prior,
where the covariance is that of the state as given, and their evidences, each shift as likely beforehand, add up to that
of all shifts, at least.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from latentpde.domain import Domain
from latentpde.errors import LatentPDEError, no_warnings
from latentpde.estimators import base
from latentpde.estimators.exact.initial_state import InitialState
from latentpde.estimators.exact.model import Model
from latentpde.estimators.exact.posterior import ExactPosterior
from latentpde.estimators.exact.readings import Readings
from latentpde.grid import at_points
from latentpde.observation import Observation
from latentpde.posterior.adequacy import MISTAKES

_SHIFTED = MISTAKES[6]
_OF_START: dict[str, Callable[[Tensor], Tensor]] = {
    MISTAKES[0]: lambda state: state.mT,
    MISTAKES[1]: lambda state: state.flip(-2),
    MISTAKES[2]: lambda state: state.flip(-1),
    MISTAKES[3]: lambda state: state.flip(-2, -1),
    MISTAKES[4]: lambda state: state.mT.flip(-1),
    MISTAKES[5]: lambda state: state.mT.flip(-2),
    MISTAKES[7]: lambda state: 1000 * state,
    MISTAKES[8]: lambda state: state / 1000,
}
_NEEDS_SQUARE = (MISTAKES[0], MISTAKES[4], MISTAKES[5])
_FACTORS = {MISTAKES[9]: 1000.0, MISTAKES[10]: 1e-3}
_MOST_SHIFTS, _LIKELIEST = 16, 3  # along an axis; of all, those that are solved
_NODES, _PRIOR_DRAWS = 8, 120  # parameters of the posterior and of the prior


def evidences_of_mistakes(posterior: ExactPosterior, case: int = 0) -> dict[str, float]:
    """Log evidence of the same model with each mistake undone, by its name in
    `latentpde.posterior.adequacy.MISTAKES`; empty where there is no whole initial state.

    Args:
        posterior: by the method ``exact``.
        case: its number, from 0.

    Example:
        >>> import latentpde as lp
        >>> cases = lp.simulate("klein_gordon", num=1, seed=3, shape=(16, 16), num_modes=2, sparsity=0.4)
        >>> posterior = lp.reconstruct(cases, fixed={"cx": 1.0, "cy": 1.0})
        >>> set(evidences_of_mistakes(posterior)) == set(MISTAKES)
        True
    """
    one = posterior.observation[case : case + 1]
    if not one.has_whole_initial or posterior.model(case).state is None:
        return {}
    call = {**posterior.call, "bounds": posterior.prior.bounds, "num_draws": 1}
    call |= {"num_spread_draws": 2, "num_mean_nodes": 2}
    square = one.grid.shape[0] == one.grid.shape[1] and math.isclose(*one.grid.extent)
    num = int(one.num_readings[0])
    changed = [
        (name, _with_start(one, turn), 0.0) for name, turn in _OF_START.items() if square or name not in _NEEDS_SQUARE
    ]
    changed += [(name, replace(one, values=f * one.values), num * math.log(f)) for name, f in _FACTORS.items()]
    shifts, num_shifts = likeliest_shifts(posterior, case)
    changed += [(_SHIFTED, _rolled(one, *cells), -math.log(num_shifts)) for cells in shifts]
    found: dict[str, float] = {}
    for name, data, constant in changed:
        try:
            with no_warnings():
                other = base.reconstruct(data, **call)
        except LatentPDEError:
            continue
        found[name] = np.logaddexp(found.get(name, -math.inf), float(other.diagnostics["log_evidence"][0]) + constant)
    return found


def likeliest_shifts(posterior: ExactPosterior, case: int = 0) -> tuple[list[tuple[int, int]], int]:
    """By how many cells along y and x the initial state fits the readings best, some of them, and of how many shifts;
    none where the domain has an edge to shift over.

    Args:
        posterior: by the method ``exact``, with a whole initial state.
        case: its number, from 0.
    """
    one, model = posterior.observation[case : case + 1], posterior.model(case)
    domain = one.domain or Domain.periodic()
    if model.state is None or (domain.y, domain.x) != ("periodic", "periodic") or not posterior.latent.family.order:
        return [], 0
    readings = Readings.of(replace(one, initial=None, fine_initial=None), 0.0)
    as_given = torch.argsort(readings.order)
    steps = [max(1, math.ceil(n / _MOST_SHIFTS)) for n in one.grid.shape]
    cells = torch.cartesian_prod(*(torch.arange(0, n, step) for n, step in zip(one.grid.shape, steps, strict=True)))[1:]
    moved = readings.positions[as_given] - (cells * torch.tensor(one.grid.spacing, dtype=torch.float64))[:, None]
    with torch.no_grad():
        tried = [
            _log_likelihoods(model, model.state, moved, readings.times[as_given], node[None])
            for node in _tried(posterior, case)
        ]
    best = cells[torch.stack(tried).amax(0).topk(min(_LIKELIEST, len(cells))).indices]
    return [(int(rows), int(cols)) for rows, cols in best], len(cells)


def _tried(posterior: ExactPosterior, case: int) -> Float[Tensor, "node parameter"]:
    """Parameters of some nodes, and of the prior where nothing but coefficients is inferred, in the model's units."""
    nodes = posterior.node_parameters(case, _NODES)
    if nodes.shape[1] == posterior.prior.num_coefficients:
        lower, upper = posterior.prior.bounds.unbind(-1)
        uniform = torch.rand(
            (_PRIOR_DRAWS, len(lower)), dtype=torch.float64, generator=torch.Generator().manual_seed(0)
        )
        nodes = torch.cat([nodes, lower + (upper - lower) * uniform])
    return nodes / posterior.model(case).units_of_parameters


def _log_likelihoods(
    model: Model,
    state: InitialState,
    moved: Float[Tensor, "shift reading 2"],
    times: Float[Tensor, " reading"],
    node: Float[Tensor, "1 parameter"],
) -> Float[Tensor, " shift"]:
    """Of the readings with the initial state shifted: then its part of them is what it was at places moved back."""
    latent, likelihood = model.decoder.latent, model.likelihood
    distinct, which = times.unique(return_inverse=True)
    z = latent.pack(node[:, : latent.num_coefficients], torch.zeros((1, latent.num_source), dtype=torch.float64))
    spectrum = model.decoder.spectrum(z, state.mean_hat, distinct)[0]
    mean = torch.empty(moved.shape[:2], dtype=torch.float64)
    for t, u_hat in enumerate(spectrum):
        here = which == t
        values = at_points(u_hat, moved[:, here].reshape(-1, 2), model.decoder.extent)
        mean[:, here] = values.reshape(len(moved), -1)
    residual, precision = likelihood.values - mean, likelihood.precision(node)
    own = likelihood.log_likelihood(node)[0] + 0.5 * likelihood.misfit(node)[0]
    return own - 0.5 * (residual @ precision * residual).sum(-1)


def _with_start(one: Observation, turn: Callable[[Tensor], Tensor]) -> Observation:
    assert one.initial is not None
    fine = None if one.fine_initial is None else turn(one.fine_initial).contiguous()
    return replace(one, initial=turn(one.initial).contiguous(), fine_initial=fine)


def _rolled(one: Observation, rows: int, cols: int) -> Observation:
    """Shifted by cells of the initial state."""
    assert one.initial is not None
    fine = one.fine_initial
    if fine is not None:
        factor = fine.shape[-1] // one.initial.shape[-1]
        fine = fine.roll((factor * rows, factor * cols), (-2, -1))
    return replace(one, initial=one.initial.roll((rows, cols), (-2, -1)), fine_initial=fine)
