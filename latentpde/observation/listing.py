"""All readings of one case one after another, whatever the layout that they came in: for scores, pages and people."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int

from latentpde.frame import Frame

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class Listing:
    """Readings of one case, in the order in which the mask of its observation has them.

    Args:
        values: what was read, in the user's unit.
        points: ``(y, x)`` on the plane; of a cell, its centre.
        times: as numbers on the user's clock.
        noise_std: of each; NaN where it is not known.
        stations: which readings share a place, as whole numbers.
        names: the user's names of the places, where there are any.
        of_source: which are of the source instead of the field; ``None`` where none is.
    """

    values: Float[np.ndarray, " reading"]
    points: Float[np.ndarray, "reading 2"]
    times: Float[np.ndarray, " reading"]
    noise_std: Float[np.ndarray, " reading"]
    stations: Int[np.ndarray, " reading"]
    names: tuple[str, ...] | None
    of_source: Bool[np.ndarray, " reading"] | None = None

    @classmethod
    def of(cls, observation: Any, case: int = 0) -> Listing:
        """The readings of a case of an `latentpde.Observation`.

        >>> from latentpde.observation import Observation
        >>> table = Observation.from_table([1.0, 2.0, 4.0], y=[0, 0, 3], x=[0, 0, 5], t=[7, 8, 9])
        >>> listing = Listing.of(table)
        >>> listing.stations, listing.times
        (array([0, 0, 1]), array([7., 8., 9.]))
        """
        observation.require_case(case)
        mask = observation.mask[case]
        where = mask.nonzero()
        if observation.positions is None:
            y, x = observation.grid.coordinates()
            points = torch.stack([y[where[:, 1]], x[where[:, 2]]], dim=-1)
        else:
            points = observation.positions[case][where[:, 1]]
        if observation.reading_times is None:
            times = observation.times[where[:, 0]]
        else:
            times = observation.reading_times[case][mask]
        frame, names = observation.frame or Frame(), None
        if frame.places is not None and observation.positions is not None:
            names = tuple(frame.places[i] for i in where[:, 1].tolist())
        return cls(
            observation.values[case][mask].numpy(),
            points.numpy(),
            times.numpy() + observation.start,
            observation.noise_std[case][mask].numpy(),
            np.unique(points.numpy(), axis=0, return_inverse=True)[1].reshape(-1),
            names,
            None if observation.of_source is None else observation.of_source[case][mask].numpy(),
        )

    @property
    def of_field(self) -> Int[np.ndarray, " reading"]:
        """Which readings are of the field: by their numbers."""
        return np.arange(len(self)) if self.of_source is None else np.flatnonzero(~self.of_source)

    def of_the_field(self) -> Listing:
        """Without readings of the source, whose unit is another; all where there are no others.

        >>> from latentpde.observation import Observation
        >>> table = Observation.from_table([1.0, 2.0], y=[0, 3], x=[0, 5], reads=["field", "source"])
        >>> Listing.of(table).of_the_field().values
        array([1.])
        """
        kept = self.of_field
        if self.of_source is None or not len(kept):
            return self
        numbers = np.unique(self.stations[kept], return_inverse=True)[1].reshape(-1)
        names = None if self.names is None else tuple(self.names[i] for i in kept)
        columns = (self.values[kept], self.points[kept], self.times[kept], self.noise_std[kept])
        return Listing(*columns, numbers, names)

    def __len__(self) -> int:
        return len(self.values)

    def to_frame(self, frame: Frame | None = None) -> pd.DataFrame:
        """A table in the user's coordinates and dates, with their names."""
        import pandas as pd

        frame = frame or Frame()
        y, x = frame.to_user(*self.points.T)
        table = pd.DataFrame({frame.y.name: y, frame.x.name: x, frame.time_name: frame.times_to_user(self.times)})
        if self.names is not None:
            table.insert(0, "place", self.names)
        table = table.assign(**{frame.value: self.values})
        return table if self.of_source is None else table.assign(reads=np.where(self.of_source, "source", "field"))
