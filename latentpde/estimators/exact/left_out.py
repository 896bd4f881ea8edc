"""Tables of readings beside what all others predict for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float
from torch import Tensor

from latentpde.observation import Observation
from latentpde.observation.listing import Listing

if TYPE_CHECKING:
    import xarray as xr


def left_out_table(
    observation: Observation, case: int, mean: Float[Tensor, " reading"], std: Float[Tensor, " reading"]
) -> xr.Dataset:
    """All readings of a case.

    >>> import torch
    >>> one = Observation.from_arrays([[[2.0]]], times=[1.0], noise_std=0.1)
    >>> float(left_out_table(one, 0, torch.ones(1), torch.full((1,), 0.5))["z"][0])
    2.0

    Args:
        observation: that they are of.
        case: its number, from 0.
        mean, std: what all others predict for each.
    """
    import xarray as xr

    value = observation.values[case][observation.mask[case]].numpy()
    columns = {"value": value, "mean": mean.numpy(), "std": std.numpy(), "z": (value - mean.numpy()) / std.numpy()}
    table = xr.Dataset({name: ("reading", column) for name, column in columns.items()})
    if observation.of_source is None:
        return table
    of_source = observation.of_source[case][observation.mask[case]].numpy()
    return table.assign_coords(reads=("reading", np.where(of_source, "source", "field")))


def set_aside_table(
    observation: Observation,
    case: int,
    mean: Float[Tensor, " reading"],
    std: Float[Tensor, " reading"],
    factors: Float[Tensor, " reading"],
) -> xr.Dataset:
    """Those whose noise has a larger variance than that of others, with their places and times.

    >>> import torch
    >>> one = Observation.from_arrays([[[2.0, 3.0]]], times=[1.0], noise_std=0.1)
    >>> table = set_aside_table(one, 0, torch.ones(2), torch.full((2,), 0.5), torch.tensor([1.0, 9.0]))
    >>> table["reading"].values.tolist(), table["z"].values.tolist(), table["noise_factor"].values.tolist()
    ([1], [4.0], [3.0])

    Args:
        observation: that they are of.
        case: its number, from 0.
        mean, std: what all others predict for each, with the noise of an ordinary reading.
        factors: of the variance of each.
    """
    listing, all_readings = Listing.of(observation, case), left_out_table(observation, case, mean, std)
    places = {"y": listing.points[:, 0], "x": listing.points[:, 1], "time": listing.times}
    factor = np.sqrt(factors.numpy())
    table = all_readings.assign({name: ("reading", column) for name, column in places.items()})
    table = table.assign(noise_factor=("reading", factor), reading=np.arange(len(factor)))
    return table.isel(reading=np.flatnonzero(factor > 1))
