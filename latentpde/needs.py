"""What a call will need, estimated before it starts: refused where it cannot fit, said where it takes long."""

from __future__ import annotations

import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from latentpde.errors import UsageError

_CGROUP = Path("/sys/fs/cgroup")  # what a container or a batch system grants
_LONG = 60.0  # seconds


@dataclass(frozen=True)
class Needs:
    """An estimate, right to a factor of two or three.

    >>> Needs(memory=1e6, seconds=200.0).check("exact", "", show=True)

    Args:
        memory: bytes at once.
        seconds: of work on a core of today; 0 where nobody knows, or progress is shown step by step.
    """

    memory: int | float
    seconds: int | float = 0.0

    def check(self, what: str, mend: str, *, show: bool) -> None:
        """Raise `UsageError` where the memory does not suffice; with ``show``, say what takes long."""
        require_memory(self.memory, f"for {what}", mend)
        if show and self.seconds > _LONG:
            print(f"{what}: this takes about {duration(self.seconds)}", file=sys.stderr, flush=True)


def duration(seconds: int | float) -> str:
    """A length of time in words.

    >>> duration(200), duration(3e9)
    ('3 minutes', '34,722 days')
    """
    for unit, size in (("days", 86400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 1.5 * size:
            return f"{seconds / size:,.0f} {unit}"
    return f"{seconds:.0f} seconds"


def decoding_memory(num_cells: int, num_cases: int, num_draws: int, num_kept: int = 0) -> int:
    """Bytes that it takes to decode draws on a grid: those of one case with their spectra and in order of size, and
    what is shown of every case.

    Args:
        num_cells: of the grid.
        num_cases: whose mean, quantiles and so on are kept.
        num_draws: of each case.
        num_kept: cases of which all draws are kept too.
    """
    return 8 * num_cells * (4 * num_draws + 12 * num_cases + 2 * num_kept * num_draws)


def require_disk(num_bytes: int | float, path: str | Path, mend: str) -> None:
    """Raise `UsageError` where the disk of a file that is to be written has not so much room."""
    free = shutil.disk_usage(Path(path).absolute().parent).free
    if num_bytes > free:
        raise UsageError(
            f"{path} would take about {num_bytes / 1e9:.3g} GB, and its disk has {free / 1e9:.3g} GB of room; {mend}"
        )


def require_memory(num_bytes: int | float, what: str, mend: str) -> None:
    """Raise `UsageError` where something needs more memory than there is.

    >>> require_memory(1e18, "to decode", "ask for less")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    latentpde.errors.UsageError: not enough memory to decode: that takes about 1e+09 GB, and ... are free; ask for less

    Args:
        num_bytes: an estimate of what is needed.
        what: it is needed for, as an infinitive.
        mend: what to do instead.
    """
    free = available_memory()
    if num_bytes > free:
        raise UsageError(
            f"not enough memory {what}: that takes about {num_bytes / 1e9:.3g} GB, and {free / 1e9:.3g} GB are free; "
            f"{mend}"
        )


def available_memory() -> float:
    """Bytes that this process can still take: what the system, its container and its own limits leave."""
    found = [float("inf"), _of_system(), _of_container()]
    try:
        import resource
    except ImportError:  # Windows
        return min(found)
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit != resource.RLIM_INFINITY:
        found.append(limit - _number(Path("/proc/self/statm"), 0) * resource.getpagesize())
    return max(min(found), 0.0)


def _of_system() -> float:
    try:
        lines = dict(line.split(":") for line in Path("/proc/meminfo").read_text("ascii").splitlines())
        return 1024.0 * int(lines["MemAvailable"].split()[0])
    except (OSError, ValueError, KeyError, IndexError):  # another system
        return float("inf")


def _of_container() -> float:
    """The limit of the innermost group that this process sees; pages of files that it has read can be dropped."""
    most = _number(_CGROUP / "memory.max", float("inf"))
    if most == float("inf"):
        return most
    try:
        statistics = dict(line.split() for line in (_CGROUP / "memory.stat").read_text("ascii").splitlines())
    except (OSError, ValueError):
        statistics = {}
    return most - _number(_CGROUP / "memory.current", 0) + float(statistics.get("inactive_file", 0))


def _number(path: Path, otherwise: int | float) -> int | float:
    """The first number of a file; ``otherwise`` where there is none."""
    try:
        return float(path.read_text("ascii").split()[0])
    except (OSError, ValueError, IndexError):
        return otherwise
