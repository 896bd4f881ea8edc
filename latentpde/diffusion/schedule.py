r"""The noise schedule: how much noise there is at each step of a diffusion.

.. math:: q(w_\tau \mid w_0) = N(\sqrt{\bar\alpha_\tau}\, w_0, (1 - \bar\alpha_\tau) I), \qquad
          \bar\alpha_\tau = \prod_{s \le \tau} (1 - \beta_s)

with :math:`\beta` linear in the step (Ho, Jain and Abbeel, 2020). A step back from :math:`\tau` to any earlier
:math:`s`, given the clean latent that the denoiser predicts, is one formula (Song, Meng and Ermon, 2021):

.. math:: w_s = \sqrt{\bar\alpha_s}\, \hat w_0 + \sqrt{1 - \bar\alpha_s - v}\; \hat\epsilon + \sqrt v\, \xi, \qquad
          v = \eta^2\, \frac{1 - \bar\alpha_s}{1 - \bar\alpha_\tau}
          \left(1 - \frac{\bar\alpha_\tau}{\bar\alpha_s}\right)

It is DDPM for :math:`\eta = 1` and deterministic for :math:`\eta = 0`. Step -1 is the clean latent.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Float, Int
from torch import Tensor

from latentpde.errors import UsageError

MOST_STEPS = 10**6


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """A noise schedule whose added variance is linear in the step.

    Args:
        num_steps: ``T``, the number of steps, from 1 to a million; steps count from 0, the least noisy.
        beta_start, beta_end: variance that the first and the last step add, with 0 < beta_start <= beta_end < 1.

    Example:
        >>> schedule = Schedule()
        >>> step = schedule.step_of(0.6)  # where the noise has a standard deviation of 0.6
        >>> step
        131
        >>> clean, noise = torch.tensor([1.0, -1.0]), torch.tensor([0.5, 0.5])
        >>> noisy = schedule.add_noise(clean, noise, torch.tensor(step))
        >>> schedule.clean_of(noisy, noise, step)
        tensor([ 1., -1.])
    """

    num_steps: int = 400
    beta_start: float = 1e-4
    beta_end: float = 0.02

    def __post_init__(self):
        if not 1 <= self.num_steps <= MOST_STEPS or not 0 < self.beta_start <= self.beta_end < 1:
            raise UsageError(
                f"a schedule needs 1 to {MOST_STEPS:,} steps, and 0 < beta_start <= beta_end < 1; got {self}"
            )

    @cached_property
    def _alpha_bar(self) -> Float[Tensor, " step"]:
        beta = torch.linspace(self.beta_start, self.beta_end, self.num_steps, dtype=torch.float64)
        # the last entry, which is also index -1, is the clean latent's
        return torch.cat([torch.cumprod(1 - beta, 0), torch.ones(1, dtype=torch.float64)])

    def alpha_bar(self, step: Int[Tensor, "*batch"] | int) -> Float[Tensor, "*batch"]:
        """``alpha_bar``, the share of the clean latent in the variance, at any steps; 1 at step -1."""
        return self._alpha_bar[step]

    def step_of(self, sigma: float) -> int:
        """The step whose noise, ``sqrt(1 - alpha_bar)``, is nearest to ``sigma``."""
        return int((torch.sqrt(1 - self._alpha_bar[:-1]) - sigma).abs().argmin())

    def add_noise(
        self,
        clean: Float[Tensor, "*#batch latent"],
        noise: Float[Tensor, "*batch latent"],
        step: Int[Tensor, "*batch"],
    ) -> Float[Tensor, "*batch latent"]:
        """The noisy latent of a clean one and standard normal noise, each at a step of its own."""
        level = self.alpha_bar(step)[..., None].to(clean)
        return torch.sqrt(level) * clean + torch.sqrt(1 - level) * noise

    def clean_of(self, noisy: Tensor, noise: Tensor, step: Int[Tensor, "*batch"] | int) -> Tensor:
        """The clean latent that a noisy one was made from with this noise; any shapes that broadcast."""
        level = self.alpha_bar(step).to(noisy)
        return (noisy - torch.sqrt(1 - level) * noise) / torch.sqrt(level)

    def noise_of(self, noisy: Tensor, clean: Tensor, step: int) -> Tensor:
        """The noise that was added to a clean latent to make this noisy one."""
        level = self.alpha_bar(step).to(noisy)
        return (noisy - torch.sqrt(level) * clean) / torch.sqrt(1 - level)

    def back(
        self, noisy: Tensor, clean: Tensor, step: int, to: int, fresh: Tensor | None, stochasticity: float
    ) -> Tensor:
        """A step back, by the formula above.

        Args:
            noisy: latents at ``step``.
            clean: the clean latents that are predicted for them.
            step: where the noisy latents are.
            to: the earlier step to go to; -1 for the clean latent.
            fresh: standard normal noise; may be None where it has no effect.
            stochasticity: ``eta``, 1 for DDPM, 0 for a deterministic step.
        """
        now, then = float(self.alpha_bar(step)), float(self.alpha_bar(to))
        variance = stochasticity**2 * (1 - then) / (1 - now) * (1 - now / then)
        kept = max(0.0, 1 - then - variance) ** 0.5
        result = then**0.5 * clean + kept * self.noise_of(noisy, clean, step)
        return result if fresh is None or not variance else result + variance**0.5 * fresh
