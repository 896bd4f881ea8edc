"""Files are written whole or not at all."""

import os
import stat

import pytest

from latentpde import UsageError
from latentpde.io.files import atomic_path, check_writable


def test_atomic_path_replaces_at_the_end_only(tmp_path):
    path = tmp_path / "a.nc"
    path.write_text("old")
    with atomic_path(path) as temporary:
        temporary.write_text("new")
        assert temporary.parent == tmp_path  # a rename is atomic on one file system only
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert os.listdir(tmp_path) == ["a.nc"]


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, SystemExit])
def test_atomic_path_forgets_what_failed(tmp_path, error):
    path = tmp_path / "a.nc"
    path.write_text("old")

    def fail():
        with atomic_path(path) as temporary:
            temporary.write_text("half")
            raise error

    with pytest.raises(error):
        fail()
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["a.nc"]


def test_atomic_path_obeys_the_umask(tmp_path):
    before = os.umask(0o027)
    try:
        with atomic_path(tmp_path / "a") as temporary:
            temporary.touch()
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o640


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link.nc").symlink_to(tmp_path / "real" / "file.nc")
    with atomic_path(tmp_path / "link.nc") as temporary:
        temporary.write_text("new")
    assert (tmp_path / "link.nc").is_symlink()
    assert (tmp_path / "real" / "file.nc").read_text() == "new"


def test_only_files_are_replaced(tmp_path):
    """Renaming over a device or a pipe would destroy it for everyone."""
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UsageError, match="device or a pipe"):
        check_writable(tmp_path / "pipe")
    with pytest.raises(UsageError, match="device or a pipe"), atomic_path(tmp_path / "pipe"):
        pytest.fail("must not be entered")
    with pytest.raises(UsageError, match="folder"):
        check_writable(tmp_path)
    with pytest.raises(UsageError, match="does not exist"):
        check_writable(tmp_path / "no" / "a.nc")


def test_the_longest_name_can_be_written(tmp_path):
    path = tmp_path / ("a" * 255)
    with atomic_path(path) as temporary:
        temporary.write_text("new")
    assert path.read_text() == "new"
