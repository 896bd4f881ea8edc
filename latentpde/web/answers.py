"""Answers that are kept for the next who asks the same, and asked for once where many ask at once."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable


class Answers:
    """The least recently wanted are forgotten first.

    Args:
        most: bytes to keep.
    """

    def __init__(self, most: int):
        self._most, self._size = most, 0
        self._kept: OrderedDict[str, bytes] = OrderedDict()
        self._asked: dict[str, asyncio.Task[bytes]] = {}

    async def get(self, key: str, ask: Callable[[], Awaitable[bytes]]) -> bytes:
        """What was answered to ``key`` before, or what ``ask`` answers now."""
        if key in self._kept:
            self._kept.move_to_end(key)
            return self._kept[key]
        if key not in self._asked:
            self._asked[key] = asyncio.ensure_future(ask())
            self._asked[key].add_done_callback(lambda task: self._keep(key, task))
        return await asyncio.shield(self._asked[key])

    def _keep(self, key: str, task: asyncio.Task[bytes]) -> None:
        del self._asked[key]
        if task.cancelled() or task.exception() is not None:
            return
        self._kept[key] = task.result()
        self._size += len(task.result())
        while self._size > self._most:
            self._size -= len(self._kept.popitem(last=False)[1])
