r"""Diffusion of fields by noise levels instead of steps (Karras et al., 2022).

A noisy field is the clean one plus noise of standard deviation :math:`\sigma`, :math:`x_\sigma = x_0 + \sigma \xi`. A
network :math:`F` becomes a denoiser whose input, target and loss have the same size at every level:

.. math:: D(x, \sigma) = c_\text{skip}\, x + c_\text{out}\, F(c_\text{in}\, x, \tfrac14 \log \sigma), \qquad
          c_\text{skip} = \frac{s^2}{\sigma^2 + s^2}, \;
          c_\text{out} = \frac{\sigma s}{\sqrt{\sigma^2 + s^2}}, \;
          c_\text{in} = \frac{1}{\sqrt{\sigma^2 + s^2}}

with :math:`s` the data's standard deviation, and the loss :math:`c_\text{out}^{-2} \lVert D - x_0 \rVert^2`. Going back
is an ordinary differential equation, which holds for noise of any covariance because the denoiser carries it,

.. math:: \frac{dx}{d\sigma} = \frac{x - D(x, \sigma)}{\sigma}

solved by Heun's second-order step over levels that are even in :math:`\sigma^{1/7}`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

from latentpde.errors import UsageError

Denoise = Callable[[Tensor, float], Tensor]  # noisy fields and their level, to clean ones


@dataclass(frozen=True)
class Preconditioning:
    """The factors around a network, for any noise level.

    Args:
        sigma_data: ``s``, standard deviation of the clean fields; positive.

    >>> float(Preconditioning(1.0).skip(torch.tensor(1.0)))  # as much noise as signal
    0.5
    """

    sigma_data: float = 0.5

    def skip(self, sigma: Tensor) -> Tensor:
        """The factor of the noisy field itself in the denoised one."""
        return self.sigma_data**2 / (sigma**2 + self.sigma_data**2)

    def out(self, sigma: Tensor) -> Tensor:
        """The factor of the network's output."""
        return sigma * self.sigma_data / torch.sqrt(sigma**2 + self.sigma_data**2)

    def into(self, sigma: Tensor) -> Tensor:
        """The factor of the network's input, which then has a standard deviation of 1."""
        return 1 / torch.sqrt(sigma**2 + self.sigma_data**2)

    def weight(self, sigma: Tensor) -> Tensor:
        """The weight of a squared error in the loss, which makes all levels count alike."""
        return self.out(sigma) ** -2


class FieldDenoiser(nn.Module):
    """A network with its preconditioning: noisy fields to clean ones.

    Args:
        network: takes fields and a number for each case, a quarter of the logarithm of its noise level; gives fields.
        preconditioning: the factors around it.

    >>> denoiser = FieldDenoiser(nn.Identity(), Preconditioning(1.0))
    >>> denoiser.network.forward = lambda fields, level: torch.zeros_like(fields)
    >>> denoiser(torch.ones(1, 1, 2, 2), torch.tensor([1.0])).flatten()  # what is skipped alone
    tensor([0.5000, 0.5000, 0.5000, 0.5000])
    """

    def __init__(self, network: nn.Module, preconditioning: Preconditioning):
        super().__init__()
        self.network, self.factors = network, preconditioning

    def forward(
        self, noisy: Float[Tensor, "case channel y x"], sigma: Float[Tensor, " case"]
    ) -> Float[Tensor, "case channel y x"]:
        level = sigma[:, None, None, None]
        seen = self.network(self.factors.into(level) * noisy, torch.log(sigma) / 4)
        return self.factors.skip(level) * noisy + self.factors.out(level) * seen


def noise_levels(num: int, sigma_max: float, sigma_min: float, rho: float = 7.0) -> list[float]:
    """Noise levels from ``sigma_max`` down to ``sigma_min``, even in their ``rho``-th root, and then 0.

    Args:
        num: how many there are before the 0, at least 2.
        sigma_max, sigma_min: the first and the last of them; ``0 < sigma_min < sigma_max``.
        rho: the larger, the more levels lie near ``sigma_min``.

    >>> [round(level, 3) for level in noise_levels(4, 10.0, 0.01)]
    [10.0, 1.936, 0.226, 0.01, 0.0]
    """
    if num < 2 or not 0 < sigma_min < sigma_max:
        raise UsageError(f"noise levels need at least 2 steps and 0 < sigma_min < sigma_max; got {num} steps")
    high, low = sigma_max ** (1 / rho), sigma_min ** (1 / rho)
    return [(high + i / (num - 1) * (low - high)) ** rho for i in range(num)] + [0.0]


def heun_step(x: Tensor, sigma: float, to: float, denoise: Denoise) -> Tensor:
    """One step back from the noise level ``sigma`` to a lower one; the last step, to 0, is Euler's.

    >>> heun_step(torch.tensor([2.0]), sigma=2.0, to=1.0, denoise=lambda x, sigma: 0 * x)  # towards a clean 0
    tensor([1.])

    Args:
        x: noisy fields.
        sigma, to: the levels before and after the step.
        denoise: gives clean fields, of noisy ones and their level.
    """
    slope = (x - denoise(x, sigma)) / sigma
    moved = x + (to - sigma) * slope
    if to == 0:
        return moved
    return x + (to - sigma) * (slope + (moved - denoise(moved, to)) / to) / 2
