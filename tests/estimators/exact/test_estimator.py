"""The exact posterior as a method: its options, draws, means, seeds and resolutions."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from exact_case import NAMES, Case, check_honest, generator

from latentpde.grid import at_points, average_pool
from latentpde.observation import Observation
from latentpde.operator import ObservationOperator

WEAK = [0.5, -0.4, 0.01]  # diffusion that leaves the initial state something to say


def test_no_initial_state_at_all():
    """Everything is unknown, and said to be: wider than with a state, and wide enough."""
    case = Case(share=0.4, theta=WEAK)
    blind, seeing = (case.estimate(o, num_draws=60) for o in (case.without_initial(), case.observation))
    check_honest(case, blind, least=0.6)
    assert blind.std(resolution=12).mean() > 2 * seeing.std(resolution=12).mean()


OPTIONS = {
    "no state": ({"share": 0.6}, {}),
    "no state, points": ({"share": 0.6, "observed": "point", "pooling": 4}, {}),
    "plain": ({}, {}),
    "no detail": ({}, {"detail": False}),
    "points": ({"observed": "point", "pooling": 4}, {}),
    "pooled": ({"observed": "pooled", "pooling": 4}, {}),
    "two times": ({"times": (0.1, 0.25)}, {}),
    "rectangle": ({"shape": (8, 16), "extent": (1.0, 2.0)}, {}),
    "no source": ({"num_modes": 0}, {}),
    "noisy state": ({"initial_noise": 0.3, "share": 0.6}, {"initial_noise_std": 0.3}),
    "noisy state, points": (
        {"initial_noise": 0.3, "share": 0.6, "observed": "point", "pooling": 4},
        {"initial_noise_std": 0.3},
    ),
}


@pytest.fixture(scope="module")
def estimated():
    """Each setting once, with enough draws to know their mean."""
    cache = {}

    def get(name):
        if name not in cache:
            settings, options = OPTIONS[name]
            case = Case(theta=WEAK, **settings)
            observation = case.without_initial() if name.startswith("no state") else case.observation
            cache[name] = case, case.estimate(observation, num_draws=200, num_mean_nodes=200, **options)
        return cache[name]

    return get


@pytest.mark.parametrize("name", OPTIONS)
def test_every_setting_is_honest(name, estimated):
    case, found = estimated(name)
    check_honest(case, found, least=0.6)


@pytest.mark.parametrize("name", OPTIONS)
def test_mean_is_that_of_the_draws_but_for_chance(name, estimated):
    """Averages of conditional means and of draws estimate one thing; where they part, one forgets something."""
    _, found = estimated(name)
    difference = found.mean(resolution=24) - found.draws(resolution=24).mean("draw")
    scores = (difference / (found.std(resolution=24) / np.sqrt(found.num_draws))).values
    assert np.sqrt((scores**2).mean()) < 2.2
    assert np.abs(scores).max() < 7


@pytest.mark.parametrize("name", ["plain", "no detail", "two times", "rectangle", "no source"])
def test_draws_are_as_far_from_the_readings_as_noise_is(name, estimated):
    case, found = estimated(name)
    residual = ObservationOperator(case.observation, found.decoder).residual(found.z)
    assert 0.6 < float(residual.mean()) / case.noise**2 < 1.6


@pytest.mark.parametrize("observed", ["lowres-solve", "pooled", "point"])
@pytest.mark.parametrize("initial", ["noisy", "none"])
def test_uncertain_states_are_drawn_so_that_fields_meet_the_readings(observed, initial):
    """Precise readings of the field itself: every draw must pass through them, whatever the state was thought to be."""
    case = Case(observed=observed, pooling=4, noise=0.02, share=0.3, initial_noise=0.2, num_modes=1, theta=WEAK)
    observation = case.observation if initial == "noisy" else case.without_initial()
    noise = {"initial_noise_std": 0.2} if initial == "noisy" else {}
    found = case.estimate(
        observation, detail=False, fixed=dict(zip(("vx", "vy", "kappa"), case.theta[0].tolist(), strict=True)), **noise
    )
    if initial == "none":
        check_fields_meet_readings(case, found)
        return
    spectrum = found.decoder.spectrum(found.z, found.initial_hat[:], case.times)[0, :, 0]
    if observed == "point":
        read = at_points(spectrum, observation.positions.expand(len(spectrum), -1, 2), case.grid.extent)
    elif observed == "pooled":
        read = average_pool(case.fine.synthesise(spectrum), 4).flatten(1)[:, observation.mask.flatten()]
    else:
        # a coarse solve starts from the averages themselves
        state = average_pool(case.fine.synthesise(found.initial_hat[:]), 4)
        read = found.decoder.decode(found.z, state, case.times, case.grid)[0, :, 0].flatten(1)[
            :, observation.mask.flatten()
        ]
    residual = read - observation.values[observation.mask]
    assert float((residual**2).mean().sqrt()) < 3 * case.noise


def check_fields_meet_readings(case, found):
    """The draws themselves, at the places of the readings; a coarse solve is taken for readings at cell centres."""
    observation = case.observation
    if observation.observed == "pooled":
        draws = torch.from_numpy(found.draws(resolution=case.fine.shape).values[0])
        read = average_pool(draws, 4).flatten(1)[:, observation.mask.flatten()]
    else:
        cells = torch.stack(torch.meshgrid(*case.grid.coordinates(), indexing="ij"), dim=-1).flatten(0, 1)
        places = cells[observation.mask.flatten()] if observation.positions is None else observation.positions[0]
        read = torch.from_numpy(found.at(places).draws.values[0])
    residual = read - observation.values[observation.mask]
    assert float((residual**2).mean().sqrt()) < 3 * case.noise


def test_detail_and_source_do_not_share_their_random_numbers():
    """Where one stream of numbers makes both, what should be independent is not."""
    case = Case(noise=100.0, num_modes=1, shape=(8, 8))
    known = dict(zip(("vx", "vy", "kappa"), case.theta[0].tolist(), strict=True))
    found = case.estimate(fixed=known, num_draws=512)
    source = found.decoder.latent.split(found.z)[1][0].unflatten(-1, (2, 2))[..., 0].flatten()
    states = case.fine.synthesise(found.initial_hat[:][0])
    detail = (states - states.mean(0))[0].flatten()
    assert len(source) == len(detail) == 1024
    assert abs(float(torch.corrcoef(torch.stack([source, detail]))[0, 1])) < 5 / np.sqrt(1024)


def test_a_batch_is_its_cases_one_by_one():
    """What a case gives does not depend on what it was run with: latents bit for bit, fields but for the transforms."""
    case = Case(num=3)
    whole = case.estimate(num_draws=5)
    for i in range(3):
        single = case.estimate(case.observation[i], num_draws=5)
        assert torch.equal(single.z[0], whole.z[i])
        assert torch.equal(single.mean_z[0], whole.mean_z[i])
        np.testing.assert_allclose(single.mean(resolution=24)[0], whole.mean(resolution=24)[i], atol=1e-13)
        np.testing.assert_allclose(single.draws(resolution=24)[0], whole.draws(resolution=24)[i], atol=1e-13)
        for name in NAMES:
            np.testing.assert_array_equal(single.diagnostics[name][0], whole.diagnostics[name][i])


def test_seed_decides_the_draws():
    case = Case()
    first, again, other = (case.estimate(num_draws=4, seed=seed) for seed in (1, 1, 2))
    assert torch.equal(first.z, again.z)
    np.testing.assert_array_equal(first.draws(resolution=12), again.draws(resolution=12))
    assert not torch.equal(first.z, other.z)


@pytest.mark.parametrize(("name", "coarse"), [("no detail", 24), ("plain", 48)])
def test_means_at_two_resolutions_agree_where_they_meet(name, coarse, estimated):
    """Three times finer, every third cell has the same centre."""
    _, found = estimated(name)
    low, high = found.mean(resolution=coarse), found.mean(resolution=3 * coarse)
    np.testing.assert_allclose(low.y, high.y[1::3])
    np.testing.assert_allclose(low, high[..., 1::3, 1::3], atol=1e-10)


def test_detail_widens_the_field_and_leaves_the_coefficients_alone():
    case = Case(pooling=4, num=1)
    rough = Observation(
        **{**vars(case.observation), "initial": torch.randn(1, 12, 12, dtype=torch.float64, generator=generator())}
    )
    with_detail, without = (case.estimate(rough, detail=detail, num_draws=60) for detail in (True, False))
    np.testing.assert_array_equal(with_detail.coefficients, without.coefficients)
    assert with_detail.std(resolution=48, times=[0.0]).mean() > without.std(resolution=48, times=[0.0]).mean() + 0.05


def test_several_snapshots_tell_more_than_one():
    two = Case(times=(0.1, 0.25), seed=2)
    values = torch.where(two.observation.mask, two.observation.values, torch.nan)
    one = Observation.from_arrays(
        values[:, 1:], two.initial, times=(0.25,), noise_std=two.noise, grid=two.grid, pooling=1
    )
    spread = [two.estimate(o, num_draws=2).diagnostics["coefficient_std"][0] for o in (two.observation, one)]
    assert spread[0].prod() < 0.7 * spread[1].prod()


def test_times_between_and_beyond_the_readings_are_decoded():
    case = Case()
    fields = case.estimate(num_draws=3, detail=False).draws(resolution=12, times=[0.0, 0.1, 0.5])
    assert fields.shape == (1, 3, 3, 12, 12)
    np.testing.assert_allclose(fields[0, :, 0], case.initial.expand(3, -1, -1), atol=1e-9)


def test_more_readings_than_the_covariance_form_takes():
    """The information form end to end, and near the truth."""
    case = Case(shape=(24, 24), share=1.0, num_modes=2)
    found = case.estimate(detail=False)
    check_honest(case, found)
    assert float(np.sqrt(((found.mean(resolution=96)[0] - case.field[0, 0].numpy()) ** 2).mean())) < 0.05
