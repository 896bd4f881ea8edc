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
        num_probes: coefficients at which the residual is asked for before anything is learnt; 0 for none.
        observation_width, state_width, probe_width, step_width: of the embeddings of readings, initial state, probes
            and diffusion step.
        encoder_width: of the inference encoder's hidden layers.
        encoder_layers: of the inference encoder, the output layer included.
        denoiser_width: of the denoiser's residual blocks.
        denoiser_blocks: how many there are.
    """

    channels: tuple[int, int, int]
    state_channels: tuple[int, int, int]
    pool: int
    groups: int
    num_probes: int
    observation_width: int
    state_width: int
    probe_width: int
    step_width: int
    encoder_width: int
    encoder_layers: int
    denoiser_width: int
    denoiser_blocks: int

    def __post_init__(self):
        sizes = [*self.channels, *self.state_channels]
        sizes += [value for name, value in vars(self).items() if isinstance(value, int) and name != "num_probes"]
        if self.num_probes < 0 or any(size < 1 for size in sizes) or self.step_width % 2:
            raise UsageError(f"sizes of networks must be positive, and step_width even; got {self}")
        if any(channels % self.groups for channels in (*self.channels, *self.state_channels)):
            raise UsageError(f"every number of channels must divide by groups = {self.groups}; got {self}")

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> NetworkSize:
        """From JSON, which has lists for tuples."""
        fields: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in record.items()}
        return cls(**fields)


# `paper`: the appendix, which fixes all but the initial state's CNN; that one brings both branches to the published
# parameter counts. `compact`: for CPUs; probes do what its small CNNs cannot.
PRESETS = {
    "paper": NetworkSize(
        channels=(64, 128, 256),
        state_channels=(32, 64, 128),
        pool=1,
        groups=8,
        num_probes=0,
        observation_width=256,
        state_width=128,
        probe_width=1,
        step_width=128,
        encoder_width=512,
        encoder_layers=4,
        denoiser_width=512,
        denoiser_blocks=6,
    ),
    "compact": NetworkSize(
        channels=(4, 8, 16),
        state_channels=(4, 4, 8),
        pool=2,
        groups=4,
        num_probes=64,
        observation_width=64,
        state_width=32,
        probe_width=96,
        step_width=64,
        encoder_width=256,
        encoder_layers=4,
        denoiser_width=160,
        denoiser_blocks=3,
    ),
}
