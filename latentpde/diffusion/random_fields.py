r"""Gaussian random fields as noise, the same ones at every resolution.

White noise on a grid has no limit as the grid is refined; a field with a covariance function has. This one falls off
exponentially with the distance around the torus,

.. math:: c(r) = e^{-r / \ell}

so that its Fourier coefficients fall off like those of rough data. A grid's cells are points of it: the covariance
between two places is the same on every grid that has them. On a torus the covariance matrix is circulant, and drawing,
multiplying and solving are one FFT each.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import torch
from jaxtyping import Float
from torch import Tensor

from latentpde.errors import UsageError


@dataclass(frozen=True)
class RandomField:
    """Stationary noise of mean 0 and variance 1 on a torus, in coordinates relative to its sides.

    Args:
        length: ``l``, the distance over which the correlation falls to 1/e; up to a tenth of a side.

    >>> noise = RandomField(0.1)
    >>> white = torch.randn((500, 16, 16), generator=torch.Generator().manual_seed(0))
    >>> draws = noise.colour(white)
    >>> round(float((draws * draws.roll(2, -1)).mean()), 1)  # an eighth of a side apart: exp(-1.25)
    0.3
    """

    length: float = 0.05

    def __post_init__(self):
        if not 0 < self.length <= 0.1:
            raise UsageError(f"the noise's length must be above 0 and at most a tenth of a side; got {self.length}")

    def covariance(self, distance: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        """The covariance between two places, by their distance relative to the sides."""
        return torch.exp(-distance / self.length)

    def eigenvalues(self, shape: tuple[int, int]) -> Float[Tensor, "y half"]:
        """Eigenvalues of the covariance matrix on a grid, one for each mode of the half spectrum."""
        return _eigenvalues(self, shape)

    def colour(self, white: Float[Tensor, "*batch y x"]) -> Float[Tensor, "*batch y x"]:
        """A draw of the noise, made of independent standard normals, one for each cell."""
        return self._multiply(white, 0.5)

    def apply(self, fields: Float[Tensor, "*batch y x"]) -> Float[Tensor, "*batch y x"]:
        """Fields multiplied by the covariance matrix."""
        return self._multiply(fields, 1.0)

    def _multiply(self, fields: Tensor, power: float) -> Tensor:
        shape = (fields.shape[-2], fields.shape[-1])
        factor = self.eigenvalues(shape).to(fields) ** power
        return torch.fft.irfft2(torch.fft.rfft2(fields) * factor, s=shape)


@lru_cache(maxsize=16)
def _eigenvalues(field: RandomField, shape: tuple[int, int]) -> Tensor:
    apart = [torch.minimum(torch.arange(n), n - torch.arange(n)).double() / n for n in shape]
    table = field.covariance(torch.hypot(apart[0][:, None], apart[1]))
    return torch.fft.rfft2(table).real.clamp(min=0)
