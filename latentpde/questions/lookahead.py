r"""What further readings would leave of the target's variance, over what they may read.

Given the parameters :math:`\theta_i` of a posterior's node, target and new readings are jointly Gaussian. Readings
:math:`y` are drawn from the posterior's prediction of them. They change the Gaussians in closed form, and the weights
of the nodes by Bayes' rule, :math:`w_i \propto p(y \mid \theta_i)`; so the variance that is left of a target
:math:`u` is

.. math:: \sum_i w_i \big( \mathrm{var}_i(u \mid y) + m_i(y)^2 \big) - \Big( \sum_i w_i\, m_i(y) \Big)^2,

averaged over draws of :math:`y`. Unlike the best linear estimate it sees what a reading tells of coefficients that the
field depends on in a curved way, or that have several modes. All candidates are tried on the same draws.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

NUM_DRAWS = 256


@dataclass(frozen=True, eq=False)
class Left:
    """Candidates one after another, and what they leave of the target.

    >>> Left([3], [0.5], torch.eye(1)).chosen
    [3]

    Args:
        chosen: numbers of the candidates.
        variance: that is left of all targets together after each.
        covariance: of the targets after the last.
    """

    chosen: list[int]
    variance: list[float]
    covariance: Float[Tensor, "target target2"]


@dataclass(frozen=True, eq=False)
class Lookahead:
    """Target and candidates under each of some nodes, which are equally likely.

    >>> same = torch.ones(1, 2, 2).double()
    >>> left = Lookahead(torch.zeros(1, 2).double(), same, num_targets=1, noise_std=1.0).greedy(1)
    >>> round(left.variance[0], 6)  # the one candidate reads the target itself, with noise of the same variance
    0.5

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

    @property
    def of_targets(self) -> Float[Tensor, "target target2"]:
        """Covariance of the targets, before any reading."""
        weight = torch.full((1, len(self.mean)), 1 / len(self.mean), dtype=torch.float64)
        return self._mixed(weight, self.mean[None], self.covariance)

    def _mixed(
        self,
        weight: Float[Tensor, "draw node"],
        mean: Float[Tensor, "draw node place"],
        covariance: Float[Tensor, "node place place2"],
    ) -> Float[Tensor, "target target2"]:
        """Covariance of the targets under all nodes, averaged over draws."""
        k = self.num_targets
        centred = mean[..., :k] - (weight[..., None] * mean[..., :k]).sum(1, keepdim=True)
        between = torch.einsum("ri,ria,rib->ab", weight, centred, centred) / len(weight)
        return between + torch.einsum("i,iab->ab", weight.mean(0), covariance[:, :k, :k])

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

    def greedy(self, num: int, *, num_draws: int = NUM_DRAWS, seed: int = 0) -> Left:
        """Each candidate after the ones before it, that which leaves least.

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
            gain = covariance[:, :, k + best] / spread[:, best, None]
            mean = mean + gain * surprise[:, :, best, None]
            covariance = covariance - gain[:, :, None] * covariance[:, None, :, k + best]
            log_weight = after[:, :, best]
            chosen.append(best)
            variance.append(float(left[best]))
        return Left(chosen, variance, self._mixed(torch.softmax(log_weight, 1), mean, covariance))


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
