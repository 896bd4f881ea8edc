"""Processes that do the work, each with limits on memory and time.

A worker is a process of its own that answers one message after the other. What goes between is JSON, so a worker that
a hostile file has taken over has nothing but text to answer with. Workers are forked from a server process that has
loaded torch already, so a new one is there at once; one that takes too long, or dies, is replaced.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import signal
import sys
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from multiprocessing.context import BaseContext
from typing import Any

from latentpde.errors import LatentPDEError
from latentpde.web.limits import limit_process
from latentpde.web.settings import MEGABYTE, Settings

Report = Callable[[dict], None]
_MOST_ANSWER = 256 * MEGABYTE
_PROGRESS, _ANSWER, _REFUSAL, _UNABLE, _FAULT = b"p", b"a", b"r", b"u", b"f"
_PRELOAD = "latentpde.web.preload"


class Refused(Exception):
    """The request makes no sense, or its data do not; the message is for the client."""


class Unable(Exception):
    """The work could not be done here: it is too long or too large; the message is for the client."""


class Fault(Exception):
    """An error of ours; the message is for the client."""


class Busy(Exception):
    """Too many requests wait already."""


@dataclass(frozen=True)
class Limits:
    """Those of one worker, in bytes and seconds; see `latentpde.web.limits`."""

    memory: int
    file_bytes: int = 512 * MEGABYTE
    cpu_seconds: float | None = None


def start_method() -> BaseContext:
    """How workers are started: forked from a server that has loaded what they need, where the system can do that."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([_PRELOAD])
    return context


class Worker:
    """One process and the line to it; it does one thing at a time.

    Args:
        context: as `start_method` gives it.
        limits: of the process.
    """

    def __init__(self, context: Any, limits: Limits):
        self._connection, theirs = context.Pipe()
        self._process = context.Process(target=_work, args=(theirs, limits), daemon=True)
        self._process.start()
        theirs.close()
        self._thread = ThreadPoolExecutor(1)

    async def run(self, task: str, arguments: dict, seconds: float, report: Report | None = None) -> bytes:
        """Have a task done and return its answer, which is JSON.

        Args:
            task: its name in `latentpde.web.tasks`.
            arguments: of the task, as JSON knows them.
            seconds: after which the process is ended.
            report: called with what the task has to say of its progress.
        """
        loop = asyncio.get_running_loop()

        def progressed(content: bytes) -> None:
            if report is not None:
                loop.call_soon_threadsafe(report, json.loads(content))

        exchange = loop.run_in_executor(self._thread, self._exchange, task, arguments, progressed)
        exchange.add_done_callback(lambda done: done.cancelled() or done.exception())  # the line of a process we ended
        try:
            kind, content = await asyncio.wait_for(asyncio.shield(exchange), seconds)
        except TimeoutError:
            self.end()
            raise Unable(f"this took more than {seconds:g} seconds and was given up; ask for less") from None
        except (EOFError, OSError):
            self.end()
            raise Unable("the work ended before its time; the data may need more memory than it may take") from None
        except asyncio.CancelledError:
            self.end()
            raise
        if kind == _ANSWER:
            return content
        raise {_REFUSAL: Refused, _UNABLE: Unable, _FAULT: Fault}[kind](json.loads(content))

    def _exchange(self, task: str, arguments: dict, progressed: Callable[[bytes], None]) -> tuple[bytes, bytes]:
        self._connection.send_bytes(json.dumps([task, arguments]).encode())
        while True:
            message = self._connection.recv_bytes(_MOST_ANSWER)
            kind, content = message[:1], message[1:]
            if kind != _PROGRESS:
                return kind, content
            progressed(content)

    @property
    def is_alive(self) -> bool:
        return self._process.is_alive()

    def end(self) -> None:
        """End the process at once."""
        if self._process.is_alive():
            self._process.kill()
        self._process.join()
        self._thread.shutdown(wait=False)


def _work(connection: Connection, limits: Limits) -> None:
    """The life of a worker."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the server's to handle
    from latentpde.web.tasks import TASKS, prepare

    prepare()
    limit_process(limits.memory, limits.file_bytes, limits.cpu_seconds)
    while True:
        try:
            task, arguments = json.loads(connection.recv_bytes())
        except (EOFError, OSError):
            return
        connection.send_bytes(_done(TASKS[task], arguments, connection))


def _done(task: Callable[..., Any], arguments: dict, connection: Connection) -> bytes:
    """The message that says how a task ended."""

    def report(progress: dict) -> None:
        connection.send_bytes(_PROGRESS + json.dumps(progress).encode())

    try:
        return _ANSWER + json.dumps(task(report, **arguments), allow_nan=False).encode()
    except LatentPDEError as error:
        return _REFUSAL + json.dumps(str(error)).encode()
    except Exception as error:
        if isinstance(error, MemoryError) or "can't allocate memory" in str(error):  # the second is torch's
            return _UNABLE + json.dumps("not enough memory for this; ask for a lower resolution").encode()
        traceback.print_exc(file=sys.stderr)
        return _FAULT + json.dumps("a fault in latentpde; the server's log says more").encode()


@dataclass
class Pool:
    """Workers that are kept warm for the page, and the line before them.

    A request goes to the worker that has answered one about the same thing before, where that one is idle: it may have
    kept what it computed.
    """

    settings: Settings
    context: Any = field(default_factory=start_method)
    _idle: list[tuple[Worker, str]] = field(default_factory=list)
    _waiting: int = 0
    _freed: asyncio.Condition = field(default_factory=asyncio.Condition)
    _all: list[Worker] = field(default_factory=list)

    def start(self) -> None:
        for _ in range(self.settings.num_workers):
            self._idle.append((self._new(), ""))

    def _new(self) -> Worker:
        worker = Worker(self.context, Limits(self.settings.worker_memory))
        self._all.append(worker)
        return worker

    async def run(self, task: str, arguments: dict, about: str = "") -> bytes:
        """Have a task done by the next worker that is free; raises `Busy` where too many wait for one.

        Args:
            task, arguments: as those of `Worker.run`.
            about: what the request is about.
        """
        if self._waiting >= self.settings.max_waiting:
            raise Busy
        self._waiting += 1
        try:
            async with self._freed:
                await self._freed.wait_for(lambda: self._idle)
                place = next((i for i, (_, last) in enumerate(self._idle) if last == about), 0)
                worker, _ = self._idle.pop(place)
        finally:
            self._waiting -= 1
        try:
            worker = self._living(worker)
            return await worker.run(task, arguments, self.settings.scene_seconds)
        finally:
            worker = self._living(worker)
            async with self._freed:
                self._idle.append((worker, about))
                self._freed.notify()

    def _living(self, worker: Worker) -> Worker:
        """The worker itself, or another in its place where it has died."""
        if worker.is_alive:
            return worker
        worker.end()
        self._all.remove(worker)
        return self._new()

    def end(self) -> None:
        for worker in self._all:
            worker.end()
