r"""What further readings would leave of the target's variance, over what they may read.

Coefficients that are alike make a cell :math:`c`. Within a cell, target and new readings are taken to be jointly
Gaussian, with the mean and the covariance that they have there,

.. math:: m_c = \mathrm{E}_{\theta \in c}[m_\theta], \qquad
          \Sigma_c = \mathrm{E}_{\theta \in c}[\Sigma_\theta] + \mathrm{Cov}_{\theta \in c}[m_\theta].

Readings :math:`y` are drawn from the posterior's prediction of them. They change the Gaussians in closed form, and the
weights of the cells by Bayes' rule, :math:`w_c \propto P(c)\, p(y \mid c)`; so the variance that is left of a target
:math:`u` is

.. math:: \sum_c w_c \big( \mathrm{var}_c(u \mid y) + m_c(y)^2 \big) - \Big( \sum_c w_c\, m_c(y) \Big)^2,

averaged over draws of :math:`y`. With a single cell that is the best linear estimate; with many it sees what a reading
tells of coefficients that the field depends on in a curved way, or that have several modes. All candidates are tried on
the same draws. Each is chosen after the ones before it, and then each again given all others, as long as that leaves
less.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Float, Int
from torch import Tensor

NUM_DRAWS = 512
_ROUNDS = 2  # of exchanges, at most
_LESS = 1e-3  # share of what is left by which an exchange has to lower it: draws are few
_ALIKE = 1e-9  # share of the means' variance that is not worth a cell of its own


@dataclass(frozen=True, eq=False)
class Lookahead:
    """Target and candidates within each of some cells.

    >>> same = torch.ones(1, 2, 2).double()
    >>> ahead = Lookahead(torch.ones(1).double(), torch.zeros(1, 2).double(), same, num_targets=1, noise_std=1.0)
    >>> ahead.choose(1), round(float(ahead.left([])[0]), 6)  # it reads the target, with noise as large
    ([0], 0.5)

    Args:
        weight: of each cell; they sum to 1.
        mean: of the targets, then of the field at the candidates, within each cell.
        covariance: among them.
        num_targets: how many are targets.
        noise_std: of a reading.
        num_draws: of what the candidates may read.
        seed: of these.
    """

    weight: Float[Tensor, " cell"]
    mean: Float[Tensor, "cell place"]
    covariance: Float[Tensor, "cell place place2"]
    num_targets: int
    noise_std: float
    num_draws: int = NUM_DRAWS
    seed: int = 0

    @cached_property
    def readings(self) -> Float[Tensor, "draw candidate"]:
        """Of all candidates at once, as the posterior predicts them."""
        k, generator = self.num_targets, torch.Generator().manual_seed(self.seed)
        factor = _factor(self.covariance[:, k:, k:], self.noise_std)
        shares = (torch.arange(self.num_draws).double() + 0.5) / self.num_draws
        cell = torch.searchsorted(self.weight.cumsum(0), shares).clamp(max=len(self.weight) - 1)
        normals = torch.randn((self.num_draws, factor.shape[-1]), dtype=torch.float64, generator=generator)
        return self.mean[cell, k:] + torch.einsum("rij,rj->ri", factor[cell], normals)

    def choose(self, num: int) -> list[int]:
        """The candidates that leave least together, as far as choosing one at a time finds them."""
        chosen: list[int] = []
        for _ in range(num):
            chosen.append(int(self.left(chosen).argmin()))
        for _ in range(_ROUNDS if num > 1 else 0):
            before = list(chosen)
            for i in range(num):
                left = self.left(chosen[:i] + chosen[i + 1 :])
                best = int(left.argmin())
                if left[best] < (1 - _LESS) * left[chosen[i]]:
                    chosen[i] = best
            if chosen == before:
                break
        return chosen

    def left(self, chosen: Sequence[int]) -> Float[Tensor, " candidate"]:
        """The variance of all targets that readings of some candidates and of each other one leave."""
        k, given = self.num_targets, list(chosen)
        mean, covariance, log_weight = self.mean.expand(len(self.readings), -1, -1), self.covariance, self.weight.log()
        of_target, spread = covariance[:, :k, k:], covariance.diagonal(dim1=-2, dim2=-1)
        if given:
            at = [k + j for j in given]
            factor = _factor(covariance[:, at][:, :, at], self.noise_std)
            rows = torch.linalg.solve_triangular(factor, covariance[:, at], upper=False)
            surprise = (self.readings[:, None, given] - self.mean[:, at])[..., None]
            white = torch.linalg.solve_triangular(factor, surprise, upper=False)[..., 0]
            mean = mean + torch.einsum("rcd,cdp->rcp", white, rows)
            log_weight = log_weight - factor.diagonal(dim1=-2, dim2=-1).log().sum(-1) - 0.5 * (white**2).sum(-1)
            of_target = of_target - rows[:, :, :k].mT @ rows[:, :, k:]
            spread = spread - (rows**2).sum(1)
        variance = spread[:, k:].clamp(min=0) + self.noise_std**2
        surprise = self.readings[:, None] - mean[..., k:]
        after = log_weight[..., None] - 0.5 * (variance.log() + surprise**2 / variance)
        left = _left(of_target / variance[:, None], mean[..., :k], spread[:, :k].sum(-1), variance, surprise, after)
        left[given] = torch.inf  # one reading at one place and time
        return left


def _factor(covariance: Float[Tensor, "cell place place2"], noise_std: float) -> Float[Tensor, "cell place place2"]:
    """Cholesky's of what readings have, their noise included; without correlations where rounding left none."""
    among = covariance + noise_std**2 * torch.eye(covariance.shape[-1]).double()
    factor, info = torch.linalg.cholesky_ex(among)
    alone = torch.diag_embed(among.diagonal(dim1=1, dim2=2).clamp(min=noise_std**2).sqrt())
    return torch.where((info == 0)[:, None, None], factor, alone)


