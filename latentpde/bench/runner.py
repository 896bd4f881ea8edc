"""Running benchmarks: what is missing is run, all of it together, and then tables and figures are written."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from latentpde.bench.benchmark import Benchmark, Drawing, Plan, Study, benchmarks
from latentpde.bench.execution import run_jobs
from latentpde.bench.jobs import SEED
from latentpde.bench.provenance import describe_version
from latentpde.bench.rows import chosen_rows
from latentpde.bench.store import Store
from latentpde.bench.tables import Table
from latentpde.errors import DataError, UsageError
from latentpde.io.files import atomic_path, check_writable
from latentpde.simulation import regimes as known_regimes

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, eq=False)
class Shown:
    """What a benchmark has to show.

    Args:
        name: of the benchmark.
        tables: its tables, each with a note where it mixes lines of several versions of the code.
        drawings: its figures.
        versions: how many of its lines each version of the code has made, by method or, of a study, by its name.
        missing: sentences about what is wanted and not there.
    """

    name: str
    tables: tuple[Table, ...] = ()
    drawings: tuple[Drawing, ...] = ()
    versions: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    missing: tuple[str, ...] = ()


def make_plan(
    benchmark: Benchmark,
    store: Store,
    *,
    num: int | None = None,
    methods: Sequence[str] = (),
    regimes: Iterable[str] = (),
    seed: int = SEED,
) -> Plan:
    """What of a benchmark is wanted, with the benchmark's own choice where the user made none.

    Args:
        benchmark: which one.
        store: the lines that there are already.
        num: cases for each regime, which the benchmark's settings share.
        methods: names of rows.
        regimes: names of regimes.
        seed: of the test cases.
    """
    if num is not None and num < 1:
        raise UsageError(f"the number of cases must be at least 1, got {num}")
    if seed != SEED and benchmark.own_seeds:
        raise UsageError(f"the cases of {benchmark.name} have seeds of their own; leave the seed {seed} out")
    names = tuple(known_regimes.get(name).name for name in dict.fromkeys(regimes)) or benchmark.regimes
    rows = chosen_rows(methods) if methods else benchmark.default_rows()
    if benchmark.an_hour:
        rows = tuple(replace(row, one_of=1) for row in rows)
    plan = Plan(rows, names, math.ceil((num or benchmark.num) / benchmark.num_settings), store, seed)
    if seed != SEED and any(job.simulation.seed != seed for job in benchmark.jobs(plan)):
        raise UsageError(f"{benchmark.name} does not take its cases from its plan, so their seed cannot be {seed}")
    return plan


def run_benchmark(name: str, folder: str | Path = "results", **options) -> Shown:
    """Run what one benchmark lacks, and write and return its tables and figures.

    Args:
        name: one of ``latentpde list benchmarks``.
        folder: as `run_benchmarks` has it, and so are the options.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     shown = run_benchmark("table1", folder, num=1, methods=["map"], regimes=["helmholtz"])
        >>> shown.tables[0].columns[:3]
        ('method', 'RMSE', 'paper')
    """
    (shown,) = run_benchmarks([name], folder, **options)
    return shown


def run_benchmarks(
    names: Iterable[str],
    folder: str | Path = "results",
    *,
    num: int | None = None,
    methods: Sequence[str] = (),
    regimes: Iterable[str] = (),
    seed: int = SEED,
    workers: int = 1,
    scheduler: str | None = None,
    again: bool = False,
    outdated: bool = False,
    draw_only: bool = False,
    show_progress: bool = False,
) -> Iterator[Shown]:
    """Run what some benchmarks lack, all of it together; then write and yield the tables and figures of each.

    Args:
        names: of ``latentpde list benchmarks``.
        folder: lines go to ``runs/``, fields to ``pictures/``, tables to ``tables/``, figures to ``figures/``.
        num: cases for each regime.
        methods: names of rows.
        regimes: names of regimes.
        seed: of the test cases; lines are found by it, so that those of other seeds stay as they are.
        workers: processes, each on one core; 1 for this process and all cores.
        scheduler: the address of a Dask scheduler, whose workers run what is not timed; they must see the folder.
        again: whether to forget what these runs have given before.
        outdated: whether to forget what other versions of the code have given; not of studies, which keep lines of
            their own.
        draw_only: run nothing, and show what there is; what is missing is named in `Shown.missing`.
        show_progress: whether to show progress bars.

    Raises:
        DataError: with ``draw_only``, where there is nothing at all to draw.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     few = {"num": 1, "methods": ["map"], "regimes": ["helmholtz"]}
        ...     for shown in run_benchmarks(["table1", "pareto"], folder, **few):
        ...         print(shown.name, len(shown.tables), len(shown.drawings))
        table1 1 1
        pareto 0 1
    """
    folder, regimes = Path(folder).absolute(), tuple(regimes)  # where a worker is started elsewhere
    store = Store(folder / "runs")
    chosen = [benchmarks.get(name) for name in names]
    plans = [make_plan(one, store, num=num, methods=methods, regimes=regimes, seed=seed) for one in chosen]
    pairs = list(zip(chosen, plans, strict=True))
    if not draw_only:
        _make_folders(folder)
        wanted = [
            (job, plan.num)
            for one, plan in pairs
            for job in one.jobs(plan)
            if job.row.untrained(job.regime.family) is None  # `Benchmark.missing` says how to train it
        ]
        if again or outdated:
            store.forget(wanted, outdated_only=not again)
        label = chosen[0].name if len(chosen) == 1 else "bench"
        run_jobs(wanted, store, workers=workers, scheduler=scheduler, label=label, show_progress=show_progress)
        if again or outdated:
            store.tidy(job.row.method for job, _ in wanted)
        for one, plan in pairs:
            if isinstance(one, Study):
                one.run(plan, again=again, workers=workers, scheduler=scheduler, show_progress=show_progress)
    anything = False
    for one, plan in pairs:
        shown = show(one, plan)
        if shown.tables or shown.drawings:
            anything = True
            write(shown, one.title, folder)
        yield shown
    if draw_only and not anything:
        what = ", ".join(one.name for one in chosen)
        raise DataError(f"nothing of {what} has been run in {folder}; leave --draw-only out to run it")


def show(benchmark: Benchmark, plan: Plan) -> Shown:
    """What a benchmark makes of the lines and pictures that there are; it runs nothing."""
    if not benchmark.has_run(plan):
        return Shown(benchmark.name, missing=(f"{benchmark.name}: nothing of it has been run.",))
    items, versions = benchmark.show(plan), benchmark.versions(plan)
    mixed = [
        f"{name} " + "; ".join(f"{describe_version(version)}: {count:,}" for version, count in counts.most_common())
        for name, counts in versions.items()
        if len(counts) > 1
    ]
    said = f"Lines of several versions of the code ({', '.join(mixed)}): run it with --again for one."
    notes = (said,) if mixed else ()
    if plan.seed != SEED:
        notes = (f"Test cases of seed {plan.seed}.", *notes)
    return Shown(
        benchmark.name,
        tuple(replace(item, notes=(*item.notes, *notes)) for item in items if isinstance(item, Table)),
        tuple(item for item in items if isinstance(item, Drawing)),
        versions,
        tuple(benchmark.missing(plan)),
    )


def _make_folders(folder: Path) -> None:
    """Make what is written to before any work, so that none is lost for want of a place."""
    for name in ("runs", "tables", "figures"):
        try:
            (folder / name).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(f"cannot write results to {folder}: {error.strerror}") from error
        check_writable(folder / name / "file")


def write(shown: Shown, title: str, folder: Path) -> None:
    """Write tables as JSON and as Markdown, and figures as PNG with a JSON file that holds their captions.

    Args:
        shown: what there is to write.
        title: of the benchmark, in the file of tables.
        folder: of results.
    """
    _make_folders(folder)
    if shown.tables:
        _write_text(folder / "tables" / f"{shown.name}.json", _tables_json(title, shown))
        _write_text(folder / "tables" / f"{shown.name}.md", "\n".join(table.markdown() for table in shown.tables))
    if shown.drawings:
        captions = []
        for drawing in shown.drawings:
            file = f"{shown.name}{f'-{drawing.name}' if drawing.name else ''}.png"
            with atomic_path(folder / "figures" / file) as path:
                _save(drawing.figure, path)
            captions.append({"file": file, "caption": drawing.caption[:1].upper() + drawing.caption[1:]})
        _write_text(folder / "figures" / f"{shown.name}.json", json.dumps(captions, indent=1) + "\n")


def _tables_json(title: str, shown: Shown) -> str:
    """A line for each row of a table, so that a change of one number is a change of one line."""

    def text(value: Any) -> str:
        return json.dumps(value, ensure_ascii=False)

    tables = [
        f'  {{"title": {text(table.title)},\n   "columns": {text(table.columns)},\n   "rows": [\n    '
        + ",\n    ".join(map(text, table.rows))
        + f'],\n   "notes": {text(table.notes)}}}'
        for table in shown.tables
    ]
    versions = {
        name: {describe_version(version): count for version, count in sorted(counts.items())}
        for name, counts in shown.versions.items()
    }
    head = f'{{"title": {text(title)},\n "versions": {text(versions)},\n "tables": [\n'
    return head + ",\n".join(tables) + "]}\n"


def _write_text(path: Path, text: str) -> None:
    with atomic_path(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def _save(figure: Figure, path: Path) -> None:
    """Write a PNG with a palette of 256 colours: a third of the size, and no difference to see."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from PIL import Image

    figure.set_dpi(110)
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    whole = Image.fromarray(np.asarray(canvas.buffer_rgba())[..., :3])
    few = whole.quantize(256, method=Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    few.save(path, format="PNG")
