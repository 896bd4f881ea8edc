"""A Zarr store that grows chunk by chunk, and can be read meanwhile.

A store has its final shape from the start: all axes, coordinates and attributes, with room for every case. A chunk is a
few consecutive cases; each array keeps one in a file of its own, which Zarr writes beside its place and renames. The
variable ``done`` is written after all others, so what it marks is whole:

    >>> import tempfile, xarray as xr
    >>> from latentpde import simulate
    >>> cases = simulate("diffusion", num=4, shape=(16, 16))
    >>> path = Path(tempfile.mkdtemp()) / "cases.zarr"
    >>> store = ChunkedStore.create(path, cases, num_cases=4, chunk=2, run={"seed": 0})
    >>> store.write(2, [cases.isel(case=slice(2, 4))])
    >>> xr.open_zarr(path).done.values
    array([False, False,  True,  True])
    >>> store.missing()
    [range(0, 2)]

Whoever writes a chunk twice writes the same bits, so workers that were cut off and come back do no harm.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from latentpde.errors import DataError, UsageError
from latentpde.io.files import check_writable, reason

if TYPE_CHECKING:
    import xarray as xr

DONE = "done"
_RUN = "run"  # the attribute that says what makes the store
_SECONDS = "seconds since 1970-01-01"  # what dates of cases are kept in
_FORMAT = 2  # of Zarr: version 3 has no text and no consolidated metadata that other programs read


@dataclass(frozen=True)
class ChunkedStore:
    """A store under way.

    Args:
        path: of the store, a folder.
        run: what makes it, as JSON; nothing is written to a store that something else makes.
        num_cases: in all.
        chunk: cases of a chunk.
    """

    path: Path
    run: str
    num_cases: int
    chunk: int

    @classmethod
    def create(
        cls,
        path: str | Path,
        like: xr.DataTree,
        *,
        num_cases: int,
        chunk: int,
        run: Mapping[str, Any],
        labels: Mapping[str, Any] | None = None,
    ) -> ChunkedStore:
        """Make a store without any case. It is there as a whole or not at all.

        Args:
            path: of the store; nothing may be there.
            like: a case or several of what will be written, in groups, with all that is not of a case. The case is
                the first axis.
            num_cases: that the store will hold.
            chunk: cases that are written at once.
            run: what makes it, for `resume`.
            labels: coordinates of the cases, which are known from the start.
        """
        import xarray as xr
        import zarr

        path = Path(os.path.realpath(path))
        check_free(path)
        store = cls(path, json.dumps(run, sort_keys=True), num_cases, chunk)
        temporary = Path(tempfile.mkdtemp(prefix=f".{path.name[:64]}.", suffix=".part", dir=path.parent))
        try:
            for node in like.subtree:
                dataset = _with_room(node.to_dataset(inherit=False), num_cases, chunk)
                if node.path == "/":
                    marks = {"long_name": "whether the case is written"}
                    dataset[DONE] = _room(xr.Variable("case", np.zeros(1, dtype=bool), marks), num_cases, chunk)
                    dataset = dataset.assign_coords(labels or {}).assign_attrs({_RUN: store.run})
                group = None if node.path == "/" else node.path
                dataset.to_zarr(
                    temporary, group=group, mode="a", compute=False, consolidated=False, zarr_format=_FORMAT
                )
            zarr.consolidate_metadata(temporary, zarr_format=_FORMAT)
            temporary.chmod(0o777 & ~_umask())
            temporary.rename(path)
        except OSError as error:
            raise DataError(f"cannot write {path}: {reason(error)}") from error
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
        return store

    @classmethod
    def resume(cls, path: str | Path, run: Mapping[str, Any]) -> ChunkedStore:
        """A store that an earlier run of the same kind has begun.

        Raises:
            UsageError: where it was another run; the message says in what.
        """
        path = Path(os.path.realpath(path))
        group = _opened(path)
        before = group.attrs.get(_RUN)
        if not isinstance(before, str) or DONE not in group:
            raise UsageError(f"{path} was not written chunk by chunk, so nothing can be resumed; choose another name")
        earlier, now = json.loads(before), json.loads(json.dumps(run))
        other = [name for name in {**earlier, **now} if earlier.get(name) != now.get(name)]
        if other:
            changes = "; ".join(f"{name}: {_short(earlier.get(name))}, now {_short(now.get(name))}" for name in other)
            raise UsageError(
                f"{path} was begun otherwise ({changes}); resume with what it was begun with, or choose another name"
            )
        done = group[DONE]
        return cls(path, before, done.shape[0], done.chunks[0])

    def done(self, cases: range) -> np.ndarray:
        """Of some consecutive cases, which are written."""
        return np.asarray(self._group()[DONE][cases.start : cases.stop], dtype=bool)

    def missing(self) -> list[range]:
        """The chunks that are not wholly written."""
        done = self.done(range(self.num_cases))
        chunks = [range(first, min(first + self.chunk, len(done))) for first in range(0, len(done), self.chunk)]
        return [cases for cases in chunks if not done[cases.start : cases.stop].all()]

    def write(self, start: int, parts: Sequence[xr.DataTree]) -> None:
        """Write cases that follow each other, of one chunk, and mark them.

        Args:
            start: number of the first.
            parts: trees like the one that the store was made of.

        Raises:
            DataError: where they do not fit into the store, or the disk does not take them.
        """
        group, columns = self._group(), []
        num = sum(part.sizes["case"] for part in parts)
        trees = [{node.path: node.to_dataset(inherit=False) for node in part.subtree} for part in parts]
        for path, first in trees[0].items():
            for name, variable in first.drop_vars("case", errors="ignore").variables.items():
                array = group.get(f"{path}/{name}")
                values = [_numbers(tree[path].variables[name].values) for tree in trees]
                if "case" in variable.dims:
                    columns.append((array, np.concatenate(values)))
                    fits = array is not None and array.shape[1:] == variable.shape[1:]
                else:
                    fits = variable.dtype.kind not in "fiu" or all(np.array_equal(array[...], one) for one in values)
                if not fits:
                    raise DataError(
                        f"cases {start} to {start + num - 1} do not fit into {self.path}: their {name!r} differs from "
                        "that of the first case; all cases of a store need the same grid, times and settings"
                    )
        try:
            for array, values in columns:
                array[start : start + num] = values
            group[DONE][start : start + num] = True
        except OSError as error:
            raise DataError(
                f"cannot write {self.path}: {reason(error)}; what is done is kept. Make room and go on with --resume"
            ) from error

    def tidy(self) -> None:
        """Remove what killed workers have left of files that they were writing, once all cases are written."""
        if self.done(range(self.num_cases)).all():
            for left in self.path.rglob("*.partial"):
                left.unlink(missing_ok=True)

    def _group(self) -> Any:
        group = _opened(self.path)
        if group.attrs.get(_RUN) != self.run:
            raise DataError(f"{self.path} was replaced by another run, which goes on; nothing was written to it")
        return group


def check_free(path: str | Path) -> None:
    """Raise `UsageError` where a new store cannot be made."""
    if os.path.lexists(path):
        raise UsageError(
            f"{path} is there already, and a store is not overwritten: go on with it by --resume, remove it, or choose "
            "another name"
        )
    check_writable(path)


def _opened(path: Path) -> Any:
    """A group of Zarr's, to read and write."""
    import zarr

    try:
        return zarr.open_group(path, mode="r+", zarr_format=_FORMAT)
    except (OSError, ValueError, KeyError) as error:
        raise DataError(f"cannot open the store {path}: {reason(error)}") from error


