"""FunDPS's network is trained by the one loop: joint fields at two resolutions, interrupted without a difference."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from tiny_training import DATA, config
from tiny_weights import OPERATOR_SIZE

from latentpde.decoder import Decoder
from latentpde.nn.fields import INITIAL, OUTPUT, SOURCE
from latentpde.nn.neural_operator import OPERATOR_PRESETS
from latentpde.nn.weights import load_weights
from latentpde.pde import families
from latentpde.training.config import FunDPSTable
from latentpde.training.data import load_or_simulate
from latentpde.training.field_task import FieldTask, field_statistics, joint_fields
from latentpde.training.loop import train

TABLE = {"epochs": 3, "fine_epochs": 1, "batch_size": 4, "learning_rate": 1e-2}


@pytest.fixture(autouse=True)
def tiny_operator(monkeypatch, tiny_preset):
    monkeypatch.setitem(OPERATOR_PRESETS, "tiny", OPERATOR_SIZE)


def fundps(folder, **changes):
    return config(folder, family="klein_gordon", fundps={**TABLE, **changes})


def test_joint_fields_solve_the_pde(tmp_path):
    (data,) = load_or_simulate(fundps(tmp_path), "train")
    grid = data.simulation.grid
    fields = joint_fields(data, np.arange(3), grid).double()
    decoder, z = Decoder(data.simulation.latent), data.z[:3].double()
    torch.testing.assert_close(fields[:, SOURCE], decoder.source(z, grid), atol=1e-5, rtol=0)
    solved = decoder.decode(z, fields[:, INITIAL], data.simulation.times or (), grid)[:, 0]
    torch.testing.assert_close(fields[:, OUTPUT], solved, atol=1e-4, rtol=0)
    coarse = joint_fields(data, np.arange(3), grid.coarsen(2)).double()
    torch.testing.assert_close(grid.coarsen(2).synthesise(grid.analyse(fields)), coarse, atol=1e-4, rtol=0)


def test_statistics_make_fields_of_unit_size(tmp_path):
    settings = fundps(tmp_path)
    assert settings.fundps is not None
    sets = load_or_simulate(settings, "train")
    statistics = field_statistics(sets, settings.fundps)
    fields = joint_fields(sets[0], np.arange(8), sets[0].simulation.grid.coarsen(2))
    normal = statistics.normalise(fields)
    torch.testing.assert_close(normal.std((0, 2, 3)), torch.ones(3), atol=1e-3, rtol=0)
    torch.testing.assert_close(statistics.denormalise(normal), fields, atol=1e-5, rtol=0)
    assert statistics.power.shape == (3, 8)


def test_it_is_trained_and_resumed_to_the_same_bits(tmp_path, monkeypatch):
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    (path,) = train(fundps(whole))
    assert path.name == "klein_gordon-fundps.json"

    losses = FieldTask.losses

    def interrupted(self, model, data, indices, epoch):
        if epoch == 2:
            raise KeyboardInterrupt
        return losses(self, model, data, indices, epoch)

    with monkeypatch.context() as patch:
        patch.setattr(FieldTask, "losses", interrupted)
        with pytest.raises(KeyboardInterrupt):
            train(fundps(parts))
    train(fundps(parts), resume=True)
    name = "klein_gordon-fundps.safetensors"
    assert (whole / name).read_bytes() == (parts / name).read_bytes()

    trained = load_weights("fundps", families.get("klein_gordon"), whole)
    assert trained.noise.length == 0.05
    assert trained.field_statistics.mean.shape == (3,)
    assert np.isfinite(trained.manifest.training["validation"]["loss"])


def test_the_last_epochs_are_fine(tmp_path):
    seen = []

    def model(noisy, sigma):
        seen.append(noisy.shape[-1])
        return noisy

    settings = fundps(tmp_path)
    assert settings.fundps is not None
    (data,) = load_or_simulate(settings, "train")
    task = FieldTask(torch.device("cpu"), 0, settings.fundps, field_statistics([data], settings.fundps), 0)
    for epoch in range(3):
        task.losses(model, data, np.arange(4), epoch)
    assert seen == [16, 16, 32]
    assert DATA["shape"] == [32, 32]


def test_a_denoiser_that_does_nothing_has_the_loss_of_the_noise(tmp_path):
    """``c_out^-2 sigma^2``, whose mean over levels is that of ``1 + sigma^2 / sigma_data^2``."""
    table = FunDPSTable(log_sigma_mean=-1.0, log_sigma_std=1e-6, sigma_data=0.5)
    (data,) = load_or_simulate(fundps(tmp_path), "train")
    task = FieldTask(torch.device("cpu"), 0, table, field_statistics([data], table), 0)
    losses = task.losses(lambda noisy, sigma: noisy, data, np.arange(8), 0)
    sigma = float(np.exp(-1.0))
    assert float(losses["loss"]) == pytest.approx(1 + sigma**2 / 0.25, rel=0.1)
