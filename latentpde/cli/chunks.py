"""What commands share that write chunk by chunk, on several workers."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from latentpde.cli.options import MOST, command_line
from latentpde.errors import DataError, UsageError

Scheduler = Annotated[
    str | None, typer.Option(help="Address of a Dask scheduler whose workers do the work, such as tcp://10.0.0.1:8786.")
]
Workers = Annotated[
    int | None, typer.Option(min=1, max=1024, help="Processes, for a Zarr store. By default one for each core.")
]
Chunk = Annotated[
    int | None, typer.Option(min=1, max=MOST, help="Cases written at once to a Zarr store. By default at most 16.")
]
Resume = Annotated[bool, typer.Option("--resume", help="Go on with a Zarr store where an earlier run was stopped.")]


def is_store(path: Path) -> bool:
    """Whether a name is that of a Zarr store.

    >>> is_store(Path("out.zarr")), is_store(Path("out.nc"))
    (True, False)
    """
    return path.suffix.lower() == ".zarr"


def require_store(output: Path, **options: object) -> None:
    """Raise `UsageError` where options are given that only a store can have."""
    given = [f"--{name}" for name, value in options.items() if value]
    if given and not is_store(output):
        raise UsageError(f"{', '.join(given)} needs a Zarr store to write, such as -o {output.stem}.zarr; got {output}")


@contextmanager
def kept() -> Iterator[None]:
    """Say, where Ctrl-C ends the block, that what is written stays."""
    try:
        yield
    except KeyboardInterrupt:
        print("what is done is kept: go on with --resume", file=sys.stderr)
        raise


def reconstruct_store(
    observed: Sequence[Path],
    output: Path,
    reading: Mapping[str, Any],
    settings: Mapping[str, Any],
    *,
    as_json: bool,
    quiet: bool,
    **options: Any,
) -> None:
    """Reconstruct every case of some files into a store, and say what became of it.

    Args:
        observed: the files.
        output: the store.
        reading, settings, options: as those of `latentpde.reconstruct_many`.
        as_json: whether to print one object for programs to read.
        quiet: whether to show neither progress nor a closing message.
    """
    from latentpde.errors import no_warnings
    from latentpde.scheduling.reconstruct import reconstruct_many

    with no_warnings(), kept():
        found = reconstruct_many(observed, output, reading=reading, history=command_line(), **options, **settings)
    memory = [round(size / 1e6) for size in found.memory.values()]
    if as_json:
        done = {
            "output": str(output),
            "num_cases": found.num_cases,
            "num_new": found.num_new,
            "method": settings["method"],
        }
        print(json.dumps(done | {"failed": found.failed, "warned": found.warned, "memory_mb": memory}))
    elif not quiet:
        most = f", at most {max(memory):,} MB in each of {len(memory)} worker(s)" if memory else ""
        print(
            f"{found.num_new:,} of {found.num_cases:,} case(s) reconstructed by {settings['method']} in {output}{most}"
        )
    if found.failed:
        raise DataError(f"{found.sentences()[0]}. The others are in {output}; mend the data and go on with --resume")
