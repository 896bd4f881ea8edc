"""Who may ask, how much and how often; and requests that mean harm."""

import asyncio
import socket
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from urllib.parse import urlsplit

import httpx
import pytest

from latentpde.web.guards import SECURITY_HEADERS, Guard, RateLimit
from latentpde.web.models import OPENING
from latentpde.web.settings import Settings

SCENE = OPENING.model_dump(mode="json")


@pytest.mark.parametrize("path", ["/", "/main.js", "/api/catalogue", "/nothing", "/../../etc/passwd"])
def test_every_answer_has_the_security_headers(client, path):
    headers = client.get(path).headers
    for name, value in SECURITY_HEADERS.items():
        assert headers[name] == value
    assert "server" not in headers


@pytest.mark.parametrize(
    "path",
    [
        "/../settings.py",
        "/%2e%2e/settings.py",
        "/..%2fapp.py",
        "/static/../app.py",
        "/main.js/../../app.py",
        "//etc/passwd",
    ],
)
def test_no_path_leads_out_of_the_page(client, path):
    """Sent as it stands: the client would tidy it up."""
    address = urlsplit(str(client.base_url))
    with socket.create_connection((address.hostname, address.port), timeout=10) as line:
        line.sendall(f"GET {path} HTTP/1.1\r\nHost: {address.netloc}\r\nConnection: close\r\n\r\n".encode())
        answer = b"".join(iter(lambda: line.recv(65536), b""))
    assert b" 404 " in answer.splitlines()[0]
    assert b"import" not in answer


HOSTILE_SCENES = {
    "no JSON": b"{",
    "deep brackets": b"[" * 100_000,
    "not an object": b"[]",
    "NaN": b'{"noise_std": NaN}',
    "infinity": b'{"noise_std": 1e999}',
    "no noise": b'{"noise_std": 0}',
    "huge resolution": b'{"resolution": 100000}',
    "a negative seed": b'{"seed": -1}',
    "a path as regime": b'{"regime": "../../etc/passwd"}',
    "a script as regime": b'{"regime": "<script>alert(1)</script>"}',
    "an unknown field": b'{"__class__": "os.system"}',
    "a sensor outside": b'{"sensors": [{"id": 0, "y": 2, "x": 0}]}',
    "too many sensors": b'{"sensors": [' + b",".join([b'{"id": 0, "y": 0.5, "x": 0.5}'] * 61) + b"]}",
    "a number as text": b'{"sensors": [{"id": 0, "y": "half", "x": 0}]}',
    "an endless stroke": b'{"start": {"strokes": [{"points": [' + b",".join([b"[0.5, 0.5]"] * 301) + b"]}]}}",
    "an unknown layer": b'{"layers": ["secrets"]}',
    "surrogates": b'{"regime": "\\ud800"}',
    "no text": b"\xff\xfe\x00",
}


@pytest.mark.parametrize("body", HOSTILE_SCENES.values(), ids=HOSTILE_SCENES.keys())
def test_hostile_scenes_are_refused(client, body):
    answer = client.post("/api/picture", content=body, headers={"content-type": "application/json"})
    assert answer.status_code in (400, 422), answer.text
    assert answer.headers["content-type"] == "application/json"
    assert client.get("/api/catalogue").status_code == 200


def test_unknown_regime_is_a_clear_error(client):
    answer = client.post("/api/picture", json={"regime": "balancd"})
    assert answer.status_code == 400
    assert "did you mean 'balanced'" in answer.json()["detail"]


def test_many_sensors_at_one_place_and_on_the_edge_are_fine(client):
    sensors = [{"id": i, "y": 0.0, "x": 1.0} for i in range(12)]
    assert client.post("/api/picture", json=SCENE | {"sensors": sensors}).status_code == 200


def test_large_bodies_are_refused_before_they_are_read(client):
    assert client.post("/api/picture", content=b" " * 200_000).status_code == 413

    def chunks():
        for _ in range(100):
            yield b" " * 10_000

    with suppress(httpx.TransportError):  # the server may close the line in the middle
        assert client.post("/api/picture", content=chunks()).status_code == 413


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({"host": "evil.example"}, 421),
        ({"host": "127.0.0.1.evil.example"}, 421),
        ({"host": "[::1"}, 421),
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"sec-fetch-site": "cross-site"}, 403),
        ({"content-length": "-5"}, 400),
    ],
)
def test_other_names_and_other_pages_are_refused(client, headers, code):
    request = client.build_request("POST", "/api/picture", json=SCENE)
    request.headers.update(headers)
    try:
        assert client.send(request).status_code == code
    except httpx.TransportError:
        assert code == 400  # the server does not answer what is no HTTP


async def _hello(scope, receive, send):
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"hello"})


def guarded(address="192.0.2.7", **settings):
    """A client of an application that greets, behind the guard."""
    transport = httpx.ASGITransport(Guard(_hello, Settings(**settings)), client=(address, 1))
    return httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1")


def run(function):
    """In a thread of its own: the browser of other tests has its loop in this one."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(lambda: asyncio.run(function())).result()


def test_a_token_is_asked_for_where_one_is_set():
    async def scenario():
        async with guarded(token="0123456789abcdef") as client:
            bare = await client.get("/api/x")
            wrong = await client.get("/api/x", headers={"authorization": "Bearer 0123456789abcdeF"})
            right = await client.get("/api/x", headers={"authorization": "Bearer 0123456789abcdef"})
            door = await client.get("/?token=0123456789abcdef")
            cookie = await client.get("/api/x")
            return [bare.status_code, wrong.status_code, right.status_code, door.status_code, cookie.status_code], door

    codes, door = run(scenario)
    assert codes == [401, 401, 200, 303, 200]
    assert "httponly" in door.headers["set-cookie"].lower()
    assert "samesite=strict" in door.headers["set-cookie"].lower()
    assert "0123" not in door.headers["location"]


def test_the_rate_is_limited_where_others_can_reach_it():
    async def codes(host):
        async with guarded(host=host, rate=0.001, burst=3) as client:
            return [(await client.get("/")).status_code for _ in range(5)]

    assert run(lambda: codes("0.0.0.0")) == [200, 200, 200, 429, 429]
    assert run(lambda: codes("127.0.0.1")) == [200] * 5


def test_the_rate_limit_does_not_grow_without_end():
    limit = RateLimit(1.0, 2)
    for number in range(20_000):
        limit.allows(str(number), 0.0)
    assert len(limit._buckets) <= 10_000


def test_a_body_that_does_not_arrive_is_given_up():
    async def drip():
        yield b"{"
        await asyncio.sleep(5)
        yield b"}"

    async def scenario():
        async def reading(scope, receive, send):
            while (await receive()).get("more_body"):
                pass
            await _hello(scope, receive, send)

        transport = httpx.ASGITransport(Guard(reading, Settings(body_seconds=0.2)))
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            return (await client.post("/", content=drip())).status_code

    assert run(scenario) == 408
