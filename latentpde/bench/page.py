"""One self-contained page of all tables and figures that have been made."""

from __future__ import annotations

import base64
import json
from pathlib import Path

from latentpde import __version__
from latentpde.bench.benchmark import benchmarks
from latentpde.errors import DataError
from latentpde.io.files import atomic_path
from latentpde.report.render import render


def write_page(folder: str | Path = "results") -> Path:
    """Gather what `run_benchmark` wrote, in the order of ``latentpde list benchmarks``; it runs nothing."""
    folder = Path(folder)
    sections = []
    for benchmark in benchmarks:
        path = folder / "tables" / f"{benchmark.name}.json"
        if not path.exists():
            continue
        try:
            record = json.loads(path.read_text())
            figures = [
                {"caption": figure["caption"], "source": _embedded(folder / "figures" / Path(figure["file"]).name)}
                for figure in record["figures"]
            ]
            sections.append({"name": benchmark.name, "title": record["title"], "tables": record["tables"]} |
                            {"figures": figures})  # fmt: skip
        except (ValueError, KeyError, TypeError, OSError) as error:
            raise DataError(
                f"{path} is not as `latentpde bench {benchmark.name}` writes it ({error}); run it again"
            ) from error
    if not sections:
        raise DataError(f"{folder} holds no tables yet; run `latentpde bench table1 --num 4` first")
    page = render("bench.html", sections=sections, version=__version__)
    target = folder / "bench.html"
    with atomic_path(target) as temporary:
        temporary.write_text(page, encoding="utf-8")
    return target


def _embedded(path: Path) -> str:
    return "data:image/png;base64," + base64.b64encode(path.read_bytes()).decode()
