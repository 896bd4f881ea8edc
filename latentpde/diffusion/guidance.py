r"""Guidance: in each reverse step, the predicted clean latents are pulled towards the readings.

Each predicted clean latent takes a few clipped gradient steps down the masked residual :math:`J`
(`ObservationOperator.residual`), after Chung et al. (2023),

.. math:: \hat z_0 \leftarrow \hat z_0 - \eta\,\gamma\, \mathrm{clip}(\nabla J(\hat z_0), -c, c)

The option ``space`` says in which coordinates the gradient is taken, clipped and applied. With ``raw``, the default,
that is the raw latent :math:`z = [r, q]` of `latentpde.latent`: raw coefficients, and source coefficients in the
source's own units, so that the step does not depend on how a network was trained. With ``normalised`` it is the
coordinates that the denoiser works in, :math:`z = \mu + \sigma \odot \hat z_0`, in which the paper writes the formula
above: an entry then moves :math:`\sigma^2` times as far for the same slope, and the clip applies to
:math:`\sigma \odot \nabla_z J`.

Given the coefficients, :math:`J` is a flat quadratic in the source, for which the paper's step is safe. In the
coefficients it is neither flat nor convex: for waves, the same step from a good estimate triples the residual and ends
where the sigmoid is flat. So the step of the coefficients is guarded: a draw's coefficients move only where that lowers
its residual. Where it does not, they stay and their next step is a quarter as long; where it does, the next is half as
long again, up to the paper's.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from latentpde.errors import UsageError
from latentpde.operator import ObservationOperator

Space = Literal["raw", "normalised"]


class Coordinates(NamedTuple):
    """Coordinates that guidance acts in.

    Args:
        to_latent: from them to raw latents.
        gradient: from a gradient with respect to raw latents to that with respect to them.
    """

    to_latent: Callable[[Tensor], Tensor]
    gradient: Callable[[Tensor], Tensor]


RAW = Coordinates(lambda z: z, lambda slope: slope)


@dataclass(frozen=True, kw_only=True)
class Guidance:
    """Gradient steps down the residual, taken by the predicted clean latents inside the reverse chain.

    Args:
        scale: ``gamma``, not negative; 0 for no guidance.
        rate: ``eta``, not negative. Only the product of scale and rate matters; the paper names both.
        num_steps: gradient steps in each reverse step.
        clip: largest absolute value of an entry of the gradient; positive.
        below: share of the noise schedule, from 0 to 1; only steps below it are guided.
        guard: whether coefficients move only where the residual falls; false for the paper's plain steps.
        space: coordinates in which the gradient is taken, clipped and applied: ``raw``, or ``normalised`` as in the
            paper. Whoever calls it passes the coordinates themselves.

    Example:
        >>> from latentpde.decoder import Decoder
        >>> from latentpde.latent import Latent
        >>> from latentpde.observation import Observation
        >>> from latentpde.pde import get_family
        >>> values = torch.arange(64.0).reshape(8, 8).cos()
        >>> data = Observation.from_arrays(values, initial=values.T, noise_std=0.1, times=[0.25])
        >>> latent = Latent(get_family("advection_diffusion"), num_modes=2)
        >>> operator = ObservationOperator(data, Decoder(latent))
        >>> z = torch.zeros(1, 3, latent.size, dtype=torch.float64)  # one case, three draws
        >>> guidance = Guidance(scale=1.0)
        >>> guided, _ = guidance(z, operator, guidance.first_sizes(num_cases=1, num_draws=3))
        >>> bool((operator.residual(guided) < operator.residual(z)).all())
        True
    """

    scale: float = 80.0
    rate: float = 0.10
    num_steps: int = 3
    clip: float = 5.0
    below: float = 0.8
    guard: bool = True
    space: Space = "raw"

    def __post_init__(self):
        if not all(0 <= value < math.inf for value in (self.scale, self.rate)) or self.num_steps < 0:
            raise UsageError("guidance needs a scale, a rate and a number of steps that are not negative, and finite")
        if not self.clip > 0 or not 0 <= self.below <= 1:
            raise UsageError("guidance needs a positive clip, and a share of the schedule between 0 and 1")

    @property
    def step_size(self) -> float:
        """Length of a step per unit of the clipped gradient: ``eta`` times ``gamma``."""
        return self.rate * self.scale

    def active(self, step: int, num_schedule_steps: int) -> bool:
        """Whether the reverse step ``step`` of a noise schedule with so many steps is guided."""
        return step < self.below * num_schedule_steps and self.num_steps > 0 and self.step_size > 0

    def first_sizes(self, num_cases: int, num_draws: int) -> Float[Tensor, "case draw 1"]:
        """Step sizes of the coefficients at the start of a chain: all as long as the paper's."""
        return torch.full((num_cases, num_draws, 1), self.step_size, dtype=torch.float64)

    def __call__(
        self,
        z: Float[Tensor, "case draw latent"],
        operator: ObservationOperator,
        sizes: Float[Tensor, "case draw 1"],
        coordinates: Coordinates = RAW,
    ) -> tuple[Float[Tensor, "case draw latent"], Float[Tensor, "case draw 1"]]:
        """Take all gradient steps of one reverse step.

        Args:
            z: predicted clean latents, in the coordinates; the coefficients' entries come first.
            operator: the readings of the same cases.
            sizes: the coefficients' step sizes, from `first_sizes` or from the reverse step before.
            coordinates: of ``z``; raw where left out.
        Returns:
            The guided latents, and the coefficients' next step sizes.
        """
        num_coefficients = operator.decoder.latent.num_coefficients
        for _ in range(self.num_steps):
            before, slope = operator.residual_and_gradient(coordinates.to_latent(z))
            slope = coordinates.gradient(slope).clamp(-self.clip, self.clip)
            r, q = z[..., :num_coefficients], z[..., num_coefficients:]
            q = q - self.step_size * slope[..., num_coefficients:]
            moved = torch.cat([r - sizes * slope[..., :num_coefficients], q], dim=-1)
            if not self.guard:
                z = moved
                continue
            with torch.no_grad():
                lower = (operator.residual(coordinates.to_latent(moved)) <= before)[..., None]
            z = torch.where(lower, moved, torch.cat([r, q], dim=-1))
            sizes = torch.where(lower, 1.5 * sizes, 0.25 * sizes).clamp(max=self.step_size)
        return z, sizes
