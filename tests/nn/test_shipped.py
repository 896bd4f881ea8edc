"""The weights in the package: complete, small, from the shipped configurations, and worth something."""

from __future__ import annotations

import json
from dataclasses import asdict
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file

from latentpde.bench.branches import BRANCHES, chosen_branch
from latentpde.estimators import reconstruct
from latentpde.nn.neural_operator import OPERATOR_PRESETS
from latentpde.nn.weights import FUNDPS, load_weights
from latentpde.pde import families
from latentpde.scores.metrics import rmse
from latentpde.simulation import PAPER_REGIMES, regimes, simulate
from latentpde.training.config import STAGES, load_config
from latentpde.training.data import load_or_simulate
from latentpde.training.tasks import EncoderTask

FOLDER = Path(str(files("latentpde.nn") / "trained"))
FAMILIES = tuple(dict.fromkeys(regimes.get(name).family for name in PAPER_REGIMES))


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("role", [stage for stage in STAGES if stage != FUNDPS])
def test_every_network_is_there_and_from_its_configuration(family, role):
    manifest = load_weights(role, families.get(family)).manifest
    config, record = load_config(f"{family}-compact"), manifest.training["config"]
    assert record[role] == getattr(config, role).model_dump()
    assert record["data"] == json.loads(config.data.model_dump_json())
    assert (record["seed"], record["preset"], record["regimes"]) == (config.seed, config.preset, config.regime_names)
    assert manifest.size == json.loads(json.dumps(asdict(config.size)))
    assert manifest.training["epochs"] == getattr(config, role).epochs


def test_fundps_is_there_and_from_its_configuration():
    """Its training was stopped after five epochs of six, the last, fine one left out."""
    manifest = load_weights(FUNDPS, families.get("advection_diffusion")).manifest
    config, record = load_config("advection_diffusion-fundps-compact"), manifest.training["config"]
    assert config.fundps is not None
    assert record[FUNDPS] == config.fundps.model_dump()
    assert record["data"] == json.loads(config.data.model_dump_json())
    assert (record["seed"], record["regimes"]) == (config.seed, config.regime_names)
    assert manifest.size == json.loads(json.dumps(asdict(OPERATOR_PRESETS["compact"])))
    assert manifest.training["epochs"] == config.fundps.epochs - config.fundps.fine_epochs


def test_fundps_reconstructs():
    cases = simulate("advection", num=2, seed=21, mask="grid")
    truth = cases["truth/field"].values.astype(float)
    posterior = reconstruct(cases, method="fundps", num_draws=2, num_steps=10)
    assert not posterior.warnings(0)
    assert np.mean(rmse(posterior.mean().values, truth)) < 0.6 * np.mean(rmse(0 * truth, truth))


def test_they_are_small():
    fundps, others = (
        sum(path.stat().st_size for path in FOLDER.iterdir() if (FUNDPS in path.name) == wanted)
        for wanted in (True, False)
    )
    assert others < 25e6
    assert fundps < 15e6


@pytest.mark.parametrize("regime", PAPER_REGIMES)
def test_a_branch_is_chosen_for_every_regime(regime):
    assert chosen_branch(regime) in BRANCHES


@pytest.mark.parametrize("regime", ["balanced", "helmholtz"])
def test_they_reconstruct(regime):
    cases = simulate(regime, num=4, seed=21)
    truth = cases["truth/field"].values.astype(float)
    posterior = reconstruct(cases, method="enc-diffusion", num_draws=4, num_steps=40)
    assert posterior.has_spread
    assert posterior.diagnostics["num_parameters"] == sum(
        tensor.size
        for role in ("encoder", "denoiser_true")
        for tensor in load_file(FOLDER / f"{regimes.get(regime).family}-{role}.safetensors").values()
    )
    assert not posterior.warnings(0)
    assert np.mean(rmse(posterior.mean().values, truth)) < 0.75 * np.mean(rmse(0 * truth, truth))


def test_the_command_line_needs_nothing_else(tmp_path, run):
    def program(*arguments):
        assert run(*arguments, "--quiet")[0] == 0

    cases, out = tmp_path / "cases.nc", tmp_path / "out.nc"
    program("simulate", "klein_gordon", "--num", 1, "-o", cases)
    program("reconstruct", cases, "--method", "enc-diffusion", "-O", "num_steps=10", "-o", out)
    assert out.exists()


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_the_recorded_validation_error_is_what_the_weights_give(family, tmp_path):
    trained = load_weights("encoder", families.get(family))
    config = load_config(f"{family}-compact").model_copy(update={"output": str(tmp_path)})
    assert config.encoder is not None
    task = EncoderTask(torch.device("cpu"), config.size.num_probes, config.encoder)
    with torch.no_grad():
        found = [
            task.losses(trained.network, data, np.arange(len(data)), 0)["rmse"]
            for data in load_or_simulate(config, "validation")
        ]
    assert float(torch.stack(found).mean()) == pytest.approx(trained.manifest.training["validation"]["rmse"], rel=0.02)
