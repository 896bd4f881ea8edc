"""The page's server as tests start it."""

import os
import subprocess
from contextlib import contextmanager

from program import PROGRAM


@contextmanager
def serving(*options, **environment):
    """The address of `latentpde serve`, in a process of its own that ends with the block."""
    command = [*PROGRAM, "serve", "--port", "0", *options]
    surroundings = {**os.environ, "OMP_NUM_THREADS": "1", **environment}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=surroundings) as process:
        try:
            line = process.stdout.readline()
            assert "The page is at http" in line, line
            yield line.split()[4]
        finally:
            process.terminate()
            process.wait(20)
