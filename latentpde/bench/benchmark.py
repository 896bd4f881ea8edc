"""What a benchmark is: the jobs it needs, and the tables and figures it makes of what came out of them.

`Benchmark` compares rows over jobs; `Study` measures something else, in its own way, and keeps lines of its own.
Running them is `latentpde.bench.runner`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from latentpde.bench.execution import in_processes
from latentpde.bench.jobs import SEED, Job, jobs_on
from latentpde.bench.lines import Entry, Line, append_entries, read_entries
from latentpde.bench.provenance import provenance
from latentpde.bench.queue import missing_pictures
from latentpde.bench.rows import Row, chosen_rows
from latentpde.bench.store import Store, frame
from latentpde.bench.tables import Frame, Table
from latentpde.io.files import atomic_path
from latentpde.progress import progress
from latentpde.registry import Registry
from latentpde.simulation import PAPER_REGIMES

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, eq=False)
class Drawing:
    """A figure with its caption.

    Args:
        caption: a sentence below it.
        figure: the figure itself.
        name: tells it from other figures of its benchmark; its file is called after both.
    """

    caption: str
    figure: Figure
    name: str = ""


#: What a benchmark shows: tables and figures.
Items: TypeAlias = "list[Table | Drawing]"


@dataclass(frozen=True)
class Plan:
    """What of a benchmark is wanted.

    Args:
        rows: the methods.
        regimes: names of the regimes that cases come from.
        num: cases of each job.
        store: the lines that there are already.
        seed: of the test cases.
    """

    rows: tuple[Row, ...]
    regimes: tuple[str, ...]
    num: int
    store: Store
    seed: int = SEED

    def jobs_on(self, rows: Iterable[Row], names: Iterable[str], **options: Any) -> list[Job]:
        """Every row on the plan's test cases of some regimes, as `latentpde.bench.jobs.jobs_on` has it."""
        return jobs_on(rows, names, seed=self.seed, **options)

    def frame(self, jobs: Iterable[Job]) -> Frame:
        """The lines of some jobs that there are, as `latentpde.bench.store.frame` has them."""
        return frame(jobs, self.num, self.store)


def fewer(plan: Plan) -> str:
    """Which rows of a plan have fewer cases than the others, in brackets; nothing where none has."""
    few = [f"{row.name} {row.count(plan.num)}" for row in plan.rows if row.count(plan.num) < plan.num]
    return f" ({', '.join(few)})" if few else ""


