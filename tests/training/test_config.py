"""Configurations: those shipped hold, and mistakes are named."""

from __future__ import annotations

from importlib.resources import files

import pytest

from latentpde.errors import UsageError
from latentpde.training.config import load_config


@pytest.mark.parametrize("name", sorted(p.name for p in (files("latentpde.training") / "configs").iterdir()))
def test_shipped_configurations_are_valid(name):
    shipped = load_config(name.removesuffix(".toml"))
    if "fundps" in name:
        assert shipped.stages == ["fundps"]
        assert name == f"{shipped.family}-fundps-{shipped.preset}.toml"
        assert shipped.data.num_per_regime == 5000
        return
    assert shipped.stages[:3] == ["encoder", "denoiser_enc", "denoiser_map"]
    assert ("denoiser_true" in shipped.stages) == (shipped.preset == "compact")  # which the paper does not have
    assert name == f"{shipped.family}-{shipped.preset}.toml"
    if shipped.preset == "paper":
        assert shipped.data.num_per_regime == 5000
        assert shipped.encoder is not None
        assert shipped.denoiser_map is not None
        assert (shipped.encoder.epochs, shipped.denoiser_map.epochs) == (400, 600)
        assert (shipped.denoiser_map.map_steps, shipped.denoiser_map.map_restarts) == (300, 3)
        assert shipped.data.bounds == "family"
        assert not shipped.size.told_prior


GOOD = 'family = "helmholtz"\noutput = "out"\n[encoder]\nepochs = 2\n'


@pytest.mark.parametrize(
    ("text", "fragments"),
    [
        (GOOD + "epoch = 3\n", ["encoder.epoch", "Extra inputs"]),
        ("colour = 1\n" + GOOD, ["colour"]),
        (GOOD.replace("2", '"two"'), ["encoder.epochs", "integer"]),
        (GOOD.replace("2", "0"), ["encoder.epochs", "greater than or equal to 1"]),
        (GOOD.replace("helmholtz", "helmhotz"), ["did you mean 'helmholtz'"]),
        ('preset = "huge"\n' + GOOD, ["preset", "paper, compact"]),
        ('regimes = ["balanced"]\n' + GOOD, ["balanced", "has the regimes helmholtz"]),
        ('family = "helmholtz"\noutput = "out"\n', ["trains nothing", "encoder"]),
        (GOOD.replace('output = "out"\n', ""), ["output", "required"]),
        ("family = ", ["not TOML"]),
        (GOOD + "[denoiser_true]\nbeta_end = 2.0\n", ["denoiser_true.beta_end"]),
        (GOOD + "[denoiser_true]\nbeta_start = 0.5\n", ["denoiser_true", "beta_start <= beta_end"]),
        ('mixed_precision = "fp8"\n' + GOOD, ["mixed_precision"]),
    ],
)
def test_bad_configurations_are_refused(tmp_path, text, fragments):
    path = tmp_path / "bad.toml"
    path.write_text(text)
    with pytest.raises(UsageError) as caught:
        load_config(path)
    for fragment in fragments:
        assert fragment in str(caught.value)


def test_a_configuration_that_is_not_there_is_said_so(tmp_path):
    with pytest.raises(UsageError, match=r"shipped configurations: .*helmholtz-compact"):
        load_config("helmholtz-compat")
    with pytest.raises(UsageError, match="there is no file"):
        load_config(tmp_path / "none.toml")
