"""Sizes of the networks, and the presets to choose from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from latentpde.errors import UsageError


@dataclass(frozen=True, kw_only=True)
class NetworkSize:
    """Everything that shapes the networks, besides the latent's own size. All numbers are positive, but for the number
    of probes, which may be 0.

    Args:
        channels: channels of the three stages of the convolutions that see readings.
        state_channels: channels of the three stages of the convolutions that see the initial state.
        pool: side of the grid that the convolutions' features are averaged to; 1 averages over the whole domain, so
            that all sense of place is lost, but for what padding at the edges tells.
        groups: groups of GroupNorm; every number of channels must be a multiple of it.
        num_probes: number of coefficient vectors at which the network is told the residual (`latentpde.nn.probes`); 0
            for none.
        observation_width, state_width, probe_width, step_width: widths of the embeddings of readings, initial state,
            probes and diffusion step; the last must be even.
        encoder_width: width of the inference encoder's hidden layers.
        encoder_layers: linear layers of the inference encoder, the output layer included.
        denoiser_width: width of the denoiser's residual blocks.
        denoiser_blocks: number of the denoiser's residual blocks.
        told_prior: whether networks are told the bounds and the source's strength of each case and work in units of
            that prior (`latentpde.nn.units`); otherwise they work with the raw latent. Probes need it.

    Example:
        >>> PRESETS["compact"].denoiser_blocks
        3
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
    told_prior: bool = True

    def __post_init__(self):
        sizes = [*self.channels, *self.state_channels]
        sizes += [value for name, value in vars(self).items() if type(value) is int and name != "num_probes"]
        if self.num_probes < 0 or any(size < 1 for size in sizes) or self.step_width % 2:
            raise UsageError(f"sizes of networks must be positive, and step_width even; got {self}")
        if any(channels % self.groups for channels in (*self.channels, *self.state_channels)):
            raise UsageError(f"every number of channels must divide by groups = {self.groups}; got {self}")
        if self.num_probes and not self.told_prior:
            raise UsageError(f"networks with probes must be told the prior; got {self}")

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> NetworkSize:
        """A size from its fields as JSON has them, with lists for tuples."""
        fields: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in record.items()}
        return cls(**fields)


# `paper`: the appendix, which fixes all but the initial state's CNN; that one brings both branches to the published
# parameter counts, 6.996 and 9.556 million beside 7.06 and 9.62. `compact`: for CPUs; probes do what its small
# CNNs cannot.
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
        told_prior=False,
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
