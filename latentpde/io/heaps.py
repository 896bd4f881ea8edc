"""Damage that HDF5 does not survive: a heap of its file whose objects have no end.

Strings and references of an HDF5 file lie in global heaps, each a row of objects one behind the other. HDF5 goes from
object to object by their lengths, and where damage has left a piece of free space with the length zero it stays there
for ever, beyond the reach of Ctrl-C. So heaps are walked here first.
"""

from __future__ import annotations

import struct
from mmap import ACCESS_READ, mmap
from pathlib import Path

from latentpde.errors import DataError

_SIGNATURE = b"GCOL\x01\0\0\0"  # with version and padding
_LENGTH, _OBJECT = struct.Struct("<Q"), struct.Struct("<HHIQ")  # an object: index, references, padding, length


def check_heaps(path: str | Path) -> None:
    """Raise `DataError` where HDF5 would not come to the end of a global heap of the file.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "damaged.nc"
    >>> heap = _SIGNATURE + _LENGTH.pack(48) + _OBJECT.pack(1, 0, 0, 8) + bytes(8) + bytes(8)
    >>> _ = path.write_bytes(heap)
    >>> check_heaps(path)  # what is left at the end is too short for an object
    >>> _ = path.write_bytes(_SIGNATURE + _LENGTH.pack(64) + bytes(48))
    >>> check_heaps(path)
    Traceback (most recent call last):
    latentpde.errors.DataError: cannot read ...: a heap of it at byte 0 is damaged; ...

    Args:
        path: of an HDF5 file whose lengths have 8 bytes, as all have that HDF5 makes by default; not empty.
    """
    with Path(path).open("rb") as file, mmap(file.fileno(), 0, access=ACCESS_READ) as content:
        start = content.find(_SIGNATURE)
        while start >= 0:
            if not _has_an_end(content, start):
                raise DataError(
                    f"cannot read {path}: a heap of it at byte {start} is damaged; copy or download the file again"
                )
            start = content.find(_SIGNATURE, start + 1)


def _has_an_end(content: mmap, start: int) -> bool:
    """Whether the lengths of a heap's objects lead to its end; a heap that the file cuts off is left to HDF5."""
    head = start + len(_SIGNATURE) + _LENGTH.size
    if head > len(content):
        return True
    (length,) = _LENGTH.unpack_from(content, start + len(_SIGNATURE))
    place, end = head, start + length
    if end > len(content):
        return True
    while place + _OBJECT.size <= end:
        index, _, _, size = _OBJECT.unpack_from(content, place)
        step = _OBJECT.size + (size + 7) // 8 * 8 if index else size  # object 0 is free space, its head included
        if not 0 < step <= end - place:
            return False
        place += step
    return True
