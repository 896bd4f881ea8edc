"""One kind of table for everything that has a name: families, regimes, masks, methods."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from difflib import get_close_matches
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Generic, TypeVar

from latentpde.errors import LatentPDEError, UsageError
from latentpde.validation import shortened

T = TypeVar("T")


class Registry(Generic[T]):
    """A table of things by name, in order of registration. Capitals do not matter; hyphens are underscores.

    Args:
        kind: what one thing is called in messages, such as ``"family"``.
        plural: what several are called, such as ``"families"``.
        entry_point_group: packages may add things by declaring entry points of this group.
        validate: called with each thing before it can be used; it raises what is wrong with it.

    Example:
        >>> colours = Registry("colour", "colours")
        >>> _ = colours.register("dark-red", "#8b0000")
        >>> colours.get("Dark_Red")
        '#8b0000'
        >>> colours.get("dark rod")
        Traceback (most recent call last):
        latentpde.errors.UsageError: unknown colour 'dark rod' (did you mean 'dark_red'?). Known colours: dark_red
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
        self._things: dict[str, T] = {}  # None for those that `_loaders` has
        self._loaders: dict[str, Callable[[], Any]] = {}
        self._plugins: dict[str, str] = {}  # where the things of other packages are

    def register(self, name: str, thing: T, *, replace: bool = False) -> T:
        """Add a thing, or with ``replace`` put it in the place of another; returns the thing."""
        if self._validate is not None:
            self._validate(thing)
        key = self._reserve(name, replace=replace)
        self._things[key] = thing
        return thing

    def declare(self, name: str, place: str) -> None:
        """Add a thing without importing it: that is done when it is first asked for.

        Args:
            name: of the thing.
            place: where it is, as ``"package.module:attribute"``.

        Example:
            >>> functions = Registry("function", "functions")
            >>> functions.declare("root", "math:sqrt")
            >>> functions.names()
            ('root',)
            >>> functions.get("root")(16)
            4.0
        """
        self._loaders[self._reserve(name)] = EntryPoint(name, place, "").load

    def unregister(self, name: str) -> None:
        """Take a thing out of the table."""
        del self._things[_fold(name)]
        self._loaders.pop(_fold(name), None)

    def get(self, name: str) -> T:
        """The thing of a name; raises `UsageError`, with the nearest name, where there is none."""
        self._declare_entry_points()
        key = _fold(name) if isinstance(name, str) else ""
        if key not in self._things:
            close = get_close_matches(key[:100], self._things, n=1, cutoff=0.5)
            hint = f" (did you mean {close[0]!r}?)" if close else ""
            known = f"Known {self.plural}: {', '.join(self._things)}"
            raise UsageError(f"unknown {self.kind} {shortened(name)}{hint}. {known}")
        if key in self._loaders:
            self._things[key] = self._loaded(key)
            del self._loaders[key]
        return self._things[key]

    def names(self) -> tuple[str, ...]:
        """All names, with underscores; nothing is imported for this."""
        self._declare_entry_points()
        return tuple(self._things)

    def __iter__(self) -> Iterator[T]:
        """All things; those of other packages that cannot be imported are left out, and `get` says why."""
        for name in self.names():
            try:
                yield self.get(name)
            except UsageError:
                if name not in self._plugins:
                    raise

    def __contains__(self, name: str) -> bool:
        self._declare_entry_points()
        return isinstance(name, str) and _fold(name) in self._things

    def _loaded(self, key: str) -> T:
        try:
            thing = self._loaders[key]()
        except LatentPDEError:
            raise
        except (Exception, SystemExit) as error:
            if key not in self._plugins:
                raise
            raise UsageError(
                f"the {self.kind} {key!r} comes from another package, {self._plugins[key]}, which cannot be imported: "
                f"{type(error).__name__}: {error}"
            ) from error
        if self._validate is not None:
            self._validate(thing)
        return thing

    def _reserve(self, name: str, *, replace: bool = False) -> str:
        key = _fold(name)
        if key in self._things and not replace:
            raise UsageError(f"{self.kind} {name!r} exists already; pass replace=True to override it")
        self._loaders.pop(key, None)
        self._things.setdefault(key, None)  # pyright: ignore[reportArgumentType]
        return key

    def _declare_entry_points(self) -> None:
        if self._entry_point_group is None:
            return
        group, self._entry_point_group = self._entry_point_group, None
        for entry in entry_points(group=group):
            if _fold(entry.name) in self._things:
                warnings.warn(
                    f"the {self.kind} {entry.name!r} of {entry.value} is not used: the name is taken", stacklevel=2
                )
                continue
            key = self._reserve(entry.name)
            self._loaders[key], self._plugins[key] = entry.load, entry.value


def _fold(name: str) -> str:
    return name.strip().lower().replace("-", "_")
