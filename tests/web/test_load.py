"""Many users at once, and how long one waits; slow, because these want the machine for themselves."""

import asyncio
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest
from web_server import serving

from latentpde.web.models import OPENING

pytestmark = pytest.mark.slow

USERS = 50
MOST_MEMORY = 4 * 2**30
FIRST_PICTURE, AFTER_A_SENSOR = 2000, 1000  # milliseconds


def family(parent):
    """A process and all that descend from it."""
    found, children = [parent], {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        children.setdefault(int(fields[1]), []).append(int(path.parent.name))
    for one in found:
        found += children.get(one, [])
    return found


def memory(processes):
    """Bytes that processes take of the machine, what they share counted once."""
    total = 0
    for one in processes:
        try:
            rows = Path(f"/proc/{one}/smaps_rollup").read_text().splitlines()
        except OSError:
            continue
        total += sum(1024 * int(row.split()[1]) for row in rows if row.startswith("Pss:"))
    return total


async def visit(address, number):
    """One user: opens the page, adds a sensor where nobody else has one, and moves it."""
    async with httpx.AsyncClient(base_url=address, timeout=300) as client:
        answers = [await client.get("/"), await client.get("/api/catalogue")]
        for x in (number / USERS, (number + 0.5) / USERS):
            scene = OPENING.model_dump(mode="json") | {"resolution": 64}
            scene["sensors"] = [*scene["sensors"], {"id": 99, "y": 0.5, "x": x}]
            answers.append(await client.post("/api/picture", json=scene))
        return [answer.status_code for answer in answers]


@pytest.mark.skipif(not Path("/proc/self/smaps_rollup").exists(), reason="memory is read from Linux")
def test_fifty_users_at_once_are_all_answered_in_bounded_memory(record_property):
    before = family(os.getpid())  # the browser, and the server of other tests

    async def everybody(address):
        highest, users = 0, asyncio.gather(*(visit(address, number) for number in range(USERS)))
        while not users.done():
            highest = max(highest, memory(set(family(os.getpid())).difference(before)))
            await asyncio.sleep(0.5)
        return await users, highest

    with (
        serving("--workers", "2") as address,
        ThreadPoolExecutor(1) as thread,
    ):  # the browser's loop may run in this one
        codes, highest = thread.submit(lambda: asyncio.run(asyncio.wait_for(everybody(address), 300))).result()
    assert codes == [[200] * 4] * USERS
    record_property("highest_memory_mb", highest / 2**20)
    print(f"{USERS} users: at most {highest / 2**20:.0f} MB")
    assert highest < MOST_MEMORY


@pytest.mark.browser
def test_pictures_come_in_time(visit, client, record_property):
    """Of a server that is up: the first picture after the page is opened, and those after a sensor moved, none of which
    was asked for before."""
    assert client.get("/api/catalogue").status_code == 200
    here = visit()
    page = here.open("#example=37")
    first = page.evaluate("performance.getEntriesByName('first picture')[0].startTime")
    sensor = page.locator(".sensor").first
    moved = []
    for _ in range(4):
        sensor.focus()
        moved.append(here.after(lambda: page.keyboard.press("ArrowRight")))
    record_property("first_picture_ms", first)
    record_property("after_a_sensor_ms", max(moved))
    print(f"first picture {first:.0f} ms, after a sensor at most {max(moved):.0f} ms")
    assert first < FIRST_PICTURE
    assert max(moved) < AFTER_A_SENSOR
