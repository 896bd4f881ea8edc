"""Transport by a uniform wind, spreading by diffusion."""

import torch

from latentpde.pde.base import Coefficient, Family


class AdvectionDiffusion(Family):
    r""":math:`u_t + v \cdot \nabla u = \kappa \Delta u + f`: a tracer in a uniform flow."""

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
