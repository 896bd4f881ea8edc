"""What came out of runs, in a folder: a line of JSON for each case, and pictures of first cases.

Lines are kept under what was run and not under the table that asked for it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zipfile import BadZipFile

import numpy as np
import pandas as pd
from jaxtyping import Float

from latentpde.bench.lines import Line, append_lines, read_lines
from latentpde.bench.tables import Frame
from latentpde.io.files import atomic_path

if TYPE_CHECKING:
    from latentpde.bench.jobs import Job

_SCORES = ("rmse", "mae", "psd", "crps", "coverage90", "spread_error")


@dataclass(frozen=True, eq=False)
class Picture:
    """What figures show of one case.

    Args:
        mean: of the posterior.
        std: likewise, where the spread is shown.
        draws: a few.
    """

    mean: Float[np.ndarray, "y x"]
    std: Float[np.ndarray, "y x"] | None = None
    draws: Float[np.ndarray, "draw y x"] | None = None

    def save(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        arrays = {name: value.astype(np.float32) for name, value in vars(self).items() if value is not None}
        with atomic_path(path) as temporary, temporary.open("wb") as file:
            np.savez_compressed(file, **arrays)

    @classmethod
    def load(cls, path: Path) -> Picture | None:
        """None where there is none, or a damaged one."""
        try:
            with np.load(path) as arrays:
                return cls(**{name: values.astype(float) for name, values in arrays.items()})
        except (OSError, ValueError, TypeError, EOFError, BadZipFile):
            return None


@dataclass(eq=False)
class Store:
    """Lines of JSON in a folder, one file per method, and pictures in a folder beside it.

    Args:
        folder: made when the first line is written.
    """

    folder: Path
    _lines: dict[str, Line] = field(default_factory=dict, repr=False)

    def __post_init__(self):
        for path in sorted(self.folder.glob("*.jsonl")):
            self._lines |= {_key(line): line for line in read_lines(path) if {"method", "index"} <= line.keys()}

    def find(self, job: Job, num: int) -> dict[int, dict[str, Any]]:
        """Lines of the first cases of a job, by case."""
        identity = job.identity()
        found = {i: self._lines.get(_key({**identity, "index": i})) for i in range(job.row.count(num))}
        return {i: line for i, line in found.items() if line is not None}

    def add(self, lines: list[Line]) -> None:
        for method, some in groupby(lines, key=lambda line: line["method"]):
            append_lines(self.folder / f"{method}.jsonl", some)
        self._lines |= {_key(line): line for line in lines}

    def forget(self, wanted: Iterable[tuple[Job, int]]) -> None:
        """Leave some lines out of account; new ones, written behind them, replace them (`tidy` for good)."""
        for job, num in wanted:
            for line in self.find(job, num).values():
                del self._lines[_key(line)]
            self.picture_path(job).unlink(missing_ok=True)

    def tidy(self, methods: Iterable[str]) -> None:
        """Drop lines from the files of some methods that later ones have replaced."""
        for path in {self.folder / f"{method}.jsonl" for method in methods}:
            lines = read_lines(path)
            last = {_key(line): line for line in lines}
            if len(last) < len(lines):
                with atomic_path(path) as temporary:
                    append_lines(temporary, last.values())

    def picture_path(self, job: Job) -> Path:
        name = hashlib.sha256(job.key.encode()).hexdigest()[:16]
        return self.folder.parent / "pictures" / f"{job.row.method}-{name}.npz"


_IDENTITY = (
    *("method", "options", "draws", "regime", "seed", "setting"),
    *("fine_initial", "family", "measure", "alone", "index"),
)


def _key(line: dict[str, Any]) -> str:
    return json.dumps([line.get(name) for name in _IDENTITY], sort_keys=True)


def frame(jobs: Iterable[Job], num: int, store: Store) -> Frame:
    """Stored lines of some jobs, one per case, with the name of the row; ``failed`` says why where a case failed."""
    records = [
        {"row": job.row.name, **line, "pde": job.regime.family}
        for job in {(job.row.name, job): job for job in jobs}.values()
        for line in store.find(job, num).values()
    ]
    columns = ["row", "regime", "pde", "index", "failed", *_SCORES, "seconds", "rms_of_truth"]
    table = pd.DataFrame(records)
    return table.reindex(columns=[*columns, *(c for c in table.columns if c not in columns)])


def failures(table: Frame) -> tuple[str, ...]:
    """A sentence for each row that failed anywhere."""
    bad = table[table["failed"].notna()]
    return tuple(
        f"{name} failed on {len(some)} of {(table['row'] == name).sum()} cases: {some['failed'].iloc[0]}"
        for name, some in bad.groupby("row", sort=False)
    )
