r"""The guided sampler: from noise to joint fields that explain what is known.

With what is known, the equation that goes back through the noise levels has one more term (Chung et al., 2023),

.. math:: \frac{dx}{d\sigma} = \frac{x - D(x, \sigma)}{\sigma} - \sigma C \nabla_x \log p(y \mid x_\sigma)

which is the same equation with a guided denoiser, :math:`D + \sigma^2 C \nabla_x \log p(y \mid x_\sigma)`. The gradient
goes through the network, and carries the noise's covariance :math:`C`. The likelihood says how far to go; were the
prior Gaussian and the denoiser exact, the samples would be draws of the posterior.

The first steps run on a coarser grid. Then the sample's Fourier series goes on to the fine one, where the modes that
are new get fresh noise of the level that was reached.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor

from latentpde.diffusion.edm import heun_step, noise_levels
from latentpde.diffusion.random_fields import RandomField
from latentpde.errors import UsageError
from latentpde.grid import Grid, resample
from latentpde.progress import Advance

Denoiser = Callable[[Tensor, Tensor], Tensor]  # noisy fields (case, channel, y, x) and levels (case), to clean ones
Normals = Callable[[Grid], Tensor]  # a grid to standard normals (snapshot, draw, channel, y, x)


@runtime_checkable
class Guide(Protocol):
    """What is known of fields on one grid."""

    def pull(self, clean: Float[Tensor, "snapshot draw channel y x"], sigma: float) -> Float[Tensor, ""]:
        """A number whose gradient by ``clean`` is that of the log-likelihood."""
        ...

    def with_initial(
        self, clean: Float[Tensor, "snapshot draw channel y x"]
    ) -> Float[Tensor, "snapshot draw channel y x"]:
        """Fields with what is known of them without noise."""
        ...


@dataclass(frozen=True, kw_only=True)
class GuidedSampler:
    """The way from noise to fields: how many steps, between which noise levels, and how strongly guided.

    Args:
        num_steps: number of noise levels, at least 2.
        sigma_max, sigma_min: the first and the last of them, in standard deviations of the training fields.
        coarse_share: share of the steps, from 0 to 1, that run on the coarse grid.
        scale: strength of the guidance; 1 is the likelihood's own.
    """

    num_steps: int = 30
    sigma_max: float = 80.0
    sigma_min: float = 0.02
    coarse_share: float = 0.8
    scale: float = 1.0

    def __post_init__(self):
        noise_levels(self.num_steps, self.sigma_max, self.sigma_min)
        if not (0 <= self.coarse_share <= 1 and 0 <= self.scale < float("inf")):
            raise UsageError("the sampler needs a share between 0 and 1 and a scale that is finite and not negative")

    def run(
        self,
        denoiser: Denoiser,
        noise: RandomField,
        grids: list[Grid],
        guides: list[Guide],
        normals: Normals,
        advance: Advance = lambda count: None,
    ) -> Float[Tensor, "snapshot draw channel y x"]:
        """Draw joint fields on the last grid.

        Args:
            denoiser: the network, which takes fields without an axis of draws.
            noise: the noise of the diffusion, up to its level.
            grids: the fine grid, or a coarse one and the fine one.
            guides: what is known, on each grid.
            normals: gives standard normals on a grid.
            advance: called with 1 after each step.
        """
        levels = noise_levels(self.num_steps, self.sigma_max, self.sigma_min)
        switch = round(self.coarse_share * self.num_steps) if len(grids) == 2 else 0
        now = 0 if switch else -1
        x = self.sigma_max * noise.colour(normals(grids[now]))
        for number, (sigma, to) in enumerate(pairwise(levels)):
            if number == switch and now == 0:
                now = -1
                x = _refine(x, sigma * noise.colour(normals(grids[1])), *grids)
            x = heun_step(x, sigma, to, partial(self.denoise, denoiser, noise, guides[now]))
            advance(1)
        return x

    def denoise(self, denoiser: Denoiser, noise: RandomField, guide: Guide, x: Tensor, sigma: float) -> Tensor:
        """The guided denoiser: clean fields of noisy ones, moved to where they explain what is known."""
        with torch.enable_grad():
            noisy = x.detach().requires_grad_(True)
            flat = noisy.flatten(0, 1)
            clean = denoiser(flat, torch.full((len(flat),), sigma, dtype=x.dtype)).unflatten(0, x.shape[:2])
            (slope,) = torch.autograd.grad(guide.pull(clean, sigma), noisy)
        return guide.with_initial(clean.detach() + self.scale * sigma**2 * noise.apply(slope))


def _refine(x: Tensor, fresh: Tensor, coarse: Grid, fine: Grid) -> Tensor:
    """The same sample on the fine grid, with the noise that the coarse one could not have."""
    return resample(x, coarse, fine) + fresh - resample(resample(fresh, fine, coarse), coarse, fine)
