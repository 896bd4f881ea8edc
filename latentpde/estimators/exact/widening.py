"""Bounds that nobody gave, and that turn out to be too narrow."""

from __future__ import annotations

import warnings
from dataclasses import replace

import torch
from jaxtyping import Float
from torch import Tensor

from latentpde.errors import LatentPDEWarning
from latentpde.latent import Latent

_NEAR, _MUCH = 0.02, 0.1  # share of the interval that is near an end, and share of the draws that is much there
_FACTOR = 2.0
_NEXT_TO_ZERO = 0.05  # of the upper bound: below that a lower bound is there for the sake of being positive


def widened(latent: Latent, theta: Float[Tensor, "draw coefficient"]) -> Latent | None:
    """The latent with wider bounds for the coefficients that press against an end of theirs, with a warning; ``None``
    where none does.

    >>> from latentpde.pde import get_family
    >>> bounds = torch.tensor([[-1.0, 1.0], [-1.0, 1.0], [0.001, 0.5]])
    >>> latent = Latent(get_family("advection_diffusion"), bounds=bounds, guessed=("vx", "kappa"))
    >>> theta = torch.tensor([[0.99, 0.0, 0.001], [0.97, 0.99, 0.002]])
    >>> with warnings.catch_warnings(action="ignore"):
    ...     widened(latent, theta).bounds[0]
    tensor([-1.,  2.], dtype=torch.float64)

    Args:
        latent: the bounds, and which of them nobody gave.
        theta: draws of the coefficients.
    """
    bounds, changed = latent.bounds.clone(), []
    for j, name in enumerate(latent.family.coefficient_names):
        lower, upper = latent.bounds[j].tolist()
        if name not in latent.guessed:
            continue
        share = (theta[:, j] - lower) / (upper - lower)
        if float((share > 1 - _NEAR).double().mean()) > _MUCH:
            bounds[j, 1] = upper + (_FACTOR - 1) * (upper - min(max(lower, 0.0), upper))
        if float((share < _NEAR).double().mean()) > _MUCH and not 0 <= lower <= _NEXT_TO_ZERO * upper:
            bounds[j, 0] = lower * _FACTOR if lower < 0 else lower / _FACTOR
        if not torch.equal(bounds[j], latent.bounds[j]):
            changed.append(f"{name} to [{float(bounds[j, 0]):.4g}, {float(bounds[j, 1]):.4g}]")
    if not changed:
        return None
    warnings.warn(
        "draws of coefficients lie at the ends of bounds that nobody gave, which are widened: "
        f"{', '.join(changed)}; give bounds where you know them",
        LatentPDEWarning,
        stacklevel=4,
    )
    return replace(latent, bounds=bounds)
