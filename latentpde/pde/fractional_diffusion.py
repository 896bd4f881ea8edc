"""Anomalous spreading with decay: Lévy flights instead of Brownian motion."""

from latentpde.pde.base import Coefficient, Family


class FractionalDiffusion(Family):
    r""":math:`u_t = -\kappa (-\Delta)^{\alpha/2} u - \mu u + f`.

    :math:`\alpha = 2` is ordinary diffusion; smaller exponents have heavier tails.

    >>> import torch
    >>> from latentpde.grid import wavenumbers
    >>> k, times = wavenumbers((2, 2), extent=(1.0, 1.0)), torch.tensor([0.25], dtype=torch.float64)
    >>> theta = torch.tensor([[0.1, 2.0, 0.0], [0.1, 1.0, 0.0]], dtype=torch.float64)  # kappa, alpha, mu
    >>> FractionalDiffusion().state_response(k, times, theta)[:, 0, 0, 1].round(decimals=3)
    tensor([0.3730, 0.8550], dtype=torch.float64)
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
