"""What lies at the edges of the rectangle that was observed."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, get_args

from latentpde.errors import UsageError
from latentpde.validation import shortened

if TYPE_CHECKING:
    from latentpde.grid import Mirror

Edge = Literal["periodic", "open", "dirichlet", "neumann"]


_ZERO = (0.0, 0.0)


@dataclass(frozen=True, repr=False)
class Domain:
    """The edges of a rectangle, axis by axis.

    ``periodic``
        the axis closes on itself, as longitude does around the globe and as the benchmark's square does;
    ``open``
        the physics goes on beyond the edge, where nothing was read. The rectangle is embedded in a larger periodic one,
        and what lies between is unknown like the rest;
    ``dirichlet``
        both ends of the axis are walls on which the field vanishes, or has values that are known;
    ``neumann``
        both ends are walls without flux through them, or with a slope of the field that is known.

    What is known on walls is taken off by a function that has it (`latentpde.lift`); families for which there is none
    are refused when they are used.

    >>> Domain(x="periodic")
    Domain(y='open', x='periodic')
    >>> Domain.periodic().is_periodic
    True
    >>> Domain("dirichlet", "neumann", on_y=(20.0, 5.0)).describe()
    'y=dirichlet(20.0,5.0),x=neumann'

    Args:
        y, x: the kind of edge that each axis has.
        on_y, on_x: what holds on the walls at the lower and the upper end of the axis: of ``dirichlet`` the field's
            value, of ``neumann`` its derivative along the axis.
    """

    y: Edge = "open"
    x: Edge = "open"
    on_y: tuple[float, float] = _ZERO
    on_x: tuple[float, float] = _ZERO

    def __post_init__(self):
        for axis, edge in (("y", self.y), ("x", self.x)):
            if edge not in get_args(Edge):
                raise UsageError(f"the edges along {axis} can be {' or '.join(get_args(Edge))}, got {edge!r}")
        for axis, edge, on in (("y", self.y, self.on_y), ("x", self.x, self.on_x)):
            try:
                pair = tuple(float(value) for value in on)
            except (TypeError, ValueError):
                pair = ()
            if len(pair) != 2 or not all(math.isfinite(value) for value in pair):
                raise UsageError(f"on_{axis} is two finite numbers, for the lower and the upper wall; got {on!r}")
            if any(pair) and edge not in ("dirichlet", "neumann"):
                raise UsageError(f"there is no wall along {axis} (its edges are {edge}) that could hold {on!r}")
            object.__setattr__(self, f"on_{axis}", pair)

    def __repr__(self) -> str:
        given = [f"{name}={getattr(self, name)!r}" for name in ("on_y", "on_x") if any(getattr(self, name))]
        return f"Domain({', '.join([f'y={self.y!r}', f'x={self.x!r}', *given])})"

    @property
    def without_values(self) -> Domain:
        """The same with walls on which the field vanishes, or without flux.

        >>> Domain("dirichlet", "periodic", on_y=(1.0, 2.0)).without_values
        Domain(y='dirichlet', x='periodic')
        """
        return replace(self, on_y=_ZERO, on_x=_ZERO)

    @classmethod
    def periodic(cls) -> Domain:
        """The torus."""
        return cls("periodic", "periodic")

    @classmethod
    def parse(cls, text: str | Domain) -> Domain:
        """A domain as it is written on the command line and in files: one kind of edge for both axes, or one for each.

        >>> Domain.parse("periodic") == Domain.periodic(), Domain.parse("y=open, x=periodic")
        (True, Domain(y='open', x='periodic'))
        >>> Domain.parse("y=dirichlet(20, 5), x=neumann")
        Domain(y='dirichlet', x='neumann', on_y=(20.0, 5.0))

        Args:
            text: such as ``open`` or ``y=open,x=periodic``; an axis that is not named is open.
        """
        if isinstance(text, Domain):
            return text
        kinds, found = get_args(Edge), {}
        parts = re.split(r",(?![^(]*\))", text) if isinstance(text, str) else []
        for part in parts:
            match = re.fullmatch(r"\s*(?:([yx])\s*=)?\s*(\w+)\s*(?:\(([^,()]+),([^,()]+)\))?\s*", part)
            axis, edge, low, high = match.groups() if match else ("", "", None, None)
            axes = ("y", "x") if axis is None and len(parts) == 1 else (axis,)
            try:
                on = _ZERO if low is None or high is None else (float(low), float(high))
            except ValueError:
                edge, on = "", _ZERO
            if edge not in kinds or not axes[0] or axes[0] in found:
                parts = []
                break
            found |= dict.fromkeys(axes, edge) | {f"on_{name}": on for name in axes}
        if not parts:
            raise UsageError(
                f"a domain is one of {', '.join(kinds)}, or one of these for each axis, such as y=open,x=periodic, "
                f"with what holds on the walls in brackets, such as y=dirichlet(20,5); got {shortened(text)}"
            )
        return cls(**found)

    def describe(self) -> str:
        """The domain as `parse` reads it.

        >>> Domain().describe(), Domain(x="periodic").describe()
        ('open', 'y=open,x=periodic')
        """
        y, x = (
            edge + (f"({on[0]!r},{on[1]!r})" if any(on) else "")
            for edge, on in ((self.y, self.on_y), (self.x, self.on_x))
        )
        return y if y == x else f"y={y},x={x}"

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
