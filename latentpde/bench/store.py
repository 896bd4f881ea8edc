"""What came out of runs, in a folder: lines of JSON, one file for each method, and pictures of what figures show.

Lines are kept under what was run and not under the table that asked for it, so tables share them.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd

from latentpde.bench import provenance
from latentpde.bench.jobs import Job, identity_key
from latentpde.bench.lines import Entry, Line, append_entries, read_entries
from latentpde.bench.pictures import Picture
from latentpde.bench.tables import Frame
from latentpde.errors import UsageError
from latentpde.estimators import methods
from latentpde.io.files import atomic_path, reason

_SCORES = ("rmse", "mae", "psd", "crps", "coverage90", "spread_error")
_PROVENANCE = ("version", "hardware", "threads", "networks")  # of a header, what is no part of a job's identity


@dataclass(eq=False)
class Store:
    """Lines in a folder, one file for each method, and pictures in a folder beside it.

    Args:
        folder: of the lines; it is made when the first is written.
    """

    folder: Path
    _lines: dict[tuple[str, int], Line] = field(default_factory=dict, repr=False)

    def __post_init__(self):
        keys = dict[int, str]()  # lines of a run share one header object
        for path in _files(self.folder):
            entries = [entry for entry in read_entries(path) if _is_sound(entry)]
            keys |= {id(header): _key(header) for header in {id(e.header): e.header for e in entries}.values()}
            self._lines |= {(keys[id(e.header)], e.line["index"]): e.whole for e in entries}

    def find(self, job: Job, num: int) -> dict[int, Line]:
        """Lines of the first cases of a job, by the index of the case.

        Args:
            job: what was run.
            num: of how many cases; a slow method has fewer, see `latentpde.bench.rows.Row.count`.
        """
        found = {i: self._lines.get((job.key, i)) for i in range(job.row.count(num))}
        return {i: line for i, line in found.items() if line is not None}

    def add(self, entries: Iterable[Entry]) -> None:
        """Append lines to the files of their methods."""
        by_method = dict[str, list[Entry]]()
        for entry in entries:
            by_method.setdefault(entry.header["method"], []).append(entry)
            self._lines[_key(entry.header), entry.line["index"]] = entry.whole
        for method, some in by_method.items():
            append_entries(self.folder / f"{method}.jsonl", some)

    def forget(self, wanted: Iterable[tuple[Job, int]], *, outdated_only: bool = False) -> None:
        """Leave some lines out of account; new ones, written behind them, replace them (`tidy` for good).

        Args:
            wanted: jobs, and how many cases of each.
            outdated_only: whether to keep what the present code has made.
        """
        for job, num in wanted:
            current = provenance.code_version(job.row.method) if outdated_only else None
            forgotten = [i for i, line in self.find(job, num).items() if line["version"] != current]
            for index in forgotten:
                del self._lines[job.key, index]
            if job.shown in forgotten or not outdated_only:
                self.picture_path(job).unlink(missing_ok=True)

    def tidy(self, names: Iterable[str]) -> None:
        """Drop lines from the files of some methods that later ones have replaced."""
        for path in {self.folder / f"{name}.jsonl" for name in names}:
            entries = read_entries(path)
            last = {(_key(entry.header), entry.line["index"]): entry for entry in entries}
            if len(last) < len(entries):
                with atomic_path(path) as temporary:
                    append_entries(temporary, last.values())

    def picture(self, job: Job) -> Picture | None:
        """What figures show of a job; None where it is not kept, or not with all that the job shows."""
        found = Picture.load(self.picture_path(job))
        needs_spread = job.drawn == "spread" and methods.get(job.row.method).has_spread
        return None if found is None or (needs_spread and found.std is None) else found

    def picture_path(self, job: Job) -> Path:
        """Where the picture of the case that figures show is kept."""
        name = hashlib.sha256(f"{job.key} {job.shown}".encode()).hexdigest()[:16]
        return self.folder.parent / "pictures" / f"{job.row.method}-{name}.npz"


def _files(folder: Path) -> list[Path]:
    """The files of lines in a folder; none where there is no such folder."""
    try:
        return sorted(Path(entry.path) for entry in os.scandir(folder) if entry.name.endswith(".jsonl"))
    except (FileNotFoundError, NotADirectoryError):
        return []
    except (OSError, ValueError) as error:
        raise UsageError(f"cannot read the results in {folder}: {reason(error)}") from error


def _is_sound(entry: Entry) -> bool:
    """Whether a line is of a method and its scores are numbers; others are passed over, and so they are run again."""
    header, line = entry
    words = (header.get("method"), header.get("version"), line.get("failed", ""))
    numbers = (line.get(name, 0.0) for name in (*_SCORES, "seconds", "rms_of_truth"))
    return (
        all(isinstance(word, str) for word in words)
        and type(line.get("index")) is int
        and all(isinstance(number, int | float) for number in numbers)
    )


def _key(header: Line) -> str:
    """A header's part of the job's identity, as `Job.key` spells it."""
    return identity_key({name: value for name, value in header.items() if name not in _PROVENANCE})


def frame(jobs: Iterable[Job], num: int, store: Store) -> Frame:
    """Stored lines of some jobs, one for each case, with the name of the row; ``failed`` says why where one failed.

    Args:
        jobs: which lines.
        num: of how many cases of each job.
        store: where they are kept.
    """
    records = [
        {"row": job.row.name, **line, "pde": job.regime.family}
        for job in {(job.row.name, job): job for job in jobs}.values()
        for line in store.find(job, num).values()
    ]
    columns = ["row", "regime", "pde", "index", "failed", *_SCORES, "seconds", "rms_of_truth"]
    table = pd.DataFrame(records)
    return table.reindex(columns=[*columns, *(c for c in table.columns if c not in columns)])


def failures(table: Frame) -> tuple[str, ...]:
    """A sentence for each row of a `frame` that failed anywhere."""
    bad = table[table["failed"].notna()]
    return tuple(
        f"{name} failed on {len(some)} of {(table['row'] == name).sum()} cases: {some['failed'].iloc[0]}"
        for name, some in bad.groupby("row", sort=False)
    )
