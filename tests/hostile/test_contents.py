"""Files whose attributes, values or structure are wrong; a row each, read by every command that reads such a file."""

import os
import warnings

import h5py
import numpy as np
import pytest
from program import TINY, with_attributes

from latentpde.errors import DataError
from latentpde.io.attributes import Attributes

ATTRIBUTES = {
    "family": ([1.0, 2.0], 5, np.zeros(0), "a" * 300),
    "regime": ([1, 2], 5, "a" * 5000),
    "observed_kind": (5, [1.0], "POINT", "foo"),
    "noise_std": (1 + 2j, 5e-324, 1e-200, 1e300, [0.1, 0.2], np.zeros(0), -1.0, 0.0, "abc", ""),
    "time": (1e300, 1j, -1.0, np.inf, "noon", np.zeros(0), [0.1, 0.2]),
    "extent": (1.0, [1e300, 1e300], [5e-324, 1.0], ["a", "b"], [1, 2 + 1j], [1.0, 2.0, 3.0], 2.0),
    "pooling": (10**9, 2.5, [4, 4], 4 + 1j, 2**31 - 1, -1, 0, 1e300, "abc"),
    "num_modes": (0, -1, 10**9, 2.5, [1, 2], 1e300, "abc"),
    "source_prior_std": (1e300, 1 + 1j, [1, 2], -1.0, np.nan, "a"),
    "coefficient_bounds": ([1.0] * 6, [1 + 1j] * 6, 5.0, [-1e300, 1e300] * 3, [0.0, 1.0] * 2, [0.0, 1.0, 2.0], "abc"),
}
ROWS = [(name, value) for name, values in ATTRIBUTES.items() for value in values]


@pytest.mark.parametrize(("name", "value"), ROWS, ids=lambda part: str(part)[:30])
def test_attributes(refuses, case_tree, tmp_path, name, value):
    with_attributes(**{name: value})(case_tree.to_dataset()).to_netcdf(tmp_path / "in.nc", engine="h5netcdf")
    words = "expected one time" if name == "time" and np.shape(value) == (2,) else f"the attribute {name} must be"
    refuses(3, words, "reconstruct", "in.nc", "-o", "o.nc", *TINY)


@pytest.mark.parametrize(
    "value", [np.complex128(1 + 2j), np.array([1 + 2j]), np.array(1j)], ids=["number", "array", "0d"]
)
def test_complex_attributes_are_not_cut_to_their_real_part(value):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what a user's process does with NumPy's warning
        with pytest.raises(DataError, match="the attribute noise_std must be one positive number"):
            Attributes.of({"noise_std": value})


# Gaps that are written as a number

GAPS = [-9999.0, -999.0, 9999.0, 99999.0, -32768.0, 1e20, -1e30, 9.96921e36, 1e38, 1e150, 1e300]


@pytest.mark.parametrize("gap", GAPS)
@pytest.mark.parametrize("variable", ["observed", "initial"])
def test_some_gaps_as_a_number(refuses, case_tree, tmp_path, variable, gap):
    data = case_tree.to_dataset().copy(deep=True)
    first = np.argwhere(np.isfinite(data[variable].values))[:3]
    data[variable].values[tuple(first.T)] = gap
    data.to_netcdf(tmp_path / "in.nc", engine="h5netcdf")
    refuses(3, [f"are {gap:.7g}, far outside", "NaN", "_FillValue"], "reconstruct", "in.nc", "-o", "o.nc", *TINY)


@pytest.mark.parametrize("gap", [-9999.0, 1e20, 1e36])
def test_every_gap_as_a_number(refuses, case_tree, tmp_path, gap):
    data = case_tree.to_dataset()
    data.assign(observed=data.observed.fillna(gap)).to_netcdf(tmp_path / "in.nc", engine="h5netcdf")
    refuses(3, ["far outside the others", "--keep-outliers"], "reconstruct", "in.nc", "-o", "o.nc")


@pytest.mark.parametrize("attribute", ["_FillValue", "missing_value"])
def test_a_declared_gap_is_a_gap(run, case_tree, case_file, tmp_path, attribute):
    data = case_tree.to_dataset()
    data.assign(observed=data.observed.fillna(-9999.0)).to_netcdf(tmp_path / "in.nc", engine="h5netcdf")
    with h5py.File(tmp_path / "in.nc", "r+") as file:
        file["observed"].attrs[attribute] = -9999.0
    for source, output in ((tmp_path / "in.nc", "declared.nc"), (case_file, "whole.nc")):
        assert run("reconstruct", source, "-o", tmp_path / output, "-q", *TINY) == (0, "", "")
    declared, whole = (h5py.File(tmp_path / name)["mean"][:] for name in ("declared.nc", "whole.nc"))
    assert np.array_equal(declared, whole)


