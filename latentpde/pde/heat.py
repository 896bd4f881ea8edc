"""Heat that spreads alike in all directions."""

from latentpde.pde.base import Coefficient, Family


class Heat(Family):
    r""":math:`u_t = \kappa \Delta u + f`.

    It has no preferred direction, so it runs between walls of any kind.

    >>> import torch
    >>> from latentpde.grid import wavenumbers
    >>> Heat().symbol(wavenumbers((2, 2), extent=(2.0, 2.0)), torch.tensor(0.5).double())[0] / torch.pi**2
    tensor([0.0000, 0.5000], dtype=torch.float64)
    """

    name = "heat"
    equation = "u_t = κ Δu + f"
    order = 1
    coefficients = (Coefficient("kappa", 0.001, 0.35, "L²/T", "diffusivity"),)
    default_time = 0.25
    separable = True

    def symbol(self, k, kappa):
        return kappa * (k.y**2 + k.x**2)
