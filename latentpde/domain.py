"""What lies at the edges of the rectangle that was observed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from latentpde.errors import UsageError

Edge = Literal["periodic", "open"]


@dataclass(frozen=True)
class Domain:
    """The edges of a rectangle, axis by axis.

    ``periodic``
        the axis closes on itself, as longitude does around the globe and as the benchmark's square does;
    ``open``
        the physics goes on beyond the edge, where nothing was read. The rectangle is embedded in a larger periodic one,
        and what lies between is unknown like the rest.

    >>> Domain(x="periodic")
    Domain(y='open', x='periodic')
    >>> Domain.periodic().is_periodic
    True

    Args:
        y, x: the kind of edge that each axis has.
    """

    y: Edge = "open"
    x: Edge = "open"

    def __post_init__(self):
        for axis, edge in (("y", self.y), ("x", self.x)):
            if edge not in get_args(Edge):
                raise UsageError(f"the edges along {axis} can be {' or '.join(get_args(Edge))}, got {edge!r}")

    @classmethod
    def periodic(cls) -> Domain:
        """The torus."""
        return cls("periodic", "periodic")

    @property
    def is_periodic(self) -> bool:
        """Whether both axes are."""
        return self.y == self.x == "periodic"
