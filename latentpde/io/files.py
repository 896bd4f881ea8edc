"""Writing whole files: to a temporary one first, so nothing is ever half written."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from latentpde.errors import DataError, UsageError


@contextmanager
def atomic_path(path: str | Path) -> Iterator[Path]:
    """A temporary path beside ``path`` that replaces it when the block ends well, and vanishes when it does not.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> with atomic_path(folder / "page.html") as temporary:
    ...     _ = temporary.write_text("<p>done</p>")
    >>> [path.name for path in folder.iterdir()]
    ['page.html']
    """
    check_writable(path)
    path = Path(os.path.realpath(path))  # a link stays a link: what it points to is replaced
    temporary = path.with_name(f".{path.name[:64]}.{secrets.token_hex(8)}.part")
    try:
        with disk_errors(path):  # only here, where an interrupt just afterwards does not leave it behind
            temporary.touch(0o600, exist_ok=False)
        yield temporary
        with disk_errors(path):
            temporary.chmod(0o666 & ~_umask())
            temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def check_writable(path: str | Path) -> None:
    """Raise `UsageError` where ``path`` cannot be written, before any work is done for it."""
    try:
        target = Path(os.path.realpath(path))
        target_mode, folder_mode = _mode(target), _mode(target.parent)
    except (OSError, ValueError) as error:  # a name too long, a folder that may not be entered, a loop of links
        raise UsageError(f"cannot write {path}: {reason(error)}; choose another name") from error
    if folder_mode is None or not stat.S_ISDIR(folder_mode):
        raise UsageError(f"cannot write {path}: the folder {target.parent} does not exist; create it first")
    if target_mode is not None and stat.S_ISDIR(target_mode):
        raise UsageError(f"cannot write {path}: it is a folder; name a file in it")
    if target_mode is not None and not stat.S_ISREG(target_mode):
        # renaming over a device or pipe would destroy it
        raise UsageError(f"cannot write {path}: it is a device or a pipe, and only files can be written")
    if not os.access(target.parent, os.W_OK):
        raise UsageError(f"cannot write {path}: no permission to write in {target.parent}")
    if target_mode is not None and not os.access(target, os.W_OK):
        raise UsageError(f"cannot write {path}: the file is write-protected; choose another name")


def check_readable(path: str | Path, what: str = "file") -> None:
    """Raise `UsageError` where there is no file ``path``, or it cannot be read; a pipe would be waited for.

    >>> check_readable("no such file.nc", "NetCDF file")
    Traceback (most recent call last):
    latentpde.errors.UsageError: there is no file no such file.nc
    """
    try:
        mode = _mode(Path(path))
    except (OSError, ValueError) as error:
        raise UsageError(f"cannot read {path}: {reason(error)}") from error
    if mode is None:
        raise UsageError(f"there is no file {path}")
    if not stat.S_ISREG(mode):
        raise UsageError(f"{path} is a {'folder' if stat.S_ISDIR(mode) else 'device or a pipe'}, not a {what}")
    try:
        Path(path).open("rb").close()
    except OSError as error:
        raise UsageError(f"cannot read {path}: {reason(error)}") from error


def make_folder(path: str | Path) -> None:
    """Make a folder where there is none, with those above it; raises `UsageError` where that cannot be done."""
    try:
        Path(path).mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:
        raise UsageError(f"cannot make the folder {path}: {reason(error)}; choose another with --output") from error


def reason(error: Exception) -> str:
    """The system's words for what went wrong, without its number and the path."""
    return getattr(error, "strerror", None) or str(error)


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
                f"cannot write {path}: {reason(error)}; what was there before is unchanged. "
                "Make room and go on with --resume"
            ) from error


@contextmanager
def disk_errors(path: str | Path) -> Iterator[None]:
    """Turn the system's errors of writing ``path`` into a `DataError` that says what became of it."""
    try:
        yield
    except OSError as error:
        raise DataError(f"cannot write {path}: {reason(error)}; what was there before is unchanged") from error


def _mode(path: Path) -> int | None:
    """Type and permissions of what is there, links followed; ``None`` where there is nothing."""
    try:
        return path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return None


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
