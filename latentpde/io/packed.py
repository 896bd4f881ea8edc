"""Compressed pieces of files that unpack to far more than their file says.

A chunk of a store or of an HDF5 file says how large it is only when it is unpacked: a megabyte of deflated zeros
becomes a gigabyte. So what a chunk claims is looked at first, and where it claims nothing it is unpacked bit by bit,
into nothing, as far as it may go.
"""

from __future__ import annotations

import bz2
import lzma
import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from latentpde.errors import DataError

SLACK = 2**26  # bytes that a chunk may hold beyond what it should: such a one does no harm
_BLOCK = 2**17  # the most that a block of Zstandard holds
_DEFLATE = 1032  # the most that a byte of deflate stands for
_PIECE = 2**20


def check_packed(content: bytes, codec: str, expected: int, where: str | Path) -> None:
    """Raise `DataError` where a chunk would unpack to far more than it should; one that is damaged otherwise is left to
    its codec.

    >>> check_packed(zlib.compress(bytes(1000)), "zlib", 1000, "a.zarr/t2m/0.0")
    >>> check_packed(b"\\2\\1\\x21\\4" + struct.pack("<I", 2**31), "blosc", 1000, "a.zarr/t2m/0.0")
    Traceback (most recent call last):
    latentpde.errors.DataError: a.zarr/t2m/0.0 unpacks to 2,147,483,648 bytes or more, where 1,000 belong; ...

    Args:
        content: of the chunk, as it is stored.
        codec: that packed it, by its name in Zarr; others than those known here say their own size.
        expected: bytes that it should hold.
        where: it is, for the message.
    """
    if codec in ("gzip", "zlib") and len(content) * _DEFLATE <= SLACK:
        return
    size = _SIZES.get(codec)
    claimed = 0 if size is None else size(content, expected + SLACK)
    if claimed > expected + SLACK:
        raise DataError(
            f"{where} unpacks to {claimed:,} bytes or more, where {expected:,} belong; it is damaged, or meant to do "
            "harm"
        )


def _unpacked(start: Callable[[], Any]) -> Callable[[bytes, int], int]:
    def size(content: bytes, most: int) -> int:
        """What comes out, counted until it is too much; streams may follow one another."""
        found, left = 0, content
        try:
            while left and found <= most:
                stream = start()
                while not stream.eof and found <= most:
                    piece = stream.decompress(left, _PIECE)
                    left = getattr(stream, "unconsumed_tail", b"")
                    found += len(piece)
                    if not piece and not left:
                        return found
                left = stream.unused_data
        except (zlib.error, OSError, lzma.LZMAError, EOFError, ValueError):
            pass  # damaged: the codec says so itself
        return found

    return size


def _of_header(content: bytes, offset: int) -> int:
    return struct.unpack_from("<I", content, offset)[0] if len(content) >= offset + 4 else 0


def _zstd(content: bytes, most: int) -> int:
    """What frames of Zstandard (RFC 8878) say of their size, or where they do not, the most that their blocks hold."""
    found, place = 0, 0
    while place + 5 <= len(content) and found <= most:
        magic = content[place : place + 4]
        if magic[1:] == b"\x2a\x4d\x18" and magic[0] & 0xF0 == 0x50:  # skippable
            place += 8 + _of_header(content, place + 4)
            continue
        if magic != b"\x28\xb5\x2f\xfd":
            return found
        flags = content[place + 4]
        single, width = flags >> 5 & 1, (0, 2, 4, 8)[flags >> 6] or (1 if flags >> 5 & 1 else 0)
        place += 5 + (not single) + (0, 1, 2, 4)[flags & 3]
        stated = int.from_bytes(content[place : place + width], "little") + (256 if width == 2 else 0)
        place, last, held = place + width, False, 0
        while not last and place + 3 <= len(content):
            head = int.from_bytes(content[place : place + 3], "little")
            last, kind, size = bool(head & 1), head >> 1 & 3, head >> 3
            held += _BLOCK if kind == 2 else size
            place += 3 + (1 if kind == 1 else size)
        found += stated if width else held
        place += 4 * (flags >> 2 & 1)
    return found


_SIZES: dict[str, Callable[[bytes, int], int]] = {
    "gzip": _unpacked(lambda: zlib.decompressobj(47)),  # gzip or zlib, by what it begins with
    "zlib": _unpacked(lambda: zlib.decompressobj(47)),
    "bz2": _unpacked(bz2.BZ2Decompressor),
    "lzma": _unpacked(lambda: lzma.LZMADecompressor(memlimit=2**28)),
    "zstd": _zstd,
    "blosc": lambda content, most: _of_header(content, 4),
    "lz4": lambda content, most: _of_header(content, 0),
}
