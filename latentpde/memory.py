"""How the program asks for memory."""

from __future__ import annotations

import ctypes
import os
import platform
import sys

_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8  # of glibc's mallopt


def keep_freed_memory() -> None:
    """Keep freed memory for the next array, up to half a gigabyte, instead of handing it back to the system.

    Methods make and drop arrays of a megabyte thousands of times, and fetching their pages anew takes up to a quarter
    of the time. Threads then have one heap in common: in heaps of their own, which are small and given back whole, two
    halves of a search side by side take longer than one after the other. This is a setting of the whole process, so
    programs call it and the library does not; of glibc alone.
    """
    try:
        mallopt = ctypes.CDLL("libc.so.6").mallopt
    except (OSError, AttributeError):
        return
    mallopt(_MMAP_THRESHOLD, 2**25)  # the largest it takes
    mallopt(_TRIM_THRESHOLD, 2**29)
    mallopt(_ARENA_MAX, 1)


def peak_memory() -> dict[str, int]:
    """The most memory that this process has taken so far, in bytes, under its machine and number; empty on Windows.

    >>> all(size > 0 for size in peak_memory().values())
    True
    """
    try:
        import resource
    except ImportError:
        return {}
    unit = 1 if sys.platform == "darwin" else 1024
    return {f"{platform.node()}/{os.getpid()}": unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss}
