"""Users' files: each in a folder of its own that nobody else can read, worked on by a process of its own, and deleted
when its owner says so, when nobody has asked for it for a while, and when the server ends."""

from __future__ import annotations

import asyncio
import json
import secrets
import shutil
import tempfile
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from latentpde.web.names import kind_of
from latentpde.web.settings import Settings
from latentpde.web.workers import Busy, Fault, Limits, Refused, Unable, Worker

_SWEEP_SECONDS = 15.0


class Unknown(Exception):
    """There is no such file, or it was deleted."""


@dataclass
class Upload:
    """One file: what was found in it, and what becomes of it."""

    id: str
    folder: Path
    name: str
    columns: str | None
    state: str = "checking"
    phase: str = "queued"
    begun: float = 0.0
    touched: float = field(default_factory=time.monotonic)
    checked: dict | None = None
    result: dict | None = None
    problem: str | None = None
    work: asyncio.Task | None = None

    @property
    def named(self) -> dict[str, Any]:
        """Where a task finds it."""
        return {"folder": str(self.folder), "name": self.name, "columns": self.columns}

    def status(self) -> dict[str, Any]:
        """As `latentpde.web.models.FileStatus`."""
        seconds = time.monotonic() - self.begun if self.state == "running" else 0.0
        return {
            "id": self.id,
            "state": self.state,
            "phase": self.phase,
            "seconds": seconds,
            "checked": self.checked,
            "result": self.result,
            "problem": self.problem,
        }


class Files:
    """All files of a server.

    Args:
        settings: of the service.
        context: how processes are started.
    """

    def __init__(self, settings: Settings, context: Any):
        self._settings, self._context = settings, context
        self._uploads: dict[str, Upload] = {}
        self._turn = asyncio.Semaphore(settings.num_file_workers)
        self._root: Path | None = None
        self._sweeper: asyncio.Task | None = None

    def start(self) -> None:
        self._root = Path(tempfile.mkdtemp(prefix="latentpde-"))  # for this user alone
        self._sweeper = asyncio.ensure_future(self._sweep())

    def end(self) -> None:
        if self._sweeper is not None:
            self._sweeper.cancel()
        for upload in self._uploads.values():
            if upload.work is not None:
                upload.work.cancel()
        if self._root is not None:
            shutil.rmtree(self._root, ignore_errors=True)

    def get(self, number: str) -> Upload:
        if number not in self._uploads:
            raise Unknown
        upload = self._uploads[number]
        upload.touched = time.monotonic()
        return upload

    async def add(self, name: str, columns: str | None, body: AsyncIterator[bytes]) -> Upload:
        """Take a file in and look at it; raises `Refused` where it is of no kind that can be read."""
        kind = kind_of(name)
        if kind is None:
            raise Refused("a file ends in .csv, .tsv, .txt, .parquet, .nc, .nc4, .cdf, .h5 or .hdf5")
        if len(self._uploads) >= self._settings.max_files:
            raise Busy
        assert self._root is not None
        number = secrets.token_urlsafe(18)
        upload = Upload(number, self._root / number, f"readings.{kind}", columns)
        self._uploads[number] = upload
        try:
            upload.folder.mkdir(mode=0o700)
            with (upload.folder / upload.name).open("xb") as file:
                async for chunk in body:
                    file.write(chunk)
            answer = await self._work(upload, "check", upload.named, self._settings.check_seconds)
        except BaseException:
            self._forget(upload)
            raise
        upload.checked, upload.state = json.loads(answer), "checked"
        return upload

    def begin(self, upload: Upload, arguments: dict) -> None:
        """Begin to reconstruct a file; raises `Busy` where that is under way."""
        if upload.state in ("queued", "running", "checking"):
            raise Busy
        upload.state, upload.problem, upload.result = "queued", None, None
        upload.work = asyncio.ensure_future(self._reconstruct(upload, arguments))

    async def _reconstruct(self, upload: Upload, arguments: dict) -> None:
        try:
            answer = await self._work(
                upload, "reconstruct", upload.named | arguments, self._settings.reconstruct_seconds
            )
            upload.result, upload.state = json.loads(answer), "done"
        except (Refused, Unable, Fault) as error:
            upload.problem, upload.state = str(error), "failed"

    async def _work(self, upload: Upload, task: str, arguments: dict, seconds: float) -> bytes:
        """By a process that has never seen another's file, and never will."""

        def report(progress: dict) -> None:
            upload.phase = progress["phase"]

        async with self._turn:
            if task == "reconstruct":
                upload.state, upload.begun = "running", time.monotonic()
            worker = Worker(self._context, Limits(self._settings.worker_memory, cpu_seconds=seconds))
            try:
                return await worker.run(task, arguments, seconds, report)
            finally:
                worker.end()

    async def delete(self, upload: Upload) -> None:
        """End what is done with a file, and delete it."""
        if upload.work is not None:
            upload.work.cancel()
            await asyncio.wait([upload.work])
        self._forget(upload)

    def _forget(self, upload: Upload) -> None:
        self._uploads.pop(upload.id, None)
        shutil.rmtree(upload.folder, ignore_errors=True)

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(min(_SWEEP_SECONDS, self._settings.keep_seconds))
            old = time.monotonic() - self._settings.keep_seconds
            left = [u for u in self._uploads.values() if u.touched < old and u.state not in ("queued", "running")]
            for upload in left:
                await self.delete(upload)
