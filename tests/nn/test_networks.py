"""Networks have the published sizes, take any grid, and see latents in the prior's units."""

from __future__ import annotations

import json
from dataclasses import asdict, replace

import numpy as np
import pytest
import torch
from tiny_weights import SIZE

from latentpde.decoder import Decoder
from latentpde.errors import UsageError
from latentpde.grid import Grid
from latentpde.latent import Latent
from latentpde.nn import PRESETS, Conditions, Denoiser, InferenceEncoder, NetworkSize, Units
from latentpde.nn.denoiser import sinusoids
from latentpde.nn.probes import probe
from latentpde.nn.units import change_modes
from latentpde.observation import Observation
from latentpde.pde import families
from latentpde.simulation import regimes, simulate

ADVECTION = families.get("advection_diffusion")


def count(module):
    return sum(p.numel() for p in module.parameters())


def conditions(shape=(8, 12), num=3, seed=0):
    generator = torch.Generator().manual_seed(seed)
    draw = [
        torch.randn(*size, generator=generator)
        for size in ((num, 4, *shape), (num, 1, *shape), (num, 7), (num, 9), (num, 19))
    ]
    return Conditions(*draw)


def networks(size=SIZE):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        made = InferenceEncoder(size, 19, 7), Denoiser(size, 19, 7)
        for network in made:
            for p in network.parameters():
                p.data += 0.05 * torch.randn_like(p)
    return made


def test_the_paper_preset_has_the_published_numbers_of_parameters():
    """They are told nothing of the prior, and see no probes."""
    units = Units(Latent(ADVECTION), 12, raw=not PRESETS["paper"].told_prior)
    assert (units.size, units.num_prior) == (579, 0)
    encoder, denoiser = (kind(PRESETS["paper"], 579, 0) for kind in (InferenceEncoder, Denoiser))
    assert count(denoiser) == 6_996_483 == pytest.approx(7.06e6, rel=0.01)
    assert count(denoiser) + count(encoder) == 9_555_846 == pytest.approx(9.62e6, rel=0.01)
    assert denoiser.around is None
    assert encoder.step is None


def test_the_paper_preset_is_the_appendix():
    encoder, denoiser = (kind(PRESETS["paper"], 579, 0) for kind in (InferenceEncoder, Denoiser))
    layers = [layer[0] for layer in denoiser.case.observation.convolutions]
    assert [(c.in_channels, c.out_channels) for c in layers] == [
        (4, 64), (64, 64), (64, 128), (128, 128), (128, 256), (256, 256)
    ]  # fmt: skip
    assert [c.stride[0] for c in layers].count(2) == 2
    assert denoiser.case.width + denoiser.step_width == 512
    assert len(denoiser.blocks) == 6
    assert len(encoder.layers) == 4


def test_raw_units_are_the_latent_itself_and_tell_nothing():
    units = Units(Latent(ADVECTION, source_prior_std=0.3, num_modes=2), 2, raw=True)
    z = torch.arange(19.0)
    assert torch.equal(units.to_latent(z), z)
    assert torch.equal(units.from_latent(z), z)
    assert torch.equal(units.gradient(z), z)
    assert units.seen_prior.shape == (0,)
    assert units.prior.shape == (7,)  # which manifests still record


def test_probes_need_the_prior():
    with pytest.raises(UsageError, match="told the prior"):
        replace(PRESETS["compact"], told_prior=False)


def test_compact_networks_of_three_families_fit_in_the_package():
    """Encoder and three denoisers each, two bytes per parameter; a little is left for manifests."""
    encoder, denoiser = (count(kind(PRESETS["compact"], 579, 7)) for kind in (InferenceEncoder, Denoiser))
    assert 3 * (encoder + 3 * denoiser) * 2 < 24e6


@pytest.mark.parametrize("shape", [(8, 8), (5, 9), (32, 32), (12, 40)])
def test_networks_take_any_grid(shape):
    encoder, denoiser = networks()
    assert encoder(conditions(shape)).shape == (3, 19)
    assert denoiser.embed(conditions(shape)).shape == (3, 16 + 19)


