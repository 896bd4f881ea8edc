"""`latentpde demo`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from latentpde.cli.options import Quiet


def demo(
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder to write into.")] = Path("demo"),
    method: Annotated[str | None, typer.Option(help="See `latentpde list methods`.")] = None,
    quiet: Quiet = False,
) -> None:
    """Reconstruct a bundled case and write a report page."""
    from latentpde.demo import run_demo
    from latentpde.estimators.base import DEFAULT_METHOD

    scores = run_demo(output, method=DEFAULT_METHOD if method is None else method, show_progress=not quiet)
    if not quiet:
        print(f"RMSE {scores['rmse']:.3f} against the truth, from 5 % of the cells with noise 0.15")
        print(f"Fields: {output / 'out.nc'}\nOpen in a browser: {output / 'report.html'}")
