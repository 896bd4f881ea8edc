"""`latentpde train`."""

from __future__ import annotations

from typing import Annotated

import typer

from latentpde.cli.options import Quiet


def train(
    config: Annotated[str, typer.Argument(help="TOML file, or a shipped configuration such as helmholtz-compact.")],
    resume: Annotated[bool, typer.Option("--resume", help="Go on where an earlier run stopped.")] = False,
    stage: Annotated[str | None, typer.Option(help="One stage alone: encoder, denoiser_enc, ...")] = None,
    quiet: Quiet = False,
) -> None:
    """Train the networks of a PDE family."""
    from latentpde.training.loop import train as run

    written = run(config, resume=resume, stage=stage, show_progress=not quiet)
    if not quiet:
        print(f"Weights: {', '.join(map(str, written))}. Use them with: -O weights={written[0].parent}")
