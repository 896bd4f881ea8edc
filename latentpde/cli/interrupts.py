"""Ctrl-C that Python would lose.

An interrupt is an exception in whatever runs at that moment. Where that is the tidying up of an object, Python prints a
traceback, goes on, and the interrupt is gone: a long run would not stop. So it is sent once more, a moment later.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading

_SENT_AGAIN = {KeyboardInterrupt: signal.SIGINT, SystemExit: signal.SIGTERM}  # what the program makes of each
_SECONDS = 0.05


def send_lost_interrupts_again() -> None:
    """Set the whole process up so that Ctrl-C, and a request to end, are not lost while an object is tidied up."""
    others = sys.unraisablehook

    def hook(lost) -> None:
        number = _SENT_AGAIN.get(lost.exc_type)
        if number is None:
            others(lost)
            return
        timer = threading.Timer(_SECONDS, os.kill, (os.getpid(), number))
        timer.daemon = True
        with contextlib.suppress(RuntimeError):  # at the very end there are no new threads
            timer.start()

    sys.unraisablehook = hook
