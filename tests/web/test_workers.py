"""Processes that do the work: their limits, their replacement, and the line before them."""

import asyncio
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest
from program import PROGRAM

from latentpde.web.limits import limit_process
from latentpde.web.models import OPENING
from latentpde.web.settings import MEGABYTE, Settings
from latentpde.web.workers import Busy, Limits, Pool, Unable, Worker, start_method

SCENE = {"scene": OPENING.model_dump(mode="json")}


def run_in_thread(work):
    """The result of a coroutine; in a thread of its own, since a browser of other tests keeps a loop in this one."""
    with ThreadPoolExecutor(1) as threads:
        return threads.submit(asyncio.run, work).result()


@contextmanager
def started(**settings):
    pool = Pool(Settings(num_workers=1, **settings))
    pool.start()
    try:
        yield pool
    finally:
        pool.end()


def limited(code):
    """What a process says that limits itself and then does something."""
    source = f"from {limit_process.__module__} import limit_process\nlimit_process(64 << 20, 1 << 20, 5)\n{code}"
    return subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=False)


@pytest.mark.skipif(sys.platform != "linux", reason="limits are Linux's")
def test_a_limited_process_gets_no_more_memory_and_writes_no_large_file(tmp_path):
    assert "MemoryError" in limited("bytearray(256 << 20)").stderr
    assert limited("bytearray(16 << 20)").returncode == 0
    path = tmp_path / "large"
    assert "File too large" in limited(f"open({str(path)!r}, 'wb').write(bytes(2 << 20))").stderr
    assert path.stat().st_size <= 1 << 20
    assert path.stat().st_mode & 0o077 == 0


@pytest.mark.skipif(sys.platform != "linux", reason="limits are Linux's")
def test_work_that_needs_too_much_memory_is_given_up():
    worker = Worker(start_method(), Limits(memory=8 * MEGABYTE))
    scene = SCENE["scene"] | {"resolution": 256, "seed": 17}
    try:
        with pytest.raises(Unable, match="memory"):
            run_in_thread(worker.run("picture", {"scene": scene}, 60))
    finally:
        worker.end()


def test_a_worker_that_takes_too_long_is_ended_and_replaced():
    async def visit(pool):
        (first,) = pool._all
        with pytest.raises(Unable, match="this took more than"):
            await pool.run("picture", SCENE)
        (second,) = pool._all
        assert not first.is_alive
        assert second.is_alive

    with started(scene_seconds=0.001) as pool:
        run_in_thread(visit(pool))


def test_a_worker_that_dies_is_replaced_before_anybody_notices():
    async def visit(pool):
        assert b"examples" in await pool.run("catalogue", {})
        (worker,) = pool._all
        os.kill(worker._process.pid, signal.SIGKILL)
        worker._process.join()
        assert b"examples" in await pool.run("catalogue", {})

    with started() as pool:
        run_in_thread(visit(pool))


def test_a_full_line_turns_the_next_away_and_answers_the_others():
    async def visit(pool):
        asked = [asyncio.create_task(pool.run("catalogue", {})) for _ in range(6)]
        return await asyncio.gather(*asked, return_exceptions=True), await pool.run("catalogue", {})

    with started(max_waiting=3) as pool:
        answers, later = run_in_thread(visit(pool))
    assert [isinstance(answer, Busy) for answer in answers] == [False] * 4 + [True] * 2  # one is served, three wait
    assert len({*answers[:4], later}) == 1  # and the line is open again


@pytest.mark.parametrize("fault", ["import there_is_no_such_module", "raise RuntimeError('broken')", "exit(1)"])
def test_a_server_whose_workers_cannot_start_says_so_and_ends(tmp_path, fault):
    (tmp_path / "broken_preload.py").write_text(
        f"try:\n    {fault}\nexcept ImportError as error:\n    raise RuntimeError from error\n"
    )
    source = "import latentpde.web.workers as workers; workers._PRELOAD = 'broken_preload'; " + PROGRAM[-1]
    done = subprocess.run(
        [*PROGRAM[:-1], source, "serve", "--port", "0"],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 1
    assert "the page could not be started" in done.stderr
