r"""A U-shaped neural operator: one set of weights for fields at any resolution.

A spectral convolution multiplies the lowest Fourier coefficients of its input by a matrix each and drops the others;
beside it runs a pointwise path, which keeps them:

.. math:: (K h)(x) = \sum_{|n_y|, |n_x| < m} R_n \hat h_n\, e^{2 \pi i n \cdot x} + W h(x)

Neither knows the grid, so the same function on a finer grid gives the same function (Li et al., 2021), up to what the
pointwise nonlinearity folds back at a coarse grid's Nyquist. The first level of the U works on the grid that it is
given; the inner levels always work on the same, smaller ones, to which fields go by truncating their Fourier series. So
the inner levels see the same numbers at every resolution, and a finer input costs only in the first level. Coordinates
are relative to the rectangle's sides: a rectangle is a stretched square.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from latentpde.errors import UsageError
from latentpde.grid import Grid, resample


@dataclass(frozen=True, kw_only=True)
class OperatorSize:
    """Everything that shapes a neural operator, besides its channels in and out.

    Args:
        widths: channels of each level, the given grid's first.
        modes: ``m`` of each level: Fourier modes per half axis that its multipliers hold.
        inner_sides: cells per side of the inner levels, one fewer than there are levels.
        blocks: number of residual blocks of each level on the way down, and as many on the way up.
        attention: numbers of the levels, from 0, that have self-attention after each block.
        groups: number of groups of every GroupNorm; it must divide all widths.
        level_width: width of the embedding of the noise level; even.
    """

    widths: tuple[int, ...]
    modes: tuple[int, ...]
    inner_sides: tuple[int, ...]
    blocks: int
    attention: tuple[int, ...]
    groups: int
    level_width: int

    def __post_init__(self):
        sizes = (*self.widths, *self.modes, *self.inner_sides, self.blocks, self.groups, self.level_width)
        if not len(self.widths) == len(self.modes) == len(self.inner_sides) + 1 or min(sizes) < 1:
            raise UsageError(f"a neural operator needs widths and modes for each level, and inner sides; got {self}")
        if any(width % self.groups for width in self.widths) or self.level_width % 2:
            raise UsageError(f"every width must divide by groups = {self.groups}, and level_width be even; got {self}")
        if any(2 * m > side for m, side in zip(self.modes[1:], self.inner_sides, strict=True)):
            raise UsageError(f"an inner level of n cells a side holds at most n / 2 modes per half axis; got {self}")

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> OperatorSize:
        """A size from its fields as JSON has them, with lists for tuples."""
        fields: dict[str, Any] = {name: tuple(v) if isinstance(v, list) else v for name, v in record.items()}
        return cls(**fields)


# `paper`: 64 channels times 1, 2, 4, 4, four blocks a level and attention on 16 x 16 cells, as published; modes bring
# it to the published number of parameters. `compact`: what two cores train in an hour.
OPERATOR_PRESETS = {
    "paper": OperatorSize(
        widths=(64, 128, 256, 256),
        modes=(20, 10, 6, 3),
        inner_sides=(32, 16, 8),
        blocks=4,
        attention=(2,),
        groups=32,
        level_width=256,
    ),
    "compact": OperatorSize(
        widths=(16, 40, 64, 96),
        modes=(16, 12, 8, 4),
        inner_sides=(32, 16, 8),
        blocks=1,
        attention=(2,),
        groups=8,
        level_width=64,
    ),
}


class NeuralOperator(nn.Module):
    """A network from fields, and one number for each case that tells the noise level, to fields.

    Args:
        size: widths, depths and modes.
        channels: number of channels of the fields, the same in and out.

    >>> operator = NeuralOperator(OPERATOR_PRESETS["compact"], channels=3)
    >>> operator(torch.zeros(1, 3, 32, 48), torch.zeros(1)).shape
    torch.Size([1, 3, 32, 48])
    """

    def __init__(self, size: OperatorSize, channels: int):
        super().__init__()
        self.inner_sides, self.level_width = size.inner_sides, size.level_width
        hidden = 2 * size.level_width
        self.level = nn.Sequential(nn.Linear(size.level_width, hidden), nn.GELU(), nn.Linear(hidden, hidden), nn.GELU())

        def stage(level: int) -> nn.ModuleList:
            width, modes, attends = size.widths[level], size.modes[level], level in size.attention
            return nn.ModuleList(Block(width, modes, size.groups, hidden, attends) for _ in range(size.blocks))

        levels = range(len(size.widths))
        self.first = nn.Conv2d(channels, size.widths[0], 1)
        self.down = nn.ModuleList(stage(level) for level in levels)
        self.narrow = nn.ModuleList(nn.Conv2d(a, b, 1) for a, b in pairwise(size.widths))
        self.widen = nn.ModuleList(nn.Conv2d(a + b, a, 1) for a, b in pairwise(size.widths))
        self.up = nn.ModuleList(stage(level) for level in levels[:-1])
        self.last = nn.Sequential(
            nn.GroupNorm(size.groups, size.widths[0]), nn.GELU(), nn.Conv2d(size.widths[0], channels, 1)
        )

    def forward(
        self, fields: Float[Tensor, "case channel y x"], level: Float[Tensor, " case"]
    ) -> Float[Tensor, "case channel y x"]:
        known = self.level(waves(level, self.level_width))
        grids = [Grid((fields.shape[-2], fields.shape[-1])), *(Grid((side, side)) for side in self.inner_sides)]
        h, kept = self.first(fields), []
        for number, blocks in enumerate(self.down):
            if number:
                h = self.narrow[number - 1](resample(h, grids[number - 1], grids[number]))
            for block in blocks:  # pyright: ignore[reportGeneralTypeIssues]
                h = block(h, known)
            kept.append(h)
        for number in reversed(range(len(self.up))):
            h = resample(h, grids[number + 1], grids[number])
            h = self.widen[number](torch.cat([kept[number], h], dim=1))
            for block in self.up[number]:  # pyright: ignore[reportGeneralTypeIssues]
                h = block(h, known)
        return self.last(h)


class SpectralConvolution(nn.Module):
    """A matrix for each of the lowest Fourier modes, strictly below any Nyquist; the other modes are dropped."""

    def __init__(self, width: int, modes: int):
        super().__init__()
        self.modes = modes
        self.weight = nn.Parameter(torch.randn(2 * modes - 1, modes, width, width, 2) / math.sqrt(2 * width))

    def forward(self, h: Float[Tensor, "case width y x"]) -> Float[Tensor, "case width y x"]:
        shape = h.shape[-2:]
        along_y, along_x = (min(self.modes, (n - 1) // 2 + 1) for n in shape)
        rows = [*range(along_y), *range(1 - along_y, 0)]
        h_hat = torch.fft.rfft2(h, norm="forward")[..., :along_x]
        weight = torch.view_as_complex(self.weight)
        if (along_y, along_x) != (self.modes, self.modes):
            weight = weight[rows, :along_x]
        low = torch.cat([h_hat[..., :along_y, :], h_hat[..., h_hat.shape[-2] - along_y + 1 :, :]], dim=-2)
        mixed = torch.einsum("birc,rcio->borc", low, weight)
        gap = mixed.new_zeros((*mixed.shape[:2], shape[0] - len(rows), along_x))
        full = torch.cat([mixed[..., :along_y, :], gap, mixed[..., along_y:, :]], dim=-2)
        return torch.fft.irfft2(full, s=(shape[0], shape[1]), norm="forward")


class Block(nn.Module):
    """A residual block: spectral and pointwise paths between two nonlinearities, scaled and shifted by the level."""

    def __init__(self, width: int, modes: int, groups: int, known: int, attends: bool):
        super().__init__()
        self.norm, self.film = nn.GroupNorm(groups, width), nn.Linear(known, 2 * width)
        self.spectral, self.pointwise = SpectralConvolution(width, modes), nn.Conv2d(width, width, 1)
        self.mix = nn.Conv2d(width, width, 1)
        self.attention = Attention(width, groups) if attends else None
        for layer in (self.film, self.mix):
            nn.init.zeros_(layer.weight)
            nn.init.zeros_(layer.bias)  # pyright: ignore[reportArgumentType]

    def forward(
        self, h: Float[Tensor, "case width y x"], known: Float[Tensor, "case known"]
    ) -> Float[Tensor, "case width y x"]:
        scale, shift = self.film(known)[..., None, None].chunk(2, dim=1)
        a = nn.functional.gelu((1 + scale) * self.norm(h) + shift)
        h = h + self.mix(nn.functional.gelu(self.spectral(a) + self.pointwise(a)))
        return h if self.attention is None else self.attention(h)


class Attention(nn.Module):
    """Every cell looks at every other, in heads of 32 channels; it does not know where a cell is."""

    def __init__(self, width: int, groups: int):
        super().__init__()
        self.num_heads = max(1, width // 32)
        self.norm, self.inputs = nn.GroupNorm(groups, width), nn.Conv2d(width, 3 * width, 1)
        self.mix = nn.Conv2d(width, width, 1)
        nn.init.zeros_(self.mix.weight)
        nn.init.zeros_(self.mix.bias)  # pyright: ignore[reportArgumentType]

    def forward(self, h: Float[Tensor, "case width y x"]) -> Float[Tensor, "case width y x"]:
        parts = self.inputs(self.norm(h)).flatten(2).unflatten(1, (3, self.num_heads, -1)).mT
        seen = nn.functional.scaled_dot_product_attention(*parts.unbind(1))
        return h + self.mix(seen.mT.flatten(1, 2).unflatten(-1, h.shape[-2:]))


def waves(level: Float[Tensor, " case"], width: int, highest: float = 16.0) -> Float[Tensor, "case width"]:
    """Sines and cosines of a number, at angular frequencies from 1 to ``highest``.

    >>> waves(torch.tensor([0.0]), width=4)
    tensor([[0., 0., 1., 1.]])

    Args:
        level: a number of order one for each case.
        width: how many sines and cosines together; even.
        highest: the highest frequency.
    """
    half = width // 2
    rates = highest ** (torch.arange(half, device=level.device, dtype=level.dtype) / max(half - 1, 1))
    angle = level[:, None] * rates
    return torch.cat([torch.sin(angle), torch.cos(angle)], dim=-1)
