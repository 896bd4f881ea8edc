"""Imports keep two promises: the command line starts without torch, and data flow one way."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "latentpde"

CORE = ["grid.py", "pde/*.py", "latent.py", "decoder.py", "observation.py"]
ABOVE_CORE = ["estimators", "simulation", "bench", "cli", "report"]
KNOWS_TRUTH = ["simulation", "metrics", "calibration"]


@pytest.mark.parametrize(
    "statement",
    [
        "import latentpde",
        "import latentpde.cli",
        "from latentpde.cli import main; sys.argv = ['latentpde', '--help']; sys.exit(main())",
    ],
    ids=["package", "cli", "help"],
)
def test_starts_without_torch(statement):
    probe = f"import atexit, sys; atexit.register(lambda: print('torch' in sys.modules, file=sys.stderr)); {statement}"
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    assert done.stderr.splitlines()[-1] == "False", "torch was imported"


def test_methods_and_scores_load_without_scipy_stats():
    """It takes a second, of every start: only what needs it loads it."""
    statement = "import sys, latentpde.estimators, latentpde.scores.calibration, latentpde.report.calibration"
    probe = f"{statement}; print('scipy.stats' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, cwd=ROOT)
    assert done.stdout.strip() == "False", done.stdout + done.stderr


@pytest.mark.parametrize("pattern", CORE)
def test_core_knows_nothing_above_it(pattern):
    for path in sources(pattern):
        assert not uses(path, ABOVE_CORE)


def test_estimators_never_see_the_truth():
    for path in sources("estimators/**/*.py"):
        assert not uses(path, KNOWS_TRUTH)


def test_estimators_keep_their_private_parts():
    for path in sources("estimators/**/*.py"):
        module = module_name(path)
        for name in imports(path.read_text(), module):
            if name.startswith("latentpde.estimators."):
                owner, *inside = name.split(".")[2:]
                private = any(part.startswith("_") for part in inside)
                assert not private or owner == module.split(".")[2], f"{module} imports {name}"


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("import latentpde.simulation", "latentpde.simulation"),
        ("from latentpde import simulation as s", "latentpde.simulation"),
        ("from ..simulation.masks import radial", "latentpde.simulation.masks.radial"),
        ("from .exact import _solve", "latentpde.estimators.exact._solve"),
        ("def late():\n    from .. import simulation", "latentpde.simulation"),
    ],
)
def test_every_way_to_import_is_seen(source, name):
    assert list(imports(source, "latentpde.estimators.map")) == [name]


def sources(pattern: str) -> list[Path]:
    paths = sorted(PACKAGE.glob(pattern))
    assert paths, f"nothing matches latentpde/{pattern}: was it renamed?"
    return paths


def uses(path: Path, forbidden: list[str]) -> list[str]:
    """What a file imports from the forbidden modules of the package."""
    prefixes = tuple(f"latentpde.{name}." for name in forbidden)
    return [name for name in imports(path.read_text(), module_name(path)) if f"{name}.".startswith(prefixes)]


def imports(source: str, module: str) -> Iterator[str]:
    """Absolute dotted names of everything that a module's source imports, inside functions too."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = module.split(".")[: -node.level] if node.level else []
            base += [node.module] if node.module else []
            yield from (".".join([*base, alias.name]) for alias in node.names)


def module_name(path: Path) -> str:
    """Dotted name, with ``.__init__`` kept so that one leading dot always strips one part."""
    return ".".join(path.relative_to(ROOT).with_suffix("").parts)
