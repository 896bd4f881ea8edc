"""Joint fields as a network of FunDPS sees them: initial state, source and output, each in its own units."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from latentpde.grid import Grid, mode_numbers

#: Channels of a joint field.
INITIAL, SOURCE, OUTPUT = range(3)
NUM_CHANNELS = 3


@dataclass(frozen=True, eq=False)
class FieldStatistics:
    """What training fields have in common, channel by channel.

    >>> fields = 2 + 3 * torch.randn(50, 3, 8, 8, generator=torch.Generator().manual_seed(0)).double()
    >>> statistics = FieldStatistics.of(fields)
    >>> torch.allclose(statistics.normalise(fields).std((0, 2, 3)), torch.ones(3).double(), atol=1e-4)
    True

    Args:
        mean, std: mean and standard deviation over all cells of all fields, in each channel's unit.
        power: mean squared Fourier amplitude ``|u_n|^2`` of the normalised fields, by the distance of the mode number
            ``n`` from zero, rounded.
    """

    mean: Float[Tensor, " channel"]
    std: Float[Tensor, " channel"]
    power: Float[Tensor, "channel radius"]

    @classmethod
    def of(cls, fields: Float[Tensor, "case channel y x"]) -> FieldStatistics:
        """The statistics of some joint fields, rounded to six digits, as a manifest holds them."""
        mean, std = fields.mean((0, 2, 3)), fields.std((0, 2, 3))
        grid = Grid((fields.shape[-2], fields.shape[-1]))
        normal = (fields - mean[:, None, None]) / std[:, None, None]
        squared = grid.analyse(normal).abs().square().mean(0)
        radius = radii(grid.block_shape)
        inside = radius < grid.block_shape[1]
        inside[grid.block_shape[0] // 2] = False  # the row of the Nyquist, which blocks leave empty
        count = torch.bincount(radius[inside])
        power = torch.stack([torch.bincount(radius[inside], channel[inside]) for channel in squared]) / count
        return cls(*(_rounded(values) for values in (mean, std, power)))

    def normalise(self, fields: Float[Tensor, "*batch channel y x"]) -> Float[Tensor, "*batch channel y x"]:
        """Fields with a mean of 0 and a standard deviation of 1 in every channel."""
        return (fields - self._spread(self.mean, fields)) / self._spread(self.std, fields)

    def denormalise(self, fields: Float[Tensor, "*batch channel y x"]) -> Float[Tensor, "*batch channel y x"]:
        """Normalised fields in their own units again."""
        return self._spread(self.mean, fields) + self._spread(self.std, fields) * fields

    def _spread(self, values: Tensor, like: Tensor) -> Tensor:
        return values.to(like)[:, None, None]


def radii(block_shape: tuple[int, int]) -> Tensor:
    """Distance of each mode number of a block from zero, rounded.

    >>> radii((4, 2))
    tensor([[0, 1],
            [1, 1],
            [2, 2],
            [1, 1]])
    """
    rows, cols = mode_numbers(block_shape)
    return torch.hypot(rows[:, None].double(), cols.double()).round().long()


def _rounded(values: Tensor) -> Tensor:
    """As a manifest holds them, so that training and use agree to the bit."""
    digits = [float(f"{value:.6g}") for value in values.double().flatten().tolist()]
    return torch.tensor(digits, dtype=torch.float64).reshape(values.shape)
