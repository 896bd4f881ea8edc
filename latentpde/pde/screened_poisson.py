"""A steady field with a correlation length of its own in every direction."""

import torch

from latentpde.pde.base import Coefficient, Family


class ScreenedPoisson(Family):
    r""":math:`u - \nabla \cdot (A \nabla u) = u_0 + f`, with the tensor :math:`A` of two lengths and an angle.

    Along the direction ``angle`` the squared length of :math:`A` is ``length``\ :sup:`2`, across it
    ``(ratio length)``\ :sup:`2`. Under a white source the solution is a Matern field of smoothness 1 with these
    lengths (Whittle 1954; Lindgren, Rue and Lindström 2011): `exact` on it is kriging with the exact posterior of
    range, direction, noise and level.

    >>> from latentpde.grid import wavenumbers
    >>> k = wavenumbers((2, 2), extent=(1.0, 1.0))
    >>> along_x = ScreenedPoisson().symbol(k, *torch.tensor([0.5, 0.1, 0.0]).double())[0]
    >>> along_x.round(decimals=3)  # 1 + (2 pi / 2) ** 2
    tensor([ 1.0000, 10.8700], dtype=torch.float64)
    """

    name = "screened_poisson"
    equation = "u - ∇·(A ∇u) = u0 + f"
    order = 0
    coefficients = (
        Coefficient("length", 0.02, 1.0, "L", "length of the tensor along its direction"),
        Coefficient("ratio", 0.1, 1.0, "1", "length across it, as a share of that"),
        Coefficient("angle", 0.0, 3.141592653589793, "1", "direction, from the x axis towards the y axis"),
    )

    def symbol(self, k, length, ratio, angle):
        along = torch.cos(angle) * k.x + torch.sin(angle) * k.y
        across = torch.cos(angle) * k.y - torch.sin(angle) * k.x
        return 1 + length**2 * (along**2 + (ratio * across) ** 2)
