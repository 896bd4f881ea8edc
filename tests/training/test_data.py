"""What networks are trained on: fresh readings of fixed cases, and the latents that denoisers learn."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from tiny_training import DATA, DENOISER, config

from latentpde.errors import DataError
from latentpde.estimators.map import Map
from latentpde.simulation import EVALUATION_MASKS, TRAINING_MASKS
from latentpde.training.data import batches, load_or_simulate
from latentpde.training.map_targets import map_targets
from latentpde.training.tasks import statistics_of, true_targets

pytestmark = pytest.mark.usefixtures("tiny_preset")


@pytest.fixture
def cases(tmp_path):
    settings = config(tmp_path, encoder={"epochs": 1})
    return load_or_simulate(settings, "train")[0], load_or_simulate(settings, "validation")[0]


def test_readings_are_new_every_epoch_and_the_same_for_the_same_epoch(cases):
    data, _ = cases
    indices = np.arange(4)
    first, again, later = (data.read(indices, epoch) for epoch in (0, 0, 1))
    assert torch.equal(first.values, again.values)
    assert not torch.equal(first.mask, later.mask)
    alone = data.read(np.array([2]), 0)
    assert torch.equal(alone.values[0], first.values[2])
    assert torch.equal(first.initial, later.initial)


def test_readings_are_the_clean_solution_with_noise(cases):
    data, _ = cases
    errors = []
    for epoch in range(20):
        observation = data.read(np.arange(8), epoch)
        errors.append((observation.values - data.clean.double())[observation.mask])
        share = observation.mask.double().mean((1, 2, 3))
        assert (share <= 0.15).all()
        assert not observation.values[~observation.mask].any()
    assert torch.cat(errors).std() == pytest.approx(0.15, rel=0.2)


def test_the_clean_solution_is_the_decoder_s(cases):
    data, _ = cases
    clean = data.decoder.decode(data.z.double(), data.initial.double(), [1.0], data.grid)
    torch.testing.assert_close(clean, data.clean.double(), rtol=1e-4, atol=1e-5)


def test_validation_cases_have_masks_that_training_never_sees(cases, monkeypatch):
    kinds = []
    import latentpde.simulation.cases as module

    draw = module.draw_mask
    monkeypatch.setattr(module, "draw_mask", lambda kind, *a, **o: kinds.append(kind) or draw(kind, *a, **o))
    train_set, validation = cases
    for epoch in range(4):
        train_set.read(np.arange(8), epoch)
    assert set(kinds) <= set(TRAINING_MASKS)
    kinds.clear()
    for epoch in range(4):
        validation.read(np.arange(3), epoch)
    assert set(kinds) <= set(EVALUATION_MASKS)
    assert not torch.equal(train_set.initial[:3], validation.initial)


def test_an_epoch_visits_every_case_once_in_an_order_of_its_own(cases):
    data, _ = cases
    first, again, later = (batches([data, data], 4, 0, epoch) for epoch in (0, 0, 1))
    flat = [sorted(np.concatenate([i for which, i in epoch if which == n])) for epoch in (first, later) for n in (0, 1)]
    assert flat == [list(range(8))] * 4
    assert all(np.array_equal(a[1], b[1]) for a, b in zip(first, again, strict=True))
    assert any(not np.array_equal(a[1], b[1]) for a, b in zip(first, later, strict=True))


def test_map_targets_are_kept_and_only_missing_ones_made_again(cases, tmp_path, monkeypatch):
    monkeypatch.setattr("latentpde.training.map_targets.CASES_AT_ONCE", 3)
    table = config(tmp_path, denoiser_map={**DENOISER, "map_reading_sets": 2}).denoiser_map
    assert table is not None
    made, estimate = [], Map.estimate
    monkeypatch.setattr(Map, "estimate", lambda *a, **o: made.append(1) or estimate(*a, **o))
    data, folder = cases[0], tmp_path / "map"
    indices = np.array([7, 0, 4])
    observation = data.read(indices, 1)
    target = map_targets(folder, table, [data])(data, indices, observation, 1)
    assert len(made) == 6
    own = Map(num_steps=5, num_restarts=1).estimate(observation, data.simulation.latent, num_draws=1, seed=data.seed)
    tau = data.simulation.latent.source_prior_std
    torch.testing.assert_close(target[:, 3:] * tau, own.z[:, 0, 3:], rtol=1e-8, atol=1e-9)
    made.clear()
    sorted(folder.iterdir())[2].unlink()
    again = map_targets(folder, table, [data])(data, indices, observation, 1)
    assert len(made) == 1
    torch.testing.assert_close(again, target)
    other = table.model_copy(update={"map_steps": 6})
    with pytest.raises(DataError, match="other settings"):
        map_targets(folder, other, [data])(data, indices, observation, 1)


def test_latents_in_the_family_s_bounds_are_the_same_coefficients(tmp_path):
    """Networks that are not told the regime's bounds learn raw latents that mean the same in every regime."""
    known = {"family": "advection_diffusion", "regimes": ["diffusion"], "encoder": {"epochs": 1}}
    own = load_or_simulate(config(tmp_path / "own", **known), "train")[0]
    family = load_or_simulate(config(tmp_path / "family", **known, data={**DATA, "bounds": "family"}), "train")[0]
    assert family.latent.bounds.tolist() == [[-3.0, 3.0], [-3.0, 3.0], [0.001, 0.35]]
    torch.testing.assert_close(family.latent.theta(family.z), own.latent.theta(own.z), rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(family.clean, own.clean)
    assert not torch.allclose(family.z[:, 0], own.z[:, 0])


def test_normalised_targets_have_mean_zero_and_deviation_one(cases):
    data, _ = cases
    statistics = statistics_of(true_targets, [data])
    w = true_targets(data, np.arange(8), data.read(np.arange(8), 0), 0)
    normal = statistics.normalise(w)
    torch.testing.assert_close(normal.mean(0), torch.zeros(19, dtype=w.dtype), atol=1e-4, rtol=0)
    torch.testing.assert_close(normal.std(0), torch.ones(19, dtype=w.dtype), atol=1e-4, rtol=0)
