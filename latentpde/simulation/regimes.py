"""Regimes: a family with the intervals that its coefficients are drawn from and the strength of its source.

The first six are the benchmark of Tsao, Chaney and Veveakis; the others cover the families that it lacks. The regime
``forcing`` is named as in their paper, and in results recorded under that name: it is advection-diffusion with a strong
source. Everywhere else in this package the PDE's right-hand side is called its source.
"""

from __future__ import annotations

from dataclasses import dataclass

from latentpde.pde import Family, get_family
from latentpde.registry import Registry


@dataclass(frozen=True)
class Regime:
    """The distribution that coefficients and sources of simulated cases are drawn from.

    Args:
        name: what the regime is called, as in ``latentpde list regimes``. Cases of different names share no randomness.
        family: name of the PDE family, as in ``latentpde list families``.
        ranges: ``(lower, upper)`` of each coefficient in the family's order; draws are uniform in between.
        source_prior_std: pointwise standard deviation of the source, in the field's units per unit of time to the
            power of the family's order.

    Example:
        >>> gentle = Regime("gentle", "advection_diffusion", ((-0.5, 0.5), (-0.5, 0.5), (0.01, 0.1)), 0.2)
        >>> gentle.pde.coefficient_names
        ('vx', 'vy', 'kappa')
        >>> gentle.time
        0.25
    """

    name: str
    family: str
    ranges: tuple[tuple[float, float], ...]
    source_prior_std: float

    @property
    def pde(self) -> Family:
        """The family itself, found by its name."""
        return get_family(self.family)

    @property
    def time(self) -> float:
        """PDE time of the snapshot where a simulation names none: the family's default."""
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
    Regime("decay", "advection_diffusion_decay", ((-2.0, 2.0), (-2.0, 2.0), (0.01, 0.20), (0.0, 4.0)), 0.40),
    Regime("screened_poisson", "screened_poisson", ((0.02, 0.5), (0.1, 1.0), (0.0, 3.141592653589793)), 0.50),
    Regime("heat", "heat", ((0.01, 0.3),), 0.40),
    Regime("poisson", "poisson", ((0.1, 1.0),), 0.50),
    Regime("time_harmonic", "time_harmonic", ((0.5, 1.5), (0.5, 2.0)), 0.50),
    Regime("telegraph", "telegraph", ((0.2, 2.5), (0.0, 20.0)), 0.50),
    Regime("fractional_diffusion", "fractional_diffusion", ((0.005, 0.3), (0.6, 2.0), (0.0, 2.0)), 0.40),
)

PAPER_REGIMES = tuple(regime.name for regime in _PAPER)

regimes: Registry[Regime] = Registry("regime", "regimes")
for _regime in _PAPER + _OURS:
    regimes.register(_regime.name, _regime)
