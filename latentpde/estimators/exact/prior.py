"""The coefficients' prior, on the unit box that the search works on."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from latentpde.errors import UsageError
from latentpde.latent import Latent


@dataclass(frozen=True, eq=False)
class CoefficientPrior:
    """Free coefficients, uniform or Gaussian within their bounds, and fixed ones.

    >>> from latentpde.pde import get_family
    >>> prior = CoefficientPrior.of(Latent(get_family("telegraph")), gaussian={}, fixed={"d": 0.5})
    >>> prior.num_free, prior.theta(np.array([[0.0], [1.0]]))[:, 1].tolist()
    (1, [0.5, 0.5])

    Args:
        latent: the family and the coefficients' bounds.
        base: value of each fixed coefficient, lower bound of each free one.
        free: indices of the free ones.
        centre, width: mean and standard deviation of the Gaussian ones; infinite width for the uniform ones.
    """

    latent: Latent
    base: Float[Tensor, " coefficient"]
    free: Tensor
    centre: Float[Tensor, " coefficient"]
    width: Float[Tensor, " coefficient"]

    @classmethod
    def of(
        cls, latent: Latent, gaussian: Mapping[str, tuple[float, float]], fixed: Mapping[str, float]
    ) -> CoefficientPrior:
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
        return cls(latent, base, free, centre, width)

    @property
    def num_free(self) -> int:
        return len(self.free)

    def theta(self, points: Float[np.ndarray, "point free"]) -> Float[Tensor, "point coefficient"]:
        """Coefficients at points of the unit box, which has an axis for each free one."""
        lower, upper = self.latent.bounds[self.free].unbind(-1)
        theta = self.base.repeat(len(points), 1)
        theta[:, self.free] = lower + (upper - lower) * torch.from_numpy(points)
        return theta

    def log_density(self, theta: Float[Tensor, "point coefficient"]) -> Float[Tensor, " point"]:
        """Log density of the prior with respect to the unit box; zero where all is uniform."""
        lower, upper = self.latent.bounds.unbind(-1)
        normal = torch.distributions.Normal(self.centre, torch.where(self.width.isinf(), 1.0, self.width))
        inside = normal.cdf(upper) - normal.cdf(lower)
        log_ratio = normal.log_prob(theta) + torch.log((upper - lower) / inside)
        return torch.where(self.width.isinf(), 0.0, log_ratio).sum(-1)
