"""A steady balance of anisotropic diffusion and decay."""

from latentpde.pde.base import Coefficient, Family


class Helmholtz(Family):
    r""":math:`-\kappa_x u_{xx} - \kappa_y u_{yy} + k^2 u = u_0 + f` (screened, so always solvable).

    >>> import torch
    >>> from latentpde.grid import wavenumbers
    >>> k, theta = wavenumbers((2, 2), extent=(1.0, 1.0)), torch.tensor([0.1, 0.1, 2.0], dtype=torch.float64)
    >>> response = Helmholtz().source_response(k, torch.tensor([1.0], dtype=torch.float64), theta)
    >>> response[..., 0, 0]  # a uniform source over the decay rate
    tensor([0.2500], dtype=torch.float64)
    """

    name = "helmholtz"
    equation = "-κx u_xx - κy u_yy + k² u = u0 + f"
    order = 0
    coefficients = (
        Coefficient("kappa_x", 0.03, 0.55, "L²/T", "diffusivity along x"),
        Coefficient("kappa_y", 0.03, 0.55, "L²/T", "diffusivity along y"),
        Coefficient("k", 0.4, 3.5, "1/T^½", "square root of the decay rate"),
    )

    def symbol(self, k, kappa_x, kappa_y, wavenumber):
        return kappa_x * k.x**2 + kappa_y * k.y**2 + wavenumber**2
