"""What of some jobs is still to be run, and in which batches.

Tables share runs, small jobs make a batch together, and a run that was stopped goes on where it was. Running the
batches is `latentpde.bench.execution`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import groupby

from latentpde.bench.jobs import Job, Part
from latentpde.bench.store import Store

BATCH = 20  # cases that a method gets at once, and that are lost where a run is stopped


def missing_batches(wanted: Iterable[tuple[Job, int]], store: Store) -> list[list[Part]]:
    """What is still to be run: batches of cases, of all jobs in turn, so that an unfinished run is balanced.

    Args:
        wanted: jobs, and how many cases of each.
        store: what was run before. What failed is wanted again: weights or a package may have come since.
    """
    counts, parts = dict[Job, int](), []
    for job, num in wanted:
        counts[job] = max(num, counts.get(job, 0))
    for job, num in counts.items():
        count, done, size = job.row.count(num), store.find(job, num), 1 if job.alone else BATCH
        for start in range(0, count, size):
            absent = [i for i in range(start, min(start + size, count)) if "failed" in done.get(i, {"failed": True})]
            parts += [Part(job, first, last + 1) for first, last in _stretches(absent)]
    return _together(sorted(_shared(parts), key=lambda part: part.start))


def missing_pictures(jobs: Iterable[Job], store: Store) -> list[Job]:
    """Jobs that were run and that figures show, but whose picture is not kept."""
    drawn = sorted((job for job in jobs if job.drawn), key=lambda job: job.drawn != "spread")
    return [
        job
        for job in dict.fromkeys(drawn)  # of equal jobs, the one that shows most
        if store.picture(job) is None and "failed" not in store.find(job, 1).get(0, {"failed": True})
    ]


def _shared(parts: Iterable[Part]) -> Iterable[Part]:
    """Parts of which several measurements are taken of one run, as one."""
    found = dict[tuple, Part]()
    for part in parts:
        same = part if part.job.timed else (replace(part.job, measurement="scores"), part.start, part.stop)
        first = found.setdefault(same, part)
        if first is not part:
            found[same] = first._replace(others=(*first.others, part.job))
    return found.values()


def _together(parts: Iterable[Part]) -> list[list[Part]]:
    """Small parts that a method can be given as one, until they make a batch."""
    batches, last = [], dict[tuple, list[Part]]()
    for part in parts:
        alike = (_batch(part.job), *(job.measurement for job in part.others))
        batch = last.get(alike)
        if batch is None or part.job.alone or sum(p.num_cases for p in (*batch, part)) > BATCH:
            batches.append(batch := [])
            last[alike] = batch
        batch.append(part)
    return batches


def _batch(job: Job) -> Job:
    """The same for jobs whose cases a method can be given as one batch."""
    return replace(job, simulation=replace(job.simulation, mask=None, sparsity=None))


def _stretches(indices: list[int]) -> Iterator[tuple[int, int]]:
    """First and last of each stretch of numbers without a gap."""
    for _, group in groupby(enumerate(indices), key=lambda pair: pair[1] - pair[0]):
        members = [index for _, index in group]
        yield members[0], members[-1]
