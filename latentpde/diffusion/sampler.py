"""The reverse chain: from noise, or from a noisy warm start, to clean latents.

All members of all cases go back together. Members start at steps of their own, the noisiest first; at each step those
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
    """How to go back.

    Args:
        num_steps: steps taken from the noisiest start, spread evenly; 0 takes every step of the schedule.
        stochasticity: 1 for DDPM, 0 for DDIM, between for between.
    """

    num_steps: int = 0
    stochasticity: float = 1.0

    def __post_init__(self):
        if self.num_steps < 0 or not 0 <= self.stochasticity <= 1:
            raise UsageError("a reverse chain needs num_steps not negative and stochasticity between 0 and 1")

    def path(self, start: int) -> list[int]:
        """Steps visited from ``start`` down to -1, the clean latent."""
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
        """Members after the last step.

        Args:
            schedule: of the noise.
            clean: warm start of each member, in normalised units.
            starts: the step that each member starts at, noisiest first; only the nearest steps of `path` are visited.
            predict: the denoiser.
            correct: guidance.
            normals: randomness.
            advance: told of each step done.
        """
        if any(a < b for a, b in pairwise(starts)):
            raise UsageError("members must be ordered by their start, the noisiest first")
        path = self.path(starts[0])
        begin = [min(range(len(path) - 1), key=lambda i, start=start: abs(path[i] - start)) for start in starts]
        levels = schedule.alpha_bar(torch.tensor([path[i] for i in begin]))[:, None]
        z = torch.sqrt(levels) * clean + torch.sqrt(1 - levels) * normals(len(starts))
        for i, (step, to) in enumerate(pairwise(path)):
            active = sum(b <= i for b in begin)
            noisy = z[:, :active]
            better = correct(schedule.clean_of(noisy, predict(noisy, step), step), step)
            fresh = normals(active) if to >= 0 and self.stochasticity else None
            moved = schedule.back(noisy, better, step, to, fresh, self.stochasticity)
            z = torch.cat([moved, z[:, active:]], dim=1)
            advance(1)
        return z
