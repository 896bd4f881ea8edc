"""Rows of a comparison: a method, the options it was tuned to, and what it is given.

Every registered method has a row of its own name, so that one that lands later appears by itself. The paper's
baselines are given the fine initial state, as the paper does; ``NAME-coarse`` is the same method with what a user
has, the coarse one. ``NAME-family-bounds`` has the bounds of the whole family in place of the regime's. `CHOSEN` stands
in each regime for the learned branch that validation chose there. Rows that differ from a method's own in more than
that are `latentpde.bench.variants`. Options come from ``tuned.json``, the outcome of a search on the validation split
(``tools/tune.py``); where it says nothing, the method's defaults hold.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

from latentpde.bench.branches import BRANCHES, recorded_choice
from latentpde.bench.variants import PAPER, VARIANTS, Variant
from latentpde.estimators import methods

#: Methods that the paper gives the fine initial state.
BASELINES = ("3dvar", "enkf", "pinn", "kriging", "fundps")
#: Seconds for a case of methods that take more than two in a batch, on two cores.
SLOW = {"pinn": 10.0}
#: Of the cases that others get, slow methods get one in so many, in some studies all, and no more than an hour allows.
ONE_OF, HOUR = 5, 3600.0
#: Methods whose networks come for one family: rows where a study names them, no part of "every method".
ONE_FAMILY = ("fundps",)
COARSE = "-coarse"
FAMILY_BOUNDS = "-family-bounds"
#: The paper's rule: in each regime the branch that the validation split chose.
CHOSEN = "latentpde"
#: What figures compare: a row for each kind of method.
IN_FIGURES = (CHOSEN, "exact", "map", "enc", "3dvar", "enkf", "pinn", "kriging")


@dataclass(frozen=True, kw_only=True)
class Row:
    """One row of a comparison: a method with its options, and what it is given.

    Args:
        name: what the row is called in tables.
        method: the name that the method is registered under.
        tuned: the name that its tuned options are kept under.
        fine_initial: whether it is given the initial state on the fine grid.
        num_draws: posterior draws for each case; 16 for the ensemble filter, which has as many members.
        bounds: the bounds of coefficients that it is told: the ``regime``'s, which cases carry, or the ``family``'s.
        trained: the training configuration whose networks it uses, with ``{family}`` for the family's name; None for
            those that come with the package.
        one_of: it gets one case of this many.
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
    bounds: Literal["regime", "family"] = "regime"
    trained: str | None = None
    one_of: int = 1
    extra: tuple[tuple[str, Any], ...] = ()

    def count(self, num: int) -> int:
        """How many cases it gets where others get ``num``; a slow method gets fewer, and no more than in an hour.

        Example:
            >>> row("exact").count(500), row("pinn").count(500), row("pinn").count(5000)
            (500, 100, 360)
        """
        most = HOUR / SLOW[self.method] if self.method in SLOW else math.inf
        return int(min(math.ceil(num / self.one_of), most))

    def options(self, family: str) -> dict[str, Any]:
        """The options that were tuned for a family, then changed by the experiment."""
        networks = {} if self.trained is None else {"weights": f"runs/{self.trained.format(family=family)}"}
        return {**tuned_options().get(self.tuned, {}).get(family, {}), **networks, **dict(self.extra)}

    def at(self, regime: str) -> Row:
        """The row in one regime: `CHOSEN` is the branch that was chosen there, the first where none was, with the
        number of draws and the options that an experiment has changed; any other is itself.

        Example:
            >>> row("latentpde").at("klein_gordon").method
            'map_diffusion'
            >>> with_options(row("latentpde"), num_draws=128).at("klein_gordon").num_draws
            128
        """
        if self.name.split(",")[0] != CHOSEN:
            return self
        branch = row(recorded_choice().get(regime, BRANCHES[0]))
        as_usual = self.num_draws == row(CHOSEN).num_draws
        return replace(
            branch,
            name=self.name,
            num_draws=branch.num_draws if as_usual else self.num_draws,
            extra=tuple({**dict(branch.extra), **dict(self.extra)}.items()),
        )

    def untrained(self, family: str) -> str | None:
        """How to train the networks that it needs for a family, where they are not there; otherwise None.

        Example:
            >>> row("exact").untrained("helmholtz") is None
            True
        """
        manifests = self._manifests(family)
        if self.trained is None or all(path.exists() for path in manifests.values()):
            return None
        stages = " and ".join(manifests)
        return (
            f"{self.name.split(',')[0]}: the networks of {family} are not there, so cells stay empty; train them with "
            f"`latentpde train {self.trained.format(family=family)}` (stages {stages}; docs/learned.md)."
        )

    def networks(self, family: str) -> dict[str, str]:
        """The trained networks that it uses and that do not come with the package: epochs and hash by role."""
        found = {role: json.loads(path.read_text()) for role, path in self._manifests(family).items()}
        return {role: f"{m['training']['epochs']} epochs, {m['sha256'][:10]}" for role, m in found.items()}

    def _manifests(self, family: str) -> dict[str, Path]:
        if self.trained is None:
            return {}
        options = self.options(family)
        roles = [*(["encoder"] if self.method == "enc_diffusion" else []), f"denoiser_{options['target']}"]
        return {role: Path(options["weights"]) / f"{family}-{role}.json" for role in roles}


@cache
def tuned_options() -> dict[str, dict[str, dict[str, Any]]]:
    """The options that were found on the validation split, as ``[row][family][option]``."""
    return json.loads((files("latentpde.bench") / "tuned.json").read_text())


def row(name: str) -> Row:
    """The row of a name: that of a method, of one of `VARIANTS`, `CHOSEN`, or one with a suffix from above."""
    if name == CHOSEN:
        return replace(row(BRANCHES[0]), name=CHOSEN)
    base = name.removesuffix(COARSE).removesuffix(FAMILY_BOUNDS)
    variant = VARIANTS.get(base, Variant(base))
    kind = methods.get(variant.method)  # says what there is where it is unknown
    in_family = variant.family_bounds or FAMILY_BOUNDS in name
    return Row(
        name=name,
        method=kind.name,
        tuned=variant.tuned or base,
        fine_initial=kind.name in BASELINES and not name.endswith(COARSE),
        num_draws=16 if kind.name == "enkf" else 12,
        bounds="family" if in_family else "regime",
        trained=variant.trained,
        one_of=ONE_OF if kind.name in SLOW else 1,
        extra=tuple(sorted(variant.options.items())),
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


def published(name: str) -> str:
    """The name under which the paper's figures of a row are kept.

    Example:
        >>> published("3dvar-paper"), published("map_diffusion-target-map"), published("enkf-enc")
        ('3dvar', 'map_diffusion', 'enkf-enc')
    """
    variant = VARIANTS.get(name)
    return variant.method if variant is not None and variant.comparable else name.removesuffix(PAPER)


def chosen_rows(names: Iterable[str]) -> tuple[Row, ...]:
    """Rows of some names, as `row` takes them; where there are none, of every registered method."""
    return tuple(row(name) for name in dict.fromkeys(tuple(names) or every_method()))
