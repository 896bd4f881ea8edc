"""Transport by a uniform wind, spreading by diffusion, and decay."""

import torch

from latentpde.pde.base import Coefficient, Family


class AdvectionDiffusionDecay(Family):
    r""":math:`u_t + v \cdot \nabla u = \kappa \Delta u - \mu u + f`: a tracer that is lost on its way.

    >>> from latentpde.grid import wavenumbers
    >>> k = wavenumbers((2, 2), extent=(1.0, 1.0))
    >>> AdvectionDiffusionDecay().symbol(k, *torch.tensor([1.0, 0.0, 0.0, 0.5]).double())[0]
    tensor([0.5000+0.0000j, 0.5000+6.2832j], dtype=torch.complex128)
    """

    name = "advection_diffusion_decay"
    equation = "u_t + v·∇u = κ Δu - μ u + f"
    order = 1
    coefficients = (
        Coefficient("vx", -3.0, 3.0, "L/T", "velocity along x"),
        Coefficient("vy", -3.0, 3.0, "L/T", "velocity along y"),
        Coefficient("kappa", 0.001, 0.35, "L²/T", "diffusivity"),
        Coefficient("mu", 0.0, 4.0, "1/T", "decay rate"),
    )
    default_time = 0.25

    def symbol(self, k, vx, vy, kappa, mu):
        return torch.complex(kappa * k.squared + mu, vx * k.x + vy * k.y)
