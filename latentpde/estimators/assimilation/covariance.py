r"""The covariance of a background's error, by an inverse diffusion operator.

.. math:: B^{-1} = \sigma_b^{-2}\, (I - L^2 \nabla^2)^p

with the five-point Laplacian on cell centres (Weaver and Courtier, 2001). Periodic edges make it diagonal under the
discrete Fourier transform, and Neumann edges, a cell mirrored at the wall, under the cosine transform of type II; so
any power of :math:`B` costs two transforms. :math:`\sigma_b` is no standard deviation of the field: a pointwise one
depends on :math:`L` and the cells' size. Here it is the pointwise standard deviation that is given, as a mean over the
domain, and :math:`\sigma_b` follows; so both options keep their meaning on any grid.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import Literal

import numpy as np
import scipy.fft
import torch
from jaxtyping import Float
from torch import Tensor

from latentpde.grid import Grid, mode_weights

Edges = Literal["periodic", "neumann"]


class BackgroundCovariance:
    """The covariance matrix ``B`` of the background's error on one grid, which is never written out.

    Args:
        grid: where the background lives.
        std: pointwise standard deviation of the error, root mean square over the domain, in the field's units.
        length: ``L``, in physical units, positive.
        power: ``p``, at least 1.
        edges: ``"periodic"`` or ``"neumann"``.

    Example:
        >>> covariance = BackgroundCovariance(Grid((8, 8)), std=0.5, length=0.2)
        >>> round(float(covariance.variance[0, 0]), 6)
        0.25
        >>> point = torch.zeros(8, 8, dtype=torch.float64)
        >>> point[3, 4] = 1.0
        >>> round(float(covariance.apply(point)[3, 4]), 6)  # the same variance, as an entry of B
        0.25
    """

    def __init__(self, grid: Grid, std: float, length: float, power: int = 2, edges: str = "periodic"):
        self.grid, self.edges = grid, edges
        step = 2 * torch.pi if edges == "periodic" else torch.pi
        minus_y, minus_x = (
            (2 - 2 * torch.cos(step * torch.arange(n, dtype=torch.float64) / n)) / spacing**2
            for n, spacing in zip(grid.shape, grid.spacing, strict=True)
        )
        if edges == "periodic":
            minus_x = minus_x[: grid.shape[1] // 2 + 1]
        shape = (1 + length**2 * (minus_y[:, None] + minus_x)) ** -power
        self.sigma = std / math.sqrt(float(self._mean_eigenvalue(shape)))
        self._eigenvalues = self.sigma**2 * shape

    def apply(self, fields: Float[Tensor, "*batch y x"], power: float = 1.0) -> Float[Tensor, "*batch y x"]:
        """Multiply fields by ``B^power``; the power 1/2 turns white noise into draws of the background's error."""
        if not fields.numel():
            return fields  # some transforms refuse an empty batch
        scale = self._eigenvalues**power
        if self.edges == "periodic":
            return torch.fft.irfft2(scale * torch.fft.rfft2(fields), s=self.grid.shape)
        coefficients = scipy.fft.dctn(fields.numpy(), type=2, axes=(-2, -1), norm="ortho")
        return torch.from_numpy(scipy.fft.idctn(coefficients * scale.numpy(), type=2, axes=(-2, -1), norm="ortho"))

    @cached_property
    def variance(self) -> Float[Tensor, "y x"]:
        """The diagonal of ``B``: the same everywhere with periodic edges, larger at walls."""
        if self.edges == "periodic":
            return self._mean_eigenvalue(self._eigenvalues).expand(self.grid.shape)
        squared_y, squared_x = (
            torch.from_numpy(np.asarray(scipy.fft.idct(np.eye(n), axis=0, norm="ortho")) ** 2) for n in self.grid.shape
        )
        return squared_y @ self._eigenvalues @ squared_x.T

    def _mean_eigenvalue(self, eigenvalues: Tensor) -> Tensor:
        """The trace over the number of cells, which is the mean of the diagonal."""
        if self.edges == "neumann":
            return eigenvalues.mean()
        nx = self.grid.shape[1]
        weight = mode_weights(nx // 2 + 1)
        if nx % 2 == 0:
            weight[-1] = 1.0  # the Nyquist column has no partner
        return (eigenvalues * weight).sum() / (self.grid.shape[0] * nx)
