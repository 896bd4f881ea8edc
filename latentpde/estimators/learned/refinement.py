r"""Refinement: Adam on the draws that a reverse chain ended with.

.. math:: \min_z \; J(z) + \lambda \lVert z - z_\text{diff} \rVert^2

where :math:`J` is the masked residual (`ObservationOperator.residual`), :math:`z_\text{diff}` is the draw as the chain
left it, and the penalty keeps the draws apart: without it they would all end near the same minimum.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from latentpde.errors import UsageError
from latentpde.estimators.adam import Adam
from latentpde.operator import ObservationOperator


@dataclass(frozen=True, kw_only=True)
class Refinement:
    """Lower the residual of each draw by a few steps of Adam, without going far from where it started.

    Args:
        num_steps: steps of Adam; 0 leaves the draws as they are.
        weight: ``lambda``, how strongly a draw is held to where it started; not negative.
        rate: Adam's learning rate, about the change of a latent's entry per step; positive.

    Example:
        >>> import torch
        >>> from latentpde.decoder import Decoder
        >>> from latentpde.latent import Latent
        >>> from latentpde.observation import Observation
        >>> from latentpde.pde import get_family
        >>> values = torch.arange(64.0).reshape(8, 8).cos()
        >>> data = Observation.from_arrays(values, initial=values.T, noise_std=0.1, times=[0.25])
        >>> latent = Latent(get_family("advection_diffusion"), num_modes=2)
        >>> operator = ObservationOperator(data, Decoder(latent))
        >>> z = torch.zeros(1, 3, latent.size, dtype=torch.float64)  # one case, three draws
        >>> refined = Refinement(num_steps=5)(z, operator)
        >>> bool((operator.residual(refined) < operator.residual(z)).all())
        True
    """

    num_steps: int = 20
    weight: float = 0.01
    rate: float = 0.02

    def __post_init__(self):
        if self.num_steps < 0 or not 0 <= self.weight < math.inf or not 0 < self.rate < math.inf:
            raise UsageError("refinement needs steps and a weight that are not negative, and a positive rate")

    def __call__(
        self, z: Float[Tensor, "case draw latent"], operator: ObservationOperator
    ) -> Float[Tensor, "case draw latent"]:
        """The refined draws.

        Args:
            z: latents where the chain left them.
            operator: the readings of the same cases.
        """
        refined = z.clone()
        adam = Adam([refined])
        for _ in range(self.num_steps):
            _, slope = operator.residual_and_gradient(refined)
            adam.step([slope + 2 * self.weight * (refined - z)], self.rate)
        return refined
