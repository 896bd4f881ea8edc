"""Loaded by the process that workers are forked from: all they need, used once, so that their first answer is quick.

Where this fails or hangs, that process says so and ends, and the server does not start.
"""

import faulthandler

_MOST_SECONDS = 120.0

faulthandler.dump_traceback_later(_MOST_SECONDS, exit=True)
try:
    from latentpde.web.models import OPENING
    from latentpde.web.tasks import TASKS, prepare
except ImportError as error:  # of which the process that loads this would say nothing
    raise RuntimeError(f"the workers' modules cannot be loaded: {error}") from error
prepare()
TASKS["picture"](None, scene=OPENING.model_dump())
faulthandler.cancel_dump_traceback_later()
