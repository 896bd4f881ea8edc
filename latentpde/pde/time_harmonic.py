"""Waves of one frequency."""

from latentpde.pde.base import Coefficient, Family


class TimeHarmonic(Family):
    r""":math:`-c^2 \Delta u - \omega^2 u = u_0 + f`: the Helmholtz equation of waves, :math:`u(x)\,e^{i \omega t}`.

    At a frequency of the rectangle's own the field would grow without limit; keep the bounds between two of them, or
    below the lowest. The family ``helmholtz`` is the screened one, which has no such frequencies.

    >>> import torch
    >>> from latentpde.grid import wavenumbers
    >>> k, theta = wavenumbers((2, 2), extent=(1.0, 1.0)), torch.tensor([1.0, 2.0], dtype=torch.float64)
    >>> TimeHarmonic().source_response(k, torch.ones(1).double(), theta)[0, 0, 0]  # of a uniform source
    tensor(-0.2500, dtype=torch.float64)
    """

    name = "time_harmonic"
    equation = "-c² Δu - ω² u = u0 + f"
    order = 0
    coefficients = (
        Coefficient("c", 0.5, 2.0, "L/T", "speed of the waves"),
        Coefficient("omega", 0.1, 2.0, "1/T", "angular frequency"),
    )

    def symbol(self, k, c, omega):
        return c**2 * (k.y**2 + k.x**2) - omega**2
