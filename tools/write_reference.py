"""Write the tables of docs/api.md, which say in a line what each name of the reference is: `make results`.

    python tools/write_reference.py [--check]      # --check changes nothing and says whether the tables are stale

Sphinx fills the blocks of the page with docstrings. In the repository nobody sees these, so a table of names, arguments
and first sentences stands before each block.
"""

import argparse
import inspect
import pydoc
import re
import sys
from pathlib import Path

PAGE = Path(__file__).parents[1] / "docs" / "api.md"
TABLE = re.compile(
    r"(?:\| name \| what it is \|\n(?:\|[^\n]*\n)+\n)?(?P<block>```\{eval-rst\}\n(?P<names>.*?)```)", re.DOTALL
)


def filled(text: str) -> str:
    """The page with its tables as they should be.

    >>> block = "```{eval-rst}\\n.. autofunction:: pydoc.locate\\n```\\n"
    >>> print(filled(block).splitlines()[2])
    | `pydoc.locate(path, ...)` | Locate an object by name or dotted path, importing as necessary. |
    """

    def with_table(found: re.Match) -> str:
        rows = []
        for kind, name, options in re.findall(r"\.\. auto(\w+):: (\S+)\n((?:   :.*\n)*)", found["names"]):
            members = re.search(":members: (.+)", options)
            rows += [row(name, shortened(name))] if kind != "module" else []
            for member in members[1].split(",") if members else []:
                own = name.rpartition(".")[2] if kind != "module" else shortened(name)
                rows += [row(f"{name}.{member.strip()}", f"{own}.{member.strip()}")]
        rows = [one for one in rows if one]
        if not rows:
            return found["block"]
        return "\n".join(["| name | what it is |", "|---|---|", *rows, "", found["block"]])

    return TABLE.sub(with_table, text)


def row(name: str, shown: str) -> str:
    """What is shown for a name, with its arguments, and the first sentence of its docstring; nothing without one."""
    thing = pydoc.locate(name)
    sentence = first_sentence(inspect.getdoc(thing) or "")
    return f"| `{shown}{arguments(thing)}` | {sentence} |" if sentence else ""


def shortened(name: str) -> str:
    """As people call it: ``lp.read``, and a room's own by the room."""
    return name.replace("latentpde.", "lp.", 1) if name.count(".") == 1 else name.removeprefix("latentpde.")


def first_sentence(text: str) -> str:
    """Of a docstring, in Markdown and on one line.

    >>> first_sentence("Takes ``x`` and :math:`y`, as `f` does. More.")
    'Takes `x` and y, as `f` does.'
    """
    paragraph = " ".join(text.split("\n\n")[0].split())
    paragraph = re.sub(r":math:`([^`]*)`", r"\1", paragraph).replace("``", "`").replace("|", "\\|")
    return re.split(r"(?<=[.!?])\s", paragraph)[0]


def arguments(thing: object) -> str:
    """Those that have to be given, with dots for all others; nothing for what is not called, or is made by others."""
    if inspect.isclass(thing) or not callable(thing):
        return ""
    parameters = [p for p in inspect.signature(thing).parameters.values() if p.name not in ("self", "cls")]
    needed = [p.name for p in parameters if p.default is p.empty and p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)]
    return f"({', '.join([*needed, *(['...'] if len(needed) < len(parameters) else [])])})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="change nothing, and fail where the tables are stale")
    check = parser.parse_args().check
    text = PAGE.read_text(encoding="utf-8")
    if filled(text) == text:
        return
    if check:
        sys.exit("the tables of docs/api.md are stale: run `make results`")
    PAGE.write_text(filled(text), encoding="utf-8")


if __name__ == "__main__":
    main()
