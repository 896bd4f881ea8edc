"""Thousands of reconstructions: chunk by chunk, on all cores or on a cluster, into a store that can be read meanwhile.

Workers read the cases of a chunk themselves and write what comes out themselves, so nothing large passes through the
scheduler, and memory is bounded by the chunk. The numbers depend on neither the chunks nor the workers: random numbers
belong to a case (`latentpde.estimators.seeds`), a task has one thread, and what a method is given at once is a batch
that follows from the files alone.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import latentpde
from latentpde.errors import DataError, LatentPDEError, LatentPDEWarning, UsageError, no_warnings
from latentpde.estimators import methods, reconstruct
from latentpde.estimators.base import DEFAULT_METHOD
from latentpde.io.chunks import ChunkedStore, check_free, stretches
from latentpde.io.reconstructions import posterior_to_dataset
from latentpde.memory import peak_memory
from latentpde.posterior import Resolution
from latentpde.progress import progress
from latentpde.scheduling.sources import TRIED, Batch, check_alike, describe, find_files, fingerprint, read_cases, split
from latentpde.scheduling.workers import connect, run_tasks

if TYPE_CHECKING:
    import xarray as xr
    from distributed import Client

_CHUNK = 16  # cases
_FEWEST_CHUNKS = 64  # where cases are so few that larger chunks would leave workers idle


@dataclass(frozen=True)
class Recipe:
    """How each case is reconstructed.

    Args:
        reading: what wins over what the files say, as options of `latentpde.read`.
        settings: of `latentpde.reconstruct`.
        resolution, keep_draws: as those of `latentpde.Posterior.summary`.
    """

    reading: Mapping[str, Any]
    settings: Mapping[str, Any]
    resolution: Resolution = None
    keep_draws: bool = False

    def follow(self, batch: Batch) -> tuple[xr.DataTree, dict[int, str]]:
        """Reconstruct some cases: what a store keeps of them, and what it is to be warned of, by case."""
        import xarray as xr

        with no_warnings():
            posterior = reconstruct(read_cases(batch, self.reading), **self.settings)
        dataset = posterior_to_dataset(posterior, self.resolution, self.keep_draws)
        # what is one number for these cases, as their time is, may be another for the next
        alone = {name: c for name, c in dataset.coords.items() if not c.dims}
        dataset = dataset.assign_coords({name: c.expand_dims(case=len(batch.cases)) for name, c in alone.items()})
        warned = {case: " ".join(posterior.warnings(i)) for i, case in enumerate(batch.cases) if posterior.warnings(i)}
        return xr.DataTree(dataset), warned


@dataclass
class Outcome:
    """What a run over many cases has come to.

    >>> Outcome(Path("out.zarr"), num_cases=2000, failed={17: "no reading"}).sentences()
    ['1 of 2,000 cases could not be reconstructed; case 17: no reading']

    Args:
        path: of the store.
        num_cases: in it.
        num_new: of these, reconstructed by this run.
        failed: why, of those that could not be reconstructed.
        warned: of what, of those that are not to be taken as they are.
        memory: the most that each worker took, in bytes, by its name.
    """

    path: Path
    num_cases: int
    num_new: int = 0
    failed: dict[int, str] = field(default_factory=dict)
    warned: dict[int, str] = field(default_factory=dict)
    memory: dict[str, int] = field(default_factory=dict)

    def open(self) -> xr.Dataset:
        """The store, whose values are read when they are asked for."""
        import xarray as xr

        return xr.open_zarr(self.path)

    def sentences(self) -> list[str]:
        """What there is to say of cases that failed, or that are not to be taken as they are."""
        said = ((self.failed, "could not be reconstructed"), (self.warned, "not to be taken as they are"))
        return [
            f"{len(cases):,} of {self.num_cases:,} cases {what}; case {min(cases)}: {cases[min(cases)]}"
            for cases, what in said
            if cases
        ]


def reconstruct_many(
    inputs: str | Path | Iterable[str | Path],
    output: str | Path,
    family: str | None = None,
    *,
    method: str = DEFAULT_METHOD,
    resolution: Resolution = None,
    keep_draws: bool = False,
    reading: Mapping[str, Any] | None = None,
    chunk: int | None = None,
    workers: int | None = None,
    scheduler: str | Client | None = None,
    resume: bool = False,
    history: str = "latentpde.reconstruct_many",
    show_progress: bool = False,
    **settings,
) -> Outcome:
    """Reconstruct every case of a store or of many files, chunk by chunk, into a Zarr store.

    A run that was stopped is continued by the same call with ``resume=True``, and ends with the same bits as one that
    was not stopped. A script that calls this needs ``if __name__ == "__main__":`` around the call, because workers are
    new processes.

    Args:
        inputs: a Zarr store or NetCDF file with an axis ``case``, or many files, with ``*`` for any text, of which each
            holds one case or several, on one grid; a file of any other layout that `latentpde.read` takes is one case.
        output: the Zarr store to make, in the layout of ``out.nc`` with a variable ``done``: which cases are written.
        family: as that of `latentpde.reconstruct`, and so are ``method`` and ``settings``.
        resolution, keep_draws: as those of `latentpde.Posterior.summary`.
        reading: what wins over what the files say, as options of `latentpde.read`.
        chunk: cases that are computed and written at once, and that are lost where a worker is; by default 16, or fewer
            of few.
        workers: processes of this machine; by default one for each core.
        scheduler: the address of a Dask scheduler, or a client, in place of these. All its workers must see the files.
        resume: go on with the store of an earlier run, where there is one.
        history: for the store's attribute of this name.
        show_progress: draw a bar on a terminal, print lines elsewhere.

    Raises a `latentpde.LatentPDEWarning` for cases that failed, which a resumed run tries again, and for those that are
    not to be taken as they are.

    Example:
        >>> import tempfile
        >>> import latentpde as lp
        >>> folder = Path(tempfile.mkdtemp())
        >>> lp.simulate("diffusion", num=3, shape=(16, 16), num_modes=2).to_netcdf(folder / "cases.nc")
        >>> found = lp.reconstruct_many(
        ...     folder / "cases.nc", folder / "out.zarr", method="map", num_steps=5, resolution=16, workers=1
        ... )
        >>> found.num_new, found.open()["mean"].shape
        (3, (3, 16, 16))
    """
    files, output = find_files(inputs), Path(output)
    at_once = methods.get(method).cases_at_once
    if chunk is not None and (chunk < 1 or chunk % at_once):
        raise UsageError(f"{method} is given {at_once} cases at once: a chunk must be a multiple of that, got {chunk}")
    if any(Path(path) in output.resolve().parents for path in files):
        raise UsageError(f"{output} lies inside a store of readings; choose another place")
    resuming = resume and output.exists()
    if not resuming:
        check_free(output)
    settings = {"family": family, "method": method, **settings}
    recipe = Recipe(dict(reading or {}), settings, resolution, keep_draws)
    with connect(scheduler, workers) as client:
        with progress("look at the files", len(files), show=show_progress) as advance:
            sources = {}
            for source in run_tasks(client, describe, [(path, recipe.reading) for path in files]):
                sources[source.path] = source
                advance(1)
        sources = [sources[path] for path in files]
        check_alike(sources)
        batches, num_cases = split(sources, at_once), sum(source.num_cases for source in sources)
        run = _identity(recipe, num_cases, fingerprint(sources))
        if resuming:
            store = ChunkedStore.resume(output, run)
        else:
            chunk = chunk or at_once * math.ceil(min(_CHUNK, math.ceil(num_cases / _FEWEST_CHUNKS)) / at_once)
            (like,) = run_tasks(client, first_success, [(recipe, batches[:TRIED])])
            like.attrs["history"] = history
            labels = _labels(sources)
            store = ChunkedStore.create(output, like, num_cases=num_cases, chunk=chunk, run=run, labels=labels)
        return _run_chunks(client, recipe, store, batches, show_progress)


def _run_chunks(
    client: Client, recipe: Recipe, store: ChunkedStore, batches: Sequence[Batch], show_progress: bool
) -> Outcome:
    """Everything that a store lacks."""
    missing, outcome = store.missing(), Outcome(store.path, store.num_cases)
    by_chunk: dict[int, list[Batch]] = {}
    for batch in batches:
        by_chunk.setdefault(batch.first // store.chunk, []).append(batch)
    tasks = [(recipe, store, by_chunk[cases.start // store.chunk]) for cases in missing]
    done = int(store.done(range(store.num_cases)).sum())
    with progress("reconstruct", store.num_cases, done=done, show=show_progress) as advance:
        for found in run_tasks(client, reconstruct_chunk, tasks):
            outcome.num_new += found.num_new
            outcome.failed |= found.failed
            outcome.warned |= found.warned
            outcome.memory |= {name: max(size, outcome.memory.get(name, 0)) for name, size in found.memory.items()}
            advance(found.num_new + len(found.failed))
    store.tidy()
    for sentence in outcome.sentences():
        warnings.warn(sentence, LatentPDEWarning, stacklevel=3)
    return outcome


def first_success(recipe: Recipe, batches: Sequence[Batch]) -> xr.DataTree:
    """On a worker: the first case that can be reconstructed, whose layout all others have.

    Raises:
        LatentPDEError: where none can, and why the first one cannot.
    """
    first: LatentPDEError | None = None
    for batch in batches:
        try:
            return recipe.follow(Batch(batch.path, batch.start, batch.start + 1, batch.first))[0]
        except DataError as error:
            first = first or error
    raise first or DataError("there is no case")


def reconstruct_chunk(recipe: Recipe, store: ChunkedStore, batches: Sequence[Batch]) -> Outcome:
    """On a worker: reconstruct and write those batches of a chunk that are not written; what was done in it."""
    chunk = range(batches[0].cases.start, batches[-1].cases.stop)
    done = dict(zip(chunk, store.done(chunk), strict=True))
    outcome, trees = Outcome(store.path, len(chunk)), {}
    for batch in batches:
        if all(done[case] for case in batch.cases):
            continue
        try:
            trees[batch.first], warned = recipe.follow(batch)
        except (OSError, MemoryError):
            raise
        except Exception as error:  # one bad case must not end a run of thousands
            kind = "" if isinstance(error, LatentPDEError) else f"{type(error).__name__}: "
            outcome.failed |= dict.fromkeys(batch.cases, f"{kind}{error}")
        else:
            outcome.num_new += len(batch.cases)
            outcome.warned |= warned
    of = {case: batch.first for batch in batches for case in batch.cases}
    for cases in stretches(case for case in chunk if of[case] in trees):
        firsts = dict.fromkeys(of[case] for case in cases)
        store.write(cases.start, [trees[first] for first in firsts])
    outcome.memory = peak_memory()
    return outcome


def _identity(recipe: Recipe, num_cases: int, readings: int) -> dict[str, Any]:
    """What two runs must share for one to go on with the other's store."""
    about = {"latentpde": latentpde.__version__, "num_cases": num_cases, "readings": readings}
    about |= {"resolution": recipe.resolution, "keep_draws": recipe.keep_draws}
    return about | {name: repr(value) for name, value in {**recipe.reading, **recipe.settings}.items()}


def _labels(sources: Sequence) -> dict[str, Any]:
    """What names the cases: the only file's own labels, or the names of the files."""
    if len(sources) == 1:
        return {} if sources[0].labels is None else {"case": sources[0].labels}
    names = [Path(source.path).name for source in sources for _ in range(source.num_cases)]
    return {"file": ("case", names)}