class Benchmark(ABC):
    """One table or figure, or a few that belong together.

    Attributes:
        name: on the command line.
        title: what it shows, in a line.
        num: cases for each regime, where the user does not say.
        num_settings: settings that share the cases of a regime among them.
        regimes: where cases come from, where the user does not say.
        rows: names of rows, where the user does not say; every method where empty.
        an_hour: whether slow methods get as many cases as an hour allows, rather than a fifth of the others'.
        in_all: whether ``latentpde bench all`` runs it.
        own_seeds: whether the seeds of its cases are its own, so that the user cannot name another.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    num: ClassVar[int] = 100
    num_settings: ClassVar[int] = 1
    regimes: ClassVar[tuple[str, ...]] = PAPER_REGIMES
    rows: ClassVar[tuple[str, ...]] = ()
    an_hour: ClassVar[bool] = False
    in_all: ClassVar[bool] = True
    own_seeds: ClassVar[bool] = False

    def default_rows(self) -> tuple[Row, ...]:
        """The rows that are compared where the user does not name any."""
        return chosen_rows(self.rows)

    @abstractmethod
    def jobs(self, plan: Plan) -> list[Job]:
        """What must have been run."""

    @abstractmethod
    def show(self, plan: Plan) -> Items:
        """Tables and figures of what has been run. It runs nothing itself."""

    def has_run(self, plan: Plan) -> bool:
        """Whether there is anything to show."""
        jobs = self.jobs(plan)
        return not jobs or not plan.frame(jobs).empty

    def missing(self, plan: Plan) -> list[str]:
        """A sentence for each kind of thing that is wanted and not there."""
        jobs = self.jobs(plan)
        wanted, absent = Counter[str](), Counter[str]()
        for job in {(job.row.name, job): job for job in jobs}.values():
            count = job.row.count(plan.num)
            wanted[job.row.name] += count
            absent[job.row.name] += count - len(plan.store.find(job, plan.num))
        untrained = {job: job.row.untrained(job.regime.family) for job in jobs}
        sentences = list(dict.fromkeys(text for job, text in untrained.items() if text and absent[job.row.name]))
        if +absent:
            rows = ", ".join(f"{name} {count:,} of {wanted[name]:,}" for name, count in absent.items() if count)
            sentences.append(f"{self.name}: cases that have not been run: {rows}.")
        if undrawn := missing_pictures(jobs, plan.store):
            of = len({job for job in jobs if job.drawn})
            sentences.append(f"{self.name}: fields that are not kept, and so not drawn: {len(undrawn)} of {of}.")
        return sentences

    def versions(self, plan: Plan) -> dict[str, Counter[str]]:
        """How many lines of each method, or of a study, each version of the code has made."""
        found = dict[str, Counter[str]]()
        for job in dict.fromkeys(self.jobs(plan)):
            lines = plan.store.find(job, plan.num).values()
            found.setdefault(job.row.method, Counter()).update(line["version"] for line in lines)
        return found


class Study(Benchmark):
    """A benchmark that compares no rows and keeps lines of its own, in a file of its name. Its cases have seeds of
    their own too.

    Attributes:
        timed: whether it needs the machine to itself, because its seconds are what counts.
    """

    rows = ("exact",)
    own_seeds = True
    timed: ClassVar[bool] = True

    def jobs(self, plan: Plan) -> list[Job]:
        return []

    def has_run(self, plan: Plan) -> bool:
        return bool(self.lines(plan))

    def missing(self, plan: Plan) -> list[str]:
        tasks = len(self.missing_tasks(plan))
        return [f"{self.name}: measurements that have not been made: {tasks}."] if tasks else []

    def versions(self, plan: Plan) -> dict[str, Counter[str]]:
        made = Counter(entry.header["version"] for entry in self._entries(plan) if "failed" not in entry.line)
        return {self.name: made}

    def lines(self, plan: Plan) -> list[Line]:
        """What was measured; failures are left out, so that they are tried again."""
        return [entry.line for entry in self._entries(plan) if "failed" not in entry.line]

    def failures(self, plan: Plan) -> tuple[str, ...]:
        """A sentence for each failure that no success has followed."""
        found, done = [], self.lines(plan)
        for line in (entry.line for entry in self._entries(plan) if "failed" in entry.line):
            task = {name: value for name, value in line.items() if name != "failed"}
            if not any(task.items() <= other.items() for other in done):
                found.append(f"Failed: {', '.join(f'{k} {v}' for k, v in task.items())}: {line['failed']}")
        return tuple(dict.fromkeys(found))

    def run(self, plan: Plan, *, again: bool, workers: int, scheduler: str | None = None, show_progress: bool) -> None:
        """Measure what is missing, and keep it task by task.

        Args:
            plan: what is wanted.
            again: whether to measure all of it anew; what was measured before is dropped when all of it is done.
            workers: processes; a study that is timed uses one, and all cores.
            scheduler: the address of a Dask scheduler, for a study that is not timed.
            show_progress: whether to show a progress bar.
        """
        path, new = self._path(plan), list[Entry]()
        nothing = replace(plan, store=Store(plan.store.folder / "none"))
        tasks = self.missing_tasks(nothing if again else plan)
        with progress(self.name, len(tasks), show=show_progress) as advance:
            where = (1, None) if self.timed else (workers, scheduler)
            for entries in in_processes(self._record, [(task,) for task in tasks], *where):
                append_entries(path, entries)
                new += entries
                advance(1)
        if again:
            with atomic_path(path) as temporary:
                append_entries(temporary, new)

    def _record(self, task: Any) -> list[Entry]:
        header = {"study": self.name, **provenance()}
        return [Entry(header, line) for line in self.run_task(task)]

    @abstractmethod
    def missing_tasks(self, plan: Plan) -> list[Any]:
        """What is still to be measured, one task after another."""

    @abstractmethod
    def run_task(self, task: Any) -> Iterable[Line]:
        """Measure one task and give its lines."""

    def _entries(self, plan: Plan) -> list[Entry]:
        return read_entries(self._path(plan))

    def _path(self, plan: Plan) -> Path:
        return plan.store.folder / f"{self.name}.jsonl"


benchmarks: Registry[Benchmark] = Registry("benchmark", "benchmarks", "latentpde.benchmarks")
