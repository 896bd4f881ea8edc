r"""Physics in the reverse chain: clean latents pulled towards the readings, during it and after.

During the chain, each predicted clean latent takes a few clipped gradient steps down the masked residual (after Chung
et al., 2023),

.. math:: \hat z_0 \leftarrow \hat z_0 - \eta\,\gamma\, \mathrm{clip}(\nabla J(\hat z_0), -c, c)

and after it Adam minimises :math:`J(z) + \lambda \lVert z - z_\text{diff} \rVert^2`. Both use the project's one
residual, `ObservationOperator.residual`, and so the exact solver on the coarse grid.

Given the coefficients, :math:`J` is a flat quadratic in the source, for which the paper's step is safe. In the
coefficients it is neither flat nor convex: for waves, the same step from a good estimate triples the residual and ends
where the sigmoid is flat. So their step is guarded: a member's coefficients move only where that lowers its residual.
Where it does not, they stay and their next step is a quarter as long; where it does, the next is half as long again, up
to the paper's.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from latentpde.adam import Adam
from latentpde.errors import UsageError
from latentpde.operator import ObservationOperator


@dataclass(frozen=True, kw_only=True)
class Guidance:
    """Steps down the residual, inside the chain.

    Args:
        scale: ``gamma``; 0 for no guidance.
        rate: ``eta``.
        num_steps: inner steps per reverse step.
        clip: largest size of a gradient's entry.
        below: guided are the steps below this share of the schedule.
        guard: whether coefficients move only where the residual falls; false for the paper's plain steps.
    """

    scale: float = 80.0
    rate: float = 0.10
    num_steps: int = 3
    clip: float = 5.0
    below: float = 0.8
    guard: bool = True

    def __post_init__(self):
        if not all(0 <= value < math.inf for value in (self.scale, self.rate)) or self.num_steps < 0:
            raise UsageError("guidance needs a scale, a rate and a number of steps that are not negative, and finite")
        if not self.clip > 0 or not 0 <= self.below <= 1:
            raise UsageError("guidance needs a positive clip, and a share of the chain between 0 and 1")

    @property
    def step_size(self) -> float:
        return self.rate * self.scale

    def active(self, step: int, total: int) -> bool:
        return step < self.below * total and self.num_steps > 0 and self.step_size > 0

    def first_sizes(self, num_cases: int, num_draws: int) -> Float[Tensor, "case draw 1"]:
        """Step sizes of the coefficients at the start of a chain."""
        return torch.full((num_cases, num_draws, 1), self.step_size, dtype=torch.float64)

    def __call__(
        self,
        z: Float[Tensor, "case draw latent"],
        operator: ObservationOperator,
        sizes: Float[Tensor, "case draw 1"],
    ) -> tuple[Float[Tensor, "case draw latent"], Float[Tensor, "case draw 1"]]:
        """The inner steps of one reverse step.

        Args:
            z: predicted clean latents.
            operator: of the readings.
            sizes: the coefficients' step sizes, from `first_sizes` or the reverse step before.
        Returns:
            Better latents, and the next step sizes.
        """
        num_coefficients = operator.decoder.latent.num_coefficients
        for _ in range(self.num_steps):
            before, slope = operator.residual_and_gradient(z)
            slope = slope.clamp(-self.clip, self.clip)
            r, q = z[..., :num_coefficients], z[..., num_coefficients:]
            q = q - self.step_size * slope[..., num_coefficients:]
            moved = torch.cat([r - sizes * slope[..., :num_coefficients], q], dim=-1)
            if not self.guard:
                z = moved
                continue
            with torch.no_grad():
                lower = (operator.residual(moved) <= before)[..., None]
            z = torch.where(lower, moved, torch.cat([r, q], dim=-1))
            sizes = torch.where(lower, 1.5 * sizes, 0.25 * sizes).clamp(max=self.step_size)
        return z, sizes


@dataclass(frozen=True, kw_only=True)
class Refinement:
    """Adam after the chain, anchored to where the chain ended.

    Args:
        num_steps: of Adam; 0 for none.
        weight: ``lambda``, of the anchor.
        rate: Adam's learning rate.
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
        moved = z.clone()
        adam = Adam([moved])
        for _ in range(self.num_steps):
            _, slope = operator.residual_and_gradient(moved)
            adam.step([slope + 2 * self.weight * (moved - z)], self.rate)
        return moved
