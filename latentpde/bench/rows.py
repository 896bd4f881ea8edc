"""Rows of a comparison: a method, the options it was tuned to, and what it is given.

Every registered method has a row of its own name, so that one that lands later appears by itself. The paper's
baselines are given the fine initial state, as the paper does; ``NAME-coarse`` is the same method with what a user
has, the coarse one. Options come from ``tuned.json``, the outcome of a search on the validation split
(``tools/tune.py``); where it says nothing, the method's defaults hold.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import Any

from latentpde.estimators import methods

#: Methods that the paper gives the fine initial state.
BASELINES = ("3dvar", "enkf", "pinn", "kriging", "fundps")
#: Methods that train a network for each case, and get one case of this many.
SLOW = {"pinn": 5}
#: Methods whose networks come for one family: rows where a study names them, no part of "every method".
ONE_FAMILY = ("fundps",)
COARSE = "-coarse"
PAPER = "-paper"
#: Rows that are a method as the paper has it, where ours differs: the method, and what is changed.
VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "enkf-paper": ("enkf", {"localisation": 0.0, "correction": 1.0}),
    "map_diffusion-paper": ("map_diffusion", {"target": "map"}),
    "enc_diffusion-paper": ("enc_diffusion", {"target": "enc"}),
}


@dataclass(frozen=True, kw_only=True)
class Row:
    """One row of a comparison: a method with its options, and what it is given.

    Args:
        name: what the row is called in tables.
        method: the name that the method is registered under.
        tuned: the name that its tuned options are kept under.
        fine_initial: whether it is given the initial state on the fine grid.
        num_draws: posterior draws for each case; 16 for the ensemble filter, which has as many members.
        extra: options that an experiment changes, as pairs of name and value.

    Example:
        >>> row("3dvar").options("helmholtz")["edges"]
        'periodic'
        >>> row("3dvar").fine_initial, row("3dvar-coarse").fine_initial
        (True, False)
    """

    name: str
    method: str
    tuned: str
    fine_initial: bool = False
    num_draws: int = 12
    extra: tuple[tuple[str, Any], ...] = ()

    def count(self, num: int) -> int:
        """How many cases it gets where others get ``num``; a slow method gets fewer."""
        return math.ceil(num / SLOW.get(self.method, 1))

    def options(self, family: str) -> dict[str, Any]:
        """The options that were tuned for a family, then changed by the experiment."""
        return {**tuned_options().get(self.tuned, {}).get(family, {}), **dict(self.extra)}


@cache
def tuned_options() -> dict[str, dict[str, dict[str, Any]]]:
    """The options that were found on the validation split, as ``[row][family][option]``."""
    return json.loads((files("latentpde.bench") / "tuned.json").read_text())


def row(name: str) -> Row:
    """The row of a name: that of a method, of one of `VARIANTS`, or of either with ``-coarse`` behind it."""
    base = name.removesuffix(COARSE)
    method, extra = VARIANTS.get(base, (base, {}))
    kind = methods.get(method)  # says what there is where it is unknown
    return Row(
        name=name,
        method=kind.name,
        tuned=base,
        fine_initial=kind.name in BASELINES and not name.endswith(COARSE),
        num_draws=16 if kind.name == "enkf" else 12,
        extra=tuple(sorted(extra.items())),
    )


def with_options(base: Row, *, num_draws: int | None = None, name: str | None = None, **options) -> Row:
    """A row with some of its method's options, its number of draws or its name changed.

    Options that are as they would be anyway are left out, so that the row is known for the same run.

    Example:
        >>> with_options(row("map"), num_steps=80).options("helmholtz")
        {'num_steps': 80}
        >>> with_options(row("map"), num_steps=300).options("helmholtz")  # the default
        {}
    """
    usual = methods.get(base.method)()
    tuned = {name for options in tuned_options().get(base.tuned, {}).values() for name in options}
    changed = {
        option: value
        for option, value in options.items()
        if option in tuned or option in dict(base.extra) or value != getattr(usual, option, None)
    }
    extra = (*base.extra, *sorted(changed.items()))
    return replace(base, name=name or base.name, num_draws=num_draws or base.num_draws, extra=extra)


def every_method() -> list[str]:
    """Names of the methods that a study of every family can take."""
    return [methods.get(name).name for name in methods.names() if name not in ONE_FAMILY]


def chosen_rows(names: Iterable[str], *, slow: bool = True) -> tuple[Row, ...]:
    """Rows of some names; where there are none, of every registered method.

    Args:
        names: as `row` takes them.
        slow: whether methods that train a network for each case are among them.
    """
    names = tuple(names) or every_method()
    return tuple(row(name) for name in dict.fromkeys(names) if slow or name not in SLOW)
