"""Tensors on disk: safetensors with JSON inside them, never pickle, and never half a file."""

from __future__ import annotations

from pathlib import Path

from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from latentpde.errors import DataError, UsageError
from latentpde.io.files import write_bytes


def write_tensors(path: Path, tensors: dict[str, Tensor], metadata: dict[str, str] | None = None) -> None:
    """Write tensors by name, and strings beside them.

    >>> import tempfile, torch
    >>> path = Path(tempfile.mkdtemp()) / "weights.safetensors"
    >>> write_tensors(path, {"bias": torch.zeros(3)}, {"family": "helmholtz"})
    >>> read_tensors(path)
    ({'bias': tensor([0., 0., 0.])}, {'family': 'helmholtz'})
    """
    write_bytes(path, save({name: t.detach().cpu().contiguous() for name, t in tensors.items()}, metadata))


def read_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Read what `write_tensors` wrote: tensors by name, and the strings beside them."""
    if not path.exists():
        raise UsageError(f"there is no file {path}")
    try:
        with safe_open(path, framework="pt") as file:
            return {name: file.get_tensor(name) for name in file.keys()}, file.metadata() or {}  # noqa: SIM118
    except (SafetensorError, OSError) as error:
        raise DataError(f"cannot read {path}: {error}; it may be truncated or damaged") from error
