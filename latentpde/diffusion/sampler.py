"""The reverse chain: from noise, or from a noisy warm start, to clean latents.

All draws of all cases go back together. Each draw starts at a step of its own, the noisiest first; at each step those
that have started form a leading slice, so no work is done for the others.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import torch
from jaxtyping import Float
from torch import Tensor

from latentpde.diffusion.schedule import Schedule
from latentpde.errors import UsageError
from latentpde.progress import Advance

Predict = Callable[[Tensor, int], Tensor]  # noisy latents (case, draw, latent) and their step, to their noise
Correct = Callable[[Tensor, int], Tensor]  # predicted clean latents and the step, to better ones
Normals = Callable[[int], Tensor]  # how many draws per case, to standard normals (case, draw, latent)


@dataclass(frozen=True, kw_only=True)
class ReverseChain:
    """Which steps of a noise schedule a chain visits on its way back, and how random they are.

    Args:
        num_steps: steps taken from the noisiest start, spread evenly; 0 takes every step of the schedule.
        stochasticity: 1 for DDPM, 0 for the deterministic DDIM, or anything between.

    Example:
        >>> chain = ReverseChain(num_steps=4, stochasticity=0.0)
        >>> chain.path(start=99)
        [99, 74, 49, 24, -1]
        >>> end = chain.run(
        ...     Schedule(),
        ...     torch.zeros(1, 1, 3),  # one case, the same start for all its draws, a latent of three entries
        ...     starts=[99, 99],
        ...     predict=lambda noisy, step: noisy,  # a denoiser that takes everything for noise
        ...     correct=lambda clean, step: clean,  # no guidance
        ...     normals=lambda num: torch.ones(1, num, 3),
        ... )
        >>> tuple(end.shape)
        (1, 2, 3)
    """

    num_steps: int = 0
    stochasticity: float = 1.0

    def __post_init__(self):
        if self.num_steps < 0 or not 0 <= self.stochasticity <= 1:
            raise UsageError("a reverse chain needs num_steps not negative and stochasticity between 0 and 1")

    def path(self, start: int) -> list[int]:
        """The steps visited from ``start`` down to -1, which stands for the clean latent."""
        num = min(self.num_steps or start + 1, start + 1)
        return [round(float(s)) for s in torch.linspace(start, -1, num + 1, dtype=torch.float64)]

    def run(
        self,
        schedule: Schedule,
        clean: Float[Tensor, "case #draw latent"],
        starts: list[int],
        *,
        predict: Predict,
        correct: Correct,
        normals: Normals,
        advance: Advance = lambda count: None,
    ) -> Float[Tensor, "case draw latent"]:
        """Add noise to clean latents and go all the way back; returns the latents after the last step.

        Args:
            schedule: how much noise there is at each step.
            clean: the latent that each draw starts from, before noise is added; normalised, as the denoiser has it.
            starts: the step that each draw starts at, the noisiest first; of the steps on `path` the nearest is taken.
            predict: the denoiser: from noisy latents and their step to the noise in them.
            correct: guidance: from predicted clean latents and the step to better ones.
            normals: random numbers: from a number of draws to as many standard normal latents per case.
            advance: called with 1 after each step.
        """
        if any(a < b for a, b in pairwise(starts)):
            raise UsageError("draws must be ordered by their start, the noisiest first")
        path = self.path(starts[0])
        begin = [min(range(len(path) - 1), key=lambda i, start=start: abs(path[i] - start)) for start in starts]
        levels = schedule.alpha_bar(torch.tensor([path[i] for i in begin]))[:, None]
        z = torch.sqrt(levels) * clean + torch.sqrt(1 - levels) * normals(len(starts))
        for i, (step, to) in enumerate(pairwise(path)):
            num_started = sum(b <= i for b in begin)
            noisy = z[:, :num_started]
            better = correct(schedule.clean_of(noisy, predict(noisy, step), step), step)
            fresh = normals(num_started) if to >= 0 and self.stochasticity else None
            moved = schedule.back(noisy, better, step, to, fresh, self.stochasticity)
            z = torch.cat([moved, z[:, num_started:]], dim=1)
            advance(1)
        return z
