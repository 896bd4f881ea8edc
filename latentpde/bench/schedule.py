"""What of some jobs is still to be run, in which batches, and in which processes.

Tables share runs, small jobs make a batch together, and a run that is stopped goes on where it was.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Any

import torch

from latentpde.bench.jobs import Job, Part, measure
from latentpde.bench.store import Store
from latentpde.errors import UsageError
from latentpde.memory import keep_freed_memory
from latentpde.progress import progress

BATCH = 20  # cases that a method gets at once, and that are lost where a run is stopped


def missing(wanted: Iterable[tuple[Job, int]], store: Store) -> list[list[Part]]:
    """What is still to be run: batches of cases, of all jobs in turn, so that an unfinished run is balanced."""
    counts, parts = dict[Job, int](), []
    for job, num in wanted:
        counts[job] = max(num, counts.get(job, 0))
    for job, num in counts.items():
        count, done, size = job.row.count(num), store.find(job, num), 1 if job.alone else BATCH
        for start in range(0, count, size):
            # what failed is tried again: weights or a package may have come since
            absent = [i for i in range(start, min(start + size, count)) if "failed" in done.get(i, {"failed": True})]
            parts += [Part(job, first, last + 1) for first, last in _stretches(absent)]
    return _together(sorted(_shared(parts), key=lambda part: part.start))


def _shared(parts: Iterable[Part]) -> Iterable[Part]:
    """Parts that are one run of which several measures are taken, as one."""
    found = dict[tuple, Part]()
    for part in parts:
        same = part if part.job.timed else (replace(part.job, measure="scores"), part.start, part.stop)
        first = found.setdefault(same, part)
        if first is not part:
            found[same] = first._replace(others=(*first.others, part.job))
    return found.values()


def _together(parts: Iterable[Part]) -> list[list[Part]]:
    """Small parts that a method can be given as one, until they make a batch."""
    batches, last = [], dict[tuple, list[Part]]()
    for part in parts:
        alike = (_batch(part.job), *(job.measure for job in part.others))
        batch = last.get(alike)
        if batch is None or part.job.alone or _count([*batch, part]) > BATCH:
            batches.append(batch := [])
            last[alike] = batch
        batch.append(part)
    return batches


def _batch(job: Job) -> Job:
    """The same for jobs whose cases a method can be given as one batch."""
    return replace(job, simulation=replace(job.simulation, mask=None, sparsity=None))


def _count(parts: Iterable[Part]) -> int:
    return sum(part.stop - part.start for part in parts)


def _stretches(indices: list[int]) -> Iterator[tuple[int, int]]:
    """First and last of each run of numbers without a gap."""
    for _, group in groupby(enumerate(indices), key=lambda pair: pair[1] - pair[0]):
        members = [index for _, index in group]
        yield members[0], members[-1]


def run(
    wanted: Iterable[tuple[Job, int]],
    store: Store,
    *,
    workers: int = 1,
    label: str = "bench",
    show_progress: bool = False,
) -> None:
    """Run what is missing and keep it, batch by batch.

    Args:
        wanted: jobs, and how many cases of each.
        workers: processes, each on one core; 1 for this process and all cores.
    """
    wanted = sorted(wanted, key=lambda pair: pair[0].drawn != "spread")  # of equal jobs, the one that shows most
    pictures = {job: store.picture_path(job) for job, _ in wanted if job.drawn}
    tasks = [
        (parts, {job: pictures[job] for part in parts for job in part.jobs if job in pictures})
        for parts in missing(wanted, store)
    ]
    num_lines = sum(len(part.jobs) * _count([part]) for parts, _ in tasks for part in parts)
    with progress(label, num_lines, show=show_progress) as advance:
        for lines in _results(tasks, workers):
            store.add(lines)
            advance(len(lines))


def _results(tasks: list[tuple[list[Part], dict[Job, Path]]], workers: int) -> Iterator[list[dict[str, Any]]]:
    if workers < 1:
        raise UsageError(f"the number of workers must be at least 1, got {workers}")
    together = []
    for task in tasks:
        if workers > 1 and not task[0][0].job.timed:
            together.append(task)
        else:
            yield measure(*task)
    if not together:
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, mp_context=context, initializer=_begin_work) as pool:
        try:
            for future in as_completed([pool.submit(measure, *task) for task in together]):
                yield future.result()
        finally:
            pool.shutdown(cancel_futures=True)


def _begin_work() -> None:
    torch.set_num_threads(1)
    keep_freed_memory()
