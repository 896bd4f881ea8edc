"""Readings between walls that hold something, less a function that has what is known on them (`latentpde.lift`)."""

from __future__ import annotations

from dataclasses import replace

import torch
from jaxtyping import Float
from torch import Tensor

from latentpde.domain import Domain
from latentpde.grid import Grid, average_pool
from latentpde.lift import Lift
from latentpde.observation.observation import Observation
from latentpde.pde import Family

_PER_CELL = 8  # samples along a side that stand for a true mean


def lift_of(observation: Observation) -> Lift | None:
    """What is known on the walls; ``None`` where they hold nothing.

    >>> domain = Domain("dirichlet", "periodic", on_y=(1.0, 3.0))
    >>> lift = lift_of(Observation.from_arrays(torch.ones(2, 2), times=[1.0], noise_std=0.1, domain=domain))
    >>> lift.on_grid(Grid((2, 1)))
    tensor([[1.5000],
            [2.5000]], dtype=torch.float64)
    """
    return Lift.of(observation.domain or Domain.periodic(), observation.grid.extent)


def lifted_readings(observation: Observation, lift: Lift) -> Float[Tensor, "case time *reading"]:
    """What readings see of the known function, also where nothing was read; readings of the source nothing."""
    if observation.positions is None:
        known = _on_cells(lift, observation.grid, observation.pooling)
    else:
        y, x = (observation.positions - torch.tensor(observation.grid.origin, dtype=torch.float64)).unbind(-1)
        known = lift.at(y, x)[:, None]
    known = known.expand_as(observation.values)
    return known if observation.of_source is None else torch.where(observation.of_source, 0.0, known)


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
    lift.require(family)
    states = {
        name: state - _on_cells(lift, grid.with_shape((state.shape[-2], state.shape[-1])), pooling)
        for name, pooling in (("initial", observation.pooling), ("fine_initial", 1))
        if family.order and (state := getattr(observation, name)) is not None
    }
    read = torch.where(observation.mask, observation.values - lifted_readings(observation, lift), observation.values)
    return replace(observation, values=read, domain=domain.without_values, **states)


def _on_cells(lift: Lift, grid: Grid, pooling: int | None) -> Float[Tensor, "y x"]:
    """What cells see of the function that are means over that many samples per side, ``None`` for a true mean."""
    if pooling == 1:
        return lift.on_grid(grid)
    per_cell = pooling or _PER_CELL
    return average_pool(lift.on_grid(grid.refine(per_cell)), per_cell)
