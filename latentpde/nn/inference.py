"""The inference encoder, a network that goes from a case to its latent in one pass; `enc` is this network."""

from __future__ import annotations

from itertools import pairwise

from jaxtyping import Float
from torch import Tensor, nn

from latentpde.nn.encoders import CaseEncoder, Conditions, Gains
from latentpde.nn.presets import NetworkSize


class InferenceEncoder(nn.Module):
    """From a case's embeddings, through linear layers, to a latent in units of the prior (`latentpde.nn.units`). With
    probes a step along the gradient at the best probe is added, of a length that is learnt for each entry.

    Args:
        size: widths and depths.
        num_latent: number of entries of the latent.
        num_prior: number of entries of the vector that describes the prior (`Units.seen_prior`).

    Example:
        >>> import latentpde as lp
        >>> from latentpde.nn import PRESETS, Units
        >>> data = lp.Observation.from_dataset(lp.simulate("helmholtz", num=2, seed=0, shape=(32, 32)))
        >>> units = Units(lp.Latent(lp.pde.get_family("helmholtz"), num_modes=2), num_modes=2)
        >>> network = InferenceEncoder(PRESETS["compact"], units.size, units.num_prior)
        >>> tuple(network(Conditions.of(data, units, PRESETS["compact"].num_probes)).shape)
        (2, 19)
    """

    def __init__(self, size: NetworkSize, num_latent: int, num_prior: int):
        super().__init__()
        self.case = CaseEncoder(size, num_latent, num_prior)
        widths = [self.case.width] + [size.encoder_width] * (size.encoder_layers - 1)
        hidden = [nn.Sequential(nn.Linear(a, b), nn.LayerNorm(b), nn.GELU()) for a, b in pairwise(widths)]
        output = nn.Linear(widths[-1], num_latent)
        nn.init.zeros_(output.weight)  # before training, the latent is the centre of the prior
        nn.init.zeros_(output.bias)
        self.layers = nn.Sequential(*hidden, output)
        self.step = Gains(self.case.width, num_latent) if size.num_probes else None

    def forward(self, conditions: Conditions) -> Float[Tensor, "case latent"]:
        embedding = self.case(conditions)
        latent = self.layers(embedding)
        return latent if self.step is None else latent + self.step(embedding) * conditions.gradient.to(latent)
