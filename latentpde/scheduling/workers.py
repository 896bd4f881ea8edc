"""The processes that work: those of this machine, or those of a Dask cluster; and the tasks that they are given.

A task is a call of a function of a module. It runs on one thread, so that it gives the same bits wherever it runs, and
it may run twice, where its worker is lost: what it writes must be the same each time.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from multiprocessing import resource_tracker
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import latentpde
from latentpde.errors import LatentPDEError, UsageError

if TYPE_CHECKING:
    from distributed import Client

T = TypeVar("T")

_PATIENCE = 10  # seconds that a scheduler has to answer
#: Dask lets a worker with much memory in use rest until some is free; ours keep what they free, and would rest for ever
_NO_REST = {"distributed.worker.memory.pause": False}
_KEPT = "What is done is kept; go on with --resume"


@contextmanager
def connect(scheduler: str | Client | None = None, workers: int | None = None) -> Iterator[Client]:
    """A client of workers, of which each runs its tasks on one core.

    >>> with connect(workers=1) as client:
    ...     sorted(run_tasks(client, max, [(1, 2), (4, 3)]))
    [2, 4]

    Args:
        scheduler: the address of a Dask scheduler, such as ``"tcp://10.0.0.1:8786"``, or its scheduler file, or a
            client of one. Without it, processes of this machine, which end with the block.
        workers: how many of these; by default one for each core that this process may use.

    Raises:
        UsageError: where Dask is not installed, or no scheduler answers.
    """
    distributed = _distributed()
    if scheduler is not None and workers is not None:
        raise UsageError("a scheduler has workers of its own: give either --scheduler or --workers")
    if isinstance(scheduler, distributed.Client):
        yield scheduler
        return
    with _local(workers) if scheduler is None else _client_of(scheduler) as client:
        yield client


def run_tasks(client: Client, function: Callable[..., T], tasks: Sequence[tuple]) -> Iterator[T]:
    """What a function gives for each of some tasks, as they are done.

    Args:
        client: of `connect`.
        function: of a module, so that workers find it.
        tasks: arguments for each call.

    Raises:
        LatentPDEError: where the scheduler or too many workers are lost.
        Exception: what the function raises, first of all; tasks that have not begun are dropped.
    """
    from distributed import as_completed

    calls = [(function, latentpde.__version__, task) for task in tasks]
    futures = client.map(_call, *zip(*calls, strict=True), pure=False) if calls else []
    try:
        with _lost_workers():
            for future in as_completed(futures, loop=client.loop):
                result = future.result()
                future.release()
                yield result
    finally:
        if futures and client.status == "running":
            client.cancel(futures)


def _call(function: Callable[..., T], version: str, task: tuple) -> T:
    """On the worker: a task on one thread of torch's; those of other libraries Dask sets when it starts a worker."""
    import torch

    if version != latentpde.__version__:
        raise UsageError(f"a worker has latentpde {latentpde.__version__}, this is {version}: install the same")
    torch.set_num_threads(1)
    _prepare_worker()
    try:
        return function(*task)
    except LatentPDEError as error:
        found = error
    raise type(found)(*found.args)  # without its cause, which may not be fit to travel


@cache
def _prepare_worker() -> None:
    from latentpde.memory import keep_freed_memory

    keep_freed_memory()


def _distributed():
    try:
        import distributed
    except ImportError as error:
        raise UsageError(
            'several workers need Dask, and chunks Zarr: python -m pip install "latentpde[cluster]"'
        ) from error
    return distributed


@contextmanager
def _client_of(address: str) -> Iterator[Client]:
    from distributed import Client
    from distributed.comm.addressing import resolve_address

    try:
        if Path(address).is_file():  # of `dask scheduler --scheduler-file`
            address = json.loads(Path(address).read_text())["address"]
        resolve_address(address)
        client = Client(address, timeout=_PATIENCE, set_as_default=False)
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise UsageError(
            f"no Dask scheduler answers at {address!r} ({error}); its address is what `dask scheduler` prints, "
            "such as tcp://10.0.0.1:8786"
        ) from error
    with client:
        if not client.scheduler_info(n_workers=1)["workers"]:
            print(f"waiting for the first worker of {address}", file=sys.stderr, flush=True)
        yield client


@contextmanager
def _local(workers: int | None) -> Iterator[Client]:
    from dask.system import CPU_COUNT
    from distributed import Client, LocalCluster

    resource_tracker.ensure_running()  # in the block below it would let the signal through again
    # A terminal sends Ctrl-C to all processes; those that are started here inherit that they do not hear it.
    with held(signal.SIGINT):
        cluster = LocalCluster(
            n_workers=workers or CPU_COUNT,
            threads_per_worker=1,
            host="127.0.0.1",
            dashboard_address=None,  # pyright: ignore[reportArgumentType]
            silence_logs=logging.CRITICAL,
            config=_NO_REST,
        )
    with cluster, Client(cluster, set_as_default=False) as client:
        try:
            yield client
        except BaseException:
            for nanny in cluster.workers.values():  # what a worker is at would be waited for
                nanny.auto_restart = False
                if nanny.pid:
                    os.kill(nanny.pid, signal.SIGKILL)
            raise


@contextmanager
def _lost_workers() -> Iterator[None]:
    from distributed.client import FutureCancelledError
    from distributed.scheduler import KilledWorker

    try:
        yield
    except KilledWorker as error:
        raise LatentPDEError(
            "a task has brought down several workers, one after another, probably for want of memory. "
            f"{_KEPT}, with fewer workers or a lower resolution"
        ) from error
    except ModuleNotFoundError as error:
        raise UsageError(f"a worker lacks the package {error.name}: install latentpde[cluster] there") from error
    except (FutureCancelledError, OSError) as error:
        if isinstance(error, OSError) and not isinstance(error, ConnectionError):
            raise
        raise LatentPDEError(f"the connection to the Dask scheduler is lost. {_KEPT}") from error


@contextmanager
def held(number: signal.Signals) -> Iterator[None]:
    """A signal waits for the block's end; it never comes to threads and processes that are started inside."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {number})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
