"""PDE families.

A new one is a short file like its neighbours and an entry of `_BUILT_IN`; users register theirs with `register_family`,
packages with an entry point of the group ``latentpde.families``.
"""

from latentpde.pde.advection_diffusion import AdvectionDiffusion
from latentpde.pde.advection_diffusion_decay import AdvectionDiffusionDecay
from latentpde.pde.base import Coefficient, Family, check_family
from latentpde.pde.fractional_diffusion import FractionalDiffusion
from latentpde.pde.heat import Heat
from latentpde.pde.helmholtz import Helmholtz
from latentpde.pde.klein_gordon import KleinGordon
from latentpde.pde.poisson import Poisson
from latentpde.pde.schemes import discretised
from latentpde.pde.screened_poisson import ScreenedPoisson
from latentpde.pde.telegraph import Telegraph
from latentpde.pde.time_harmonic import TimeHarmonic
from latentpde.registry import Registry

__all__ = ["Coefficient", "Family", "discretised", "families", "get_family", "register_family"]

_BUILT_IN = (
    AdvectionDiffusion,
    AdvectionDiffusionDecay,
    KleinGordon,
    Helmholtz,
    ScreenedPoisson,
    Telegraph,
    FractionalDiffusion,
    Heat,
    Poisson,
    TimeHarmonic,
)

families: Registry[Family] = Registry("family", "families", "latentpde.families", check_family)
for _family in _BUILT_IN:
    families.register(_family.name, _family())


def get_family(family: str | Family) -> Family:
    """A family by its name; a `Family` passes through.

    >>> get_family("klein-gordon").equation
    'u_tt = cx² u_xx + cy² u_yy - m² u + f'
    """
    return family if isinstance(family, Family) else families.get(family)


def register_family(family: Family, *, replace: bool = False) -> Family:
    """Make a family known by its name to every command and method.

    >>> class Decay(Family):
    ...     name, equation, order = "decay", "u_t = -mu u + f", 1
    ...     coefficients = (Coefficient("mu", 0.0, 2.0, "1/T", "decay rate"),)
    ...
    ...     def symbol(self, k, mu):
    ...         return mu + 0 * k.squared
    >>> register_family(Decay()).coefficient_names
    ('mu',)
    >>> "decay" in families
    True
    >>> families.unregister("decay")

    Args:
        family: an instance; it is checked for contradictions.
        replace: whether it may take the place of another of its name.
    """
    return families.register(family.name, family, replace=replace)
