"""The server."""

from __future__ import annotations

import socket
from collections.abc import Callable
from contextlib import suppress

import uvicorn

from latentpde.errors import LatentPDEError, UsageError
from latentpde.web.app import make_app
from latentpde.web.settings import Settings

_MOST_CONNECTIONS = 512


def serve(settings: Settings, port: int, ready: Callable[[str], None]) -> None:
    """Serve until interrupted.

    Args:
        settings: of the service.
        port: of the server; 0 for any that is free.
        ready: called with the page's address once it can be opened.
    """
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((settings.host, port))
        except (OSError, OverflowError) as error:
            raise UsageError(f"cannot serve at {settings.host} port {port}: {error}; choose another --port") from error
        everywhere = settings.host in ("0.0.0.0", "::")  # no address that a browser on this machine can open
        host = "localhost" if everywhere else f"[{settings.host}]" if ":" in settings.host else settings.host
        listening.listen(128)
        address = f"http://{host}:{listening.getsockname()[1]}/"
        config = uvicorn.Config(
            make_app(settings),
            log_level="warning",
            access_log=False,
            server_header=False,
            proxy_headers=False,  # a client does not say which address it has
            ws="none",
            limit_concurrency=_MOST_CONNECTIONS,
            timeout_keep_alive=15,
            timeout_graceful_shutdown=2,
        )
        server = _Server(config, lambda: ready(address))
        with suppress(SystemExit):  # raised where the application does not start
            server.run(sockets=[listening])
        if not server.started:
            raise LatentPDEError("the page could not be started: its worker processes fail; the lines above say why")


class _Server(uvicorn.Server):
    """A server that says when it can answer, which is after its workers have answered once."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], None]):
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._ready()
