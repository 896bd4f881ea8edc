"""Imports keep three promises: rooms import what their row of the table names, nothing imports itself in a circle, and
the command line starts without torch."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "latentpde"

TOOLS = ("errors", "memory", "needs", "progress", "quantities", "registry", "validation")
CORE = (
    "decoder",
    "domain",
    "frame",
    "grid",
    "latent",
    "lift",
    "observation",
    "operator",
    "pde",
    "posterior",
    "settings",
    "spectra",
)
#: What each room may import beside the tools and itself; docs/design.md shows the same table.
MAY_IMPORT = {
    "tools": (),
    "core": (),
    "io": ("core",),
    "simulation": ("core", "io"),
    "diffusion": ("core",),
    "nn": ("core", "io", "diffusion"),
    "estimators": ("core", "diffusion", "nn"),
    "questions": ("core", "estimators"),
    "training": ("core", "io", "simulation", "diffusion", "nn", "estimators"),
    "scores": ("core", "simulation", "estimators"),
    "report": ("core", "io", "simulation", "scores", "questions"),
    "scheduling": ("core", "io", "simulation", "estimators"),
    "inspection": ("core", "io", "estimators"),
    "bench": ("core", "io", "simulation", "estimators", "questions", "scores", "report", "scheduling"),
    "demo": ("core", "io", "estimators", "scores", "report"),
    "web": ("core", "io", "simulation", "estimators", "questions", "scores", "report", "inspection"),
    "cli": (
        *("core", "io", "simulation", "estimators", "questions", "training", "scores", "report", "scheduling"),
        *("inspection", "bench"),
        "demo",
        "web",
    ),
}
#: Methods of the core's classes that import a room above it, when they are called.
DOORS = {
    "latentpde.observation.observation": {"from_dataset": "io", "read": "io"},
    "latentpde.observation.notebook": {"plot": "report", "_repr_html_": "report"},
    "latentpde.posterior.posterior": {"summary": "io", "to_netcdf": "io", "report": "report"},
    "latentpde.posterior.notebook": {"plot": "report", "_repr_html_": "report", "to_xarray": "io"},
}
METHOD_ROOMS = ("core", "diffusion", "nn", "estimators")
ROOMS_WITH_TRUTHS = ("simulation", "scheduling", "scores", "bench", "training", "cli", "demo", "web")


@pytest.mark.parametrize(
    "statement",
    [
        "import latentpde",
        "import latentpde.cli",
        "from latentpde.cli import main; sys.argv = ['latentpde', '--help']; sys.exit(main())",
        "from latentpde.cli import main; sys.argv = ['latentpde', 'reconstruct', '--help']; sys.exit(main())",
    ],
    ids=["package", "cli", "help", "help of a command"],
)
def test_starts_without_anything_heavy(statement):
    heavy = "{'torch', 'numpy', 'scipy', 'xarray', 'matplotlib'} & set(sys.modules)"
    probe = f"import atexit, sys; atexit.register(lambda: print({heavy}, file=sys.stderr)); {statement}"
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    assert done.stderr.splitlines()[-1] == "set()"


def test_methods_and_scores_load_without_scipy_stats():
    """It takes a second, of every start: only what needs it loads it."""
    statement = "import sys, latentpde.estimators, latentpde.scores.calibration, latentpde.report.calibration"
    probe = f"{statement}; print('scipy.stats' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, cwd=ROOT)
    assert done.stdout.strip() == "False", done.stdout + done.stderr


@pytest.mark.parametrize("room", MAY_IMPORT)
def test_a_room_imports_what_its_row_names(room):
    allowed = {room, "tools", *MAY_IMPORT[room]}
    for path in sources(room):
        module = module_name(path)
        for name, function in imports(path.read_text(), module):
            target = room_of(name)
            if target not in allowed:
                assert DOORS.get(module, {}).get(function) == target, f"{module} imports {name} in {function or 'it'}"


def test_every_file_has_a_room():
    assert {room_of(module_name(path)) for path in PACKAGE.rglob("*.py")} == {*MAY_IMPORT}


def test_methods_never_see_the_truth():
    """Neither do the rooms that a method consists of, directly or by way of another."""
    for room in METHOD_ROOMS:
        assert not reachable(room) & {*ROOMS_WITH_TRUTHS}


def reachable(room: str) -> set[str]:
    return {room}.union(*(reachable(other) for other in MAY_IMPORT[room]))


def test_there_is_no_import_cycle():
    """Imports inside functions and for type checking count, the doors do not."""
    graph = {}
    for path in PACKAGE.rglob("*.py"):
        module = module_name(path)
        doors = DOORS.get(module, {})
        found = [name for name, function in imports(path.read_text(), module) if doors.get(function) != room_of(name)]
        graph[file_of(module)] = {file_of(name) for name in found} - {file_of(module)}
    finished: set[str] = set()

    def visit(module: str, trail: tuple[str, ...]) -> None:
        assert module not in trail, " -> ".join([*trail[trail.index(module) :], module])
        if module not in finished:
            for other in sorted(graph.get(module, ())):
                visit(other, (*trail, module))
            finished.add(module)

    for module in sorted(graph):
        visit(module, ())


def test_methods_keep_their_private_parts():
    for path in sources("estimators"):
        module = module_name(path)
        for name, _ in imports(path.read_text(), module):
            if any(part.startswith("_") for part in name.split(".")[1:]):
                assert file_of(name) == module, f"{module} imports {name}"


def test_the_design_shows_this_table():
    text = (ROOT / "docs" / "design.md").read_text()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("|")]
    shown = {row[0]: row[-1] for row in rows if row[0] in MAY_IMPORT}
    assert shown == {room: ", ".join(others) or "nothing" for room, others in MAY_IMPORT.items()}


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("import latentpde.simulation", "latentpde.simulation"),
        ("from latentpde import simulation as s", "latentpde.simulation"),
        ("from ..simulation.masks import radial", "latentpde.simulation.masks.radial"),
        ("from .exact import _solve", "latentpde.estimators.exact._solve"),
        ("def late():\n    from .. import simulation", "latentpde.simulation"),
        ("if TYPE_CHECKING:\n    from .. import simulation", "latentpde.simulation"),
        ("import_module('latentpde.simulation')", "latentpde.simulation"),
    ],
)
def test_every_way_to_import_is_seen(source, name):
    assert [found for found, _ in imports(source, "latentpde.estimators.map")] == [name]


def sources(room: str) -> list[Path]:
    paths = [path for path in sorted(PACKAGE.rglob("*.py")) if room_of(module_name(path)) == room]
    assert paths, f"there is no room {room}: was it renamed?"
    return paths


def room_of(name: str) -> str:
    """The room of a dotted name inside the package."""
    first = name.split(".")[1] if name.count(".") else "__init__"
    if first in (*TOOLS, "__init__", "__version__"):
        return "tools"
    return "core" if first in CORE else first


def file_of(name: str) -> str:
    """The module that a dotted name lies in: itself, or the longest part of it that is a file."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        path = ROOT.joinpath(*parts[:length])
        if path.with_suffix(".py").is_file():
            return ".".join(parts[:length])
        if (path / "__init__.py").is_file():
            return ".".join([*parts[:length], "__init__"])
    return name


def imports(source: str, module: str) -> Iterator[tuple[str, str]]:
    """Absolute names of everything of the package that a source imports, with the function it does so in."""
    yield from ((name, function) for name, function in _walk(ast.parse(source), module, "") if is_ours(name))


def is_ours(name: str) -> bool:
    return name == "latentpde" or name.startswith("latentpde.")


def _walk(node: ast.AST, module: str, function: str) -> Iterator[tuple[str, str]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import):
            yield from ((alias.name, function) for alias in child.names)
        elif isinstance(child, ast.ImportFrom):
            base = module.split(".")[: -child.level] if child.level else []
            base += [child.module] if child.module else []
            yield from ((".".join([*base, alias.name]), function) for alias in child.names)
        elif isinstance(child, ast.Call) and ast.unparse(child.func).endswith("import_module"):
            yield from ((argument.value, function) for argument in child.args if isinstance(argument, ast.Constant))
        inside = child.name if isinstance(child, ast.FunctionDef) else function
        yield from _walk(child, module, inside)


def module_name(path: Path) -> str:
    """Dotted name, with ``.__init__`` kept so that one leading dot always strips one part."""
    return ".".join(path.relative_to(ROOT).with_suffix("").parts)
