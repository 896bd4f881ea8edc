"""Weights come back as they were saved, and nothing is loaded that does not fit."""

from __future__ import annotations

import hashlib
import json

import pytest
import torch
from safetensors.torch import load_file, save_file
from tiny_weights import write_tiny

from latentpde.errors import DataError, UsageError
from latentpde.nn.weights import load_weights
from latentpde.pde import families

FAMILY = families.get("helmholtz")


@pytest.fixture
def saved(tmp_path):
    """Paths of a manifest and of its tensors."""
    manifest = write_tiny(tmp_path, FAMILY, "denoiser_true")
    return manifest, manifest.with_suffix(".safetensors")


def change(path, **changes):
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def refused(folder, error, *fragments, role="denoiser_true", family=FAMILY):
    with pytest.raises(error) as caught:
        load_weights(role, family, folder)
    for fragment in fragments:
        assert fragment in str(caught.value)


def test_weights_come_back(saved):
    trained = load_weights("denoiser_true", FAMILY, saved[0].parent)
    stored = load_file(saved[1])
    assert {value.dtype for value in stored.values()} == {torch.float16}
    state = trained.network.state_dict()
    assert state.keys() == stored.keys()
    for name, value in state.items():
        assert torch.equal(value, stored[name].float())
    assert trained.statistics.std.tolist() == [0.5] * 19
    assert trained.schedule.num_steps == 20
    assert not trained.network.training
    assert not any(p.requires_grad for p in trained.network.parameters())


def test_saving_is_repeatable(saved, tmp_path):
    again = write_tiny(tmp_path / "again", FAMILY, "denoiser_true")
    assert again.read_bytes() == saved[0].read_bytes()
    assert again.with_suffix(".safetensors").read_bytes() == saved[1].read_bytes()


def test_missing_weights_say_how_to_get_them(tmp_path):
    refused(tmp_path, UsageError, "no weights of the denoiser_true for helmholtz", "latentpde train", "weights")
    refused(tmp_path / "nowhere", UsageError, "latentpde train")
    refused("shipped", UsageError, "come with this version", "latentpde train", family=families.get("telegraph"))


def test_a_changed_byte_is_noticed(saved):
    content = bytearray(saved[1].read_bytes())
    content[-5] ^= 1
    saved[1].write_bytes(content)
    refused(saved[0].parent, DataError, "SHA-256 differs")


@pytest.mark.parametrize("share", [0.0, 0.5, 0.99])
def test_a_truncated_file_is_noticed(saved, share):
    content = saved[1].read_bytes()
    saved[1].write_bytes(content[: int(share * len(content))])
    refused(saved[0].parent, DataError, "truncated")


def test_a_file_that_is_no_safetensors_is_refused_even_with_its_hash(saved):
    saved[1].write_bytes(b"not tensors")
    change(saved[0], sha256=hashlib.sha256(b"not tensors").hexdigest())
    refused(saved[0].parent, DataError, "does not hold the network")


def test_tensors_without_a_file_are_refused(saved):
    saved[1].unlink()
    refused(saved[0].parent, DataError, "cannot read")


def test_another_family_s_weights_are_refused(saved):
    other = families.get("klein_gordon")
    for path in saved:
        path.rename(path.with_name(path.name.replace("helmholtz", "klein_gordon")))
    refused(saved[0].parent, DataError, "helmholtz", "not the denoiser_true of klein_gordon", family=other)


def test_another_role_s_weights_are_refused(saved):
    for path in saved:
        path.rename(path.with_name(path.name.replace("denoiser_true", "denoiser_map")))
    refused(saved[0].parent, DataError, "denoiser_true", "was it renamed", role="denoiser_map")


@pytest.mark.parametrize("version", [0, 2])
def test_another_version_is_refused(saved, version):
    change(saved[0], format=version)
    refused(saved[0].parent, DataError, f"format {version}", "reads format 1")


def test_other_coefficients_are_refused(saved):
    change(saved[0], coefficients=["a", "b", "c"])
    refused(saved[0].parent, DataError, "a, b, c", "kappa_x")


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"format": 1}', '{"format": 1, "surprise": 2}', "\x00\x01", '{"format": "one"}']
)
def test_a_damaged_manifest_is_refused(saved, text):
    saved[0].write_text(text)
    refused(saved[0].parent, DataError, "not a manifest")


def test_shapes_must_fit(saved):
    size = json.loads(saved[0].read_text())["size"]
    change(saved[0], size=size | {"denoiser_width": 20})
    refused(saved[0].parent, DataError, "does not hold the network")
    change(saved[0], size=size | {"unheard_of": 20})
    refused(saved[0].parent, DataError, "does not hold the network")
    change(saved[0], size=size, num_modes=3)
    refused(saved[0].parent, DataError, "normalisation")


def test_a_missing_tensor_is_noticed(saved):
    tensors = load_file(saved[1])
    del tensors["last.bias"]
    save_file(tensors, saved[1])
    change(saved[0], sha256=hashlib.sha256(saved[1].read_bytes()).hexdigest())
    refused(saved[0].parent, DataError, "last.bias")


def test_a_denoiser_needs_its_normalisation(saved):
    for missing in ({"mean": None}, {"std": [1.0]}, {"schedule": None}):
        kept = saved[0].read_text()
        change(saved[0], **missing)
        refused(saved[0].parent, DataError, "lacks the normalisation")
        saved[0].write_text(kept)
