"""What the tables of wrong inputs share: each row is run by the real program, and nothing may be left of it."""

import shutil

import pytest
from program import TINY

OLD = b"what was there before"


@pytest.fixture
def refuses(refused, tmp_path, monkeypatch):
    """Runs a command that must be refused, in a folder of its own; the earlier output stays, and nothing else."""
    monkeypatch.chdir(tmp_path)

    def refuses(code, fragments, *arguments, old="o.nc"):
        before = {path for path in tmp_path.rglob("*") if not path.is_symlink()}
        if old:
            (tmp_path / old).write_bytes(OLD)
        err = refused(code, fragments, *arguments)
        assert "Exception ignored" not in err
        if old:
            assert (tmp_path / old).read_bytes() == OLD
            (tmp_path / old).unlink()
        assert {path for path in tmp_path.rglob("*") if not path.is_symlink()} == before

    return refuses


@pytest.fixture
def copied(case_file, tmp_path):
    """A file of cases to spoil."""
    return shutil.copy(case_file, tmp_path / "in.nc")


@pytest.fixture(scope="session")
def out_file(case_file, tmp_path_factory):
    """A reconstruction of the two small cases, by a quick method."""
    from latentpde.cli import main

    path = tmp_path_factory.mktemp("out") / "out.nc"
    with pytest.raises(SystemExit):
        main(["reconstruct", str(case_file), "-o", str(path), "-q", *TINY])
    return path


@pytest.fixture(scope="session")
def spread_file(case_file, tmp_path_factory):
    """A reconstruction with a spread."""
    from latentpde.cli import main

    path = tmp_path_factory.mktemp("spread") / "out.nc"
    effort = ["--num-modes", "2", "--num-draws", "3", "-O", "sweep=64"]
    with pytest.raises(SystemExit):
        main(["reconstruct", str(case_file), "-o", str(path), "-q", "--resolution", "16", *effort])
    return path
