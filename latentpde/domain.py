"""What lies at the edges of the rectangle that was observed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

from latentpde.errors import UsageError
from latentpde.validation import shortened

if TYPE_CHECKING:
    from latentpde.grid import Mirror

Edge = Literal["periodic", "open", "dirichlet", "neumann"]


@dataclass(frozen=True)
class Domain:
    """The edges of a rectangle, axis by axis.

    ``periodic``
        the axis closes on itself, as longitude does around the globe and as the benchmark's square does;
    ``open``
        the physics goes on beyond the edge, where nothing was read. The rectangle is embedded in a larger periodic one,
        and what lies between is unknown like the rest;
    ``dirichlet``
        both ends of the axis are walls on which the field vanishes;
    ``neumann``
        both ends are walls without flux through them.

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

    @classmethod
    def parse(cls, text: str | Domain) -> Domain:
        """A domain as it is written on the command line and in files: one kind of edge for both axes, or one for each.

        >>> Domain.parse("periodic") == Domain.periodic(), Domain.parse("y=open, x=periodic")
        (True, Domain(y='open', x='periodic'))

        Args:
            text: such as ``open`` or ``y=open,x=periodic``; an axis that is not named is open.
        """
        if isinstance(text, Domain):
            return text
        kinds, found = get_args(Edge), {}
        parts = [part.strip() for part in text.split(",")] if isinstance(text, str) else []
        if len(parts) == 1 and parts[0] in kinds:
            return cls(parts[0], parts[0])  # pyright: ignore[reportArgumentType]
        for part in parts:
            axis, equals, edge = (piece.strip() for piece in part.partition("="))
            if not equals or axis not in ("y", "x") or axis in found or edge not in kinds:
                parts = []
                break
            found[axis] = edge
        if not parts:
            raise UsageError(
                f"a domain is one of {', '.join(kinds)}, or one of these for each axis, such as y=open,x=periodic; got "
                f"{shortened(text)}"
            )
        return cls(**found)

    def describe(self) -> str:
        """The domain as `parse` reads it.

        >>> Domain().describe(), Domain(x="periodic").describe()
        ('open', 'y=open,x=periodic')
        """
        return self.y if self.y == self.x else f"y={self.y},x={self.x}"

    @property
    def is_periodic(self) -> bool:
        """Whether both axes are."""
        return self.y == self.x == "periodic"

    @property
    def is_open(self) -> bool:
        """Whether an axis is."""
        return "open" in (self.y, self.x)

    @property
    def mirror(self) -> Mirror:
        """The symmetry that its walls give to fields; see `latentpde.grid.mirror`.

        >>> Domain("dirichlet", "periodic").mirror
        Mirror(y=-1, x=0)
        """
        from latentpde.grid import Mirror  # which brings torch with it

        signs = {"dirichlet": -1, "neumann": 1}
        return Mirror(signs.get(self.y, 0), signs.get(self.x, 0))
