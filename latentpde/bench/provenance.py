"""Where a recorded line comes from: the code that made it, and the machine that it ran on.

A version number alone does not tell a line from before a change of the solver from one after it. So the version that a
line is recorded under ends in a hash of the code that its scores depend on. A line of one method leaves out what only
other methods run, so lines of a filter stay good while another method's search is worked on. The hash needs no git, so
it is there in an installed package too, and it leaves comments, docstrings and layout out of account, so it changes
with the code alone.
"""

from __future__ import annotations

import ast
import hashlib
import os
import platform
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import torch

import latentpde

PACKAGE = Path(latentpde.__file__).parent
#: Parts of the package that no score passes through; of `latentpde.bench` only what solves and measures counts.
_ASIDE = ("__init__.py", "cli", "demo.py", "report", "training", "scheduling", "inspection", "web", "bench")
_OF_BENCH = ("bench/solving.py", "bench/measurements.py")
#: What one method alone runs. No method asks a question; studies may run all of it.
_OF_ONE_METHOD = {
    "estimators/exact/": "exact",
    "estimators/pinn/": "pinn",
    "estimators/fundps/": "fundps",
    "estimators/kriging.py": "kriging",
    "questions/": None,
}


@cache
def code_version(method: str | None = None) -> str:
    """The version of the package with a hash of its code, such as ``0.1.0+3f9a0c12de``; worked out once a process.

    The hash covers every Python file that can change a score, and the manifests of the networks that the package
    ships, which hold the hashes of their weights. Options are not part of it, because every line names its own.

    Args:
        method: the one whose scores they are; None where it may be any of them, as in a study of its own.

    Example:
        >>> code_version().startswith(latentpde.__version__ + "+")
        True
        >>> code_version("exact") == code_version("kriging")
        False
    """
    digest = hashlib.sha256()
    for path in _files(method):
        digest.update(path.relative_to(PACKAGE).as_posix().encode() + b"\0")
        digest.update(_code(path.read_text()).encode() if path.suffix == ".py" else path.read_bytes())
    return f"{latentpde.__version__}+{digest.hexdigest()[:10]}"


def _files(method: str | None) -> Iterator[Path]:
    others = tuple(place for place, owner in _OF_ONE_METHOD.items() if method is not None and owner != method)
    for path in sorted(PACKAGE.rglob("*.py")):
        inside = path.relative_to(PACKAGE)
        place = inside.as_posix()
        if (inside.parts[0] not in _ASIDE or place in _OF_BENCH) and not place.startswith(others):
            yield path
    yield from sorted((PACKAGE / "nn" / "trained").glob("*.json"))


def _code(source: str) -> str:
    """Source code without comments, docstrings and layout."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        documented = isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        if documented and ast.get_docstring(node, clean=False) is not None:
            node.body = node.body[1:]
    return ast.unparse(tree)


def describe_version(version: str) -> str:
    """A recorded version in words; one without a hash does not say which code it was.

    Example:
        >>> describe_version("0.1.0+3f9a0c12de")
        '0.1.0+3f9a0c12de'
        >>> describe_version("0.1.0")
        '0.1.0, code unknown'
    """
    return version if "+" in version else f"{version}, code unknown"


@cache
def hardware() -> str:
    """Cores and processor, as far as the system tells."""
    name = platform.processor() or platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        name = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), name)
    except OSError:
        pass
    return f"{os.cpu_count()} x {name}"


def provenance(method: str | None = None) -> dict[str, Any]:
    """What every recorded line says of where it was made: ``version``, ``hardware`` and ``threads`` of torch.

    Args:
        method: the one that made it, as `code_version` has it.
    """
    return {"version": code_version(method), "hardware": hardware(), "threads": torch.get_num_threads()}
