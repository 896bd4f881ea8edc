"""What figures show of one case, kept in a file of its own."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from zipfile import BadZipFile

import numpy as np
from jaxtyping import Float

from latentpde.io.files import atomic_path


@dataclass(frozen=True, eq=False)
class Picture:
    """The fields of one case that figures show.

    Args:
        mean: of the posterior.
        std: of the posterior, where figures show it.
        draws: a few posterior draws, likewise.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     Picture(np.zeros((2, 3))).save(Path(folder) / "case.npz")
        ...     Picture.load(Path(folder) / "case.npz").mean.shape
        (2, 3)
    """

    mean: Float[np.ndarray, "y x"]
    std: Float[np.ndarray, "y x"] | None = None
    draws: Float[np.ndarray, "draw y x"] | None = None

    def save(self, path: Path) -> None:
        """Write it in single precision, whole or not at all; the folder is made where there is none."""
        path.parent.mkdir(parents=True, exist_ok=True)
        arrays = {name: value.astype(np.float32) for name, value in vars(self).items() if value is not None}
        with atomic_path(path) as temporary, temporary.open("wb") as file:
            np.savez_compressed(file, **arrays)

    @classmethod
    def load(cls, path: Path) -> Picture | None:
        """Read one; None where there is none, or a damaged one."""
        try:
            with np.load(path) as arrays:
                return cls(**{name: values.astype(float) for name, values in arrays.items()})
        except (OSError, ValueError, TypeError, EOFError, BadZipFile):
            return None