def test_outliers_may_be_meant(run, case_tree, tmp_path):
    data = case_tree.to_dataset().copy(deep=True)
    data["initial"].values[0, 0, 0] = -9999.0
    data.to_netcdf(tmp_path / "in.nc", engine="h5netcdf")
    assert run("reconstruct", tmp_path / "in.nc", "-o", tmp_path / "o.nc", "-q", "--keep-outliers", *TINY)[0] == 0


# The structure of HDF5 files


def _contains_itself(file):
    file["truth"]["again"] = file["truth"]
    file["again"] = file["/"]


def _deep(file):
    group = file
    for _ in range(1500):
        group = group.create_group("g")


HARMLESS = {"a group that contains itself": _contains_itself, "1,500 nested groups": _deep}


def _external(file):
    os.mkfifo("pipe")
    file["elsewhere"] = h5py.ExternalLink("pipe", "/x")


def _external_in_truth(file):
    os.mkfifo("pipe")
    file["truth"]["elsewhere"] = h5py.ExternalLink("pipe", "/x")


def _external_readings(file):
    os.mkfifo("pipe")
    del file["observed"]
    file["observed"] = h5py.ExternalLink("pipe", "/x")


def _external_storage(file):
    os.mkfifo("pipe")
    file.create_dataset("elsewhere", shape=(2, 8), dtype="f8", external=[("pipe", 0, h5py.h5f.UNLIMITED)])


def _virtual(file):
    layout = h5py.VirtualLayout((2, 8), "f8")
    layout[:] = h5py.VirtualSource("nowhere.nc", "x", (2, 8))
    file.create_virtual_dataset("elsewhere", layout)


def _soft_loop(file):
    file["a"], file["b"] = h5py.SoftLink("/b"), h5py.SoftLink("/a")


def _missing_target(file):
    file["elsewhere"] = h5py.ExternalLink("nowhere.nc", "/x")


LINKS = {
    "an external link to a pipe": _external,
    "readings that are such a link": _external_readings,
    "storage in a pipe": _external_storage,
    "a virtual variable": _virtual,
    "a loop of soft links": _soft_loop,
    "an external link to nothing": _missing_target,
}


def _spoil(path, change):
    with h5py.File(path, "r+") as file:
        change(file)


@pytest.mark.parametrize("what", LINKS)
@pytest.mark.parametrize("command", ["reconstruct", "evaluate", "evaluate cases"])
def test_links_are_not_followed(refuses, out_file, case_file, copied, monkeypatch, tmp_path, command, what):
    monkeypatch.chdir(tmp_path)
    _spoil(copied, LINKS[what])
    commands = {
        "reconstruct": ["reconstruct", "in.nc", "-o", "o.nc", *TINY],
        "evaluate": ["evaluate", "in.nc", case_file],
        "evaluate cases": ["evaluate", out_file, "in.nc"],
    }
    refuses(3, "as a link to another place, which is not followed", *commands[command])


def test_links_in_the_truth_are_not_followed(refuses, out_file, copied, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    _spoil(copied, _external_in_truth)
    refuses(3, "not followed", "evaluate", out_file, "in.nc")


@pytest.mark.parametrize("what", HARMLESS)
def test_groups_that_nobody_asked_for_do_no_harm(run, out_file, copied, what):
    _spoil(copied, HARMLESS[what])
    assert run("evaluate", out_file, copied)[0] == 0


@pytest.mark.parametrize("command", ["reconstruct", "evaluate"])
def test_variables_that_do_not_fit_into_memory(refuses, out_file, copied, command):
    _spoil(copied, lambda file: file.create_dataset("other", shape=(10**6, 10**6), chunks=(100, 100), dtype="f8"))
    commands = {
        "reconstruct": ["reconstruct", "in.nc", "-o", "o.nc", *TINY],
        "evaluate": ["evaluate", out_file, "in.nc"],
    }
    refuses(2, "not enough memory to read in.nc", *commands[command])


@pytest.mark.parametrize(
    "kind",
    [np.dtype([("a", "f8"), ("b", "i4")]), h5py.vlen_dtype("f8"), h5py.ref_dtype, h5py.string_dtype()],
    ids=["compound", "ragged", "references", "text"],
)
def test_readings_of_another_kind(refuses, copied, kind):
    with h5py.File(copied, "r+") as file:
        del file["observed"]
        file.create_dataset("observed", shape=(3,), dtype=kind)
    refuses(3, [], "reconstruct", "in.nc", "-o", "o.nc", *TINY)


@pytest.mark.parametrize("share", np.linspace(0.02, 0.98, 25).round(2).tolist())
def test_damaged_bytes_end_in_a_result_or_one_message(run, case_file, tmp_path, share):
    content = bytearray(case_file.read_bytes())
    where = int(share * len(content))
    content[where : where + 64] = b"\xff" * 64
    (tmp_path / "in.nc").write_bytes(content)
    code, _, err = run("reconstruct", tmp_path / "in.nc", "-o", tmp_path / "o.nc", "-q", *TINY)
    assert code in (0, 2, 3), err
    assert "Traceback" not in err
    assert "Exception ignored" not in err
