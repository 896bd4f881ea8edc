"""`latentpde serve`."""

from __future__ import annotations

import os
from importlib.util import find_spec
from typing import Annotated

import typer

from latentpde.cli.options import Quiet
from latentpde.errors import UsageError


def serve(
    host: Annotated[str, typer.Option(help="Address to serve at; others than this machine's need care.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 for any that is free.")] = 8000,
    workers: Annotated[int | None, typer.Option(min=1, max=64, help="Processes. By default one per core.")] = None,
    token: Annotated[
        str | None, typer.Option(envvar="LATENTPDE_TOKEN", help="What clients must show. By default nothing.")
    ] = None,
    max_upload: Annotated[int, typer.Option(min=1, max=2000, help="Megabytes of an uploaded file.")] = 50,
    quiet: Quiet = False,
) -> None:
    """Serve a page to explore reconstructions in the browser."""
    missing = [name for name in ("fastapi", "uvicorn") if find_spec(name) is None]
    if missing:
        raise UsageError(f"the page needs {', '.join(missing)}; install them with: pip install 'latentpde[web]'")
    if token is not None and len(token) < 16:
        raise UsageError(f"a token needs at least 16 characters, got {len(token)}; make one: openssl rand -hex 16")
    from latentpde.web.serve import serve as run
    from latentpde.web.settings import MEGABYTE, Settings

    settings = Settings(
        host=host,
        token=token,
        num_workers=workers if workers is not None else os.cpu_count() or 1,
        max_upload=max_upload * MEGABYTE,
    )

    def ready(address: str) -> None:
        if not quiet:
            print(f"The page is at {address} (Ctrl-C ends it)", flush=True)
            if not settings.is_local and token is None:
                print("warning: anybody who reaches this address can use it; --token asks for one", flush=True)

    run(settings, port, ready)
