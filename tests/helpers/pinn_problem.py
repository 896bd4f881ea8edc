"""Small cases and problems for the PINN, and a family such as a user may add."""

from __future__ import annotations

import torch

from latentpde.estimators.pinn.network import Features
from latentpde.estimators.pinn.problem import Problem
from latentpde.latent import Latent
from latentpde.observation import Observation
from latentpde.pde import Coefficient, Family, families
from latentpde.simulation import simulate

DIFFERENTIAL = (
    "advection_diffusion",
    "advection_diffusion_decay",
    "klein_gordon",
    "helmholtz",
    "screened_poisson",
    "telegraph",
    "heat",
    "poisson",
    "time_harmonic",
)
QUICK = {"method": "pinn", "num_steps": 5, "num_collocation": 16, "num_initial": 16}


class Mixed(Family):
    """A symbol with a mixed derivative and drift, of the kind that a user may add."""

    name = "mixed"
    equation = "u_t + a u_x = b (u_xx + u_xy + u_yy) - c u + f"
    order = 1
    coefficients = (
        Coefficient("a", -1.0, 1.0, "L/T", "drift"),
        Coefficient("b", 0.01, 0.1, "L²/T", "diffusivity"),
        Coefficient("c", 0.1, 2.0, "1/T", "decay"),
    )

    def symbol(self, k, a, b, c):
        return torch.complex(b * (k.squared + k.x * k.y) + c, (a * k.x).expand(b.shape[:-2] + k.squared.shape))


def cases(regime="balanced", num=2, **options):
    return simulate(regime, num=num, seed=3, shape=(32, 32), pooling=4, num_modes=2, sparsity=0.3, **options)


def problem(regime="balanced", num_harmonics=0, moving_frame=False, **options) -> Problem:
    data = Observation.from_dataset(cases(regime, **options))
    latent = Latent(families.get(data.family or ""), source_prior_std=0.4, num_modes=2, bounds=data.bounds)
    return Problem.of(data, latent, Features(num_harmonics), moving_frame=moving_frame)


def generator(seed=0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)
