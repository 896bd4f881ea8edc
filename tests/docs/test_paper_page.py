"""The audit of the paper: every file and name that docs/paper.md says a part is in, is there."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "paper.md").read_text()
PARTS = [
    [cell.strip() for cell in line.strip("|").split(" | ")]
    for line in PAGE.split("## The paper, part by part")[1].splitlines()
    if line.startswith("| ") and not line.startswith(("| part", "|---"))
]


def names_in(path: Path) -> set[str]:
    """Names that a Python file defines: classes, functions, and what is assigned."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            found.add(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found |= {target.id for target in targets if isinstance(target, ast.Name)}
    return found


def test_the_audit_is_whole():
    assert len(PARTS) > 45
    assert all(len(cells) == 3 for cells in PARTS)
    verdicts = [cells[2] for cells in PARTS]
    assert all(re.match(r"as published|as derived|differs|drawn|from its own", text) for text in verdicts)


@pytest.mark.parametrize("cells", PARTS, ids=lambda cells: cells[0][:40])
def test_the_files_and_names_of_a_part_are_there(cells):
    words = re.findall(r"`([^`]+)`", cells[1])
    files = [word for word in words if "/" in word]
    assert files
    for file in files:
        assert (ROOT / file).is_file(), file
    known = set().union(*(names_in(ROOT / file) for file in files if file.endswith(".py")))
    missing = [word for word in words if "/" not in word and word not in known]
    assert not missing, f"{', '.join(missing)} not in {', '.join(files)}"
