"""What a benchmark is: the runs it needs, and the tables and figures it makes of them."""

from __future__ import annotations

import json
import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import compress
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

import numpy as np

from latentpde.bench.jobs import SEED, Job, hardware
from latentpde.bench.lines import Line, append_lines, read_lines
from latentpde.bench.rows import Row, chosen_rows
from latentpde.bench.schedule import run
from latentpde.bench.store import Store, frame
from latentpde.bench.tables import Frame, Table
from latentpde.errors import DataError, UsageError
from latentpde.io.files import atomic_path, check_writable
from latentpde.progress import progress
from latentpde.registry import Registry
from latentpde.simulation import PAPER_REGIMES, Simulation, regimes

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Tables, and figures with their captions.
Shown: TypeAlias = "list[Table | tuple[str, Figure]]"


@dataclass(frozen=True)
class Plan:
    """What of a benchmark is wanted.

    Args:
        rows: the methods.
        regimes: where cases come from.
        num: cases of each job.
        store: lines that there are already.
    """

    rows: tuple[Row, ...]
    regimes: tuple[str, ...]
    num: int
    store: Store

    def frame(self, jobs: Iterable[Job]) -> Frame:
        return frame(jobs, self.num, self.store)


class Benchmark(ABC):
    """One table or figure, or a few that belong together.

    Attributes:
        name: on the command line.
        title: in a line.
        num: cases per regime, where the user does not say.
        num_settings: settings that share the cases of a regime among them.
        regimes: likewise.
        rows: names of rows, likewise; every method where empty,
        slow_methods: but those that take long only if this holds.
        in_all: whether ``latentpde bench all`` runs it.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    num: ClassVar[int] = 100
    num_settings: ClassVar[int] = 1
    regimes: ClassVar[tuple[str, ...]] = PAPER_REGIMES
    rows: ClassVar[tuple[str, ...]] = ()
    slow_methods: ClassVar[bool] = True
    in_all: ClassVar[bool] = True

    def default_rows(self) -> tuple[Row, ...]:
        """Where the user does not name any."""
        return chosen_rows(self.rows, slow=self.slow_methods)

    @abstractmethod
    def jobs(self, plan: Plan) -> list[Job]:
        """What must have been run."""

    def has_run(self, plan: Plan) -> bool:
        """Whether there is anything to show."""
        jobs = self.jobs(plan)
        return not jobs or not plan.frame(jobs).empty

    @abstractmethod
    def show(self, plan: Plan) -> Shown:
        """What has been run."""


class Study(Benchmark):
    """A benchmark that compares no rows and keeps lines of its own, in a file of its name."""

    rows = ("exact",)

    def jobs(self, plan: Plan) -> list[Job]:
        return []

    def has_run(self, plan: Plan) -> bool:
        return bool(self.lines(plan))

    def lines(self, plan: Plan) -> list[Line]:
        """What was measured; failures are left out, so that they are tried again."""
        return [line for line in read_lines(self._path(plan)) if "failed" not in line]

    def failures(self, plan: Plan) -> tuple[str, ...]:
        """A sentence for each failure that no success has followed."""
        found = []
        for line in read_lines(self._path(plan)):
            task = {name: value for name, value in line.items() if name not in ("failed", "hardware")}
            if "failed" in line and not any(task.items() <= done.items() for done in self.lines(plan)):
                found.append(f"Failed: {', '.join(f'{k} {v}' for k, v in task.items())}: {line['failed']}")
        return tuple(dict.fromkeys(found))

    def run(self, plan: Plan, *, again: bool, show_progress: bool) -> None:
        """Measure what is missing."""
        path = self._path(plan)
        if again:
            path.unlink(missing_ok=True)
        tasks = self.missing(plan)
        with progress(self.name, len(tasks), show=show_progress) as advance:
            for task in tasks:
                for line in self.measure(task):
                    append_lines(path, [{**line, "hardware": hardware()}])
                advance(1)

    @abstractmethod
    def missing(self, plan: Plan) -> list[Any]:
        """What is still to be measured, one task after another."""

    @abstractmethod
    def measure(self, task: Any) -> Iterable[Line]:
        """The lines of one task, as they come."""

    def _path(self, plan: Plan) -> Path:
        return plan.store.folder / f"{self.name}.jsonl"


benchmarks: Registry[Benchmark] = Registry("benchmark", "benchmarks", "latentpde.benchmarks")


def cases_of(regime: str, **setting) -> Simulation:
    """The test cases that every method sees."""
    return Simulation(regime=regime, seed=SEED, **setting)


def jobs_on(
    rows: Iterable[Row],
    names: Iterable[str],
    *,
    measure: str = "scores",
    alone: bool = False,
    drawn: Literal["mean", "spread"] | None = None,
    **setting,
) -> list[Job]:
    """Every row on the test cases of every regime."""
    names = tuple(names)
    return [
        Job(row=row, simulation=cases_of(name, **setting), measure=measure, alone=alone, drawn=drawn)
        for row in rows
        for name in names
    ]


def make_plan(
    benchmark: Benchmark,
    store: Store,
    *,
    num: int | None = None,
    methods: Sequence[str] = (),
    chosen_regimes: Iterable[str] = (),
) -> Plan:
    if num is not None and num < 1:
        raise UsageError(f"the number of cases must be at least 1, got {num}")
    names = tuple(regimes.get(name).name for name in dict.fromkeys(chosen_regimes)) or benchmark.regimes
    rows = chosen_rows(methods) if methods else benchmark.default_rows()
    return Plan(rows, names, math.ceil((num or benchmark.num) / benchmark.num_settings), store)


def run_benchmark(name: str, folder: str | Path = "results", **options) -> Shown:
    """Run what a benchmark lacks, and write and return its tables and figures.

    Args:
        name: one of ``latentpde list benchmarks``.
        folder, options: as `run_benchmarks` has them.
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
    workers: int = 1,
    again: bool = False,
    draw_only: bool = False,
    show_progress: bool = False,
) -> Iterator[Shown]:
    """Run what some benchmarks lack, all of it together; then write and yield the tables and figures of each.

    Args:
        names: of ``latentpde list benchmarks``.
        folder: lines go to ``runs/``, tables to ``tables/``, figures to ``figures/``.
        num: cases per regime.
        methods: names of rows.
        regimes: names of regimes.
        workers: processes.
        again: forget what these runs have given before.
        draw_only: run nothing, and show what there is.
    """
    folder, regimes = Path(folder), tuple(regimes)
    store = Store(folder / "runs")
    chosen = [benchmarks.get(name) for name in names]
    plans = [make_plan(one, store, num=num, methods=methods, chosen_regimes=regimes) for one in chosen]
    if draw_only:
        there = [one.has_run(plan) for one, plan in zip(chosen, plans, strict=True)]
        if not any(there):
            what = ", ".join(one.name for one in chosen)
            raise DataError(f"nothing of {what} has been run in {folder}; leave --draw-only out to run it")
        chosen, plans = list(compress(chosen, there)), list(compress(plans, there))
    else:
        _make_folders(folder)
        wanted = [(job, plan.num) for one, plan in zip(chosen, plans, strict=True) for job in one.jobs(plan)]
        if again:
            store.forget(wanted)
        label = chosen[0].name if len(chosen) == 1 else "bench"
        run(wanted, store, workers=workers, label=label, show_progress=show_progress)
        if again:
            store.tidy(job.row.method for job, _ in wanted)
        for one, plan in zip(chosen, plans, strict=True):
            if isinstance(one, Study):
                one.run(plan, again=again, show_progress=show_progress)
    for one, plan in zip(chosen, plans, strict=True):
        shown = one.show(plan)
        write(one, shown, folder)
        yield shown


