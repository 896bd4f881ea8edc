"""What may be added to a field with a flat prior: a constant, or a linear function of the place."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor


def trend_columns(trend: str, positions: Float[Tensor, "reading 2"]) -> Float[Tensor, "reading column"]:
    """One, and the distances from the middle of the rectangle.

    >>> trend_columns("linear", torch.tensor([[0.5, -1.0]], dtype=torch.float64))
    tensor([[ 1.0000,  0.5000, -1.0000]], dtype=torch.float64)

    Args:
        trend: ``none``, ``constant`` or ``linear``.
        positions: ``(y, x)`` relative to the middle.
    """
    one = torch.ones((len(positions), 1), dtype=torch.float64)
    return torch.cat([one, positions], dim=1)[:, : {"none": 0, "constant": 1, "linear": 3}[trend]]
