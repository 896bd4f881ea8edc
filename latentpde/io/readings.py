"""Readings as the group ``readings`` of a reconstruction keeps them: an `Observation`, whole, and back.

So a reconstruction can be repeated, continued and asked further questions without the file it was made from.
"""

from __future__ import annotations

import json
from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from latentpde.domain import Domain
from latentpde.errors import DataError, LatentPDEError
from latentpde.frame import Excluded, Frame
from latentpde.grid import Grid
from latentpde.observation import Observation
from latentpde.observation.checks import checked_mask, checked_noise, checked_times
from latentpde.settings import Settings

if TYPE_CHECKING:
    import xarray as xr

GROUP = "readings"
# not "time" or "coefficient": a reconstruction has axes of these names, with other times, or those of another family
_CELLS, _POINTS = ("case", "snapshot", "y_obs", "x_obs"), ("case", "snapshot", "sensor")
#: Axes of tensors that are not shaped as the readings.
_AXES = {
    "times": ("snapshot",),
    "initial": ("case", "y_obs", "x_obs"),
    "initial_velocity": ("case", "y_obs", "x_obs"),
    "positions": ("case", "sensor", "yx"),
    "bounds": ("of_coefficient", "bound"),
    "fine_initial": ("case", "y_fine", "x_fine"),
}


def readings_to_dataset(observation: Observation) -> xr.Dataset:
    """Everything that an observation holds.

    >>> observation = Observation.from_table([2.1, 1.7, 0.4], y=[3.0, 3.5, 4.0], x=[1.0, 2.0, 4.0], t=[0.0, 0.5, 1.0])
    >>> dataset = readings_to_dataset(observation)
    >>> dataset["values"].dims, readings_from_dataset(dataset).positions.equal(observation.positions)
    (('case', 'snapshot', 'sensor'), True)
    """
    import xarray as xr

    variables, others = {}, {}
    like_values = _CELLS if observation.positions is None else _POINTS
    for f in fields(observation):
        value = getattr(observation, f.name)
        if isinstance(value, Tensor):
            axes = _AXES.get(f.name, like_values if value.shape == observation.values.shape else None)
            axes = axes or tuple(f"{f.name}_{i}" for i in range(value.ndim))
            array = value.detach().cpu().numpy()
            variables[f.name] = (axes, array.astype(np.int8) if array.dtype == bool else array)
        elif isinstance(value, Settings):
            others[f.name] = value.texts()
        elif isinstance(value, Frame):
            others[f.name] = value.to_dict()
            if value.excluded is not None:
                variables["excluded"] = (("excluded_y", "excluded_x"), value.excluded.mask.astype(np.int8))
                variables |= {f"excluded_{axis}": (f"excluded_{axis}", getattr(value.excluded, axis)) for axis in "yx"}
        else:
            others[f.name] = asdict(value) if isinstance(value, Grid | Domain) else value
    return xr.Dataset(variables, attrs={"observation": json.dumps(others)})


def readings_from_dataset(dataset: xr.Dataset) -> Observation:
    """What `readings_to_dataset` made; raises `DataError` where it is not that."""
    try:
        found: dict[str, Any] = json.loads(dataset.attrs["observation"])
        found["grid"] = Grid(**{name: tuple(pair) for name, pair in found["grid"].items()})
        found["domain"] = None if found["domain"] is None else _domain(found["domain"])
        found["settings"] = Settings.of(**found["settings"])
        excluded = None
        if "excluded" in dataset:
            y, x = (dataset[f"excluded_{axis}"].values.astype(float) for axis in "yx")
            excluded = Excluded(y, x, dataset["excluded"].values != 0)
        found["frame"] = None if found["frame"] is None else Frame.from_dict(found["frame"], excluded)
        names = {f.name for f in fields(Observation)}
        for name, array in dataset.variables.items():
            if name in names:
                found[str(name)] = torch.from_numpy(np.array(array.values))
        if found.get("of_source") is not None:
            found["of_source"] = found["of_source"] != 0
        values = found["values"].double()
        found["mask"] = checked_mask(found["mask"].numpy(), values)
        found["times"] = checked_times(found["times"].numpy())
        noise = found["noise_std"].double()
        checked_noise(torch.where(noise.isnan(), 1.0, noise).numpy(), values, found["mask"])
        return Observation(**found)
    except LatentPDEError as error:
        raise DataError(f"the group {GROUP} does not hold readings: {error}") from error
    except (KeyError, ValueError, TypeError, AttributeError, RuntimeError, IndexError) as error:
        raise DataError(
            f"the group {GROUP} is not as latentpde writes it ({type(error).__name__}: {error}); give the file that "
            "holds the readings themselves"
        ) from error


def _domain(found: dict[str, Any]) -> Domain:
    pairs: dict[str, Any] = {name: tuple(value) for name, value in found.items() if isinstance(value, list)}
    return Domain(**{**found, **pairs})
