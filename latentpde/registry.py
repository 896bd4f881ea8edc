"""One kind of table for everything that has a name: families, regimes, masks, methods."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from difflib import get_close_matches
from importlib.metadata import entry_points
from typing import Generic, TypeVar

from latentpde.errors import UsageError

T = TypeVar("T")


class Registry(Generic[T]):
    """Names to things, in order of registration. Hyphens and underscores are the same.

    Args:
        kind: what the things are, for messages: ``"family"``.
        plural: the same for lists: ``"families"``.
        entry_point_group: packages may add things by declaring entry points of this group; they are
            loaded at the first look-up.
        validate: called with each new thing; raises what is wrong with it.
    """

    def __init__(
        self,
        kind: str,
        plural: str,
        entry_point_group: str | None = None,
        validate: Callable[[T], None] | None = None,
    ):
        self.kind = kind
        self.plural = plural
        self._entry_point_group = entry_point_group
        self._validate = validate
        self._things: dict[str, T] = {}

    def register(self, name: str, thing: T, *, replace: bool = False) -> T:
        key = _fold(name)
        if key in self._things and not replace:
            raise UsageError(f"{self.kind} {name!r} exists already; pass replace=True to override it")
        if self._validate is not None:
            self._validate(thing)
        self._things[key] = thing
        return thing

    def unregister(self, name: str) -> None:
        del self._things[_fold(name)]

    def get(self, name: str) -> T:
        self._load_entry_points()
        key = _fold(name)
        if key not in self._things:
            close = get_close_matches(key, self._things, n=1, cutoff=0.5)
            hint = f" (did you mean {close[0]!r}?)" if close else ""
            raise UsageError(f"unknown {self.kind} {name!r}{hint}. Known {self.plural}: {', '.join(self._things)}")
        return self._things[key]

    def names(self) -> tuple[str, ...]:
        self._load_entry_points()
        return tuple(self._things)

    def __iter__(self) -> Iterator[T]:
        self._load_entry_points()
        return iter(self._things.values())

    def __contains__(self, name: str) -> bool:
        self._load_entry_points()
        return _fold(name) in self._things

    def _load_entry_points(self) -> None:
        if self._entry_point_group is None:
            return
        group, self._entry_point_group = self._entry_point_group, None
        for entry in entry_points(group=group):
            self.register(entry.name, entry.load())


def _fold(name: str) -> str:
    return name.strip().lower().replace("-", "_")
