"""The amortised encoder: a case to its latent, in one pass."""

from __future__ import annotations

from itertools import pairwise

from jaxtyping import Float
from torch import Tensor, nn

from latentpde.nn.encoders import CaseEncoder, Conditions, Gains
from latentpde.nn.presets import NetworkSize


class InferenceEncoder(nn.Module):
    """Embeddings through an MLP to a latent in the prior's units (`latentpde.nn.units`); with probes, plus a step along
    their gradient, of a length that is learnt for each entry.

    Args:
        size: of the network.
        num_latent: entries of the latent.
        num_prior: entries of the vector that describes the prior.
    """

    def __init__(self, size: NetworkSize, num_latent: int, num_prior: int):
        super().__init__()
        self.case = CaseEncoder(size, num_latent, num_prior)
        widths = [self.case.width] + [size.encoder_width] * (size.encoder_layers - 1)
        hidden = [nn.Sequential(nn.Linear(a, b), nn.LayerNorm(b), nn.GELU()) for a, b in pairwise(widths)]
        output = nn.Linear(widths[-1], num_latent)
        nn.init.zeros_(output.weight)  # begins at the prior's mode
        nn.init.zeros_(output.bias)
        self.layers = nn.Sequential(*hidden, output)
        self.step = Gains(self.case.width, num_latent) if size.num_probes else None

    def forward(self, conditions: Conditions) -> Float[Tensor, "case latent"]:
        embedding = self.case(conditions)
        latent = self.layers(embedding)
        return latent if self.step is None else latent + self.step(embedding) * conditions.gradient.to(latent)
