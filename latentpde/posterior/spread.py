"""How far draws lie apart: standard deviations and quantiles over them, and what an interval of few draws is worth."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


class Spread(NamedTuple):
    """The spread of some fields.

    >>> Spread(std=torch.ones(1, 4), quantiles=torch.zeros(1, 5, 4)).std.shape
    torch.Size([1, 4])

    Args:
        std: the standard deviation; NaN for a point estimate.
        quantiles: at the levels that were asked for.
    """

    std: Float[Tensor, "case *field"]
    quantiles: Float[Tensor, "case quantile *field"]


def spread_over_draws(draws: Float[Tensor, "case draw *field"], levels: Sequence[float]) -> Spread:
    """Standard deviation and quantiles of draws.

    >>> draws = torch.arange(19.0).reshape(1, 19, 1)
    >>> spread_over_draws(draws, [0.05, 0.5]).quantiles.flatten()  # the first of 19 draws, and the middle one
    tensor([0., 9.])
    """
    return Spread(std_over_draws(draws), quantiles_over_draws(draws, levels))


def std_over_draws(draws: Float[Tensor, "case draw *field"]) -> Float[Tensor, "case *field"]:
    """The standard deviation, unbiased in its square; NaN of a single draw."""
    if draws.shape[1] == 1:
        return torch.full_like(draws[:, 0], torch.nan)
    return torch.sqrt((draws - draws.mean(1, keepdim=True)).square().sum(1) / (draws.shape[1] - 1))  # faster than std


def quantiles_over_draws(
    draws: Float[Tensor, "case draw *field"], levels: Sequence[float]
) -> Float[Tensor, "case quantile *field"]:
    """Quantiles by Weibull's rule: of ``n`` draws in order, number ``i`` is the quantile at ``i / (n + 1)``.

    A truth that is exchangeable with the draws lies below draw ``i`` with just that probability, whatever the law, so
    the intervals hold what they say on average. Between draws the rule interpolates; beyond the outermost ones nothing
    is known, and those stand for what lies beyond: see `interval_probability`.

    >>> quantiles_over_draws(torch.tensor([[3.0, 1.0, 2.0]]), [0.05, 0.25, 0.375, 0.5])
    tensor([[1.0000, 1.0000, 1.5000, 2.0000]])
    """
    num = draws.shape[1]
    position = (torch.tensor(list(levels), dtype=draws.dtype) * (num + 1) - 1).clamp(0, num - 1)
    below = position.floor().long()
    above = (below + 1).clamp(max=num - 1)
    # numpy sorts runs of memory by vector instructions, six times as fast as torch does, or a partition along the axis
    ordered = torch.from_numpy(np.sort(draws.movedim(1, -1).contiguous().numpy(), axis=-1))
    share = position - below
    return ((1 - share) * ordered[..., below] + share * ordered[..., above]).movedim(-1, 1)


def gaussian_quantiles(
    mean: Float[Tensor, "case *field"], std: Float[Tensor, "case *field"], levels: Sequence[float]
) -> Float[Tensor, "case quantile *field"]:
    """Quantiles of normal distributions."""
    scores = torch.special.ndtri(torch.tensor(list(levels), dtype=mean.dtype))
    return mean[:, None] + scores.reshape(-1, *[1] * (mean.ndim - 1)) * std[:, None]


def interval_probability(num_draws: int, level: float = 0.9) -> float:
    """Probability that a truth exchangeable with the draws lies between their quantiles at the ends of a central
    interval: its level, or as much as the outermost draws hold where these are too few for it.

    >>> interval_probability(199), round(interval_probability(12), 3)
    (0.9, 0.846)
    """
    return min(level, (num_draws - 1) / (num_draws + 1))
