"""Waves that lose energy: between a wave equation and diffusion."""

from latentpde.pde.base import Coefficient, Family


class Telegraph(Family):
    r""":math:`u_{tt} + d\,u_t = c^2 \Delta u + f`, at rest at time 0.

    Long waves (:math:`c |k| < d/2`) creep as under diffusion, short ones ring.

    >>> import torch
    >>> from latentpde.grid import wavenumbers
    >>> k, times = wavenumbers((2, 2), extent=(1.0, 1.0)), torch.tensor([0.5], dtype=torch.float64)
    >>> theta = torch.tensor([[1.0, 0.0], [1.0, 20.0]], dtype=torch.float64)  # without damping, and with much of it
    >>> Telegraph().state_response(k, times, theta)[:, 0, 0, 1].round(decimals=3)
    tensor([-1.0000,  0.3760], dtype=torch.float64)
    """

    name = "telegraph"
    equation = "u_tt + d u_t = c² Δu + f"
    order = 2
    coefficients = (
        Coefficient("c", 0.2, 2.5, "L/T", "wave speed"),
        Coefficient("d", 0.0, 20.0, "1/T", "damping rate"),
    )

    def symbol(self, k, c, d):
        return c**2 * k.squared

    def damping(self, k, c, d):
        return d
