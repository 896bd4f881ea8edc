"""Places and times as the user says them: longitudes and dates, or numbers on the plane."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from latentpde.decoder import as_times
from latentpde.errors import UsageError
from latentpde.frame import Frame
from latentpde.observation import Observation


class Asked(NamedTuple):
    """Places and times that were asked for.

    Args:
        points: ``(y, x)`` on the plane.
        times: PDE time of each.
        coordinates: what they are called and where they are for the user, on the axis ``point``.
    """

    points: Float[Tensor, "point 2"]
    times: Float[Tensor, " point"]
    coordinates: dict[str, tuple[str, np.ndarray]]


def asked(observation: Observation, points: Any, times: Any = None) -> Asked:
    """Check places and times of the user.

    >>> observation = Observation.from_table([1.0, 2.0], y=[0.0, 1.0], x=[0.0, 1.0], t=[5.0, 7.0])
    >>> asked(observation, [[0.5, 0.5]], 6.0).times
    tensor([1.], dtype=torch.float64)

    Args:
        observation: whose frame says what coordinates and dates mean.
        points: ``(y, x)`` of each place, with axes ``(point, 2)``; for geographical data latitude and longitude.
        times: of each, or one for all: numbers on the user's clock, dates, or text such as ``"2026-05-01T06"``; by
            default the last one that was observed.
    """
    frame = observation.frame or Frame()
    try:
        given = np.asarray(points, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise UsageError(f"points are pairs (y, x) of finite numbers, got {points!r}") from error
    if given.ndim != 2 or given.shape[1] != 2 or not np.isfinite(given).all():
        raise UsageError(f"points are pairs (y, x) of finite numbers with axes (point, 2), got {given.shape}")
    when = np.broadcast_to(clock_times(observation, times), len(given))
    plane = torch.from_numpy(np.stack(frame.to_plane(*given.T), axis=-1))
    pde_times = as_times(torch.from_numpy(when - observation.start), plane)
    names = {frame.y.name: given[:, 0], frame.x.name: given[:, 1], frame.time_name: frame.times_to_user(when)}
    return Asked(plane, pde_times, {name: ("point", values) for name, values in names.items()})


def clock_times(observation: Observation, times: Any = None) -> Float[np.ndarray, " time"]:
    """Times as numbers on the user's clock; one or several, as numbers, dates or text.

    >>> clock_times(Observation.from_table([1.0, 2.0], y=[0.0, 1.0], x=[0.0, 1.0], t=[5.0, 7.0]))
    array([7.])
    """
    frame = observation.frame or Frame()
    if times is None:
        return observation.times[-1:].numpy() + observation.start
    several = times if isinstance(times, list | tuple | np.ndarray | Tensor) or hasattr(times, "__iter__") else [times]
    several = [times] if isinstance(times, str) else several
    return np.array([_number(frame, time) for time in np.atleast_1d(np.asarray(several, dtype=object))], dtype=float)


def _number(frame: Frame, time: Any) -> float:
    if isinstance(time, np.integer | np.floating | Tensor):
        time = float(time)
    return frame.to_number(time)
