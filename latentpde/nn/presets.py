"""Sizes of the networks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from latentpde.errors import UsageError


@dataclass(frozen=True, kw_only=True)
class NetworkSize:
    """Everything that shapes the networks, besides the latent's own size.

    Args:
        channels: of the three stages of the CNN that sees readings.
        state_channels: of the three stages of the CNN that sees the initial state.
        pool: side of the grid that the CNNs' features are averaged to; 1 averages over the whole domain, which
            forgets where things are but for what the edges betray.
        groups: of GroupNorm.
        observation_width, state_width, step_width: of the embeddings of readings, initial state and diffusion step.
        encoder_width: of the inference encoder's hidden layers.
        encoder_layers: of the inference encoder, the output layer included.
        denoiser_width: of the denoiser's residual blocks.
        denoiser_blocks: how many there are.
    """

    channels: tuple[int, int, int]
    state_channels: tuple[int, int, int]
    pool: int
    groups: int
    observation_width: int
    state_width: int
    step_width: int
    encoder_width: int
    encoder_layers: int
    denoiser_width: int
    denoiser_blocks: int

    def __post_init__(self):
        sizes = [*self.channels, *self.state_channels]
        sizes += [value for value in vars(self).values() if isinstance(value, int)]
        if any(size < 1 for size in sizes) or self.step_width % 2:
            raise UsageError(f"sizes of networks must be positive, and step_width even; got {self}")
        if any(channels % self.groups for channels in (*self.channels, *self.state_channels)):
            raise UsageError(f"every number of channels must divide by groups = {self.groups}; got {self}")

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> NetworkSize:
        """From JSON, which has lists for tuples."""
        fields: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in record.items()}
        return cls(**fields)


# `paper`: the appendix, which fixes all but the initial state's CNN; that one brings both branches to the published
# parameter counts. `compact`: for CPUs. It keeps a 4 x 4 map where the paper averages over the whole domain, because
# the source's phases are positions.
PRESETS = {
    "paper": NetworkSize(
        channels=(64, 128, 256),
        state_channels=(32, 64, 128),
        pool=1,
        groups=8,
        observation_width=256,
        state_width=128,
        step_width=128,
        encoder_width=512,
        encoder_layers=4,
        denoiser_width=512,
        denoiser_blocks=6,
    ),
    "compact": NetworkSize(
        channels=(16, 32, 64),
        state_channels=(16, 32, 32),
        pool=4,
        groups=4,
        observation_width=128,
        state_width=64,
        step_width=64,
        encoder_width=256,
        encoder_layers=4,
        denoiser_width=192,
        denoiser_blocks=4,
    ),
}
