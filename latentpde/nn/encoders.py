"""The part that all networks share: embeddings of a case's readings, its initial state and its prior."""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from latentpde.errors import DataError
from latentpde.grid import Grid
from latentpde.nn.conditioning import conditioning
from latentpde.nn.presets import NetworkSize
from latentpde.nn.probes import num_features, probe
from latentpde.nn.units import Units
from latentpde.observation import Observation

SMALLEST_SIDE = 3  # the convolutions leave one cell of fewer, which cannot be normalised


def check_cells(grid: Grid) -> None:
    """Raise `DataError` where a grid has too few cells for a network.

    >>> check_cells(Grid((3, 8)))
    """
    if min(grid.shape) < SMALLEST_SIDE:
        raise DataError(
            f"networks see grids of at least {SMALLEST_SIDE} x {SMALLEST_SIDE} cells, and this one has "
            f"{grid.shape[0]} x {grid.shape[1]}; take the method exact or map"
        )


class Conditions(NamedTuple):
    """What networks see of cases, as arrays.

    Args:
        channels: readings, mask, distance and density (`latentpde.nn.conditioning`).
        initial: the coarse initial state.
        prior: the vector that describes the prior (`Units.seen_prior`); empty where the network is not told.
        probes: residuals at the probes and what goes with them (`latentpde.nn.probes`); empty without probes.
        gradient: gradient of the log-likelihood at the best probe; empty without probes.

    Example:
        >>> import latentpde as lp
        >>> data = lp.Observation.from_dataset(lp.simulate("helmholtz", num=2, seed=0, shape=(32, 32)))
        >>> latent = lp.Latent(lp.pde.get_family("helmholtz"), num_modes=2)
        >>> seen = Conditions.of(data, Units(latent, num_modes=2), num_probes=5)
        >>> tuple(seen.channels.shape), tuple(seen.gradient.shape)
        ((2, 4, 8, 8), (2, 19))
    """

    channels: Float[Tensor, "case 4 y x"]
    initial: Float[Tensor, "case 1 y x"]
    prior: Float[Tensor, "case prior"]
    probes: Float[Tensor, "case feature"]
    gradient: Float[Tensor, "case gradient"]

    @classmethod
    def of(cls, observation: Observation, units: Units, num_probes: int) -> Conditions:
        """What networks see of some cases. Channels are of the last snapshot, on which networks are trained; probes
        use all snapshots.

        Args:
            observation: readings of the cases, with an initial state.
            units: the latent's prior, and the network's units.
            num_probes: number of probes that the network sees; 0 for none.
        """
        check_cells(observation.grid)
        channels = conditioning(observation)[:, -1]
        initial = observation.require_initial()[:, None]
        prior = units.seen_prior.expand(len(observation), -1)
        probes = probe(observation, units, num_probes)
        return cls(channels.float(), initial.float(), prior.float(), *probes)

    def to(self, device: torch.device) -> Conditions:
        """The same arrays on another device."""
        return Conditions(*(part.to(device) for part in self))


class SparseEncoder(nn.Module):
    """From the channels ``[y, M, d(M), rho(M)]`` and the prior to an embedding: six convolutions, two of them strided,
    then two linear layers.

    Args:
        size: widths of the layers.
        num_prior: number of entries of the vector that describes the prior.
    """

    def __init__(self, size: NetworkSize, num_prior: int):
        super().__init__()
        a, b, c = size.channels
        widths = [(4, a, 1), (a, a, 1), (a, b, 2), (b, b, 1), (b, c, 2), (c, c, 1)]
        self.convolutions = nn.Sequential(*(_convolution(*width, size.groups) for width in widths))
        self.pool = nn.AdaptiveAvgPool2d(size.pool)
        width = size.observation_width
        self.head = nn.Sequential(
            nn.Linear(c * size.pool**2 + num_prior, width), nn.GELU(), nn.Linear(width, size.observation_width)
        )

    def forward(
        self, channels: Float[Tensor, "case 4 y x"], prior: Float[Tensor, "case prior"]
    ) -> Float[Tensor, "case embedding"]:
        features = self.pool(self.convolutions(_channels_last(channels))).flatten(1)
        return self.head(torch.cat([features, prior.to(features)], dim=1))


class StateEncoder(nn.Module):
    """From the coarse initial state to an embedding: four convolutions, two of them strided, then one linear layer.

    Args:
        size: widths of the layers.
    """

    def __init__(self, size: NetworkSize):
        super().__init__()
        a, b, c = size.state_channels
        widths = [(1, a, 1), (a, b, 2), (b, c, 2), (c, c, 1)]
        self.convolutions = nn.Sequential(*(_convolution(*width, size.groups) for width in widths))
        self.pool = nn.AdaptiveAvgPool2d(size.pool)
        self.head = nn.Linear(c * size.pool**2, size.state_width)

    def forward(self, initial: Float[Tensor, "case 1 y x"]) -> Float[Tensor, "case embedding"]:
        return self.head(self.pool(self.convolutions(_channels_last(initial))).flatten(1))


class ProbeEncoder(nn.Sequential):
    """From residuals at the probes, the gradient at the best of them and the prior to an embedding: two linear layers.

    Args:
        size: width of the embedding.
        num_inputs: number of all inputs together.
    """

    def __init__(self, size: NetworkSize, num_inputs: int):
        width = size.probe_width
        super().__init__(nn.Linear(num_inputs, 2 * width), nn.GELU(), nn.Linear(2 * width, width))


class Gains(nn.Linear):
    """A linear layer from an embedding to factors for the entries of a latent; before training they are zero."""

    def __init__(self, width: int, num_latent: int):
        super().__init__(width, num_latent)
        nn.init.zeros_(self.weight)
        nn.init.zeros_(self.bias)


class CaseEncoder(nn.Module):
    """All embeddings of a case, one after the other. Each network has an encoder of its own.

    Args:
        size: widths of the layers, and the number of probes.
        num_latent: number of entries of the latent.
        num_prior: number of entries of the vector that describes the prior: two for each coefficient, and one; or 0.
    """

    def __init__(self, size: NetworkSize, num_latent: int, num_prior: int):
        super().__init__()
        self.num_probes = size.num_probes
        self.observation = SparseEncoder(size, num_prior)
        self.state = StateEncoder(size)
        self.width = size.observation_width + size.state_width
        if self.num_probes:
            num_inputs = num_features(self.num_probes, num_prior // 2) + num_latent + num_prior
            self.probes = ProbeEncoder(size, num_inputs)
            self.width += size.probe_width

    def forward(self, conditions: Conditions) -> Float[Tensor, "case embedding"]:
        seen = self.observation(conditions.channels, conditions.prior)
        parts = [seen, self.state(conditions.initial)]
        if self.num_probes:
            known = (conditions.probes, conditions.gradient, conditions.prior)
            parts.append(self.probes(torch.cat([part.to(seen) for part in known], dim=1)))
        return torch.cat(parts, dim=1)


def _channels_last(images: Tensor) -> Tensor:
    return images.contiguous(memory_format=torch.channels_last)  # convolves twice as fast on CPUs


def _convolution(inputs: int, outputs: int, stride: int, groups: int) -> nn.Module:
    return nn.Sequential(nn.Conv2d(inputs, outputs, 3, stride, padding=1), nn.GroupNorm(groups, outputs), nn.GELU())
