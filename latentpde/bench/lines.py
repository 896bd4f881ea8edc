"""Files of JSON lines: a header for each run, and behind it a line for each case that refers to it.

A header holds what all lines of a run share, under an ``id`` that is a hash of the rest of it; a line names its header
by ``run``::

    {"id": "0c3f5a7be912", "method": "exact", "regime": "diffusion", ..., "version": "0.1.0+3f9a0c12de"}
    {"run": "0c3f5a7be912", "index": 0, "rmse": 0.03754, ...}

Lines are appended as they come. What a killed run left behind, a line cut short or one without its header, is passed
over when the file is read, and so it is run again.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from latentpde.io.files import check_readable

Line: TypeAlias = dict[str, Any]


class Entry(NamedTuple):
    """A line with the header that it belongs to.

    Args:
        header: what it shares with the other lines of its run.
        line: what is its own.
    """

    header: Line
    line: Line

    @property
    def whole(self) -> Line:
        """Header and line as one."""
        return {**self.header, **self.line}


def read_entries(path: Path) -> list[Entry]:
    """Every whole line of a file that has its header; none where there is no file."""
    headers, found = dict[str, Line](), []
    if os.path.lexists(path):
        check_readable(path, "file of JSON lines")
    for text in path.read_bytes().splitlines() if path.exists() else []:
        try:
            entry = json.loads(text)
        except (ValueError, RecursionError):
            continue
        if not isinstance(entry, dict):
            continue
        if "id" in entry:
            headers[str(entry.pop("id"))] = entry
        elif (header := headers.get(str(entry.pop("run", "")))) is not None:
            found.append(Entry(header, entry))
    return found


def append_entries(path: Path, entries: Iterable[Entry]) -> None:
    """Add lines to the end of a file, each run's header before its first line.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder) / "exact.jsonl"
        ...     append_entries(path, [Entry({"method": "exact"}, {"index": i}) for i in range(2)])
        ...     [entry.whole for entry in read_entries(path)]
        ...     len(path.read_text().splitlines())
        [{'method': 'exact', 'index': 0}, {'method': 'exact', 'index': 1}]
        3
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab+") as file:
        file.seek(0)
        before = file.read()
        written, texts = set[str](), [] if before.endswith(b"\n") or not before else ["\n"]
        for header, line in entries:
            name = _hash(header)
            head = json.dumps({"id": name, **header}) + "\n"
            if name not in written and head.encode() not in before:
                texts.append(head)
            written.add(name)
            texts.append(json.dumps({"run": name, **line}) + "\n")
        file.seek(0, os.SEEK_END)
        file.write("".join(texts).encode())


def _hash(header: Line) -> str:
    return hashlib.sha256(json.dumps(header, sort_keys=True).encode()).hexdigest()[:12]
