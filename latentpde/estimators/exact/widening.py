"""Bounds that nobody gave, and that turn out to be too narrow."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace

import torch
from jaxtyping import Float
from torch import Tensor

from latentpde.errors import LatentPDEWarning
from latentpde.estimators.exact.parameters import Level
from latentpde.latent import Latent

_NEAR, _MUCH = 0.02, 0.1  # share of the interval that is near an end, and share of the draws that is much there
_FACTOR = 2.0
_NEXT_TO_ZERO = 0.05  # of the upper bound: below that a lower bound is there for the sake of being positive
_STRETCH = 5.0  # of a level's upper bound, whose prior is uniform in its logarithm


def widened(latent: Latent, parameters: Float[Tensor, "draw parameter"], levels: Sequence[Level] = ()) -> Latent | None:
    """The latent with wider bounds for the coefficients that press against an end of theirs, and for the strengths and
    lengths that press against their upper end, with a warning; ``None`` where none does.

    A level's lower end stands for nothing at all, or for a length that the readings cannot tell from noise, and stays.

    >>> from latentpde.pde import get_family
    >>> bounds = torch.tensor([[-1.0, 1.0], [-1.0, 1.0], [0.001, 0.5]])
    >>> latent = Latent(get_family("advection_diffusion"), bounds=bounds, guessed=("vx", "kappa"))
    >>> theta = torch.tensor([[0.99, 0.0, 0.001, 7.9], [0.97, 0.99, 0.002, 8.0]])
    >>> with warnings.catch_warnings(action="ignore"):
    ...     wider = widened(latent, theta, [Level("initial_prior_std", 0.1, 8.0, guessed=True)])
    >>> wider.bounds[0], wider.stretched
    (tensor([-1.,  2.], dtype=torch.float64), {'initial_prior_std': 5.0})

    Args:
        latent: the bounds, and which of them nobody gave.
        parameters: draws of the coefficients, then of the levels, in the units of either.
        levels: with their bounds; none for the coefficients to be looked at alone.
    """
    wider, changed = _wider(latent, parameters, levels)
    if not changed:
        return None
    warnings.warn(
        "draws of coefficients or levels lie at the ends of bounds that nobody gave, which are widened: "
        f"{', '.join(changed)}; give bounds where you know them",
        LatentPDEWarning,
        stacklevel=5,
    )
    return wider


class TooNarrow(Exception):
    """Parameters lie at the ends of bounds that nobody gave: to be widened before more is done.

    Args:
        parameters, levels: as those of `widened`.
        tops: where the posterior has maxima within them; none where that is not known.
    """

    def __init__(
        self, parameters: Float[Tensor, "draw parameter"], levels: Sequence[Level], tops: Float[Tensor, "top parameter"]
    ):
        super().__init__("bounds are too narrow")
        self.parameters, self.levels, self.tops = parameters, levels, tops


def require_wide(
    latent: Latent,
    parameters: Float[Tensor, "draw parameter"],
    tops: Float[Tensor, "top parameter"],
    levels: Sequence[Level] = (),
) -> None:
    """Raise `TooNarrow` where `widened` would widen the bounds for these parameters."""
    if _wider(latent, parameters, levels)[1]:
        raise TooNarrow(parameters, levels, tops)


def _wider(latent: Latent, parameters: Tensor, levels: Sequence[Level]) -> tuple[Latent, list[str]]:
    """The latent with wider bounds, and which of them are, in words."""
    bounds, changed = latent.bounds.clone(), []
    for j, name in enumerate(latent.family.coefficient_names):
        lower, upper = latent.bounds[j].tolist()
        if name not in latent.guessed:
            continue
        share = (parameters[:, j] - lower) / (upper - lower)
        if float((share > 1 - _NEAR).double().mean()) > _MUCH:
            bounds[j, 1] = upper + (_FACTOR - 1) * (upper - min(max(lower, 0.0), upper))
        if float((share < _NEAR).double().mean()) > _MUCH and not 0 <= lower <= _NEXT_TO_ZERO * upper:
            bounds[j, 0] = lower * _FACTOR if lower < 0 else lower / _FACTOR
        if not torch.equal(bounds[j], latent.bounds[j]):
            changed.append(f"{name} to [{float(bounds[j, 0]):.4g}, {float(bounds[j, 1]):.4g}]")
    stretched = dict(latent.stretched)
    for level, column in zip(levels, parameters.T[latent.num_coefficients :], strict=False):
        share = torch.log(column / level.lower) / torch.log(torch.tensor(level.upper / level.lower))
        if level.guessed and float((share > 1 - _NEAR).double().mean()) > _MUCH:
            stretched[level.name] = stretched.get(level.name, 1.0) * _STRETCH
            changed.append(f"{level.name} up to {_STRETCH * level.upper:.4g}")
    return replace(latent, bounds=bounds, stretched=stretched), changed
