"""The steady field of a source."""

from latentpde.pde.base import Coefficient, Family


class Poisson(Family):
    r""":math:`-\kappa \Delta u = u_0 + f`.

    Where walls do not fix the field, as on a torus, its mean is not determined, and is taken as zero.

    >>> import torch
    >>> from latentpde.grid import wavenumbers
    >>> k, theta = wavenumbers((2, 2), extent=(2.0, 2.0)), torch.tensor([2.0], dtype=torch.float64)
    >>> Poisson().source_response(k, torch.ones(1).double(), theta)[0, 0] * torch.pi**2
    tensor([0.0000, 0.5000], dtype=torch.float64)
    """

    name = "poisson"
    equation = "-κ Δu = u0 + f"
    order = 0
    coefficients = (Coefficient("kappa", 0.1, 10.0, "L²/T", "conductivity"),)

    def symbol(self, k, kappa):
        return kappa * (k.y**2 + k.x**2)
