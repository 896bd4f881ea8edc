"""An observation between walls as one on the torus: the rectangle together with its mirror images."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from latentpde.domain import Domain
from latentpde.observation.observation import Observation


def unfolded(observation: Observation) -> Observation:
    """The same readings on the rectangle with its images, where nothing was read, and the initial state mirrored.

    >>> cells = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> domain = Domain("periodic", "dirichlet")
    >>> wide = unfolded(Observation.from_arrays(cells, cells, times=[1.0], noise_std=0.1, domain=domain))
    >>> wide.initial[0, 0], wide.mask[0, 0, 0]
    (tensor([ 1.,  2., -2., -1.], dtype=torch.float64), tensor([ True,  True, False, False]))
    """
    mirror = (observation.domain or Domain.periodic()).mirror
    if not mirror:
        return observation
    ny, nx = observation.grid.shape
    by_y, by_x = (2 if mirror.y else 1), (2 if mirror.x else 1)

    def padded(values: Tensor, fill: float | bool) -> Tensor:
        if observation.positions is not None:
            return values
        return torch.nn.functional.pad(values, (0, (by_x - 1) * nx, 0, (by_y - 1) * ny), value=fill)

    states = {
        name: mirror.extend(state)
        for name in ("initial", "fine_initial", "initial_velocity")
        if (state := getattr(observation, name)) is not None
    }
    return replace(
        observation,
        values=padded(observation.values, 0.0),
        mask=padded(observation.mask, False),
        noise_std=padded(observation.noise_std, 1.0),
        grid=mirror.grid(observation.grid),
        domain=Domain.periodic(),
        **states,
    )
