"""What workers can do, by name. This module is loaded once, before any of them is forked."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # requests run side by side; more threads than cores wait for each other
os.environ["MPLBACKEND"] = "agg"

import torch

from latentpde.memory import keep_freed_memory
from latentpde.web.scene import catalogue, picture_of, suggestion_for
from latentpde.web.uploads import check_file, reconstruct_file

TASKS: dict[str, Callable[..., Any]] = {
    "catalogue": catalogue,
    "picture": picture_of,
    "suggestion": suggestion_for,
    "check": check_file,
    "reconstruct": reconstruct_file,
}


def prepare() -> None:
    """Settings of a worker's whole process."""
    torch.set_num_threads(1)
    keep_freed_memory()
