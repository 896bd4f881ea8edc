r"""What further readings would leave of the target's variance, over what they may read.

Given the parameters :math:`\theta_i` of a posterior's node, target and new readings are jointly Gaussian. Readings
:math:`y` are drawn from the posterior's prediction of them. They change the Gaussians in closed form, and the weights
of the nodes by Bayes' rule, :math:`w_i \propto p(y \mid \theta_i)`; so the variance that is left of a target
:math:`u` is

.. math:: \sum_i w_i \big( \mathrm{var}_i(u \mid y) + m_i(y)^2 \big) - \Big( \sum_i w_i\, m_i(y) \Big)^2,

averaged over draws of :math:`y`. Unlike the best linear estimate it sees what a reading tells of coefficients that the
field depends on in a curved way, or that have several modes. All candidates are tried on the same draws. A few nodes
stand for all coefficients only while readings do not single one of them out, so the choice ends where they do.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

NUM_DRAWS = 256
_LEAST_SHARE = 0.1  # of the nodes that carry the weight, on average over draws; with fewer, they are too coarse


@dataclass(frozen=True, eq=False)
class Lookahead:
    """Target and candidates under each of some nodes, which are equally likely.

    >>> same = torch.ones(1, 2, 2).double()
    >>> chosen, left = Lookahead(torch.zeros(1, 2).double(), same, num_targets=1, noise_std=1.0).greedy(1)
    >>> chosen, round(left[0], 6)  # the one candidate reads the target itself, with noise of the same variance
    ([0], 0.5)

    Args:
        mean: of the targets, then of the field at the candidates, under each node.
        covariance: among them.
        num_targets: how many are targets.
        noise_std: of a reading.
    """

    mean: Float[Tensor, "node place"]
    covariance: Float[Tensor, "node place place2"]
    num_targets: int
    noise_std: float

    def draw(self, num: int, seed: int) -> Float[Tensor, "draw candidate"]:
        """Readings of all candidates at once, as the posterior predicts them."""
        k, generator = self.num_targets, torch.Generator().manual_seed(seed)
        among = self.covariance[:, k:, k:] + self.noise_std**2 * torch.eye(self.mean.shape[1] - k).double()
        factor, info = torch.linalg.cholesky_ex(among)
        factor = torch.where(
            (info == 0)[:, None, None], factor, torch.diag_embed(among.diagonal(dim1=1, dim2=2).sqrt())
        )
        node = torch.arange(num) % len(self.mean)
        normals = torch.randn((num, factor.shape[-1]), dtype=torch.float64, generator=generator)
        return self.mean[node, k:] + (factor[node] @ normals[..., None])[..., 0]

    def greedy(self, num: int, *, num_draws: int = NUM_DRAWS, seed: int = 0) -> tuple[list[int], list[float]]:
        """Each candidate after the ones before it, that which leaves least, and what is left of the variance of all
        targets then; fewer than asked for where readings single nodes out.

        Args:
            num: how many.
            num_draws: of what they may read.
            seed: of these.
        """
        k, readings = self.num_targets, self.draw(num_draws, seed)
        mean, covariance = self.mean.expand(num_draws, -1, -1), self.covariance
        log_weight = torch.zeros((num_draws, len(self.mean)), dtype=torch.float64)
        chosen, variance = [], []
        for _ in range(num):
            spread = covariance.diagonal(dim1=-2, dim2=-1)[:, k:].clamp(min=0) + self.noise_std**2
            surprise = readings[:, None] - mean[:, :, k:]
            after = log_weight[..., None] - 0.5 * (spread.log() + surprise**2 / spread)
            left = _left(covariance[:, :k], mean[:, :, :k], spread, surprise, torch.softmax(after, 1), k)
            left[chosen] = torch.inf  # one reading at one place and time
            best = int(left.argmin())
            effective = 1 / (torch.softmax(after[:, :, best], 1) ** 2).sum(1)
            if float(effective.mean()) < _LEAST_SHARE * len(self.mean):
                break
            gain = covariance[:, :, k + best] / spread[:, best, None]
            mean = mean + gain * surprise[:, :, best, None]
            covariance = covariance - gain[:, :, None] * covariance[:, None, :, k + best]
            log_weight = after[:, :, best]
            chosen.append(best)
            variance.append(float(left[best]))
        return chosen, variance


def _left(
    covariance: Float[Tensor, "node target place"],
    mean: Float[Tensor, "draw node target"],
    spread: Float[Tensor, "node candidate"],
    surprise: Float[Tensor, "draw node candidate"],
    weight: Float[Tensor, "draw node candidate"],
    k: int,
) -> Float[Tensor, " candidate"]:
    """The variance of all targets that a reading of each candidate leaves, without an array over draws, nodes,
    candidates and targets at once."""
    gain = covariance[..., k:] / spread[:, None]
    squared = (gain**2).sum(1)
    within = covariance.diagonal(dim1=-2, dim2=-1).sum(-1)[:, None] - squared * spread
    moved = weight * surprise
    cross = torch.einsum("rik,ikj->rij", mean, gain)
    second = (weight * (within + (mean**2).sum(-1)[..., None]) + 2 * moved * cross + moved * surprise * squared).sum(1)
    centre = torch.einsum("rij,rik->rjk", weight, mean) + torch.einsum("rij,ikj->rjk", moved, gain)
    return (second - (centre**2).sum(-1)).mean(0)
