"""Where to measure next: what was found, as a table, in words and on a map."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float, Int

from latentpde.observation import Observation

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False, kw_only=True)
class Suggestion:
    """Places and times for further readings, the most telling first.

    >>> import latentpde as lp
    >>> cases = lp.simulate("diffusion", num=1, seed=2, shape=(32, 32), num_modes=3, sparsity=0.1)
    >>> print(lp.suggest(lp.reconstruct(cases), num=1).to_text().splitlines()[0])
    Where to measure next, to know the field best:

    Args:
        observation: what was read so far.
        case: its number, from 0.
        target: what the readings are to tell of.
        candidates: ``(y, x, time)`` of each: places on the plane, times on the user's clock.
        chosen: which of them, in order.
        explained: share of the target's variance that is explained with each and all before it.
        first: share that each candidate would explain by itself.
        asked: where the target is looked at.
        before, after: standard deviation of the target there.
        noise_std: of a new reading.
    """

    observation: Observation
    case: int
    target: str
    candidates: Float[np.ndarray, "candidate 3"]
    chosen: Int[np.ndarray, " sensor"]
    explained: Float[np.ndarray, " sensor"]
    first: Float[np.ndarray, " candidate"]
    asked: Float[np.ndarray, "asked 2"]
    before: Float[np.ndarray, " quantity"]
    after: Float[np.ndarray, " quantity"]
    noise_std: float

    def to_dataframe(self) -> pd.DataFrame:
        """A row for each reading, in the user's coordinates, with the share of variance that is explained by then."""
        import pandas as pd

        y, x, t = self.candidates[self.chosen].T
        frame = self.observation.frame
        names = ("y", "x", "time")
        if frame is not None:
            y, x = frame.to_user(y, x)
            t, names = frame.times_to_user(t), (frame.y.name, frame.x.name, frame.time_name)
        return pd.DataFrame({**dict(zip(names, (y, x, t), strict=True)), "explained": self.explained})

    def to_text(self) -> str:
        """What is to be done, as lines."""
        table = self.to_dataframe()
        rows = [
            f"{i + 1}. "
            + ", ".join(f"{name} {_short(value)}" for name, value in row.items() if name != "explained")
            + f": {100 * row['explained']:.1f} % of the variance explained"
            for i, row in enumerate(table.to_dict("records"))
        ]
        what = {"region": "the field in the region", "field": "the field"}.get(self.target, f"the {self.target}")
        return "\n".join([f"Where to measure next, to know {what} best:", *rows])


def _short(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
