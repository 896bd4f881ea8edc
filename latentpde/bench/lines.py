"""Lines of JSON in a file: appended one by one, and read back without what a killed run left behind."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

Line = dict[str, Any]


def read_lines(path: Path) -> list[Line]:
    """Every whole line; none where there is no file. What is cut short or damaged is measured again."""
    found = []
    for text in path.read_text().splitlines() if path.exists() else []:
        try:
            line = json.loads(text)
        except ValueError:
            continue
        if isinstance(line, dict):
            found.append(line)
    return found


def append_lines(path: Path, lines: Iterable[Line]) -> None:
    """Behind what is there, on lines of their own."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab+") as file:
        if file.tell():
            file.seek(-1, os.SEEK_END)
            if file.read(1) != b"\n":
                file.write(b"\n")
        file.write("".join(json.dumps(line) + "\n" for line in lines).encode())
