"""The parameters that the search works on: the PDE's coefficients and the levels that are inferred with them.

They are one vector with one prior. Each has an interval, on which a coefficient is uniform (or Gaussian, or fixed) and
a level, which is positive and may be anything from tiny to large, uniform in its logarithm. The search sees the unit
box.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from latentpde.errors import UsageError
from latentpde.latent import Latent


@dataclass(frozen=True)
class Level:
    """A positive quantity that is inferred: a standard deviation, a length, a slope.

    Args:
        name: as results call it.
        lower, upper: its bounds.
        guessed: whether nobody gave them but the sizes of the data.
    """

    name: str
    lower: float
    upper: float
    guessed: bool = False


@dataclass(frozen=True, eq=False)
class Parameters:
    """Coefficients, then levels, with their prior.

    >>> from latentpde.pde import get_family
    >>> latent = Latent(get_family("telegraph"))
    >>> parameters = Parameters.of(latent, gaussian={}, fixed={"d": 0.5}, levels=[Level("noise_std", 0.01, 1.0)])
    >>> parameters.names
    ('c', 'd', 'noise_std')
    >>> parameters.at(np.array([[0.0, 0.5], [1.0, 1.0]]))[:, 1:]  # the box has an axis for each free one
    tensor([[0.5000, 0.1000],
            [0.5000, 1.0000]], dtype=torch.float64)

    Args:
        latent: the family and the coefficients' bounds.
        levels: what is inferred beside the coefficients.
        base: value of each fixed coefficient, lower bound of each free one.
        free: indices of the free coefficients.
        centre, width: mean and standard deviation of the Gaussian ones; infinite width for the uniform ones.
    """

    latent: Latent
    levels: tuple[Level, ...]
    base: Float[Tensor, " coefficient"]
    free: Tensor
    centre: Float[Tensor, " coefficient"]
    width: Float[Tensor, " coefficient"]

    @classmethod
    def of(
        cls,
        latent: Latent,
        gaussian: Mapping[str, tuple[float, float]],
        fixed: Mapping[str, float],
        levels: Sequence[Level] = (),
    ) -> Parameters:
        names = latent.family.coefficient_names
        unknown = sorted((set(gaussian) | set(fixed)) - set(names))
        if unknown or set(gaussian) & set(fixed):
            raise UsageError(
                f"prior for {', '.join(unknown) or 'a fixed coefficient'}: give each of {', '.join(names)} at most one"
            )
        lower, upper = latent.bounds.unbind(-1)
        base, centre = lower.clone(), lower.clone()
        width = torch.full_like(base, torch.inf)
        for name, value in fixed.items():
            j = names.index(name)
            if not lower[j] <= value <= upper[j]:
                raise UsageError(f"{name} is fixed at {value}, outside its bounds [{lower[j]:g}, {upper[j]:g}]")
            base[j] = value
        for name, (mean, std) in gaussian.items():
            if not (math.isfinite(mean) and 0 < std < math.inf):
                raise UsageError(f"the prior of {name} needs a finite mean and a positive std, got {mean}, {std}")
            centre[names.index(name)], width[names.index(name)] = mean, std
        free = torch.tensor([j for j, name in enumerate(names) if name not in fixed], dtype=torch.long)
        return cls(latent, tuple(levels), base, free, centre, width)

    @property
    def names(self) -> tuple[str, ...]:
        """Of all parameters, in their order."""
        return *self.latent.family.coefficient_names, *(level.name for level in self.levels)

    @property
    def num_free(self) -> int:
        """Axes of the unit box."""
        return len(self.free) + len(self.levels)

    @property
    def middle(self) -> Float[Tensor, "1 parameter"]:
        """The middle of all bounds."""
        levels = self._at_levels(torch.full((1, len(self.levels)), 0.5, dtype=torch.float64))
        return torch.cat([self.latent.bounds.mean(-1)[None], levels], dim=-1)

    def at(self, points: Float[np.ndarray, "point free"]) -> Float[Tensor, "point parameter"]:
        """Parameters at points of the unit box, which has an axis for each free one."""
        return self.of_box(torch.from_numpy(points))

    def of_box(self, points: Float[Tensor, "point free"]) -> Float[Tensor, "point parameter"]:
        """The same, differentiable."""
        lower, upper = self.latent.bounds[self.free].unbind(-1)
        coefficients = self.base.repeat(len(points), 1)
        coefficients[:, self.free] = lower + (upper - lower) * points[:, : len(self.free)]
        if not self.levels:
            return coefficients
        return torch.cat([coefficients, self._at_levels(points[:, len(self.free) :])], dim=-1)

    def in_box(self, parameters: Float[Tensor, "point parameter"]) -> Float[np.ndarray, "point free"]:
        """The points of the unit box that are next to some parameters: the inverse of `at`.

        >>> from latentpde.pde import get_family
        >>> parameters = Parameters.of(Latent(get_family("telegraph")), {}, {"d": 0.5}, [Level("noise_std", 0.01, 1.0)])
        >>> parameters.in_box(parameters.at(np.array([[0.25, 0.5]]))).round(12).tolist()
        [[0.25, 0.5]]
        """
        lower, upper = self.latent.bounds[self.free].unbind(-1)
        shares = (parameters[:, : len(self.base)][:, self.free] - lower) / (upper - lower)
        if self.levels:
            lower, upper = self._log_bounds.unbind(-1)
            of_levels = (torch.log(parameters[:, len(self.base) :]) - lower) / (upper - lower)
            shares = torch.cat([shares, of_levels], dim=-1)
        return shares.clamp(0.0, 1.0).numpy()

    def log_density(self, parameters: Float[Tensor, "point parameter"]) -> Float[Tensor, " point"]:
        """Log density of the prior with respect to the unit box; zero where all is uniform there."""
        theta = parameters[:, : len(self.base)]
        lower, upper = self.latent.bounds.unbind(-1)
        normal = torch.distributions.Normal(self.centre, torch.where(self.width.isinf(), 1.0, self.width))
        inside = normal.cdf(upper) - normal.cdf(lower)
        log_ratio = normal.log_prob(theta) + torch.log((upper - lower) / inside)
        return torch.where(self.width.isinf(), 0.0, log_ratio).sum(-1)

    @cached_property
    def _log_bounds(self) -> Float[Tensor, "level 2"]:
        return torch.tensor([[math.log(p.lower), math.log(p.upper)] for p in self.levels], dtype=torch.float64)

    def _at_levels(self, points: Float[Tensor, "point level"]) -> Float[Tensor, "point level"]:
        if not self.levels:
            return points
        lower, upper = self._log_bounds.unbind(-1)
        return torch.exp(lower + (upper - lower) * points)