def test_a_case_comes_out_the_same_alone_and_in_a_batch():
    encoder, denoiser = networks()
    all_of_them = conditions()
    alone = Conditions(*(part[1:2] for part in all_of_them))
    torch.testing.assert_close(encoder(all_of_them)[1:2], encoder(alone))
    torch.testing.assert_close(denoiser.embed(all_of_them)[1:2], denoiser.embed(alone))


def test_embedding_once_is_the_same_as_embedding_at_every_step():
    _, denoiser = networks()
    seen = conditions()
    noisy, step = torch.randn(3, 5, 19, generator=torch.Generator().manual_seed(1)), torch.tensor([[7]])
    members = denoiser.denoise(noisy, step, denoiser.embed(seen))
    for k in range(5):
        single = denoiser(noisy[:, k : k + 1], torch.full((3, 1), 7), seen, torch.ones(3, dtype=torch.bool))
        torch.testing.assert_close(members[:, k : k + 1], single)


def test_what_is_dropped_is_not_seen():
    _, denoiser = networks()
    noisy, step = torch.randn(3, 2, 19, generator=torch.Generator().manual_seed(1)), torch.full((3, 2), 7)
    keep = torch.tensor([True, False, True])
    one, other = (denoiser(noisy, step, conditions(seed=seed), keep) for seed in (0, 1))
    torch.testing.assert_close(one[1], other[1])
    assert not torch.allclose(one[0], other[0])


def test_steps_are_told_apart():
    features = sinusoids(torch.arange(400), 64)
    gaps = torch.cdist(features, features) + 10 * torch.eye(400)
    assert gaps.min() > 0.1


def test_networks_see_the_last_snapshot():
    tree = simulate("balanced", num=2, seed=3, shape=(32, 32), times=(0.1, 0.25), num_modes=2, sparsity=0.3)
    both, last = Observation.from_dataset(tree), Observation.from_dataset(tree.isel(time=[1]))
    units = Units(Latent(ADVECTION, num_modes=2), 2)
    both, last = (Conditions.of(observation, units, 3) for observation in (both, last))
    assert torch.equal(both.channels, last.channels)
    assert not torch.allclose(both.probes, last.probes)  # which see all of them


# Probes


def probed(num_probes=16, num_modes=2, **settings):
    """Cases of a regime, with what is known of them and what the probes say."""
    tree = simulate("balanced", num=4, seed=5, shape=(32, 32), num_modes=num_modes, sparsity=0.4, **settings)
    observation = Observation.from_dataset(tree)
    bounds = torch.tensor(regimes.get("balanced").ranges)
    latent = Latent(ADVECTION, num_modes=num_modes, source_prior_std=0.4, bounds=bounds)
    return tree, observation, latent, probe(observation, Units(latent, 2), num_probes)


