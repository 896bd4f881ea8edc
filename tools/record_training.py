"""Record how far a training has come: its learning curves, to results/training/NAME.json.

    python tools/record_training.py runs/advection_diffusion-paper [--output results/training]

A stage has a line for each epoch that was recorded: training loss, validation loss and the parts of it. Curves of many
epochs are thinned to a hundred points or so, the last always among them. Where the training's cases and MAP estimates
are there, what the encoder's loss is for other answers to the same validation readings stands beside the encoder's own:
for zero, for MAP estimates, and for the simulator's latents.
"""

import argparse
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from latentpde.training.config import STAGES, TrainingConfig, load_config
from latentpde.training.data import load_or_simulate
from latentpde.training.map_targets import map_targets
from latentpde.training.tasks import EncoderTask

ROOT = Path(__file__).resolve().parents[1]
MOST_POINTS = 100


def record(folder: Path) -> dict:
    """Where each stage of a training stands: epochs done and wanted, hours, and its learning curve."""
    config = load_config(folder.name).model_copy(update={"output": str(folder)})
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
    if "encoder" in found and (folder / "map-validation").is_dir():
        found["encoder"]["losses_of"] = rounded(losses_of_answers(config, folder))
    return found


def losses_of_answers(config: TrainingConfig, folder: Path) -> dict[str, float]:
    """The encoder's loss on the validation cases, were its answer zero, the MAP estimate, or the simulator's latent."""
    assert config.encoder is not None
    assert config.denoiser_map is not None
    sets = load_or_simulate(config, "validation", make=False)
    once = config.denoiser_map.model_copy(update={"map_reading_sets": 1})
    estimates = map_targets(folder / "map-validation", once, sets)
    task = EncoderTask(torch.device("cpu"), config.size.num_probes, config.encoder)
    losses: dict[str, list[torch.Tensor]] = {"zero": [], "map": [], "simulator": []}
    for data in sets:
        indices = np.arange(len(data))
        of_map, own = estimates(data, indices, data.read(indices, 0), 0), data.units.from_latent(data.z.double())
        for name, z in (("zero", torch.zeros_like(own)), ("map", of_map), ("simulator", own)):
            losses[name].append(task.losses(_always(z), data, indices, 0)["loss"])
    return {name: float(torch.stack(parts).mean()) for name, parts in losses.items()}


def _always(answer: torch.Tensor) -> Callable[..., torch.Tensor]:
    return lambda conditions: answer


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
