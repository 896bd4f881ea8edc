r"""3D-Var: the field nearest to a background and to the readings.

.. math:: x_a = \arg\min_x \; \tfrac12 (x - x_b)^T B^{-1} (x - x_b) + \tfrac12 (y - H x)^T R^{-1} (y - H x)

with :math:`B` by an inverse diffusion operator (`latentpde.estimators.assimilation.covariance`), :math:`H` the average
over cells or the interpolation to sensors (`latentpde.estimators.assimilation.readings`) and :math:`R` the noise's
variances. It is quadratic, and readings are few, so it is solved in their space,

.. math:: x_a = x_b + B H^T S^{-1} (y - H x_b), \qquad S = H B H^T + R,

by Cholesky, or by conjugate gradients where the readings are too many for their footprints to be held. The analysis
error has the covariance :math:`A = B - B H^T S^{-1} H B`; its diagonal is at hand, and draws of it follow by Matheron's
rule, :math:`e - B H^T S^{-1} (H e + \varepsilon)` with :math:`e \sim N(0, B)` and :math:`\varepsilon \sim N(0, R)`. The
background is taken as independent of the readings, which one that was fitted to them is not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
import torch
from annotated_types import Ge, Le
from jaxtyping import Float
from torch import Tensor

from latentpde.errors import LatentPDEError
from latentpde.estimators.assimilation.background import (
    CHUNK_VALUES,
    Analysis,
    CorrectedBackground,
    normal_fields,
    normal_readings,
)
from latentpde.estimators.assimilation.covariance import BackgroundCovariance, Edges
from latentpde.estimators.assimilation.readings import FieldReadings
from latentpde.validation import Positive

_TOLERANCE = 1e-10  # of conjugate gradients, on the norm of the residual relative to the right-hand side's
_MOST_ITERATIONS = 5000


@dataclass(frozen=True, kw_only=True)
class Var3D(CorrectedBackground):
    """The paper's 3D-Var: the mean of another method, corrected towards the readings.

    Args:
        background: the name of the method whose mean is corrected.
        background_options: options of that method, ``{name: value}``.
        background_std: pointwise standard deviation of the background's error, in the field's units, positive.
        length: ``L``, as a share of the domain's shorter side, positive.
        power: ``p``, at least 1.
        edges: boundary conditions of the Laplacian, ``"periodic"`` or ``"neumann"``.
        spread: whether the result has a spread: draws of the analysis, rather than the analysis alone.

    Example:
        >>> import latentpde as lp
        >>> cases = lp.simulate("balanced", num=1, seed=3, shape=(32, 32), num_modes=2, sparsity=0.3)
        >>> options = {"background_options": {"num_steps": 20}, "spread": True}
        >>> posterior = lp.reconstruct(cases, method="3dvar", num_draws=4, **options)
        >>> residuals = posterior.diagnostics  # root mean square misfits of the readings
        >>> bool(residuals["rms_residual"] < residuals["background_rms_residual"])
        True
    """

    name = "3dvar"
    summary = "3D-Var: another method's mean, corrected towards the readings; a spread on request"

    # from tools/tune.py on 16 validation cases of each regime
    background_std: Positive = 0.05
    length: Annotated[float, Ge(1e-6), Le(100.0)] = 0.2
    power: Annotated[int, Ge(1), Le(16)] = 2
    edges: Edges = "periodic"
    spread: bool = False

    def _num_fields(self, readings: FieldReadings, num_draws: int) -> int:
        return readings.values.shape[1]  # the footprint of each reading

    def _analyse_together(
        self,
        readings: FieldReadings,
        background: Float[Tensor, "snapshot y x"],
        generators: list[np.random.Generator],
        num_draws: int,
    ) -> Analysis:
        grid, num_draws = readings.grid, num_draws if self.spread else 0
        covariance = BackgroundCovariance(
            grid, self.background_std, self.length * min(grid.extent), self.power, self.edges
        )
        innovation = (readings.values - readings.predict(background))[:, None]
        error = covariance.apply(normal_fields(generators, num_draws, grid.shape), 0.5)
        noise = normal_readings(generators, num_draws, readings)
        right = torch.cat([innovation, -(readings.predict(error) + noise)], 1)
        variance = None
        if readings.values.shape[1] * background[0].numel() <= CHUNK_VALUES:
            gains = covariance.apply(readings.footprints())
            system = readings.predict(gains) + torch.diag_embed(readings.variance)
            factor = torch.linalg.cholesky((system + system.mT) / 2)
            steps = (torch.cholesky_solve(right.mT, factor).mT @ gains.flatten(2)).unflatten(-1, grid.shape)
            if num_draws:
                white = torch.linalg.solve_triangular(factor, gains.flatten(2), upper=False)
                left = covariance.variance.flatten() - (white**2).sum(1)
                variance = left.clamp(min=0).unflatten(-1, grid.shape)
        else:
            steps = covariance.apply(readings.adjoint(_conjugate_gradients(readings, covariance, right)))
        mean = background + steps[:, 0]
        draws = mean[:, None] + (error + steps[:, 1:]) if self.spread else mean[:, None]
        return Analysis(mean, variance, draws)


def _conjugate_gradients(readings: FieldReadings, covariance: BackgroundCovariance, right: Tensor) -> Tensor:
    """Solve ``S x = right`` without writing ``S`` out: one application of ``B`` per step for all right-hand sides."""

    def system(v: Tensor) -> Tensor:
        return readings.predict(covariance.apply(readings.adjoint(v))) + readings.variance[:, None] * v

    solution, residual = torch.zeros_like(right), right
    direction, size = residual, residual.square().sum(-1, keepdim=True)
    enough = _TOLERANCE**2 * size
    for _ in range(_MOST_ITERATIONS):
        if bool((size <= enough).all()):
            return solution
        image = system(direction)
        step = torch.where(size > enough, size / (direction * image).sum(-1, keepdim=True), 0.0)
        solution, residual = solution + step * direction, residual - step * image
        previous, size = size, residual.square().sum(-1, keepdim=True)
        direction = residual + torch.where(previous > enough, size / previous, 0.0) * direction
    raise LatentPDEError("3dvar did not converge; the readings' noise is tiny beside background_std: lower that")
