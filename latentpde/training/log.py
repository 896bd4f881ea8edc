"""What happened in each epoch: a line of JSON each, and a figure at the end."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from latentpde.errors import DataError
from latentpde.io.files import write_bytes


class TrainingLog:
    """The log of one stage.

    Args:
        path: of the JSONL file; lines of epochs after ``epoch``, which a resumed run does again, are dropped.
        epoch: epochs done.
        write: false in processes that leave it to another.
    """

    def __init__(self, path: Path, epoch: int, *, write: bool = True):
        self._path = path
        self.rows: list[dict[str, Any]] = []
        if path.exists():
            lines = [json.loads(line) for line in path.read_text().splitlines() if line.endswith("}")]
            self.rows = [row for row in lines if row["epoch"] <= epoch]
        if write:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_bytes(path, "".join(json.dumps(row) + "\n" for row in self.rows).encode())

    def add(self, epoch: int, losses: dict[str, float], validation: dict[str, float], seconds: float) -> None:
        row = {"epoch": epoch, **losses, "validation": validation, "seconds": round(seconds, 3)}
        self.rows.append(row)
        try:
            with self._path.open("a") as file:
                file.write(json.dumps(row) + "\n")
        except OSError as error:
            raise DataError(
                f"cannot write {self._path}: {error.strerror}; checkpoints are safe. Make room, then --resume"
            ) from error

    def summary(self) -> dict[str, Any]:
        """For the record: the last epoch, and the whole time."""
        last = self.rows[-1]
        return {
            "epochs": last["epoch"],
            "losses": {name: last[name] for name in last if name not in ("epoch", "validation", "seconds")},
            "validation": last["validation"],
            "seconds": round(sum(row["seconds"] for row in self.rows)),
        }

    def draw(self, path: Path, title: str) -> None:
        """Losses over epochs as a PNG."""
        from io import BytesIO

        from matplotlib.figure import Figure

        figure = Figure(figsize=(6, 4), layout="constrained")
        axes = figure.subplots()
        epochs = [row["epoch"] for row in self.rows]
        axes.plot(epochs, [row["loss"] for row in self.rows], label="training")
        axes.plot(epochs, [row["validation"]["loss"] for row in self.rows], label="validation, evaluation masks")
        axes.set(xlabel="epoch", ylabel="loss", title=title, yscale="log")
        axes.legend()
        content = BytesIO()
        figure.savefig(content, format="png", dpi=120)
        write_bytes(path, content.getvalue())
