r"""The denoiser, a network that predicts the noise :math:`\epsilon_\phi(w_\tau, c, \tau)` in a noisy latent.

It is made of residual blocks, each scaled and shifted (FiLM) by the embeddings :math:`c` of the case and of the step,

.. math:: h \leftarrow h + \mathrm{GELU}\left((1 + a(c))\, \mathrm{LayerNorm}(W h) + b(c)\right)

The case's embedding does not depend on the step, so a reverse chain computes it once (`embed`) and each step only
`denoise`. All draws of a case share it.

The blocks are narrower than a latent, so they cannot pass on noise, which has no structure. With probes
(`latentpde.nn.probes`) there is a skip connection past them,

.. math:: \epsilon_\phi = W h + a(c, \tau) \odot w_\tau + b(c, \tau) \odot g

with :math:`g` the gradient at the best probe: were the posterior Gaussian with a diagonal covariance, this form would
hold the exact denoiser.
"""

from __future__ import annotations

import math

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from latentpde.nn.encoders import CaseEncoder, Conditions, Gains
from latentpde.nn.presets import NetworkSize


class Denoiser(nn.Module):
    """A network that predicts the noise in normalised latents.

    Args:
        size: widths and depths.
        num_latent: number of entries of the latent.
        num_prior: number of entries of the vector that describes the prior (`Units.seen_prior`).

    Example:
        >>> from latentpde.nn import PRESETS
        >>> network = Denoiser(PRESETS["compact"], num_latent=19, num_prior=7)
        >>> nothing_known = torch.zeros(2, network.case.width + 19)
        >>> noisy, step = torch.zeros(2, 3, 19), torch.tensor([[40]])  # three draws of two cases, all at one step
        >>> tuple(network.denoise(noisy, step, nothing_known).shape)
        (2, 3, 19)
    """

    def __init__(self, size: NetworkSize, num_latent: int, num_prior: int):
        super().__init__()
        self.case = CaseEncoder(size, num_latent, num_prior)
        self.step_width = size.step_width
        width, hidden = size.step_width, 4 * size.step_width
        self.step = nn.Sequential(nn.Linear(width, hidden), nn.GELU(), nn.Linear(hidden, width))
        self.first = nn.Linear(num_latent, size.denoiser_width)
        embedding = self.case.width + size.step_width
        self.blocks = nn.ModuleList(FilmBlock(size.denoiser_width, embedding) for _ in range(size.denoiser_blocks))
        self.last = nn.Linear(size.denoiser_width, num_latent)
        nn.init.zeros_(self.last.weight)
        nn.init.zeros_(self.last.bias)
        # the skip connection's factors; files of weights have them under this name
        self.around = Gains(embedding, 2 * num_latent) if size.num_probes else None

    def forward(
        self,
        noisy: Float[Tensor, "case draw latent"],
        step: Int[Tensor, "case draw"],
        conditions: Conditions,
        keep: Bool[Tensor, " case"],
    ) -> Float[Tensor, "case draw latent"]:
        """The noise in latents, in one call, for training.

        Args:
            noisy: normalised latents with noise.
            step: their steps of the noise schedule.
            conditions: what the network sees of the cases.
            keep: false where that is withheld, so that the network learns to do without it.
        """
        return self.denoise(noisy, step, self.embed(conditions) * keep[:, None])

    def embed(self, conditions: Conditions) -> Float[Tensor, "case embedding"]:
        """The embedding of each case, followed by the gradient at its best probe. Zeros in its place stand for a case
        of which nothing is known."""
        embedding = self.case(conditions)
        return torch.cat([embedding, conditions.gradient.to(embedding)], dim=1)

    def denoise(
        self,
        noisy: Float[Tensor, "case draw latent"],
        step: Int[Tensor, "#case #draw"],
        embedding: Float[Tensor, "case embedding"],
    ) -> Float[Tensor, "case draw latent"]:
        """The noise in latents of cases that are embedded already.

        Args:
            noisy: normalised latents with noise.
            step: their steps of the noise schedule.
            embedding: from `embed`.
        """
        embedding, gradient = embedding[:, : self.case.width], embedding[:, None, self.case.width :]
        when = self.step(sinusoids(step, self.step_width).to(embedding))
        shape = (*torch.broadcast_shapes(step.shape, (len(embedding), 1)), -1)
        known = torch.cat([embedding[:, None].expand(shape), when.expand(shape)], dim=-1)
        h = self.first(noisy)
        for block in self.blocks:
            h = block(h, known)
        if self.around is None:
            return self.last(h)
        noise_gain, gradient_gain = self.around(known).chunk(2, dim=-1)
        return self.last(h) + noise_gain * noisy + gradient_gain * gradient


class FilmBlock(nn.Module):
    """One residual block; before training it ignores the embeddings."""

    def __init__(self, width: int, embedding: int):
        super().__init__()
        self.linear, self.norm = nn.Linear(width, width), nn.LayerNorm(width)
        self.film = nn.Linear(embedding, 2 * width)
        nn.init.zeros_(self.film.weight)
        nn.init.zeros_(self.film.bias)

    def forward(
        self, h: Float[Tensor, "case draw width"], known: Float[Tensor, "#case #draw embedding"]
    ) -> Float[Tensor, "case draw width"]:
        scale, shift = self.film(known).chunk(2, dim=-1)
        return h + nn.functional.gelu((1 + scale) * self.norm(self.linear(h)) + shift)


def sinusoids(step: Int[Tensor, "*batch"], width: int, longest: float = 10_000.0) -> Float[Tensor, "*batch width"]:
    """Sines and cosines of the step, at wavelengths from 2 pi to ``longest`` times that.

    Example:
        >>> sinusoids(torch.tensor([0, 1]), width=2)
        tensor([[0.0000, 1.0000],
                [0.8415, 0.5403]])
    """
    half = width // 2
    rates = torch.exp(-math.log(longest) * torch.arange(half, device=step.device) / half)
    angle = step[..., None] * rates
    return torch.cat([torch.sin(angle), torch.cos(angle)], dim=-1)
