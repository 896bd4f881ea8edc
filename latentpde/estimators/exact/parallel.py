"""Two things at once, without two of torch's thread pools in each other's way."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

import torch
from threadpoolctl import threadpool_limits

T = TypeVar("T")

_available: ContextVar[int | None] = ContextVar("_available", default=None)  # threads, while operations take one


@contextmanager
def on_one_thread(small: bool = True) -> Iterator[None]:
    """Operations of torch take one thread each, while `run_together` still has all of them.

    Sharing an operation of a tenth of a millisecond between cores takes longer than the operation: a whole case of a
    hundred readings took twice as long on two cores as on one. NumPy's linear algebra, which here is of a few numbers,
    takes one thread in any case: its others would go on turning for a while after each product, in the way of ours.

    Args:
        small: whether operations of torch are so small; else they have all threads.
    """
    with threadpool_limits(1, user_api="blas"):
        if not small:
            yield
            return
        threads = torch.get_num_threads()
        token = _available.set(_available.get() or threads)
        torch.set_num_threads(1)
        try:
            yield
        finally:
            torch.set_num_threads(threads)
            _available.reset(token)


def run_together(*tasks: Callable[[], T]) -> list[T]:
    """The results of tasks that do not depend on each other, each on one core; in turn where torch has one thread.

    Many small operations gain more from a core each than from sharing both cores for every one of them.
    """
    before = torch.get_num_threads()
    threads = _available.get() or before
    if threads == 1:
        return [task() for task in tasks]
    # The number is set here and in each thread: torch keeps it for each thread, its linear algebra for all of them, and
    # sums in another order make other last digits.
    torch.set_num_threads(1)
    try:
        with ThreadPoolExecutor(min(threads, len(tasks)), initializer=torch.set_num_threads, initargs=(1,)) as pool:
            return list(pool.map(lambda task: task(), tasks))
    finally:
        torch.set_num_threads(before)
