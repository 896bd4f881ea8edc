"""Where many cases come from: stores and files, of which each holds one case or many, in parts that fit into memory."""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from glob import glob, has_magic
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from latentpde.errors import DataError, UsageError
from latentpde.grid import Grid
from latentpde.io.netcdf import read_groups
from latentpde.io.read import holds_cases, read
from latentpde.io.zarr_store import is_zarr, open_zarr
from latentpde.observation import Observation

if TYPE_CHECKING:
    import xarray as xr

TRIED = 8  # cases, of which one must succeed
_BLOCK = 256  # cases of a NetCDF file that are in memory at once


@dataclass(frozen=True)
class Source:
    """A file of cases, or a store.

    Args:
        path: where it is, for every worker.
        num_cases: in it.
        grid: of the readings, which cases that go into one store share; ``None`` where
            no case could be read.
        fingerprint: of the readings of the first case that could be read.
        labels: the file's own names of its cases; ``None`` where it has none.
        problem: why no case could be read.
    """

    path: str
    num_cases: int
    grid: Grid | None = None
    fingerprint: int = 0
    labels: np.ndarray | None = None
    problem: str = ""


@dataclass(frozen=True)
class Batch:
    """Consecutive cases of one file, which a method is given at once.

    Args:
        path: of the file.
        start, stop: numbers of the cases in the file.
        first: number of the first of them among the cases of all files.
    """

    path: str
    start: int
    stop: int
    first: int

    @property
    def cases(self) -> range:
        """Their numbers among the cases of all files."""
        return range(self.first, self.first + self.stop - self.start)


def find_files(inputs: str | Path | Iterable[str | Path]) -> list[str]:
    """Paths of all inputs, those with ``*`` or ``?`` replaced by what they match, in order; none twice.

    Raises:
        UsageError: where nothing matches, or nothing was given.
    """
    given = [inputs] if isinstance(inputs, str | Path) else list(inputs)
    found: list[str] = []
    for path in map(str, given):
        matches = sorted(glob(path)) if has_magic(path) and not Path(path).exists() else [path]
        if not matches:
            raise UsageError(f"no file matches {path}")
        found += matches
    if not found:
        raise UsageError("name at least one file or store of readings")
    return [str(Path(path).resolve()) for path in dict.fromkeys(found)]


def describe(path: str, reading: Mapping[str, Any]) -> Source:
    """Look at a file and at the first of its cases that can be read.

    Args:
        path: of the file.
        reading: what wins over what the file says, as options of `latentpde.read`.

    Raises:
        DataError: where it holds no case.
    """
    num_cases, labels = _outline(path) if _holds_cases(path) else (1, None)
    if not num_cases:
        raise DataError(f"{path} holds no case: the axis case of 'observed' has length 0")
    problem = ""
    for case in range(min(num_cases, TRIED)):
        try:
            found = read_cases(Batch(path, case, case + 1, case), reading)
        except DataError as error:
            problem = problem or f"{path}: {error}"
        else:
            return Source(path, num_cases, found.grid, found.fingerprints[0], labels)
    return Source(path, num_cases, labels=labels, problem=problem)


def check_alike(sources: Sequence[Source]) -> None:
    """Raise `DataError` where the cases of some files cannot go into one store, or none can be read."""
    grids = {source.path: source.grid for source in sources if source.grid is not None}
    if not grids:
        raise DataError(sources[0].problem)
    first, grid = next(iter(grids.items()))
    for path, other in grids.items():
        if other != grid:
            raise DataError(
                f"the files must share one grid: {first} has {_words(grid)}, {path} {_words(other)}; reconstruct them "
                "apart, or regrid them"
            )


def _words(grid: Grid) -> str:
    (ny, nx), (height, width), (y, x) = grid.shape, grid.extent, grid.origin
    return f"{ny} x {nx} cells on {height:g} x {width:g} from {y:g}, {x:g} (y, x)"


def fingerprint(sources: Sequence[Source]) -> int:
    """A number that follows from the files' names, how many cases they have, and the first readings of all."""
    first = next(source.fingerprint for source in sources if source.grid is not None)
    return zlib.crc32(repr([first, *((Path(source.path).name, source.num_cases) for source in sources)]).encode())


def split(sources: Sequence[Source], size: int) -> list[Batch]:
    """All cases in batches, which depend on the files alone: no batch crosses a multiple of ``size``, nor has two
    files.

    >>> [batch.cases for batch in split([Source("a.nc", 5), Source("b.nc", 2)], size=4)]
    [range(0, 4), range(4, 5), range(5, 7)]
    """
    found, first = [], 0
    for source in sources:
        start = 0
        while start < source.num_cases:
            stop = min(source.num_cases, start + size - (first + start) % size)
            found.append(Batch(source.path, start, stop, first + start))
            start = stop
        first += source.num_cases
    return found


def read_cases(batch: Batch, reading: Mapping[str, Any]) -> Observation:
    """The readings of some cases, which keep their case axis; arguments as those of `describe`.

    A file in the layout of ``cases.nc`` holds an axis of cases; any other is a case of its own.
    """
    if not _holds_cases(batch.path):
        return replace(read(batch.path, **reading), batched=True)
    return replace(read(_some_cases(batch.path, batch.start, batch.stop), **reading), batched=True)


def _outline(path: str) -> tuple[int, np.ndarray | None]:
    """How many cases a file has, and its own names of them; no reading is read."""
    found: list[tuple[int, np.ndarray | None]] = []

    def look(dataset: xr.Dataset) -> xr.Dataset:
        named = "case" in dataset.coords and dataset["case"].dims == ("case",)
        found.append((dataset["observed"].sizes.get("case", 1), dataset["case"].values if named else None))
        return dataset.drop_vars([*dataset.variables])

    if is_zarr(path):
        look(_open(path, _changed(path)))
    else:
        read_groups(path, ("/",), look)
    return found[0]


def _some_cases(path: str, start: int, stop: int) -> xr.Dataset:
    """The root of a file, in memory, with no more than these cases."""
    if is_zarr(path):
        return _between(_open(path, _changed(path)), start, stop).load()
    low, high = start // _BLOCK * _BLOCK, math.ceil(stop / _BLOCK) * _BLOCK
    return _between(_block(path, _changed(path), low, high), start - low, stop - low)


def _between(dataset: xr.Dataset, start: int, stop: int) -> xr.Dataset:
    return dataset.isel(case=slice(start, stop)) if "case" in dataset.dims else dataset


def _holds_cases(path: str) -> bool:
    return _holds(path, _changed(path))


def _changed(path: str) -> int:
    """When a file was written, which tells it from a later one of its name."""
    return Path(path).stat().st_mtime_ns if Path(path).exists() else 0


@lru_cache(maxsize=2)
def _open(path: str, changed: int) -> xr.Dataset:
    """A store without its values, kept for its next cases."""
    return open_zarr(path)


@lru_cache(maxsize=2)
def _block(path: str, changed: int, low: int, high: int) -> xr.Dataset:
    """Part of a NetCDF file, kept for its next cases, because each look into one goes through all of it once."""
    return read_groups(path, ("/",), lambda dataset: _between(dataset, low, high))["/"]


@lru_cache(maxsize=2)
def _holds(path: str, changed: int) -> bool:
    return holds_cases(path)
