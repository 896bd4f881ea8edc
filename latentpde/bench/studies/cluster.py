"""What more workers are worth, and whether a lost one matters: thousands of cases from one Zarr store into another.

Every way runs on a real cluster of processes on this machine, which read and write the stores themselves. In the last
one, a worker is killed when half of the cases are there. The hash of what comes out says whether it is the same.
"""

from __future__ import annotations

import hashlib
import os
import signal
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from latentpde.bench.benchmark import Items, Plan, Study
from latentpde.bench.jobs import cases_of
from latentpde.bench.lines import Line
from latentpde.bench.tables import NONE, Table
from latentpde.errors import no_warnings
from latentpde.io.chunks import DONE
from latentpde.scheduling.reconstruct import reconstruct_many
from latentpde.scheduling.simulate import simulate_many
from latentpde.scheduling.workers import connect

if TYPE_CHECKING:
    from distributed import Client

ONE, TWO, KILLED = "one worker", "two workers", "two, one killed half way"
WAYS = (ONE, TWO, KILLED)
_RESOLUTION = 64


class Cluster(Study):
    """Throughput and memory of a method over many cases, by one worker, by two, and by two of which one is killed."""

    name = "cluster"
    title = "many cases on a cluster of processes: one worker beside two"
    num = 2000
    regimes = ("balanced",)
    in_all = False  # it wants the machine to itself for an hour

    def missing_tasks(self, plan: Plan) -> list[tuple[str, str, str, int]]:
        """Regime, method, way and number of cases of each measurement that is not there with as many cases."""
        known = {_task(line): line["num"] for line in self.lines(plan)}
        wanted = [(regime, row.method, way) for regime in plan.regimes for row in plan.rows for way in WAYS]
        return [(*task, plan.num) for task in wanted if known.get(task, 0) < plan.num]

    def run_task(self, task: tuple[str, str, str, int]) -> list[Line]:
        regime, method, way, num = task
        with tempfile.TemporaryDirectory() as folder, no_warnings():
            cases, output = Path(folder) / "cases.zarr", Path(folder) / "out.zarr"
            simulate_many(cases_of(regime), cases, num)
            with connect(workers=1 if way == ONE else 2) as client:
                line = _measure(client, cases, output, method, is_killing=way == KILLED)
        return [{"regime": regime, "method": method, "way": way, "num": num, **line}]

    def show(self, plan: Plan) -> Items:
        lines = {_task(line): line for line in self.lines(plan)}
        rows = []
        for (regime, method, way), line in lines.items():
            one = lines.get((regime, method, ONE))
            ratio = NONE if one is None else f"{line['num'] / line['seconds'] / (one['num'] / one['seconds']):.2f}"
            same = NONE if one is None or one["num"] != line["num"] else "yes" if one["hash"] == line["hash"] else "no"
            memory = f"{max(line['memory_mb'])}" if line["memory_mb"] else NONE
            per_second = f"{line['num'] / line['seconds']:.2f}"
            rows.append((way, regime, method, f"{line['num']:,}", per_second, ratio, memory, same))
        heads = ("workers", "regime", "method", "cases", "cases/s", "ratio", "memory, MB", "same bits")
        notes = (
            f"Seconds from the call to the last chunk in the store, which include reading, decoding at {_RESOLUTION} x "
            f"{_RESOLUTION} and writing, and the new start of the worker that was killed; workers are running when the "
            "call begins.",
            "Ratio: throughput beside that of one worker. Memory: the most that any worker took. Same bits: whether "
            "all files of the store have the same content as those of one worker.",
        )
        return [Table(self.title, heads, tuple(rows), notes)]


def _task(line: Line) -> tuple[str, str, str]:
    return line["regime"], line["method"], line["way"]


def _measure(client: Client, cases: Path, output: Path, method: str, *, is_killing: bool) -> Line:
    """How long the workers of a cluster take for the cases of a store, and what they leave."""
    watch = threading.Thread(target=kill_half_way, args=(client, output), daemon=True)
    if is_killing:
        watch.start()
    start = time.perf_counter()
    found = reconstruct_many(cases, output, method=method, resolution=_RESOLUTION, scheduler=client)
    seconds = time.perf_counter() - start
    if is_killing:
        watch.join()
    memory = sorted(round(size / 1e6) for size in found.memory.values())
    line = {"seconds": round(seconds, 1), "memory_mb": memory, "hash": digest(output)}
    return line | ({"failed": str(found.failed)[:200]} if found.failed else {})


def kill_half_way(client: Client, store: Path) -> int:
    """Wait until half of a store is there, then kill a worker at its work; the number of its process.

    It counts the chunks that are marked as done by their files: reading the marks themselves many times a second
    would take most of a core from the workers.
    """
    import zarr

    while True:
        time.sleep(0.1)
        if store.exists():
            marks = zarr.open_array(store / DONE, mode="r")
            if marks.nchunks_initialized >= marks.nchunks / 2:
                break
    pids: Any = client.run(os.getpid)  # by the address of the worker
    pid = max(pids.values())
    os.kill(pid, signal.SIGKILL)
    return pid


def digest(store: Path) -> str:
    """A hash of all files of a store, with their names.

    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "zarr.json").write_text("{}")
    ...     before = digest(Path(folder))
    ...     _ = Path(folder, "zarr.json").rename(Path(folder, ".zattrs"))
    ...     before == digest(Path(folder))
    False
    """
    found = hashlib.sha256()
    for path in sorted(path for path in store.rglob("*") if path.is_file()):
        found.update(path.relative_to(store).as_posix().encode() + b"\0" + path.read_bytes())
    return found.hexdigest()[:16]
