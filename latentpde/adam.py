"""Adam, for methods that optimise while a user waits."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor


class Adam:
    """Adam (Kingma and Ba, 2015), step for step that of torch, whose first use imports its compiler for seconds.

    Args:
        parameters: changed in place.
        betas: decay of the means of gradients and of their squares.
    """

    def __init__(self, parameters: Sequence[Tensor], betas: tuple[float, float] = (0.9, 0.999)):
        self.parameters, self.betas = list(parameters), betas
        self._means = [torch.zeros_like(p, requires_grad=False) for p in self.parameters]
        self._squares = [torch.zeros_like(p, requires_grad=False) for p in self.parameters]
        self._num_steps = 0

    @torch.no_grad()
    def step(self, gradients: Sequence[Tensor], rate: float) -> None:
        """One step down the gradients, one for each parameter."""
        self._num_steps += 1
        first, second = self.betas
        size = rate / (1 - first**self._num_steps)
        correction = math.sqrt(1 - second**self._num_steps)
        for p, g, mean, square in zip(self.parameters, gradients, self._means, self._squares, strict=True):
            mean.lerp_(g, 1 - first)
            square.mul_(second).addcmul_(g, g, value=1 - second)
            p.addcdiv_(mean, (square.sqrt() / correction).add_(1e-8), value=-size)
