"""`latentpde list`: what there is to choose from, a line each."""

from __future__ import annotations

import json
from collections.abc import Callable
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from latentpde.cli.options import AsJson
from latentpde.errors import LatentPDEError

if TYPE_CHECKING:
    from latentpde.registry import Registry


class Listing(StrEnum):
    families = "families"
    regimes = "regimes"
    masks = "masks"
    methods = "methods"
    benchmarks = "benchmarks"


SUMMARIES = {
    Listing.families: "PDEs, for `reconstruct --pde`",
    Listing.regimes: "a PDE with ranges for its coefficients and the strength of its source, for `simulate`",
    Listing.masks: "which cells are read, for `simulate --mask`",
    Listing.methods: "for `reconstruct --method`",
    Listing.benchmarks: "for `bench`",
}


def list_(
    what: Annotated[Listing | None, typer.Argument(help="By default, what can be listed.")] = None,
    as_json: AsJson = False,
) -> None:
    """List families, regimes, masks, methods or benchmarks."""
    table = rows(what.value) if what else [{"name": name.value, "summary": SUMMARIES[name]} for name in Listing]
    if as_json:
        print(json.dumps(table))
        return
    width = max(len(row["name"]) for row in table)
    for row in table:
        print(f"{row['name']:<{width}}  {row['summary']}")


def rows(what: str) -> list[dict[str, str]]:
    """``name`` and ``summary`` of each family, regime, mask, method or benchmark."""
    if what == "families":
        from latentpde.pde import families

        return _described(families, lambda f: f"{f.equation}   ({', '.join(f.coefficient_names)})")
    if what == "regimes":
        from latentpde.simulation import regimes

        return [
            {
                "name": r.name,
                "summary": f"{r.family}: "
                + ", ".join(
                    f"{name} in [{low:g}, {high:g}]"
                    for name, (low, high) in zip(r.pde.coefficient_names, r.ranges, strict=True)
                )
                + f"; source {r.source_prior_std:g}; time {r.time:g}",
            }
            for r in regimes
        ]
    if what == "masks":
        from latentpde.simulation import TRAINING_MASKS, masks

        return [
            {"name": name, "summary": "training" if name in TRAINING_MASKS else "evaluation"} for name in masks.names()
        ]
    if what == "benchmarks":
        from latentpde.bench import benchmarks

        return [{"name": benchmark.name, "summary": benchmark.title} for benchmark in benchmarks]
    from latentpde.estimators import methods

    return _described(methods, lambda method: method.summary)


def _described(things: Registry, describe: Callable[[Any], str]) -> list[dict[str, str]]:
    """A line for each thing; for one of another package that cannot be imported, why."""
    found = []
    for name in things.names():
        try:
            summary = describe(things.get(name))
        except LatentPDEError as error:
            summary = f"not available: {error}"
        found.append({"name": name, "summary": summary})
    return found
