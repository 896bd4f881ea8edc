"""How the program asks for memory."""

from __future__ import annotations

import ctypes

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # of glibc's mallopt


def keep_freed_memory() -> None:
    """Keep freed memory for the next array, up to half a gigabyte, instead of handing it back to the system.

    Methods make and drop arrays of a megabyte thousands of times, and fetching their pages anew takes up to a quarter
    of the time. This is a setting of the whole process, so programs call it and the library does not; of glibc alone.
    """
    try:
        mallopt = ctypes.CDLL("libc.so.6").mallopt
    except (OSError, AttributeError):
        return
    mallopt(_MMAP_THRESHOLD, 2**25)  # the largest it takes
    mallopt(_TRIM_THRESHOLD, 2**29)
