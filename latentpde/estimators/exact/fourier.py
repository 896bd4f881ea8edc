"""Modes of source and initial state as flat lists, and which of them a case needs at all."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float, Int
from torch import Tensor

from latentpde.grid import Wavenumbers, mode_numbers, mode_weights, pooling_attenuation, wavenumbers
from latentpde.latent import Latent
from latentpde.observation import Observation

_NEGLIGIBLE = 1e-10  # of the noise


@dataclass(frozen=True, eq=False)
class Modes:
    """Some modes of a block, as flat lists.

    Args:
        k: their wavenumbers ``(y, x)``.
        weight: how often each counts in a real field.
        attenuation: what readings see of each.
        index: of each in the block.
    """

    k: Float[Tensor, "mode 2"]
    weight: Float[Tensor, " mode"]
    attenuation: Float[Tensor, " mode"]
    index: Int[Tensor, " mode"]

    @classmethod
    def of(cls, block_shape: tuple[int, int], observation: Observation) -> Modes:
        """All modes of a block, with what readings see of each: a coarse solve nothing beyond its Nyquist."""
        grid = observation.grid
        modes = cls.of_block(block_shape, grid.extent)
        if observation.observed == "lowres-solve":
            rows, cols = mode_numbers(block_shape)
            below = (2 * rows.abs() < grid.shape[0])[:, None] & (2 * cols < grid.shape[1])
            return replace(modes, attenuation=below.flatten().to(torch.float64))
        if observation.observed == "pooled":
            return replace(modes, attenuation=pooling_attenuation(grid, observation.pooling, block_shape).flatten())
        return modes

    @classmethod
    def of_block(cls, block_shape: tuple[int, int], extent: tuple[float, float]) -> Modes:
        """All modes of a block on a periodic rectangle, for readings at points."""
        rows, cols = (n.to(torch.float64) for n in mode_numbers(block_shape))
        row, col = torch.meshgrid(rows, cols, indexing="ij")
        k = 2 * torch.pi * torch.stack([row / extent[0], col / extent[1]], dim=-1)
        weight = mode_weights(block_shape[1]).expand(block_shape).flatten()
        return cls(k.flatten(0, 1), weight, torch.ones_like(weight), torch.arange(len(weight)))

    @property
    def split(self) -> Float[Tensor, " mode"]:
        """Standard deviation of the real and of the imaginary part of a coefficient whose power is one."""
        # A column of weight one holds each mode twice, as n and -n; elsewhere both parts share the variance.
        split = torch.full_like(self.weight, math.sqrt(0.5))
        split[self.weight == 1] = 1.0
        return split

    def __len__(self) -> int:
        return len(self.weight)

    def select(self, chosen: Tensor) -> Modes:
        return Modes(self.k[chosen], self.weight[chosen], self.attenuation[chosen], self.index[chosen])


def phases(k: Tensor, positions: Tensor) -> Float[Tensor, "mode position"]:
    return k @ positions.T


def as_wavenumbers(k: Tensor) -> Wavenumbers:
    return Wavenumbers(k[None, :, 0], k[None, :, 1])


def relevant_modes(
    k: Tensor,
    amplitude: Tensor,
    latent: Latent,
    respond: Callable[[Wavenumbers, Tensor, Tensor], Tensor],
    times: Tensor,
    noise: float,
) -> Tensor:
    """Which modes of the initial state matter at all: together the others stay below a ten-billionth of the noise,
    whatever the coefficients. What a mode can amount to is seen at the corners of the coefficients' box and inside."""
    corners = torch.cartesian_prod(*latent.bounds).reshape(-1, len(latent.bounds))
    inside = torch.quasirandom.SobolEngine(len(latent.bounds), seed=0).draw(16, dtype=torch.float64)
    theta = torch.cat([corners, latent.bounds[:, 0] + inside * (latent.bounds[:, 1] - latent.bounds[:, 0])])
    reach = respond(as_wavenumbers(k), times, theta).abs().amax((0, 1))[0].expand(len(k))
    amount = amplitude * reach
    order = amount.argsort()
    relevant = torch.empty(len(k), dtype=torch.bool)
    relevant[order] = amount[order].cumsum(0) > _NEGLIGIBLE * noise
    return relevant & (amplitude > 0)


def is_even(latent: Latent) -> bool:
    """Whether the responses are real and the same for ``(ky, kx)`` and ``(-ky, kx)``: such modes go together."""
    theta = latent.bounds[:, :1] + (latent.bounds[:, 1:] - latent.bounds[:, :1]) * torch.tensor([0.17, 0.58, 0.83])
    values = [c[:, None, None] for c in theta]
    k = wavenumbers((16, 8), (1.0, 1.3))
    for part in (latent.family.symbol, latent.family.damping):
        value, mirrored = part(k, *values), part(Wavenumbers(-k.y, k.x), *values)
        if value is not None and (mirrored is None or value.is_complex() or not torch.allclose(value, mirrored)):
            return False
    return True


def fold(k: Tensor, rows: Tensor) -> tuple[Tensor, Tensor]:
    """Rows of mirrored modes, added up."""
    folded, inverse = torch.unique(torch.stack([k[:, 0].abs(), k[:, 1]], dim=-1), dim=0, return_inverse=True)
    return folded, rows.new_zeros((len(folded), rows.shape[1])).index_add_(0, inverse, rows)
