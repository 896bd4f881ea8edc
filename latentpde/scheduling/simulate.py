"""Thousands of simulated cases, by several workers, into a store that `latentpde.reconstruct_many` takes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

import latentpde
from latentpde.io.chunks import ChunkedStore, check_free
from latentpde.progress import progress
from latentpde.scheduling.workers import connect, run_tasks
from latentpde.simulation import Simulation
from latentpde.validation import Count, check_value

if TYPE_CHECKING:
    from distributed import Client

_CHUNK = 32  # cases


def simulate_many(
    simulation: Simulation,
    output: str | Path,
    num: int,
    *,
    workers: int | None = None,
    scheduler: str | Client | None = None,
    resume: bool = False,
    show_progress: bool = False,
) -> int:
    """Simulate the first cases of a set into a Zarr store, in the layout of ``cases.nc`` with a variable ``done``.

    Args:
        simulation: the recipe of the set.
        output: the store to make.
        num: how many cases.
        workers, scheduler, resume, show_progress: as those of `latentpde.reconstruct_many`.

    Returns:
        How many of the cases were not there before.

    Example:
        >>> import tempfile
        >>> import xarray as xr
        >>> path = Path(tempfile.mkdtemp()) / "cases.zarr"
        >>> simulate_many(Simulation(regime="diffusion", shape=(16, 16)), path, num=40, workers=1)
        40
        >>> xr.open_zarr(path, group="truth")["field"].shape
        (40, 16, 16)
    """
    check_value(Count, num, "the number of cases")
    output = Path(output)
    run = {"latentpde": latentpde.__version__, "num_cases": num, "simulation": repr(simulation)}
    if resume and output.exists():
        store = ChunkedStore.resume(output, run)
    else:
        check_free(output)
        like, labels = simulation.cases(0, 1), {"case": np.arange(num)}
        store = ChunkedStore.create(output, like, num_cases=num, chunk=_CHUNK, run=run, labels=labels)
    missing = store.missing()
    num_new = sum(map(len, missing))
    if missing:
        with (
            connect(scheduler, workers) as client,
            progress("simulate", num, done=num - num_new, show=show_progress) as advance,
        ):
            for num_cases in run_tasks(client, simulate_chunk, [(simulation, store, cases) for cases in missing]):
                advance(num_cases)
        store.tidy()
    return num_new


def simulate_chunk(simulation: Simulation, store: ChunkedStore, cases: range) -> int:
    """On a worker: simulate and write the cases of a chunk; how many they are."""
    store.write(cases.start, [simulation.cases(cases.start, cases.stop)])
    return len(cases)
