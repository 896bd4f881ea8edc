"""Adam, for methods that optimise while a user waits."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.optim.adam import adam


class Adam:
    """Adam (Kingma and Ba, 2015) by torch's functional form.

    The class `torch.optim.Adam` takes the same steps to the bit, but its first use imports torch's compiler, which
    takes seconds.

    Args:
        parameters: tensors of any shapes, which `step` changes in place.
        betas: decay rates of the running means of the gradients and of their squares, each from 0 to below 1.

    Example:
        >>> x = torch.tensor([1.0, -2.0])
        >>> descent = Adam([x])
        >>> descent.step([2 * x], rate=0.1)  # the gradient of x squared
        >>> x
        tensor([ 0.9000, -1.9000])
    """

    def __init__(self, parameters: Sequence[Tensor], betas: tuple[float, float] = (0.9, 0.999)):
        self._parameters, self._betas = list(parameters), betas
        self._means = [torch.zeros_like(p, requires_grad=False) for p in self._parameters]
        self._squares = [torch.zeros_like(p, requires_grad=False) for p in self._parameters]
        self._counts = [torch.zeros(()) for _ in self._parameters]

    @torch.no_grad()
    def step(self, gradients: Sequence[Tensor], rate: float) -> None:
        """Take one step.

        Args:
            gradients: one for each parameter, of its shape.
            rate: the learning rate, about the size of the step.
        """
        adam(
            self._parameters,
            list(gradients),
            self._means,
            self._squares,
            max_exp_avg_sqs=[],
            state_steps=self._counts,
            foreach=False,
            amsgrad=False,
            beta1=self._betas[0],
            beta2=self._betas[1],
            lr=rate,
            weight_decay=0.0,
            eps=1e-8,
            maximize=False,
        )