def test_probes_are_misfits_of_solutions_without_a_source():
    _, observation, latent, (features, _) = probed()
    best = features[:, 17:].double()
    z = torch.cat([best, torch.zeros(4, 16)], dim=1)
    field = Decoder(latent).decode(z, observation.initial, observation.times, observation.grid)
    square = torch.where(observation.mask, (field - observation.values) ** 2, 0.0).sum((1, 2, 3))
    misfit = square / observation.mask.sum((1, 2, 3)) / 0.15**2
    torch.testing.assert_close(torch.log(misfit + 0.1) / 2, features[:, :16].double().amin(1), rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(2 * features[:, 16].double(), torch.log(observation.mask.sum((1, 2, 3)).double()))


def test_the_probes_gradient_is_that_of_the_log_likelihood():
    _, observation, latent, (features, gradient) = probed()
    units = Units(latent, 2)

    def log_likelihood(w):
        field = Decoder(latent).decode(units.to_latent(w), observation.initial, observation.times, observation.grid)
        return -0.5 * torch.where(observation.mask, (field - observation.values) ** 2, 0.0).sum((1, 2, 3)) / 0.15**2

    w = torch.cat([features[:, 17:].double(), torch.zeros(4, 16)], dim=1)
    for entry in (0, 2, 3, 11):
        step = torch.zeros(units.size, dtype=torch.float64)
        step[entry] = 1e-5
        slope = (log_likelihood(w + step) - log_likelihood(w - step)) / 2e-5
        torch.testing.assert_close(torch.sinh(gradient[:, entry].double()), slope, rtol=2e-3, atol=2e-3)


def test_more_probes_come_nearer_to_the_truth():
    """With hardly any noise and no source, the best of many probes is near the true coefficients."""
    near = []
    for num_probes in (1, 64, 1024):
        tree, _, latent, (features, _) = probed(num_probes, num_modes=0, noise_std=0.01)
        found = latent.theta(features[:, num_probes + 1 :].double())
        truth = torch.from_numpy(tree["truth/coefficients"].values)
        near.append(float(((found - truth) / (latent.bounds[:, 1] - latent.bounds[:, 0])).abs().mean()))
    assert near[0] > near[1] > near[2]
    assert near[2] < 0.08


def test_no_probes_are_nothing():
    *_, (features, gradient) = probed(0)
    assert features.shape == gradient.shape == (4, 0)


# Units


@pytest.mark.parametrize("num_modes", [0, 1, 3, 5])
def test_units_are_the_prior_s(num_modes):
    latent = Latent(ADVECTION, source_prior_std=0.3, num_modes=num_modes)
    units = Units(latent, 3)
    z = latent.draw(20000, generator=torch.Generator().manual_seed(0))
    w = units.from_latent(z)
    both = change_modes(torch.ones(4 * num_modes**2), num_modes, 3).bool()
    assert w.shape == (20000, units.size)
    torch.testing.assert_close(w[:, 3:].std(0)[both], torch.ones(int(both.sum()), dtype=w.dtype), rtol=0.05, atol=0)
    assert not w[:, 3:][:, ~both].any()


@pytest.mark.parametrize("num_modes", [1, 3, 5])
def test_a_latent_comes_back_but_for_modes_that_the_network_lacks(num_modes):
    latent = Latent(ADVECTION, source_prior_std=0.3, num_modes=num_modes)
    z = latent.draw(2, generator=torch.Generator().manual_seed(0))
    back = Units(latent, 4).to_latent(Units(latent, 4).from_latent(z))
    if num_modes <= 4:
        torch.testing.assert_close(back, z)
    else:
        assert 0 < (back == 0).sum() < back.numel()
        torch.testing.assert_close(back[back != 0], z[back != 0])


def test_the_source_is_the_same_in_the_network_s_modes():
    """A network of 4 modes, told the strength in `prior`, would decode the same source field."""
    latent = Latent(ADVECTION, source_prior_std=0.3, num_modes=2)
    units = Units(latent, 4)
    z = latent.draw(2, generator=torch.Generator().manual_seed(0))
    own = Latent(ADVECTION, source_prior_std=float(torch.exp(units.prior[-1])), num_modes=4)
    w = units.from_latent(z)
    theirs = torch.cat([w[:, :3], own.source_prior_std * w[:, 3:]], dim=1)
    grid = Grid((16, 16))
    torch.testing.assert_close(Decoder(own).source(theirs, grid), Decoder(latent).source(z, grid))


def test_the_prior_is_told_relative_to_the_family():
    whole = Units(Latent(ADVECTION, source_prior_std=1.0), 12).prior
    np.testing.assert_allclose(whole, [-1, 1, -1, 1, -1, 1, 0], atol=1e-12)
    narrow = torch.tensor([[-1.5, 1.5], [-3.0, 3.0], [0.001, 0.35]])
    np.testing.assert_allclose(Units(Latent(ADVECTION, bounds=narrow), 12).prior[:2], [-0.5, 0.5], atol=1e-12)


@pytest.mark.parametrize("change", [{"pool": 0}, {"channels": (6, 8, 9)}, {"step_width": 5}, {"denoiser_blocks": -1}])
def test_impossible_sizes_are_refused(change):
    with pytest.raises(UsageError):
        replace(SIZE, **change)


def test_a_size_survives_json():
    assert NetworkSize.from_record(json.loads(json.dumps(asdict(SIZE)))) == SIZE
