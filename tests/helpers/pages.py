"""Runs the code of a documentation page, block by block, as a reader of the page would.

Blocks of ``python`` share one namespace, blocks of ``sh`` run the real program, and all of them work in the current
folder, so that a block finds the files that earlier ones wrote. A block of ``text`` right after one that ran is what
that one prints, or the end of it; ``...`` in it stands for anything. If it begins with ``error:``, the commands before
it must fail with that message. A block that must not run has a reason in the line before it::

    <!-- not run: trains for an hour -->

By hand, in an empty folder: ``python tests/helpers/pages.py docs/guide.md``.
"""

import contextlib
import io
import os
import re
import subprocess
import sys
import tempfile
import tomllib
from dataclasses import dataclass
from doctest import ELLIPSIS, NORMALIZE_WHITESPACE, OutputChecker
from itertools import pairwise
from pathlib import Path
from textwrap import dedent

ROOT = Path(__file__).parents[2]
_FENCE = re.compile(r"^ *```(\S*)")
_REASON = re.compile(r"^ *<!-- not run: (.+) -->$")


@dataclass(frozen=True)
class Block:
    """A fenced block; ``line`` counts from 1 and is the fence's own."""

    language: str
    text: str
    line: int
    reason: str | None = None


def blocks(page: str) -> list[Block]:
    """The fenced blocks of a page in Markdown, directives such as figures among them."""
    found, lines, start = [], page.splitlines(), None
    for number, line in enumerate(lines):
        if not (fence := _FENCE.match(line)):
            continue
        if start is None:
            start, language = number, fence[1]
            continue
        before = next((earlier for earlier in reversed(lines[:start]) if earlier.strip()), "")
        reason = _REASON.match(before)
        text = dedent("\n".join(lines[start + 1 : number])) + "\n"
        found.append(Block(language, text, start + 1, reason[1] if reason else None))
        start = None
    return found


def run(path: Path) -> None:
    """Run all blocks of a page; the first that fails ends it with a message that says where."""
    namespace = {"__name__": "__main__"}
    all_blocks = blocks(path.read_text())
    printed: tuple[str, ...] = ()
    for block, following in pairwise([*all_blocks, Block("", "", 0)]):
        where = f"{path}, line {block.line}"
        before, printed = printed, ()
        if block.reason or block.language.startswith("{"):
            continue
        if block.language == "python":
            with contextlib.redirect_stdout(io.StringIO()) as out:
                exec(compile("\n" * block.line + block.text, str(path), "exec"), namespace)
            printed = (out.getvalue(),)
        elif block.language == "sh":
            done = subprocess.run(["bash", "-euc", block.text], capture_output=True, text=True, check=False)
            must_fail = following.language == "text" and following.text.startswith("error:")
            if bool(done.returncode) != must_fail:
                sys.exit(f"{where}: exit code {done.returncode}\n{block.text}\n{done.stdout}\n{done.stderr}")
            printed = (done.stdout, done.stderr)
        elif block.language == "text":
            if before and not any(
                _matches(wanted, one) for one in before for wanted in (block.text, f"...\n{block.text}")
            ):
                sys.exit(f"{where}: the page says\n{block.text}\nbut what is printed is\n{''.join(before)}")
        elif block.language == "toml":
            tomllib.loads(block.text)
        else:
            sys.exit(f"{where}: a block needs a language, python, sh, text or toml; it has {block.language!r}")


def _matches(wanted: str, printed: str) -> bool:
    return OutputChecker().check_output(wanted, printed, ELLIPSIS | NORMALIZE_WHITESPACE)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "latentpde"
        program.write_text(f'#!/bin/sh\nexec {sys.executable} -c "from latentpde.cli import main; main()" "$@"\n')
        program.chmod(0o755)
        os.environ["PATH"] = f"{folder}{os.pathsep}{os.environ['PATH']}"
        os.environ["PYTHONPATH"] = str(ROOT)
        sys.path.insert(0, str(ROOT))
        run(Path(sys.argv[1]))


if __name__ == "__main__":
    main()
