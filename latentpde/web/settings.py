"""What the service may use, and who may use it."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass

MEGABYTE = 2**20


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Limits of the service; every default suits a laptop.

    >>> Settings().is_local, Settings(host="0.0.0.0").is_local
    (True, False)

    Args:
        host: address that the server is bound to.
        token: what a client must show, where it is not ``None``.
        num_workers: processes that answer the page.
        max_waiting: requests that may wait for one of them; more are told to come back.
        max_request: bytes of a request that is no upload.
        max_upload: bytes of an uploaded file.
        max_files: uploaded files that are kept at once; more are told to come back.
        num_file_workers: processes that may work on uploaded files at once.
        body_seconds: time in which a request must have arrived.
        scene_seconds, check_seconds, reconstruct_seconds: time after which work is given up.
        keep_seconds: time after which a file that nobody asks for is deleted.
        worker_memory: bytes that a process may take beyond what it has when it starts.
        cache_bytes: of answers that are kept for the next who asks the same.
        rate, burst: requests per second and address, and how many may come at once, where others than this machine
            can reach the server.
    """

    host: str = "127.0.0.1"
    token: str | None = None
    num_workers: int = 2
    max_waiting: int = 128
    max_request: int = 128 * 1024
    max_upload: int = 50 * MEGABYTE
    max_files: int = 16
    num_file_workers: int = 1
    body_seconds: float = 60.0
    scene_seconds: float = 20.0
    check_seconds: float = 60.0
    reconstruct_seconds: float = 1800.0
    keep_seconds: float = 1800.0
    worker_memory: int = 3072 * MEGABYTE
    cache_bytes: int = 64 * MEGABYTE
    rate: float = 10.0
    burst: int = 60

    @property
    def is_local(self) -> bool:
        """Whether only this machine can reach the server."""
        return is_loopback(self.host)


def is_loopback(host: str) -> bool:
    """Whether an address is this machine's own.

    >>> is_loopback("localhost"), is_loopback("::1"), is_loopback("example.org")
    (True, True, False)
    """
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
