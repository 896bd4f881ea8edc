r"""What the cells of an initial state teach, learnt once.

Readings at time 0 do not depend on the coefficients. So the state's modes :math:`w` (standard normal beforehand, real
and imaginary parts one after another) and the trend's coefficients :math:`\beta` (flat beforehand) are conditioned on
them before the search begins: with :math:`A` what the cells see of both and :math:`s` the cells' noise,

.. math:: (w, \beta) \mid y_0 \sim N(m, \Lambda^{-1}), \qquad \Lambda = P + s^{-2} A^T A, \qquad
          m = s^{-2} \Lambda^{-1} A^T y_0 ,

where :math:`P` is one for modes and zero for the trend. What remains unknown is :math:`z \sim N(0, I)` in
:math:`(w, \beta) = m + F z` with :math:`F F^T = \Lambda^{-1}`, and the likelihood is that of the later readings,
:math:`p(y_0)\, p(y_1 \mid y_0, \theta)`: the same as that of all of them, at a fraction of the cost. The trend is
shared by the start and later readings, so it is one of the unknowns here, and what the start says of it is not lost.

The levels of the state's prior, and the noise of cells that are said to be exact (below it is what the modes cannot
show of them), are held where the start's own likelihood has its maximum. That is the approximation: what later readings
say of these levels, little beside hundreds of cells, is left out.
"""

from __future__ import annotations

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from latentpde.estimators.exact.conditioned import ConditionedState
from latentpde.estimators.exact.embedding import Embedding
from latentpde.estimators.exact.likelihood import MarginalLikelihood
from latentpde.estimators.exact.places import Places
from latentpde.estimators.exact.priors import Levels, Scales, unknown_field
from latentpde.estimators.exact.readings import Readings
from latentpde.estimators.exact.responses import UnknownModes
from latentpde.estimators.exact.trends import trend_columns
from latentpde.grid import Grid
from latentpde.latent import Latent
from latentpde.spectra import Spectrum

#: Cells of an initial state from which on they are conditioned on beforehand; fewer are readings like any other.
MANY_CELLS = 40
_MOST_LATER = 1500  # readings; beyond, the information form of all readings is the cheaper one
_MOST_STEPS = 40


def conditioned_first(readings: Readings, middle: Tensor, trend: str) -> Bool[Tensor, " reading"] | None:
    """Which readings are cells of an initial state that is conditioned on beforehand; ``None`` where it is not."""
    cells = readings.order < 0
    num, columns = int(cells.sum()), trend_columns(trend, readings.positions[cells] - middle)
    if num < MANY_CELLS or len(readings) - num > _MOST_LATER or num == len(readings):
        return None
    known = not columns.shape[1] or int(torch.linalg.matrix_rank(columns)) == columns.shape[1]
    return cells if known and not bool(readings.noise_std[cells].isnan().any()) else None


def conditioned_state(
    cells: Readings, grid: Grid, latent: Latent, around: Embedding, spectrum: Spectrum, trend: str, fit_noise: bool
) -> ConditionedState:
    """The state given the cells of its start.

    Args:
        cells: as readings at time 0.
        grid: the rectangle that was observed.
        latent: the family.
        around: the rectangle that it is embedded in.
        spectrum: the state's prior; its levels that are not given are fitted to the cells.
        trend: ``none``, ``constant`` or ``linear``.
        fit_noise: whether the cells' noise is fitted too.
    """
    levels = Levels(latent)
    part = unknown_field("state", spectrum, around, levels, Scales(cells, grid, latent))
    std = torch.full_like(cells.noise_std, torch.nan) if fit_noise else cells.noise_std
    noise = levels.noise(cells.values, std, cells.groups, 0.0)
    columns = trend_columns(trend, cells.positions - torch.tensor(grid.extent, dtype=torch.float64) / 2)
    unknown = UnknownModes.of(latent, Places.of_table(cells), [part])
    likelihood = MarginalLikelihood(cells.values, None, unknown, noise, columns)
    at = _fitted(likelihood, latent.bounds.mean(-1), levels)
    with torch.no_grad():
        variance = torch.atleast_2d(noise.variance(at))[0]
        waves = unknown.responses_by_field(at)["state"]
        seen = torch.cat([torch.view_as_real(waves.conj().resolve_conj()).flatten(1), columns], dim=1)
        precision = seen.T @ (seen / variance[:, None])
        precision.diagonal()[: 2 * len(part.modes)] += 1
        factor = torch.linalg.cholesky(precision)
        gain = torch.cholesky_solve((seen / variance[:, None]).T, factor)
        inferred = part.inferred_amplitude(unknown.parts[0][1], at)
        amplitude = part.amplitude if inferred is None else part.amplitude * inferred[0, 0]
        return ConditionedState(
            modes=part.modes,
            block_shape=part.block_shape,
            amplitude=amplitude,
            spectrum=spectrum,
            trend=trend,
            middle=torch.tensor(grid.extent, dtype=torch.float64) / 2,
            cells=likelihood,
            at=at,
            gain=gain,
            factor=torch.linalg.solve_triangular(factor.T, torch.eye(len(factor), dtype=torch.float64), upper=True),
            level_names=tuple(level.name for level in levels),
        )


def _fitted(
    likelihood: MarginalLikelihood, coefficients: Float[Tensor, " coefficient"], levels: Levels
) -> Float[Tensor, "1 parameter"]:
    """Parameters whose levels make the cells most probable; the coefficients do not matter to them."""
    if not levels:
        return coefficients[None]
    from scipy.optimize import minimize

    lower, upper = (np.log([getattr(level, name) for level in levels]) for name in ("lower", "upper"))

    def parameters(logs: Tensor) -> Tensor:
        return torch.cat([coefficients, torch.exp(logs)])[None]

    def downhill(logs: np.ndarray) -> tuple[float, np.ndarray]:
        at = torch.from_numpy(logs).requires_grad_(True)
        value = likelihood.log_likelihood(parameters(at))[0]
        if not bool(value.isfinite()):
            return 1e30, np.zeros_like(logs)
        (slope,) = torch.autograd.grad(value, at)
        return -float(value.detach()), -slope.numpy()

    bounds, options = list(zip(lower, upper, strict=True)), {"maxiter": _MOST_STEPS, "ftol": 1e-7}
    found = minimize(downhill, (lower + upper) / 2, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
    return parameters(torch.from_numpy(np.clip(found.x, lower, upper)))
