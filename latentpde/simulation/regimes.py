"""Regimes: a family with the ranges its coefficients are drawn from and the strength of its source.

The first six are the benchmark of Tsao, Chaney and Veveakis; the others cover the families that it lacks.
"""

from __future__ import annotations

from dataclasses import dataclass

from latentpde.pde import Family, get_family
from latentpde.registry import Registry


@dataclass(frozen=True)
class Regime:
    """Where cases are drawn from.

    Args:
        name: as in ``latentpde list regimes``.
        family: name of the PDE family.
        ranges: interval of each coefficient, in the family's order; draws are uniform.
        source_prior_std: pointwise standard deviation of the source.
    """

    name: str
    family: str
    ranges: tuple[tuple[float, float], ...]
    source_prior_std: float

    @property
    def pde(self) -> Family:
        return get_family(self.family)

    @property
    def time(self) -> float:
        """Default time of the snapshot."""
        return self.pde.default_time


_PAPER = (
    Regime("diffusion", "advection_diffusion", ((-1.0, 1.0), (-1.0, 1.0), (0.02, 0.35)), 0.30),
    Regime("advection", "advection_diffusion", ((-3.0, 3.0), (-3.0, 3.0), (0.001, 0.08)), 0.30),
    Regime("balanced", "advection_diffusion", ((-2.0, 2.0), (-2.0, 2.0), (0.01, 0.20)), 0.40),
    Regime("forcing", "advection_diffusion", ((-1.5, 1.5), (-1.5, 1.5), (0.01, 0.20)), 1.00),
    Regime("klein_gordon", "klein_gordon", ((0.4, 2.8), (0.4, 2.8), (0.3, 3.5)), 0.45),
    Regime("helmholtz", "helmholtz", ((0.03, 0.55), (0.03, 0.55), (0.4, 3.5)), 0.55),
)
_OURS = (
    Regime("telegraph", "telegraph", ((0.2, 2.5), (0.0, 20.0)), 0.50),
    Regime("fractional_diffusion", "fractional_diffusion", ((0.005, 0.3), (0.6, 2.0), (0.0, 2.0)), 0.40),
)

PAPER_REGIMES = tuple(regime.name for regime in _PAPER)

regimes: Registry[Regime] = Registry("regime", "regimes")
for _regime in _PAPER + _OURS:
    regimes.register(_regime.name, _regime)
