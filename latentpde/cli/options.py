"""Options that several commands share, and how their values are read."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sys
from enum import StrEnum
from typing import Annotated, Any

import typer

from latentpde.errors import UsageError

Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress, no closing message.")]

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object for programs to read.")]

Seed = Annotated[int, typer.Option(min=0, max=2**32 - 1, help="Same seed, same result.")]


class Kind(StrEnum):
    """What a reading is of."""

    lowres_solve = "lowres-solve"
    pooled = "pooled"
    point = "point"


#: Numbers beyond this cannot be meant.
MOST = 10**7


def parse_options(method: str, items: list[str]) -> dict[str, Any]:
    """Options of a method from ``--option name=value``, read as JSON where they are not text."""
    from dataclasses import asdict

    from latentpde.estimators.base import make_estimator
    from latentpde.validation import shortened

    defaults = asdict(make_estimator(method))
    options = {}
    for item in items:
        name, equals, text = item.partition("=")
        name = name.strip().replace("-", "_")
        if not equals:
            raise UsageError(f"--option takes name=value, such as num_steps=80; got {shortened(item)}")
        if name not in defaults:
            raise UsageError(
                f"method {method!r} has no option {shortened(name)}; it has: {', '.join(defaults) or 'none'}"
            )
        if name in options:
            raise UsageError(f"--option names {name!r} twice; give it one value")
        options[name] = _value(text, defaults[name])
    return options


def _value(text: str, default: object) -> object:
    """JSON where it is JSON, and text where it is not, or where text is wanted; the method checks it."""
    if isinstance(default, str):
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError):  # text, or brackets within brackets without end
        return text


def parse_names(items: list[str] | None, option: str) -> list[str]:
    """Names from a repeatable option whose values may hold several, with commas.

    >>> parse_names(["exact, map", "enkf"], "--methods")
    ['exact', 'map', 'enkf']
    """
    names = [name.strip() for item in items or [] for name in item.split(",")]
    if "" in names:
        raise UsageError(f"{option} needs a name between its commas; got {', '.join(map(repr, items or []))}")
    return names


def check_range(value: float | None, option: str, wanted: str, low: float, high: float) -> None:
    """Raise `UsageError` where a number is not from ``low`` to ``high``, which ``wanted`` says in words."""
    if value is not None and not low <= value <= high:
        raise UsageError(f"{option} must be {wanted}, got {value}")


def program() -> str:
    """How this program can be called again from here: by its name, or by the path that it was called by."""
    called = sys.argv[0]
    return called if os.path.basename(called) == "latentpde" and shutil.which("latentpde") is None else "latentpde"


def command_line() -> str:
    """The command as it was given, ready to paste, for the record; names that are not UTF-8 are escaped."""
    return shlex.join(["latentpde", *sys.argv[1:]]).encode("utf-8", "backslashreplace").decode()
