"""Dispersive waves: two wave speeds and a mass."""

from latentpde.pde.base import Coefficient, Family


class KleinGordon(Family):
    r""":math:`u_{tt} - c_x^2 u_{xx} - c_y^2 u_{yy} + m^2 u = f`, at rest at time 0.

    >>> import torch
    >>> from latentpde.grid import wavenumbers
    >>> k, theta = wavenumbers((2, 2), extent=(1.0, 1.0)), torch.tensor([1.0, 1.0, 0.0], dtype=torch.float64)
    >>> response = KleinGordon().state_response(k, torch.tensor([0.5, 1.0], dtype=torch.float64), theta)
    >>> response[:, 0, 1].round(decimals=6)  # a standing wave, after half a period and after a whole one
    tensor([-1.,  1.], dtype=torch.float64)
    """

    name = "klein_gordon"
    equation = "u_tt = cx² u_xx + cy² u_yy - m² u + f"
    order = 2
    coefficients = (
        Coefficient("cx", 0.4, 2.8, "L/T", "wave speed along x"),
        Coefficient("cy", 0.4, 2.8, "L/T", "wave speed along y"),
        Coefficient("m", 0.3, 3.5, "1/T", "mass"),
    )

    def symbol(self, k, cx, cy, m):
        return (cx * k.x) ** 2 + (cy * k.y) ** 2 + m**2