def _left(
    gain: Float[Tensor, "cell target candidate"],
    mean: Float[Tensor, "draw cell target"],
    within: Float[Tensor, " cell"],
    variance: Float[Tensor, "cell candidate"],
    surprise: Float[Tensor, "draw cell candidate"],
    log_weight: Float[Tensor, "draw cell candidate"],
) -> Float[Tensor, " candidate"]:
    """The variance of all targets that a reading of each candidate leaves, without an array over draws, cells,
    candidates and targets at once."""
    weight = torch.softmax(log_weight, 1)
    squared = (gain**2).sum(1)
    moved = weight * surprise
    cross = torch.einsum("rck,ckj->rcj", mean, gain)
    left = within[:, None] - squared * variance + (mean**2).sum(-1)[..., None]
    second = (weight * left + moved * (2 * cross + surprise * squared)).sum(1)
    centre = torch.einsum("rcj,rck->rjk", weight, mean) + torch.einsum("rcj,ckj->rjk", moved, gain)
    return (second - (centre**2).sum(-1)).mean(0)


def cells(means: Float[Tensor, "node place"], most: int) -> list[Int[Tensor, " member"]]:
    """Nodes that are alike: the cell with the largest spread is divided in two, again and again, where its members lie
    on one side or the other of its mean along its principal axis."""
    found = [torch.arange(len(means))]
    spreads = [_spread(means)]
    total = spreads[0]
    while len(found) < most:
        widest = max(range(len(found)), key=spreads.__getitem__)
        if spreads[widest] <= _ALIKE * total:
            break
        members = found.pop(widest)
        spreads.pop(widest)
        own = means[members] - means[members].mean(0)
        axis = torch.linalg.eigh(own @ own.T).eigenvectors[:, -1]  # along it, up to a factor
        for part in (members[axis > 0], members[axis <= 0]):
            found.append(part)
            spreads.append(_spread(means[part]))
    return found


def _spread(means: Tensor) -> float:
    return float(((means - means.mean(0)) ** 2).sum())
