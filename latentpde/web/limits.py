"""What a process that reads strangers' data may take of the machine."""

from __future__ import annotations

import os
from pathlib import Path


def limit_process(memory: int, file_bytes: int, cpu_seconds: float | None = None) -> None:
    """Bound this process for the rest of its life; Linux and other systems with ``resource`` alone.

    Args:
        memory: bytes that it may still take.
        file_bytes: of the largest file that it may write.
        cpu_seconds: of computing, after which the system ends it.
    """
    os.umask(0o077)
    try:
        import resource
    except ImportError:  # Windows
        return
    _lower(resource.RLIMIT_CORE, 0)
    _lower(resource.RLIMIT_FSIZE, file_bytes)
    taken = _address_space()
    if taken:
        _lower(resource.RLIMIT_AS, taken + memory)
    if cpu_seconds is not None:
        _lower(resource.RLIMIT_CPU, int(cpu_seconds) + 1)


def _lower(kind: int, value: int) -> None:
    import resource

    hard = resource.getrlimit(kind)[1]
    value = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(kind, (value, value))


def _address_space() -> int:
    """Bytes of this process's address space, libraries included; 0 where the system does not say."""
    try:
        return int(Path("/proc/self/statm").read_text("ascii").split()[0]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError):
        return 0
