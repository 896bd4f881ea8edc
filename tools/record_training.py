"""Record how far a training has come: its learning curves, to results/training/NAME.json.

    python tools/record_training.py runs/advection_diffusion-paper [--output results/training]

A stage has a line for each epoch that was recorded: training loss, validation loss and the parts of it. Curves of many
epochs are thinned to a hundred points or so, the last always among them.
"""

import argparse
import json
from pathlib import Path

from latentpde.training.config import STAGES, load_config

ROOT = Path(__file__).resolve().parents[1]
MOST_POINTS = 100


def record(folder: Path) -> dict:
    """Where each stage of a training stands: epochs done and wanted, hours, and its learning curve."""
    config = load_config(folder.name)
    found = {}
    for stage in STAGES:
        path = folder / stage / "log.jsonl"
        if not path.exists():
            continue
        rows = [json.loads(line) for line in path.read_text().splitlines() if line.endswith("}")]
        if not rows:
            continue
        every = -(-len(rows) // MOST_POINTS)
        kept = rows[every - 1 :: every]
        kept += rows[-1:] if kept[-1] is not rows[-1] else []
        found[stage] = {
            "epochs": rows[-1]["epoch"],
            "epochs_wanted": getattr(config, stage).epochs,
            "hours": round(sum(row["seconds"] for row in rows) / 3600, 2),
            "curve": [rounded({name: value for name, value in row.items() if name != "seconds"}) for row in kept],
        }
    return found


def rounded(row: dict) -> dict:
    """The same with four digits of each number."""
    return {
        name: rounded(value) if isinstance(value, dict) else float(f"{value:.4g}") if name != "epoch" else value
        for name, value in row.items()
    }


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="of a training, named like its shipped configuration")
    parser.add_argument("--output", type=Path, default=ROOT / "results" / "training", help="folder of the record")
    given = parser.parse_args(arguments)
    given.output.mkdir(parents=True, exist_ok=True)
    stages = record(given.folder)
    lines = []
    for stage, values in stages.items():
        curve = ",\n    ".join(json.dumps(point) for point in values.pop("curve"))
        lines.append(f'  "{stage}": {json.dumps(values)[:-1]}, "curve": [\n    {curve}]}}')
    (given.output / f"{given.folder.name}.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
