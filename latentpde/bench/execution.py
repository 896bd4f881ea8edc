"""Running batches of cases, in this process or in several, and making lines of what comes out."""

from __future__ import annotations

import multiprocessing
import signal
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from multiprocessing.context import BaseContext
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from latentpde.bench.jobs import Job, Part
from latentpde.bench.lines import Entry
from latentpde.bench.measurements import measurements, rounded
from latentpde.bench.provenance import provenance
from latentpde.bench.queue import missing_batches, missing_pictures
from latentpde.bench.solving import solve
from latentpde.bench.store import Store
from latentpde.errors import UsageError
from latentpde.progress import progress
from latentpde.scheduling.workers import connect, held, run_tasks

T = TypeVar("T")


def run_jobs(
    wanted: Iterable[tuple[Job, int]],
    store: Store,
    *,
    workers: int = 1,
    scheduler: str | None = None,
    label: str = "bench",
    show_progress: bool = False,
) -> None:
    """Run what is missing of some jobs and keep it, batch by batch.

    Args:
        wanted: jobs, and how many cases of each.
        store: where lines and pictures are kept.
        workers: processes, each on one core; 1 for this process and all cores.
        scheduler: the address of a Dask scheduler, whose workers run what is not timed; they must see the store.
        label: what a progress bar is called.
        show_progress: whether there is one.
    """
    if workers < 1:
        raise UsageError(f"the number of workers must be at least 1, got {workers}")
    wanted = sorted(wanted, key=lambda pair: pair[0].drawn != "spread")  # of equal jobs, the one that shows most
    pictures = {job: store.picture_path(job) for job, _ in wanted if job.drawn}
    tasks = [
        (parts, {job: pictures[job] for part in parts for job in part.jobs if job in pictures})
        for parts in missing_batches(wanted, store)
    ]
    num_lines = sum(len(part.jobs) * part.num_cases for parts, _ in tasks for part in parts)
    with progress(label, num_lines, show=show_progress) as advance:
        timed = [task for task in tasks if task[0][0].job.timed]
        rest = [task for task in tasks if not task[0][0].job.timed]
        # what is timed has the machine to itself
        for some, processes, address in ((timed, 1, None), (rest, workers, scheduler)):
            for entries in in_processes(run_batch, some, processes, address):
                store.add(entries)
                advance(len(entries))
    undrawn = missing_pictures([job for job, _ in wanted], store)
    with progress(f"{label}, pictures", len(undrawn), show=show_progress) as advance:
        paths = [(job, store.picture_path(job)) for job in undrawn]
        for _ in in_processes(draw_shown_case, paths, workers, scheduler):
            advance(1)


def in_processes(
    function: Callable[..., T], tasks: Sequence[tuple], workers: int, scheduler: str | None = None
) -> Iterator[T]:
    """What a function gives for each of some tasks, as they are done.

    Args:
        function: of a module, so that other processes find it.
        tasks: arguments for each call.
        workers: processes, each on one core; with 1 the tasks run here, in turn, on all cores.
        scheduler: the address of a Dask scheduler, whose workers do the tasks instead.

    Example:
        >>> list(in_processes(max, [(1, 2), (4, 3)], workers=1))
        [2, 4]
    """
    if scheduler is None and (workers == 1 or not tasks):
        for task in tasks:
            yield function(*task)
        return
    with connect(scheduler, workers if scheduler is None else None) as client:
        yield from run_tasks(client, function, tasks)


def in_fresh_process(function: Callable[..., T], *arguments, **options) -> T:
    """What a function gives in a process of its own, whose peak memory is then its own too.

    Args:
        function: of a module, so that the other process finds it; its arguments follow.

    Raises:
        Exception: what the function raises, or where its process ends without a word.
    """
    with ProcessPoolExecutor(1, mp_context=_fresh_processes()) as pool:
        return pool.submit(function, *arguments, **options).result()


@cache
def _fresh_processes() -> BaseContext:
    """New processes, from a server that has done the imports where the system has one."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["latentpde.bench", "latentpde.estimators"])
    return context


def run_batch(parts: Sequence[Part], pictures: Mapping[Job, Path] | None = None) -> list[Entry]:
    """Solve some cases together and make a line for each case and measurement.

    Where a method fails on the batch, each case is run alone, and its line says why if it fails again.

    Args:
        parts: as `latentpde.bench.solving.solve` has them.
        pictures: files for what figures show of some jobs.
    """
    begin, cases = time.perf_counter(), [(part, i) for part in parts for i in range(part.start, part.stop)]
    try:
        solved = solve(*parts)
        _ = solved.mean, solved.draws
    except Exception as error:
        return _one_by_one([(job, i) for part, i in cases for job in part.jobs], error, pictures)
    seconds = rounded((time.perf_counter() - begin) / len(cases))
    entries, truth = [], solved.cases["truth"].to_dataset()
    for k, first in enumerate(parts[0].jobs):
        of_job = [(part.jobs[k], i) for part, i in cases]
        try:
            found = measurements[first.measurement](solved)
        except Exception as error:
            entries += _one_by_one(of_job, error, pictures)
            continue
        for i, (job, index) in enumerate(of_job):
            if not np.isfinite(solved.mean[i]).all():
                entries.append(_entry(job, index, {"failed": "the field is not finite"}))
                continue
            if pictures and job in pictures and index == job.shown:
                with held(signal.SIGTERM):
                    solved.picture(i, with_spread=job.drawn == "spread").save(pictures[job])
            kinds = {name: str(truth[f"{name}_kind"].values[i]) for name in ("mask", "initial")}
            entries.append(_entry(job, index, {**found[i], **kinds, "seconds": seconds}))
    return entries


def _one_by_one(cases: Sequence[tuple[Job, int]], error: Exception, pictures: Mapping[Job, Path] | None) -> list[Entry]:
    """Lines of cases that failed together: each by itself; of a single one, why it failed."""
    if len(cases) == 1:
        return [_entry(*cases[0], {"failed": f"{type(error).__name__}: {error}"[:200]})]
    return [entry for job, i in cases for entry in run_batch([Part(job, i, i + 1)], pictures)]


def _entry(job: Job, index: int, found: dict[str, Any]) -> Entry:
    networks = job.row.networks(job.regime.family)
    header = {**job.identity(), **provenance(job.row.method), **({"networks": networks} if networks else {})}
    return Entry(header, {"index": index, **found})


def draw_shown_case(job: Job, path: Path) -> None:
    """Solve the case that figures show, for its picture alone; a figure leaves its place empty where it fails."""
    try:
        picture = solve(Part(job, job.shown, job.shown + 1)).picture(0, with_spread=job.drawn == "spread")
    except Exception:
        return
    with held(signal.SIGTERM):
        picture.save(path)
