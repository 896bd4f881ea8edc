"""Writing whole files: to a temporary one first, so nothing is ever half written."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from latentpde.errors import DataError, UsageError


@contextmanager
def atomic_path(path: str | Path) -> Iterator[Path]:
    """A temporary path beside ``path`` that replaces it when the block ends well, and vanishes when it does not.

    >>> folder = Path(tempfile.mkdtemp())
    >>> with atomic_path(folder / "page.html") as temporary:
    ...     _ = temporary.write_text("<p>done</p>")
    >>> [path.name for path in folder.iterdir()]
    ['page.html']
    """
    check_writable(path)
    path = Path(path).resolve()  # a link stays a link: what it points to is replaced
    with disk_errors(path):
        handle, name = tempfile.mkstemp(prefix=f".{path.name[:64]}.", suffix=".part", dir=path.parent)
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        with disk_errors(path):
            temporary.chmod(0o666 & ~_umask())
            temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def check_writable(path: str | Path) -> None:
    """Raise `UsageError` where ``path`` cannot be written, before any work is done for it."""
    target = Path(path).resolve()
    try:
        exists, is_folder, is_file = target.exists(), target.is_dir(), target.is_file()
    except OSError as error:  # a name too long, a folder that may not be entered
        raise UsageError(f"cannot write {path}: {error.strerror}; choose another name") from error
    if not target.parent.is_dir():
        raise UsageError(f"cannot write {path}: the folder {target.parent} does not exist; create it first")
    if is_folder:
        raise UsageError(f"cannot write {path}: it is a folder; name a file in it")
    if exists and not is_file:
        # renaming over a device or pipe would destroy it
        raise UsageError(f"cannot write {path}: it is a device or a pipe, and only files can be written")
    if not os.access(target.parent, os.W_OK):
        raise UsageError(f"cannot write {path}: no permission to write in {target.parent}")
    if exists and not os.access(target, os.W_OK):
        raise UsageError(f"cannot write {path}: the file is write-protected; choose another name")


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file whole or not at all; what was there before stays where it fails."""
    with atomic_path(path) as temporary:
        try:
            with temporary.open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise DataError(
                f"cannot write {path}: {error.strerror or error}; what was there before is unchanged. "
                "Make room and go on with --resume"
            ) from error


@contextmanager
def disk_errors(path: str | Path) -> Iterator[None]:
    """Turn the system's errors of writing ``path`` into a `DataError` that says what became of it."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or error
        raise DataError(f"cannot write {path}: {reason}; what was there before is unchanged") from error


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
