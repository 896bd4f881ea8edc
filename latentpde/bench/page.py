"""One self-contained page of all tables and figures that have been made."""

from __future__ import annotations

import base64
import os
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, RootModel, ValidationError

from latentpde import __version__
from latentpde.bench.benchmark import benchmarks
from latentpde.bench.tables import Table
from latentpde.errors import DataError
from latentpde.io.files import atomic_path, check_readable
from latentpde.report.render import render
from latentpde.validation import explain

T = TypeVar("T", bound=BaseModel)


class StoredTables(BaseModel):
    """What the page shows of a file of tables."""

    tables: list[Table]


class StoredFigure(BaseModel):
    """A figure in a file of captions."""

    file: str
    caption: str


class StoredFigures(RootModel):
    """A file of captions."""

    root: list[StoredFigure]


def write_page(folder: str | Path = "results") -> Path:
    """Gather what `latentpde.bench.run_benchmark` wrote into ``bench.html``; it runs nothing.

    Args:
        folder: of results. Sections are in the order of ``latentpde list benchmarks``.
    """
    folder = Path(folder)
    sections = []
    for benchmark in benchmarks:
        stored = _read(folder / "tables" / f"{benchmark.name}.json", StoredTables)
        captions = _read(folder / "figures" / f"{benchmark.name}.json", StoredFigures)
        tables = stored.tables if stored else []
        figures = [
            {"caption": figure.caption, "source": _embedded(folder / "figures" / Path(figure.file).name)}
            for figure in (captions.root if captions else [])
        ]
        if tables or figures:
            sections.append({"name": benchmark.name, "title": benchmark.title, "tables": tables, "figures": figures})
    if not sections:
        raise DataError(f"{folder} holds no tables yet; run `latentpde bench table1 --num 4` first")
    page = render("bench.html", sections=sections, version=__version__)
    target = folder / "bench.html"
    with atomic_path(target) as temporary:
        temporary.write_text(page, encoding="utf-8")
    return target


def _read(path: Path, kind: type[T]) -> T | None:
    """What a JSON file of results holds; ``None`` where there is no such file."""
    if not os.path.lexists(path):
        return None
    check_readable(path, "JSON file")
    try:
        return kind.model_validate_json(path.read_bytes())
    except ValidationError as error:
        raise DataError(
            f"{path} is damaged: {explain(error)}; make it again with latentpde bench {path.stem}"
        ) from error


def _embedded(path: Path) -> str:
    try:
        return "data:image/png;base64," + base64.b64encode(path.read_bytes()).decode()
    except OSError as error:
        raise DataError(f"cannot read the figure {path}: {error.strerror}; draw it again") from error
