"""Write the numbers of README.md and docs/*.md that come from results/: `make results`.

    python tools/write_results.py [--check]      # --check changes nothing and says which numbers are stale

A number stands between two comments, which Markdown does not show: one that names where it comes from, and an end::

    The error is <!--r table1/klein/exact/RMSE-->0.0496<!--/r--> on Klein-Gordon.

What it names is one of these:

- ``TABLE/TITLE/ROW/COLUMN``, a cell of ``results/tables/TABLE.json``: in the first table whose title begins with TITLE
  (empty for the first of all). An error behind the number is left out. ``COLUMN paper`` is the column headed "paper"
  behind a COLUMN.
- ``FILE.json/KEY/KEY``, an entry of ``results/FILE.json``; a place in a list is a number.
- a name in `tools/results_text.py`, for what takes more than looking up: ratios, ranges, whole tables.

Behind a bar it may say how the number is written, as Python's `format` does; with a percent sign it is multiplied by
100 first: ``calibration//exact/90 %|.1f%`` is 89.6. A comment must not begin a line: Markdown takes the rest of such a
line for HTML.
"""

import argparse
import re
import sys
from pathlib import Path

from results_lookup import ROOT, cell, number_in, read_json
from results_text import TEXTS

MARK = re.compile(r"<!--r (?P<name>.+?)-->(?P<text>.*?)<!--/r-->", re.DOTALL)


def written(name: str) -> str:
    """What stands between the comments of a name."""
    if name in TEXTS:
        return TEXTS[name]()
    address, _, spec = name.partition("|")
    if ".json/" in address:
        file, _, keys = address.partition(".json/")
        entry = read_json(ROOT / "results" / f"{file}.json")
        for key in keys.split("/"):
            entry = entry[int(key) if isinstance(entry, list) else key]
        text = str(entry)
    elif address.count("/") >= 3:
        text = number_in(cell(*address.split("/", 3)))
    else:
        raise KeyError("it is neither a cell, TABLE/TITLE/ROW/COLUMN, nor FILE.json/KEY, nor a name in results_text.py")
    if not spec:
        return text
    return format((100 if spec.endswith("%") else 1) * float(text), spec.rstrip("%"))


def updated(page: str) -> str:
    """A page with every marked number as results/ has it."""

    def replace(match: re.Match) -> str:
        try:
            return f"<!--r {match['name']}-->{written(match['name'])}<!--/r-->"
        except (KeyError, IndexError, ValueError) as error:
            raise KeyError(f"cannot write {match['name']!r}: {error.args[0]}") from error

    if re.search(r"^[ >*-]*<!--/?r", re.sub(r"^<!--r [a-z-]+-->\n.*?^<!--/r-->$", "", page, flags=re.M | re.S), re.M):
        raise KeyError("a comment of a number begins a line; Markdown would take the rest of the line for HTML")
    if page.count("<!--r ") != page.count("<!--/r-->") or page.count("<!--r ") != len(MARK.findall(page)):
        raise KeyError("a comment of a number has no end, or an end no beginning")
    return MARK.sub(replace, page)


def pages() -> list[Path]:
    """Every page that may hold numbers."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="change nothing; exit 1 where a number is stale")
    check = parser.parse_args().check
    stale = []
    for path in pages():
        old, name = path.read_text(encoding="utf-8"), path.relative_to(ROOT)
        try:
            new = updated(old)
        except KeyError as error:
            sys.exit(f"{name}: {error.args[0]}")
        if new == old:
            continue
        if not check:
            path.write_text(new, encoding="utf-8")
            print(f"{name} was stale")
        pairs = zip(MARK.finditer(old), MARK.finditer(new), strict=True)
        stale += [
            f"  {name}: {a['name']}: {a['text']!r}, now {b['text']!r}" for a, b in pairs if a["text"] != b["text"]
        ]
    if check and stale:
        sys.exit("\n".join(["some numbers are not those of results/; run `make results`:", *stale]))


if __name__ == "__main__":
    main()
