"""Chunks of a Zarr array, looked at before a codec unpacks them: see `latentpde.io.packed`."""

from __future__ import annotations

import json
import math
import struct
from pathlib import Path
from typing import Any

import numpy as np

from latentpde.io.packed import check_packed

_DESCRIPTIONS = ("zarr.json", ".zarray", ".zattrs", ".zgroup", ".zmetadata")
_TEXT = 256  # bytes that an entry of text is taken to have
_NO_CHUNK = 2**64 - 1


def check_chunks(folder: Path) -> None:
    """Raise `DataError` where a chunk of an array would unpack to far more than its description says.

    Args:
        folder: of the array, which was looked through; nothing is checked where it holds none.
    """
    for name in (".zarray", "zarr.json"):
        if (folder / name).is_file():
            described = json.loads((folder / name).read_bytes())
            break
    else:
        return
    if not isinstance(described, dict) or "shape" not in described:
        return
    shape, codecs, item = _chunks(described), _codecs(described), _item_size(described)
    for path in folder.rglob("*"):
        if path.is_file() and path.name not in _DESCRIPTIONS:
            _check(path.read_bytes(), codecs, shape, item, path)


def _check(content: bytes, codecs: list[dict[str, Any]], shape: list[int], item: int, path: Path) -> None:
    """Check the outermost codec that packs; of a shard, each of its inner chunks."""
    for codec in reversed(codecs):
        name = str(codec.get("id", codec.get("name", ""))).lower()
        if name == "crc32c":
            content = content[:-4]
        elif name == "sharding_indexed":
            return _check_shard(content, codec.get("configuration"), shape, item, path)
        else:
            return check_packed(content, name, math.prod(shape) * item, path)


def _check_shard(content: bytes, said: Any, shape: list[int], item: int, path: Path) -> None:
    """A shard is a row of chunks with an index, offset and size of each, at its end or its start."""
    inner = said.get("chunk_shape") if isinstance(said, dict) else None
    if not isinstance(inner, list) or len(inner) != len(shape) or not all(isinstance(n, int) and n > 0 for n in inner):
        return  # the library refuses it
    num = math.prod(-(-whole // part) for whole, part in zip(shape, inner, strict=True))
    has_sum = any(isinstance(c, dict) and c.get("name") == "crc32c" for c in said.get("index_codecs") or [])
    start = 0 if said.get("index_location") == "start" else len(content) - 16 * num - 4 * has_sum
    codecs = [codec for codec in said.get("codecs") or [] if isinstance(codec, dict)]
    if start >= 0 and start + 16 * num <= len(content):
        for offset, size in struct.iter_unpack("<QQ", content[start : start + 16 * num]):
            if offset != _NO_CHUNK:
                _check(content[offset : offset + size], codecs, inner, item, path)


def _chunks(described: dict[str, Any]) -> list[int]:
    grid = described.get("chunk_grid")
    inside = grid.get("configuration") if isinstance(grid, dict) else None
    found = (inside.get("chunk_shape") if isinstance(inside, dict) else None) or described.get("chunks")
    return [int(n) for n in (found if isinstance(found, list) else described["shape"])]


def _codecs(described: dict[str, Any]) -> list[dict[str, Any]]:
    found = described.get("codecs") or [described.get("compressor")]
    return [codec for codec in found if isinstance(codec, dict)]


def _item_size(described: dict[str, Any]) -> int:
    try:
        kind = np.dtype(described.get("dtype") or described.get("data_type"))
    except TypeError:
        return _TEXT
    return _TEXT if kind.kind == "O" else max(kind.itemsize, 1)
