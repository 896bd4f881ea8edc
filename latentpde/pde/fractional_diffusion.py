"""Anomalous spreading with decay: Lévy flights instead of Brownian motion."""

from latentpde.pde.base import Coefficient, Family


class FractionalDiffusion(Family):
    r""":math:`u_t = -\kappa (-\Delta)^{\alpha/2} u - \mu u + f`.

    :math:`\alpha = 2` is ordinary diffusion; smaller exponents have heavier tails.
    """

    name = "fractional_diffusion"
    equation = "u_t = -κ (-Δ)^(α/2) u - μ u + f"
    order = 1
    coefficients = (
        Coefficient("kappa", 0.005, 0.3, "L^α/T", "diffusivity"),
        Coefficient("alpha", 0.6, 2.0, "1", "exponent"),
        Coefficient("mu", 0.0, 2.0, "1/T", "decay rate"),
    )
    default_time = 0.25

    def symbol(self, k, kappa, alpha, mu):
        return kappa * k.squared ** (alpha / 2) + mu
