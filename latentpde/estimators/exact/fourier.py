"""Modes of source and initial state as flat lists, and which of them a case needs at all."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from latentpde.grid import Wavenumbers, mode_numbers, mode_weights, pooling_attenuation, wavenumbers
from latentpde.latent import Latent
from latentpde.observation import Observation

_NEGLIGIBLE = 1e-10  # of the noise


class Modes:
    """Some modes of a block, as flat lists."""

    def __init__(self, k: Tensor, weight: Tensor, attenuation: Tensor, index: Tensor):
        self.k, self.weight, self.attenuation, self.index = k, weight, attenuation, index

    @classmethod
    def of(cls, block_shape: tuple[int, int], observation: Observation) -> Modes:
        """All modes of a block, with what readings see of each: a coarse solve nothing beyond its Nyquist."""
        rows, cols = (n.to(torch.float64) for n in mode_numbers(block_shape))
        grid = observation.grid
        row, col = torch.meshgrid(rows, cols, indexing="ij")
        attenuation = torch.ones_like(row)
        if observation.observed == "lowres-solve":
            attenuation = ((2 * row.abs() < grid.shape[0]) & (2 * col < grid.shape[1])).to(torch.float64)
        elif observation.observed == "pooled":
            attenuation = pooling_attenuation(grid, observation.pooling, block_shape)
        k = 2 * torch.pi * torch.stack([row / grid.extent[0], col / grid.extent[1]], dim=-1)
        weight = mode_weights(block_shape[1]).expand(block_shape)
        return cls(k.flatten(0, 1), weight.flatten(), attenuation.flatten(), torch.arange(row.numel()))

    def select(self, chosen: Tensor) -> Modes:
        return Modes(self.k[chosen], self.weight[chosen], self.attenuation[chosen], self.index[chosen])


def phases(k: Tensor, positions: Tensor) -> Float[Tensor, "mode position"]:
    return k @ positions.T


def as_wavenumbers(k: Tensor) -> Wavenumbers:
    return Wavenumbers(k[None, :, 0], k[None, :, 1])


def relevant_modes(k: Tensor, amplitude: Tensor, latent: Latent, times: Tensor, noise: float) -> Tensor:
    """Which modes of the initial state matter at all: together the others stay below a ten-billionth of the noise,
    whatever the coefficients. What a mode can amount to is seen at the corners of the coefficients' box and inside."""
    corners = torch.cartesian_prod(*latent.bounds).reshape(-1, len(latent.bounds))
    inside = torch.quasirandom.SobolEngine(len(latent.bounds), seed=0).draw(16, dtype=torch.float64)
    theta = torch.cat([corners, latent.bounds[:, 0] + inside * (latent.bounds[:, 1] - latent.bounds[:, 0])])
    reach = latent.family.state_response(as_wavenumbers(k), times, theta).abs().amax((0, 1))[0].expand(len(k))
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
