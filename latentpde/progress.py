"""Progress of long work: a bar with an estimate on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

Advance = Callable[[int], None]
Say = Callable[[str], None]


@dataclass(frozen=True)
class Meter:
    """What long work tells of itself.

    Args:
        advance: is called with the number of units just done; so is the meter itself.
        say: is called with what begins now, where one unit takes long.
    """

    advance: Advance
    say: Say

    def __call__(self, count: int) -> None:
        self.advance(count)


@contextmanager
def progress(label: str, total: int, *, done: int = 0, show: bool = True) -> Iterator[Meter]:
    """Yield a function to call with the number of units just done, which may also `say` what begins now.

    On a terminal that draws a bar on standard error; elsewhere a line every ten seconds or so, so that short
    work stays silent, and a sign of life where one unit takes long.

    >>> with progress("simulate", total=3) as advance:
    ...     for case in range(3):
    ...         advance(1)

    Args:
        label: what is being done.
        total: number of units in all.
        done: of these, how many an earlier run has done, which says nothing of how long the others take.
        show: whether to show anything at all.
    """
    if not show:
        yield Meter(lambda count: None, lambda what: None)
    elif sys.stderr.isatty():
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            Progress,
            TaskProgressColumn,
            TextColumn,
            TimeElapsedColumn,
            TimeRemainingColumn,
        )

        # of a single unit nobody knows how much is done: the bar moves, and the clock says for how long
        columns = [TaskProgressColumn(), TimeRemainingColumn()] if total > 1 else [TimeElapsedColumn()]
        shown = (TextColumn("{task.description}"), BarColumn(), *columns)
        with Progress(*shown, console=Console(stderr=True), transient=True) as bar:
            task = bar.add_task(label, total=total if total > 1 else None, completed=done)
            yield Meter(
                lambda count: bar.advance(task, count),
                lambda what: bar.update(task, description=f"{label}: {what}"),
            )
    else:
        with _plain_lines(label, total, done) as meter:
            yield meter


@contextmanager
def _plain_lines(
    label: str, total: int, before: int = 0, every: float = 10.0, patience: float = 30.0
) -> Iterator[Meter]:
    """A line about every ``every`` seconds; one now and then, too, while a unit takes longer than ``patience``."""
    start = last = time.monotonic()
    done, ended = before, threading.Event()

    def advance(count: int) -> None:
        nonlocal done, last
        done += count
        now = time.monotonic()
        if now - last >= every:
            left = (now - start) / max(1, done - before) * (total - done)
            print(f"{label}: {done}/{total}, about {left:.0f} s left", file=sys.stderr, flush=True)
            last = now

    def say(what: str) -> None:
        nonlocal last
        last = time.monotonic()
        print(f"{label}: {what}", file=sys.stderr, flush=True)

    def stay_in_touch() -> None:
        nonlocal last, patience
        while not ended.wait(patience / 10):
            now = time.monotonic()
            if now - last >= patience:
                print(f"{label}: {done}/{total}, still at work after {now - start:.0f} s", file=sys.stderr, flush=True)
                last, patience = now, 2 * patience

    watch = threading.Thread(target=stay_in_touch, daemon=True)
    watch.start()
    try:
        yield Meter(advance, say)
    finally:
        ended.set()
        watch.join()
