"""Cases with different numbers of readings in one batch: shorter lists are padded to the longest."""

from __future__ import annotations

import torch
from jaxtyping import Bool, Int
from torch import Tensor


def padded_indices(
    mask: Bool[Tensor, "row place"],
) -> tuple[Int[Tensor, "row reading"], Bool[Tensor, "row reading"]]:
    """Where each row of a mask is true, in order, as many entries for all rows as the fullest row needs.

    Returns:
        The indices, and which of them are no padding. There is at least one column, even if nothing is true.

    >>> index, is_reading = padded_indices(torch.tensor([[False, True, True], [True, False, False]]))
    >>> index[0].tolist(), is_reading.tolist()
    ([1, 2], [[True, True], [True, False]])
    """
    most = max(1, int(mask.sum(1).max()))
    chosen = mask.to(torch.int8).argsort(dim=1, descending=True, stable=True)[:, :most]
    return chosen, torch.take_along_dim(mask, chosen, 1)
