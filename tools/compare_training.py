"""Validation errors of networks trained again beside those of the shipped ones; writes results/retraining.json.

Train first, for example `latentpde train helmholtz-compact`, then: python tools/compare_training.py [FOLDER ...]
with the folders of such runs, by default all of runs/*-compact.
"""

import argparse
import json
from pathlib import Path

SHIPPED = Path(__file__).resolve().parents[1] / "latentpde" / "nn" / "trained"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", type=Path, help="of runs")
    parser.add_argument("--output", type=Path, default=Path("results/retraining.json"))
    arguments = parser.parse_args()
    found = {}
    for folder in arguments.folders or sorted(Path("runs").glob("*-compact")):
        for path in sorted(folder.glob("*.json")):
            if not (SHIPPED / path.name).is_file():
                continue
            again, shipped = (json.loads(p.read_text())["training"]["validation"] for p in (path, SHIPPED / path.name))
            name = "rmse" if "rmse" in shipped else "loss"
            ratio = again[name] / shipped[name]
            found[path.stem] = {"error": name, "shipped": shipped[name], "again": again[name], "ratio": ratio}
            print(f"{path.stem:36} {name} {shipped[name]:.5f} shipped, {again[name]:.5f} again, ratio {ratio:.4f}")
    if not found:
        parser.error("there are no trained networks in these folders; run latentpde train first")
    arguments.output.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
