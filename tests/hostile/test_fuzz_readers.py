"""Whatever is read from outside is read or refused: no other error than ours comes out, and nothing is written.

The readers are those of `tools/fuzz_readers.py`, which lets atheris loose on them for an hour; here Hypothesis damages
the same valid files, and puts other values into those that hold JSON.
"""

import contextlib
import json
import tomllib
import warnings
from dataclasses import fields

import numpy as np
import pytest
import xarray as xr
from fuzz_readers import READERS
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from latentpde.errors import LatentPDEError
from latentpde.estimators import make_estimator, methods
from latentpde.io.observations import observation_from_dataset
from latentpde.training.config import TrainingConfig

few = settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])

numbers = st.one_of(
    st.integers(-(10**30), 10**30), st.floats(), st.sampled_from([0, -1, 1, 10**8, 2**32, 5e-324, 1e300, -9999.0])
)
values = st.recursive(
    st.none() | st.booleans() | numbers | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


@pytest.fixture(scope="module")
def seeds(tmp_path_factory):
    """Valid bytes for each reader."""
    known = {}

    def of(name: str) -> list[bytes]:
        if name not in known:
            known[name] = READERS[name].seeds(tmp_path_factory.mktemp(name))
        return known[name]

    return of


def read(name: str, data: bytes, folder) -> None:
    """Read some bytes; a refusal is fine, unless it leaves something behind."""
    before = {path for path in folder.rglob("*") if path.is_file()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # libraries warn of odd values; the program does not fail for that
        try:
            READERS[name].read(data, folder)
        except LatentPDEError:
            new = {path for path in folder.rglob("*") if path.is_file()} - before
            assert all(path.read_bytes() == data or path.is_symlink() for path in new), new


def edits(data):
    """A few bytes changed, the end cut off, or a piece put in twice."""
    place = st.integers(0, len(data))
    change = st.tuples(place, st.binary(min_size=1, max_size=8)).map(
        lambda edit: data[: edit[0]] + edit[1] + data[edit[0] + len(edit[1]) :]
    )
    cut = place.map(lambda at: data[:at])
    twice = st.tuples(place, place).map(lambda at: data[: max(at)] + data[min(at) :])
    return st.one_of(change, cut, twice)


@pytest.mark.parametrize("name", READERS)
def test_valid_files_are_read(name, seeds, tmp_path):
    for data in seeds(name):
        READERS[name].read(data, tmp_path)


@pytest.mark.parametrize("name", READERS)
def test_damaged_files_are_read_or_refused(name, seeds, tmp_path):
    @few
    @given(data=st.data())
    def check(data):
        valid = data.draw(st.sampled_from(seeds(name)))
        read(name, data.draw(edits(valid)), tmp_path)

    check()


def places(tree, path=()):
    """Where in a tree of JSON something stands."""
    yield path
    items = tree.items() if isinstance(tree, dict) else enumerate(tree[:3]) if isinstance(tree, list) else ()
    for key, inner in items:
        yield from places(inner, (*path, key))


def changed(tree, path, value):
    """A tree with another value at one place."""
    if not path:
        return value
    copy = tree.copy()
    copy[path[0]] = changed(tree[path[0]], path[1:], value)
    return copy


def json_lines(data: bytes) -> list[bytes]:
    return data.splitlines() if data.count(b"\n{") else [data]


@pytest.mark.parametrize("name", ["weights", "results", "tables"])
def test_files_of_json_with_other_values_are_read_or_refused(name, seeds, tmp_path):
    @few
    @given(data=st.data())
    def check(data):
        lines = json_lines(data.draw(st.sampled_from(seeds(name))))
        number = data.draw(st.integers(0, len(lines) - 1))
        tree = json.loads(lines[number])
        path = data.draw(st.sampled_from(list(places(tree))))
        lines[number] = json.dumps(changed(tree, path, data.draw(values))).encode()
        read(name, b"\n".join(lines), tmp_path)

    check()


@few
@given(data=st.data())
def test_configurations_with_other_values_are_read_or_refused(data):
    text = data.draw(st.sampled_from(READERS["config"].seeds(None)))
    tree = tomllib.loads(text.decode())
    path = data.draw(st.sampled_from(list(places(tree))))
    with contextlib.suppress(ValueError):  # pydantic's and ours, which `load_config` puts into words
        _ = TrainingConfig.model_validate(changed(tree, path, data.draw(values))).regime_names


AXES = ("case", "time", "y", "x", "y_obs", "x_obs", "lat", "lon", "sensor", "z")
VARIABLES = ("observed", "initial", "mask", "noise_std", "sensor_y", "sensor_x")
NAMES = ("family", "regime", "time", "noise_std", "extent", "pooling", "observed_kind", "source_prior_std", "units")
CONTENTS = (0.3, np.nan, np.inf, 1e300, -9999.0, 1, True, "text", 1j, np.datetime64("2026-01-01", "ns"))

attributes = st.dictionaries(
    st.sampled_from([*NAMES, "coefficient_bounds", "num_modes"]),
    st.one_of(
        st.text(max_size=8),
        numbers.filter(lambda number: abs(number) < 2**63 or isinstance(number, float)),
        st.lists(st.floats(), max_size=8).map(np.array),
        st.sampled_from(["diffusion", "helmholtz", "pooled", "point", "advection_diffusion"]),
    ),
    max_size=5,
)


@st.composite
def datasets(draw):
    """Datasets that might be somebody's readings, and might not."""
    sizes = {name: draw(st.integers(0, 3)) for name in AXES}
    variables = {}
    for name in draw(st.lists(st.sampled_from(VARIABLES), unique=True)):
        axes = draw(st.lists(st.sampled_from(AXES), max_size=4, unique=True))
        variables[name] = (axes, np.full([sizes[axis] for axis in axes], draw(st.sampled_from(CONTENTS))))
    found = xr.Dataset(variables, attrs=draw(attributes))
    for axis in map(str, found.dims):
        if draw(st.booleans()):
            step = draw(st.sampled_from([1.0, -1.0, 0.0, np.nan, 1e300]))
            found = found.assign_coords({axis: np.arange(found.sizes[axis]) * step})
    return found


@settings(max_examples=200)
@given(dataset=datasets())
def test_any_dataset_is_an_observation_or_refused(dataset):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with contextlib.suppress(LatentPDEError):
            observation_from_dataset(dataset)


@settings(max_examples=200)
@given(data=st.data())
def test_any_option_of_a_method_is_taken_or_refused(data):
    method = data.draw(st.sampled_from(methods.names()))
    names = [field.name for field in fields(methods.get(method))]
    options = data.draw(st.dictionaries(st.sampled_from([*names, "seed", ""]), values, max_size=3))
    with contextlib.suppress(LatentPDEError):
        json.dumps(make_estimator(method, **options).settings(0))
