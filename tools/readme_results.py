"""Write the README's table of results and its figure from what results/ holds: `make results`.

python tools/readme_results.py [--check]      # --check only says whether they are stale
"""

import argparse
import json
import sys
import textwrap
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
README, BEGIN, END = ROOT / "README.md", "<!-- results:begin -->", "<!-- results:end -->"
FAMILIES = {"advection-diffusion": "advection-diffusion", "klein-gordon": "Klein-Gordon", "helmholtz": "Helmholtz"}


def block() -> str:
    """What stands between the markers."""
    tables = json.loads((ROOT / "results/tables/table1.json").read_text())["tables"]
    by_family = {table["title"].split(",")[0]: table for table in tables}
    methods = [row[0] for row in tables[0]["rows"]]
    lines = ["| method | " + " | ".join(FAMILIES.values()) + " | seconds per case |", "|---|" + "---:|" * 4]
    for method in methods:
        cells, seconds = [], []
        for family in FAMILIES:
            found = [row for row in by_family[family]["rows"] if row[0] == method]
            if not found or found[0][1] == "-":
                cells.append("-")
                continue
            printed = "" if found[0][2] == "-" else f" ({found[0][2]})"
            cells.append(found[0][1].split(" ±")[0] + printed)
            seconds.append(float(found[0][7]))
        if seconds:
            name = f"`{method}`" + _fewer(method, by_family)
            lines.append(f"| {name} | " + " | ".join(cells) + f" | {min(seconds):.2g} to {max(seconds):.2g} |")
    exact = json.loads((ROOT / "results/exact.json").read_text())
    scores = [exact["scores"][regime]["all"] for regime in exact["scores"]]
    ninety = [100 * s["coverage90"] for s in scores]
    before = (
        "Error (RMSE at 128 x 128) from 5 % of a 32 x 32 grid with noise 0.15, on the masks that the paper evaluates "
        "with; in brackets what the paper prints. `3dvar`, `enkf` and `pinn` are given the fine initial state, as "
        "there, the others the coarse one. `latentpde` is the learned branch that validation chose for each regime, "
        "as in the paper; rows in `-paper` are a method as the paper has it, where ours differs. Times are in "
        "batches, on two cores; the paper's methods take 2 to 91 s on a GPU."
    )
    after = (
        f"The 90 % intervals of `exact` cover {min(ninety):.1f} to {max(ninety):.1f} % of the field, regime by regime "
        f"({sum(s['num'] for s in scores):,} cases). More in [docs/benchmarks.md](docs/benchmarks.md); `make results` "
        "writes this section from `results/`."
    )
    figure = "![RMSE of each method in each family, beside the paper's](results/figures/table1.png)"
    parts = [
        BEGIN + "\n" + textwrap.fill(before, 120),
        "\n".join(lines),
        figure,
        textwrap.fill(after, 120) + "\n" + END,
    ]
    return "\n\n".join(parts)


def _fewer(method: str, by_family: dict) -> str:
    """How many cases a method had in all, where others had more."""
    counts: dict[str, int] = {}
    for table in by_family.values():
        for row in table["rows"]:
            counts[row[0]] = counts.get(row[0], 0) + int(row[8].split(",")[0])
    return "" if counts[method] == max(counts.values()) else f" ({counts[method]} cases)"


def updated(text: str) -> str:
    start, end = text.index(BEGIN), text.index(END) + len(END)
    return text[:start] + block() + text[end:]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="change nothing; exit 1 where the README is stale")
    check = parser.parse_args().check
    old = README.read_text()
    new = updated(old)
    if check and new != old:
        sys.exit("the README's results are stale; run `make results`")
    if not check:
        README.write_text(new)
