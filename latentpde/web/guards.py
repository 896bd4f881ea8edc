"""Who may ask, how much and how often, and the headers of every answer; around the whole application, as pure ASGI.

Requests are looked at in this order: name of the host (a page elsewhere cannot reach a server on this machine under a
name of its own), origin (nor make a visitor's browser send it anything), rate, token, and then size and time of the
body, while it arrives.
"""

from __future__ import annotations

import asyncio
import hmac
import time
from collections import OrderedDict
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qs, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from latentpde.web.settings import Settings, is_loopback

UPLOADS = "/api/files"
COOKIE = "latentpde_token"
_MOST_ADDRESSES = 10_000
#: Nothing from elsewhere, nothing inline, no frames.
SECURITY_HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; connect-src 'self'; "
        "form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
}


class RateLimit:
    """A bucket for each address, which a request takes one token from and time fills again.

    >>> limit = RateLimit(rate=1.0, burst=2)
    >>> [limit.allows("192.0.2.1", now=10.0) for _ in range(3)], limit.allows("192.0.2.1", now=11.5)
    ([True, True, False], True)

    Args:
        rate: tokens per second.
        burst: tokens in a full bucket.
    """

    def __init__(self, rate: float, burst: int):
        self._rate, self._burst = rate, burst
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def allows(self, address: str, now: float) -> bool:
        tokens, last = self._buckets.pop(address, (float(self._burst), now))
        tokens = min(float(self._burst), tokens + self._rate * (now - last))
        allowed = tokens >= 1
        self._buckets[address] = (tokens - 1 if allowed else tokens, now)
        if len(self._buckets) > _MOST_ADDRESSES:
            self._buckets.popitem(last=False)
        return allowed


class Guard:
    """The application behind it sees only what may pass.

    Args:
        app: the application.
        settings: of the service.
    """

    def __init__(self, app: ASGIApp, settings: Settings):
        self._app, self._settings = app, settings
        self._limit = None if settings.is_local else RateLimit(settings.rate, settings.burst)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = False

        async def send_guarded(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                headers = MutableHeaders(scope=message)
                for name, value in SECURITY_HEADERS.items():
                    headers[name] = value
                headers.setdefault("cache-control", "no-store")
            await send(message)

        refusal = self._refusal(scope)
        if refusal is not None:
            await refusal(scope, receive, send_guarded)
            return
        try:
            await self._app(scope, self._bounded(scope, receive), send_guarded)
        except HTTPException as error:  # raised by the body, where the application has not made an answer of it
            if not started:
                await _problem(error.status_code, error.detail)(scope, receive, send_guarded)
        except ClientDisconnect:
            return

    def _refusal(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        if self._settings.is_local and not is_loopback(_hostname(host)):
            return _problem(421, "this server answers to localhost alone")
        origin = headers.get("origin")
        elsewhere = origin is not None and urlsplit(origin).netloc != host
        if scope["method"] not in ("GET", "HEAD") and (elsewhere or headers.get("sec-fetch-site") == "cross-site"):
            return _problem(403, "requests from other pages are not taken")
        client = scope.get("client")
        if self._limit is not None and not self._limit.allows(client[0] if client else "", time.monotonic()):
            return _problem(429, "too many requests from your address; wait a moment", {"retry-after": "2"})
        if self._settings.token is not None:
            return self._token_refusal(scope, headers, self._settings.token)
        try:
            length = int(headers.get("content-length", "0"))
        except ValueError:
            return _problem(400, "content-length must be a number")
        return _problem(413, self._too_large(scope)) if length > self._most(scope) else None

    def _token_refusal(self, scope: Scope, headers: Headers, token: str) -> Response | None:
        """By header for programs; a browser opens the page with ``?token=`` once, and keeps a cookie instead."""
        query = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[0]
        if scope["path"] == "/" and query and _same(query, token):
            answer = RedirectResponse("/", status_code=303)
            answer.set_cookie(COOKIE, token, httponly=True, samesite="strict", max_age=30 * 86400)
            return answer
        scheme, _, shown = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and _same(shown.strip(), token):
            return None
        try:
            cookie = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
        except CookieError:
            cookie = None
        if cookie is not None and _same(cookie.value, token):
            return None
        return _problem(
            401, "a token is needed: open /?token=... or send it as a bearer", {"www-authenticate": "Bearer"}
        )

    def _most(self, scope: Scope) -> int:
        is_upload = scope["method"] == "POST" and scope["path"] == UPLOADS
        return self._settings.max_upload + 4096 if is_upload else self._settings.max_request

    def _too_large(self, scope: Scope) -> str:
        return f"the request may have at most {self._most(scope):,} bytes"

    def _bounded(self, scope: Scope, receive: Receive) -> Receive:
        """The body as it arrives, as long as it is not too long and not too slow."""
        deadline, most, size, ended = time.monotonic() + self._settings.body_seconds, self._most(scope), 0, False

        async def bounded() -> Message:
            nonlocal size, ended
            if ended:
                return await receive()
            try:
                message = await asyncio.wait_for(receive(), max(0.0, deadline - time.monotonic()))
            except TimeoutError:
                raise HTTPException(408, "the request did not arrive in time") from None
            size += len(message.get("body", b""))
            if size > most:
                raise HTTPException(413, self._too_large(scope))
            ended = not message.get("more_body", False)
            return message

        return bounded


def _hostname(host: str) -> str:
    """Without the port and the brackets of an address of version 6."""
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""


def _same(shown: str, token: str) -> bool:
    return hmac.compare_digest(shown.encode(), token.encode())


def _problem(code: int, detail: str, headers: dict[str, str] | None = None) -> JSONResponse:
    return JSONResponse({"detail": detail}, status_code=code, headers=headers)
