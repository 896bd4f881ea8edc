"""Transport by a uniform wind, spreading by diffusion."""

import torch

from latentpde.pde.base import Coefficient, Family


class AdvectionDiffusion(Family):
    r""":math:`u_t + v \cdot \nabla u = \kappa \Delta u + f`: a tracer in a uniform flow.

    >>> from latentpde.grid import wavenumbers
    >>> k, times = wavenumbers((2, 2), extent=(1.0, 1.0)), torch.tensor([0.25], dtype=torch.float64)
    >>> theta = torch.tensor([1.0, 0.0, 0.0], dtype=torch.float64)  # a wind along x, no diffusion
    >>> response = AdvectionDiffusion().state_response(k, times, theta)[0, 0, 1]
    >>> round(response.abs().item(), 6), round(response.angle().item() / torch.pi, 6)  # carried by a quarter of a wave
    (1.0, -0.5)
    """

    name = "advection_diffusion"
    equation = "u_t + v·∇u = κ Δu + f"
    order = 1
    coefficients = (
        Coefficient("vx", -3.0, 3.0, "L/T", "velocity along x"),
        Coefficient("vy", -3.0, 3.0, "L/T", "velocity along y"),
        Coefficient("kappa", 0.001, 0.35, "L²/T", "diffusivity"),
    )
    default_time = 0.25
    separable = True

    def symbol(self, k, vx, vy, kappa):
        return torch.complex(kappa * k.squared, vx * k.x + vy * k.y)
