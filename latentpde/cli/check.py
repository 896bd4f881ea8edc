"""`latentpde check`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from latentpde.cli.options import AsJson, program
from latentpde.cli.reading import takes_reading_options
from latentpde.errors import DataError

if TYPE_CHECKING:
    from latentpde.inspection import Findings


@takes_reading_options
def check(
    observed: Annotated[Path, typer.Argument(help="CSV, Parquet, NetCDF or Zarr with readings.")],
    of_file: dict[str, Any],
    pde: Annotated[str | None, typer.Option(help="PDE family; by default one that suits the data.")] = None,
    as_json: AsJson = False,
) -> None:
    """Say what a file holds, what will be assumed, what cannot work, and the command to run next."""
    from latentpde.inspection import check as run
    from latentpde.pde import get_family

    family = None if pde is None else get_family(pde).name
    found = run(observed, family=family, **of_file)
    if as_json:
        print(json.dumps(found.to_dict()))
    else:
        _show(found, observed)
    if found.obstacles:
        raise DataError(f"this cannot work yet: {found.obstacles[0]}")


def _show(found: Findings, path: Path) -> None:
    from rich.console import Console
    from rich.markup import escape

    console = Console(highlight=False, soft_wrap=True)
    console.print(f"[bold]{escape(str(path))}[/bold]")
    parts = {
        "What it holds": {**found.contents, **found.extents},
        "How good it is": {**found.quality, **found.variation},
        "What will be assumed": found.assumed,
        "What it takes": found.cost,
    }
    width = max((len(name) for part in parts.values() for name in part), default=0)
    for title, part in parts.items():
        console.print(f"\n[bold]{title}[/bold]")
        for name, words in part.items():
            console.print(f"  [dim]{escape(name):<{width}}[/dim]  {escape(words)}")
    for title, style, sentences in (
        ("Noticed", "cyan", found.notes),
        ("Take care", "yellow", found.doubts),
        ("Cannot work", "red", found.obstacles),
    ):
        if sentences:
            console.print(f"\n[bold {style}]{title}[/bold {style}]")
            for sentence in sentences:
                console.print(f"  - {escape(sentence)}")
    if not found.obstacles:
        console.print("\n[bold]Run next[/bold]")
        console.print(f"  {escape(program() + found.command.removeprefix('latentpde'))}")