def _with_room(dataset: xr.Dataset, num_cases: int, chunk: int) -> xr.Dataset:
    """The same with room for all cases and nothing in it; what is not of a case stays as it is."""
    import xarray as xr

    rest = dataset.drop_dims("case", errors="ignore")
    per_case = {name: v for name, v in dataset.variables.items() if "case" in v.dims and name != "case"}
    room = xr.Dataset({name: _room(variable, num_cases, chunk) for name, variable in per_case.items()})
    return rest.merge(room).set_coords([name for name in per_case if name in dataset.coords])


def _room(variable: xr.Variable, num_cases: int, chunk: int) -> xr.Variable:
    import dask.array
    import xarray as xr

    kind, shape, attributes = variable.dtype, (num_cases, *variable.shape[1:]), variable.attrs
    if kind.kind == "M":
        kind, attributes = np.dtype(float), {**attributes, "units": _SECONDS, "calendar": "proleptic_gregorian"}
    if kind.kind in "OUT":
        nothing = np.full(shape, "", dtype=object)
    else:
        nothing = dask.array.zeros(shape, dtype=kind, chunks=(chunk, *shape[1:]))  # which Zarr does not write
    encoding: dict[str, Any] = {"chunks": (min(chunk, num_cases), *shape[1:])}
    if kind.kind == "f":
        encoding["_FillValue"] = kind.type(np.nan)
    return xr.Variable(variable.dims, nothing, attributes, encoding)


def _numbers(values: np.ndarray) -> np.ndarray:
    """Dates as the store keeps those of cases; anything else as it is."""
    if values.dtype.kind != "M":
        return values
    return (values - np.datetime64("1970-01-01")) / np.timedelta64(1, "s")


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def stretches(numbers: Iterable[int]) -> list[range]:
    """Numbers in ascending order as ranges without a gap.

    >>> stretches([0, 1, 4, 5, 6])
    [range(0, 2), range(4, 7)]
    """
    found: list[range] = []
    for number in numbers:
        if found and found[-1].stop == number:
            found[-1] = range(found[-1].start, number + 1)
        else:
            found.append(range(number, number + 1))
    return found
