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


@pytest.fixture
def run(capsys):
    """Runs the program inside this process; returns its exit code, output and errors."""
    from latentpde.cli import main

    def run(*arguments):
        with pytest.raises(SystemExit) as leaving:
            main([str(a) for a in arguments])
        captured = capsys.readouterr()
        return leaving.value.code or 0, captured.out, captured.err

    return run


@pytest.fixture
def refused(run):
    """Runs the program and expects one clean message with all the fragments."""

    def refused(code, fragments, *arguments):
        actual, out, err = run(*arguments)
        assert actual == code, out + err
        assert "Traceback" not in err
        assert "fault in latentpde" not in err
        unwrapped = " ".join(err.replace("│", " ").split())
        for fragment in [fragments] if isinstance(fragments, str) else fragments:
            assert fragment in unwrapped
        return err

    return refused


@pytest.fixture(scope="session")
def case_tree():
    """Two small simulated cases with their truth."""
    from latentpde import simulate

    return simulate("balanced", num=2, seed=1, shape=(32, 32), pooling=4, sparsity=0.3)


@pytest.fixture(scope="session")
def case_file(case_tree, tmp_path_factory):
    """The same, in a file."""
    path = tmp_path_factory.mktemp("cases") / "cases.nc"
    case_tree.to_netcdf(path, engine="h5netcdf")
    return path


@pytest.fixture
def tiny_preset(monkeypatch):
    """Networks of a few numbers, as the preset ``tiny``."""
    from tiny_weights import SIZE

    from latentpde.nn import PRESETS

    monkeypatch.setitem(PRESETS, "tiny", SIZE)


@pytest.fixture
def guess():
    """The name of a quick method, registered for the test."""
    from guess import Guess

    from latentpde.estimators import methods

    methods.register("guess", Guess)
    yield "guess"
    methods.unregister("guess")
