"""Known values and slopes on walls: a linear function that has them is taken off, and the rest is zero there.

A function that is linear in the place solves every family that has no term in the field itself and no odd derivative
through the walls, whatever its coefficients are. So what is left of the field solves the same PDE, with the same
source, between walls on which it vanishes.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from jaxtyping import Float
from torch import Tensor

from latentpde.domain import Domain
from latentpde.errors import UsageError
from latentpde.grid import Grid, wavenumbers
from latentpde.observation.observation import Observation
from latentpde.pde import Family


def lift_of(observation: Observation) -> Float[Tensor, " 3"] | None:
    """The value in the middle of the rectangle and the slopes along y and x; ``None`` where walls hold nothing.

    >>> domain = Domain("dirichlet", "periodic", on_y=(1.0, 3.0))
    >>> lift_of(Observation.from_arrays(torch.ones(2, 2), times=[1.0], noise_std=0.1, domain=domain))
    tensor([2., 2., 0.], dtype=torch.float64)
    """
    domain = observation.domain or Domain.periodic()
    lift = domain.lift(observation.grid.extent)
    return torch.tensor(lift, dtype=torch.float64) if any(lift) or domain != domain.without_values else None


def without_lift(observation: Observation, family: Family) -> Observation:
    """What is left of the readings, and of the initial state, between walls that hold nothing.

    >>> from latentpde.pde import get_family
    >>> domain = Domain("dirichlet", "periodic", on_y=(1.0, 3.0))
    >>> seen = Observation.from_arrays(torch.ones(2, 2), times=[1.0], noise_std=0.1, domain=domain)
    >>> without_lift(seen, get_family("heat")).values[0, 0]
    tensor([[-0.5000, -0.5000],
            [-1.5000, -1.5000]], dtype=torch.float64)
    """
    lift, domain, grid = lift_of(observation), observation.domain, observation.grid
    if lift is None or domain is None:
        return observation
    _require_no_term_in_the_field(family)
    if observation.positions is None:
        known = on_grid(lift, grid)
    else:
        corner, length = (torch.tensor(pair, dtype=torch.float64) for pair in (grid.origin, grid.extent))
        places = observation.positions - corner - length / 2
        known = (lift[0] + places @ lift[1:])[:, None]
    reads_field = observation.mask if observation.of_source is None else observation.mask & ~observation.of_source
    states = {
        name: state - on_grid(lift, grid.with_shape((state.shape[-2], state.shape[-1])))
        for name in ("initial", "fine_initial")
        if family.order and (state := getattr(observation, name)) is not None
    }
    values = torch.where(reads_field, observation.values - known, observation.values)
    return replace(observation, values=values, domain=domain.without_values, **states)


def on_grid(lift: Float[Tensor, " 3"], grid: Grid) -> Float[Tensor, "y x"]:
    """A linear function at the centres of the cells, which are also their means."""
    y, x = (
        c - start - length / 2 for c, start, length in zip(grid.coordinates(), grid.origin, grid.extent, strict=True)
    )
    return lift[0] + lift[1] * y[:, None] + lift[2] * x


def _require_no_term_in_the_field(family: Family) -> None:
    k = wavenumbers((2, 1), (1.0, 1.0))
    for end in ("lower", "upper"):
        theta = [torch.tensor(getattr(c, end), dtype=torch.float64) for c in family.coefficients]
        if abs(complex(torch.as_tensor(family.symbol(k, *theta)).expand(2, 1)[0, 0])) > 0:
            raise UsageError(
                f"{family.name} ({family.equation}) changes a constant field; values on walls other than zero can be "
                "given for families that do not, such as heat and poisson"
            )
