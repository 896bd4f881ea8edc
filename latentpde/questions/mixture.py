"""The posterior over several families: each weighs as much as it is likely."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from latentpde.errors import UsageError
from latentpde.estimators.exact.posterior import ExactPosterior
from latentpde.grid import Grid
from latentpde.posterior import Posterior


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class MixturePosterior(Posterior):
    """Draws of several posteriors, as many of each as it is likely; the mean is weighted exactly.

    There is no PDE of its own, and so no coefficients.

    >>> import latentpde as lp
    >>> cases = lp.simulate("klein_gordon", num=1, seed=3, shape=(32, 32), num_modes=2, sparsity=0.5)
    >>> mixed = lp.reconstruct(cases, ["klein_gordon", "telegraph"], average=True, num_draws=4)
    >>> mixed.draws(resolution=8).sizes["draw"] >= 4, mixed.std(resolution=8).shape
    (True, (1, 8, 8))

    Args:
        parts: the posterior of each family.
        weights: of each.
        counts: how many draws are taken of each.
    """

    parts_of: tuple[Posterior, ...]
    weights: tuple[float, ...]
    counts: tuple[int, ...]

    @classmethod
    def of(
        cls, posteriors: Mapping[str, Posterior], weights: Mapping[str, float], num_draws: int, settings: dict[str, Any]
    ) -> MixturePosterior:
        """The mixture of posteriors of the same readings, each with at least as many draws."""
        names = [name for name in posteriors if round(num_draws * weights[name]) > 0]
        parts = tuple(posteriors[name] for name in names)
        total = sum(weights[name] for name in names)
        shares = np.array([weights[name] / total for name in names])
        ends = np.round(np.cumsum(shares) * num_draws).astype(int)
        counts = np.diff(np.concatenate([[0], ends]))
        first = parts[0]
        return cls(
            observation=first.observation,
            method=first.method,
            settings={**first.settings, **settings},
            diagnostics={name: first.diagnostics[name] for name in ("misfit", "trusted", "p_model")},
            call={**first.call, "family": list(posteriors), "average": True},
            parts_of=parts,
            weights=tuple(shares.tolist()),
            counts=tuple(counts.tolist()),
        )

    @property
    def num_draws(self) -> int:
        return sum(self.counts)

    def fields(self, cases: slice, grid: Grid, times: Float[Tensor, " time"]) -> Float[Tensor, "case draw time y x"]:
        own = zip(self.parts_of, self.counts, strict=True)
        return torch.cat([part.fields(cases, grid, times)[:, :count] for part, count in own if count], dim=1)

    def means(
        self, cases: slice, grid: Grid, times: Float[Tensor, " time"], draws: Tensor | None = None
    ) -> Float[Tensor, "case time y x"]:
        own = zip(self.parts_of, self.weights, strict=True)
        return torch.stack([weight * part.means(cases, grid, times) for part, weight in own]).sum(0)

    def warnings(self, case: int) -> list[str]:
        return self.parts_of[0].warnings(case)


def of_one_family(posterior: Posterior, question: str) -> ExactPosterior:
    """The posterior that a question is about; raises `UsageError` where it is of another method, or a mixture.

    Args:
        posterior: that was given.
        question: as the beginning of the error.
    """
    if isinstance(posterior, MixturePosterior):
        names = ", ".join(posterior.call["family"])
        raise UsageError(f"{question} needs the posterior of one family, and this is a mixture of {names}: choose one")
    if not isinstance(posterior, ExactPosterior):
        raise UsageError(f"{question} needs the posterior of the method exact, not of {posterior.method}")
    return posterior
