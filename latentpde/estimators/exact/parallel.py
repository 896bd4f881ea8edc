"""Two things at once, without two of torch's thread pools in each other's way."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import torch

T = TypeVar("T")


def run_together(*tasks: Callable[[], T]) -> list[T]:
    """The results of tasks that do not depend on each other, each on one core; in turn where torch has one thread.

    Many small operations gain more from a core each than from sharing both cores for every one of them.
    """
    threads = torch.get_num_threads()
    if threads == 1:
        return [task() for task in tasks]
    # The number is set here and in each thread: torch keeps it for each thread, its linear algebra for all of them, and
    # sums in another order make other last digits.
    torch.set_num_threads(1)
    try:
        with ThreadPoolExecutor(min(threads, len(tasks)), initializer=torch.set_num_threads, initargs=(1,)) as pool:
            return list(pool.map(lambda task: task(), tasks))
    finally:
        torch.set_num_threads(threads)
