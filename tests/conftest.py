"""What all tests share. The import hook must come before anything imports latentpde."""

import os
import shutil

import pytest
from hypothesis import settings
from jaxtyping import install_import_hook

install_import_hook("latentpde", "beartype.beartype")

os.environ["MPLBACKEND"] = "Agg"
# Test processes run side by side; more threads than cores make torch wait for itself.
os.environ["OMP_NUM_THREADS"] = "1"

settings.register_profile("explore", deadline=None, print_blob=True)
settings.register_profile("repeat", parent=settings.get_profile("explore"), derandomize=True)
settings.load_profile("repeat" if os.environ.get("CI") else "explore")


@pytest.fixture(scope="session")
def chromium() -> str:
    """Path of the system's Chromium, for Playwright's ``executable_path``."""
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if path := shutil.which(name):
            return path
    pytest.skip("no Chromium found; `make browser` says how to install it")