def _make_folders(folder: Path) -> None:
    """Before any work, so that none is lost for want of a place."""
    for name in ("runs", "tables", "figures"):
        try:
            (folder / name).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(f"cannot write results to {folder}: {error.strerror}") from error
        check_writable(folder / name / "file")


def write(benchmark: Benchmark, shown: Shown, folder: Path) -> None:
    """Tables as Markdown, figures as PNG, and a JSON file that holds the tables and names the figures."""
    _make_folders(folder)
    tables = [item for item in shown if isinstance(item, Table)]
    figures = [item for item in shown if not isinstance(item, Table)]
    files = []
    for i, (caption, figure) in enumerate(figures):
        file = f"{benchmark.name}{f'-{i + 1}' if len(figures) > 1 else ''}.png"
        with atomic_path(folder / "figures" / file) as path:
            _save(figure, path)
        files.append({"file": file, "caption": caption[:1].upper() + caption[1:]})
    record = {"title": benchmark.title, "tables": [table.as_dict() for table in tables], "figures": files}
    texts = {"md": "\n".join(table.markdown() for table in tables), "json": json.dumps(record, indent=1) + "\n"}
    for suffix, text in texts.items():
        if text:
            with atomic_path(folder / "tables" / f"{benchmark.name}.{suffix}") as path:
                path.write_text(text)


def _save(figure: Figure, path: Path) -> None:
    """With a palette of 256 colours: a third of the size, and no difference to see."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from PIL import Image

    figure.set_dpi(110)
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    whole = Image.fromarray(np.asarray(canvas.buffer_rgba())[..., :3])
    few = whole.quantize(256, method=Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    few.save(path, format="PNG")
