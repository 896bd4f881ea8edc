"""Progress of long work: a bar with an estimate on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Advance = Callable[[int], None]


@contextmanager
def progress(label: str, total: int, *, show: bool = True) -> Iterator[Advance]:
    """Yield a function to call with the number of units just done.

    On a terminal that draws a bar on standard error; elsewhere a line every ten seconds or so, so that short
    work stays silent.

    >>> with progress("simulate", total=3) as advance:
    ...     for case in range(3):
    ...         advance(1)

    Args:
        label: what is being done.
        total: number of units in all.
        show: whether to show anything at all.
    """
    if not show:
        yield lambda count: None
    elif sys.stderr.isatty():
        from rich.console import Console
        from rich.progress import Progress

        with Progress(console=Console(stderr=True), transient=True) as bar:
            task = bar.add_task(label, total=total)
            yield lambda count: bar.advance(task, count)
    else:
        yield _plain_lines(label, total)


def _plain_lines(label: str, total: int, every: float = 10.0) -> Advance:
    start = last = time.monotonic()
    done = 0

    def advance(count: int) -> None:
        nonlocal done, last
        done += count
        now = time.monotonic()
        if now - last >= every:
            left = (now - start) / done * (total - done)
            print(f"{label}: {done}/{total}, about {left:.0f} s left", file=sys.stderr, flush=True)
            last = now

    return advance
