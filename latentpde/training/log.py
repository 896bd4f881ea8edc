"""The log of a training: a line of JSON for each epoch, and a figure at the end."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from latentpde.errors import DataError
from latentpde.io.files import write_bytes


def _row(line: bytes) -> dict[str, Any] | None:
    """A line of the log, or None where it is not a whole one, as after a full disk."""
    try:
        row = json.loads(line)
        return row if isinstance(row["epoch"], int) and {"loss", "validation", "seconds"} <= set(row) else None
    except (ValueError, TypeError, KeyError, RecursionError):
        return None


class TrainingLog:
    """Losses of each epoch of one stage, kept in a file.

    Args:
        path: the JSONL file. Where it exists, its lines are read; those of epochs after ``epoch``, which a resumed
            training does again, are dropped.
        epoch: number of epochs done.
        write: whether to write the file; false in processes that leave it to another.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     log = TrainingLog(Path(folder) / "log.jsonl", epoch=0)
        ...     log.add(1, {"loss": 0.5}, {"loss": 0.6}, seconds=2.0)
        >>> log.summary()
        {'epochs': 1, 'losses': {'loss': 0.5}, 'validation': {'loss': 0.6}, 'seconds': 2}
    """

    def __init__(self, path: Path, epoch: int, *, write: bool = True):
        self._path = path
        self.rows: list[dict[str, Any]] = []
        if path.exists():
            self.rows = [row for row in map(_row, path.read_bytes().splitlines()) if row and row["epoch"] <= epoch]
        if write:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_bytes(path, "".join(json.dumps(row) + "\n" for row in self.rows).encode())

    def add(self, epoch: int, losses: dict[str, float], validation: dict[str, float], seconds: float) -> None:
        """Add an epoch.

        Args:
            epoch: its number, from 1.
            losses: mean losses over the training cases.
            validation: mean losses over the validation cases.
            seconds: how long it took.
        """
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
        """What a manifest records: losses of the last epoch, and the seconds that all epochs took."""
        if not self.rows:  # the file was lost after the last epoch
            return {}
        last = self.rows[-1]
        return {
            "epochs": last["epoch"],
            "losses": {name: last[name] for name in last if name not in ("epoch", "validation", "seconds")},
            "validation": last["validation"],
            "seconds": round(sum(row["seconds"] for row in self.rows)),
        }

    def draw(self, path: Path, title: str) -> None:
        """Draw losses over epochs and write them as a PNG."""
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
