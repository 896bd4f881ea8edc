"""Comparisons of the model with a Gaussian process without physics, and with its initial state turned."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.distributions import MultivariateNormal

import latentpde as lp
from latentpde.cli import main
from latentpde.errors import no_warnings
from latentpde.questions.mistakes import likeliest_shifts
from latentpde.questions.model_check import physics_free
from latentpde.questions.physics_free import KINDS, PhysicsFree
from latentpde.simulation import Regime

KNOWN = {"num_modes": 0, "fixed": {"vy": 0.0, "kappa": 1e-3}, "initial": lp.Matern(1.4, 0.25)}  # keeps the search short
RNG = np.random.default_rng(4)


def tensor(values):
    return torch.tensor(np.asarray(values), dtype=torch.float64)


def process(num=24, **changed):
    positions, times = RNG.random((num, 2)), np.repeat([0.5, 1.0], num // 2)
    values = np.sin(6 * positions[:, 0]) * np.exp(-times) + 0.1 * RNG.standard_normal(num)
    given = {"noise_std": tensor(np.full(num, 0.1)), "trend": torch.zeros(num, 0).double(), "extent": (1.0, 1.0)}
    return PhysicsFree(tensor(values), tensor(positions), tensor(times), **{**given, **changed})


def test_given_the_start_it_is_the_joint_process_conditioned_on_the_start():
    """By dense matrices: the start at the readings' places and at others, which then tell nothing more."""
    num, scales = 8, tensor(np.log([1.3, 0.4, 0.3, 0.5, 0.8]))
    own = process(num)
    elsewhere = torch.cat([own.positions, tensor(RNG.random((5, 2)))])
    start = tensor(RNG.standard_normal(13))
    joint = PhysicsFree(
        torch.cat([own.values, start]),
        torch.cat([own.positions, elsewhere]),
        torch.cat([own.times, torch.zeros(13).double()]),
        torch.cat([own.noise_std, torch.zeros(13).double()]),
        torch.zeros(num + 13, 0).double(),
        (1.0, 1.0),
    )
    _, covariance = joint.moments(scales, KINDS[1])
    among, cross = covariance[num:, num:], covariance[:num, num:]
    gain = torch.linalg.solve(among, cross.mT).mT
    conditioned = MultivariateNormal(gain @ start, covariance[:num, :num] - gain @ cross.mT)
    expected = float(conditioned.log_prob(own.values))
    found = replace(own, start=start[:num]).log_likelihood(scales, KINDS[1])
    assert float(found) == pytest.approx(expected, abs=1e-3)


def test_a_flat_trend_is_the_limit_of_a_wide_prior():
    own, scales, wide = process(trend=torch.ones(24, 1).double()), tensor(np.log([1.0, 0.1, 0.3, 0.3, 1.0])), 1e3
    _, covariance = own.moments(scales, KINDS[2])
    of_both = MultivariateNormal(torch.zeros(24).double(), covariance + wide**2).log_prob(own.values)
    expected = float(of_both) + math.log(wide * math.sqrt(2 * math.pi))
    assert float(own.log_likelihood(scales, KINDS[2])) == pytest.approx(expected, abs=1e-4)


def test_the_evidence_is_that_of_importance_sampling():
    own = process(noise_std=tensor(np.full(24, np.nan)))
    centres, widths = own.prior
    draws = centres + widths * torch.randn(3000, len(centres), dtype=torch.float64, generator=torch.manual_seed(1))
    for kind in (KINDS[0], KINDS[4]):
        logs = torch.stack([own.log_likelihood(draw, kind) for draw in draws])
        expected = float(torch.logsumexp(logs, 0)) - math.log(len(draws))
        best = own.likeliest(kind, own.starts(kind, np.random.default_rng(0)))
        assert own.log_evidence_about(best, kind) == pytest.approx(expected, abs=0.7)


def test_units_change_the_evidence_by_the_density_of_readings_alone():
    own = process()
    other = replace(
        own,
        values=1000 * own.values,
        noise_std=1000 * own.noise_std,
        positions=50 * own.positions,
        extent=(50.0, 50.0),
        times=3600 * own.times,
    )
    assert other.log_evidence() + 24 * math.log(1000) == pytest.approx(own.log_evidence(), abs=0.05)


def waves(**changed):
    """Of known speeds, which keeps searches short."""
    regime = Regime("known speeds", "klein_gordon", ((0.8, 0.8 + 1e-9), (1.6, 1.6 + 1e-9), (0.3, 3.5)), 0.45)
    cases = lp.simulate(regime, num=1, seed=5, shape=(16, 16), num_modes=2, sparsity=0.4, **changed)
    return replace(lp.Observation.from_dataset(cases), bounds=None)


SPEEDS = {"cx": 0.8, "cy": 1.6}
MISTAKEN = {
    None: lambda one: one,
    "initial state is transposed": lambda one: replace(one, initial=one.initial.mT.contiguous()),
    "initial state is shifted": lambda one: replace(one, initial=one.initial.roll((1, 2), (-2, -1))),
    "readings are multiplied by 1,000": lambda one: replace(one, values=one.values / 1000),
}


@pytest.mark.parametrize("wrong", MISTAKEN, ids=str)
def test_a_mistake_is_named(wrong):
    with no_warnings():
        posterior = lp.reconstruct(MISTAKEN[wrong](waves(pooling=2)), fixed=SPEEDS)
    found = lp.check_model(posterior)
    said = " ".join(found.posterior.warnings(0))
    assert ("fit better if" in said) == (wrong is not None)
    assert wrong is None or wrong in said
    assert len(found.sentences()) == 2
    (record,) = found.records()
    assert record["log_odds_gaussian_process"] == found.log_odds[0]
    assert (record["log_odds_mistake"] > math.log(100)) == (wrong is not None)


def test_the_shift_that_was_made_is_among_the_likeliest():
    shifted = MISTAKEN["initial state is shifted"](waves(pooling=1, noise_std=0.05))
    with no_warnings():
        shifts, num = likeliest_shifts(lp.reconstruct(shifted, fixed=SPEEDS))
    assert (15, 14) in shifts
    assert num == 255


def table(travels):
    """Readings of waves that travel through, or that are new at each time; without a start."""
    rng = np.random.default_rng(2)
    y, x, t = rng.random(90), rng.random(90), np.repeat([0.0, 0.3, 0.6], 30)
    number = np.repeat([0, 1, 2], 30)
    turns = rng.uniform(0, 2 * np.pi, (3, 4)) if not travels else np.zeros((3, 4))
    moved = x - 0.5 * t if travels else x
    waves = [(1, 0), (2, 1), (1, 2), (0, 2)]
    values = sum(np.sin(2 * np.pi * (a * moved + b * y) + turns[number, i]) for i, (a, b) in enumerate(waves))
    return lp.Observation.from_table(values + 0.05 * rng.standard_normal(90), y=y, x=x, t=t, sigma=0.05)


@pytest.mark.parametrize("travels", [False, True])
def test_without_a_start_the_pde_beats_the_process_where_it_holds(travels):
    with no_warnings():
        posterior = lp.reconstruct(table(travels), "advection_diffusion", **KNOWN)
    found = lp.check_model(posterior)
    assert (found.log_odds[0] > math.log(10)) == travels
    assert math.isnan(found.posterior.diagnostics["log_odds_mistake"][0])
    assert any("Gaussian process" in sentence for sentence in found.posterior.warnings(0)) != travels


def test_the_process_has_the_models_trend_and_noise():
    with no_warnings():
        posterior = lp.reconstruct(table(True), "advection_diffusion", **KNOWN, trend="linear")
    own = physics_free(posterior)
    assert own is not None
    assert own.trend.shape == (90, 3)
    assert own.noise_std.unique().tolist() == [0.05]


def test_what_cannot_be_compared_is_said():
    cases = lp.simulate("diffusion", num=1, shape=(16, 16), num_modes=2, sparsity=0.3)
    with pytest.raises(lp.UsageError, match="method exact"):
        lp.check_model(lp.reconstruct(cases, method="map", num_steps=2))
    with pytest.raises(lp.UsageError, match="1,000"):
        process(1002)


def test_the_command_prints_the_odds_for_programs(tmp_path, capsys):
    cases = lp.simulate("klein_gordon", num=1, seed=5, shape=(16, 16), num_modes=2, sparsity=0.4)
    cases.to_netcdf(tmp_path / "waves.nc")
    arguments = ["reconstruct", tmp_path / "waves.nc", "-o", tmp_path / "out.nc", "--pde", "klein_gordon,telegraph"]
    arguments += ["--fixed", "cx=1.0", "--fixed", "cy=1.0", "--fixed", "c=1.0", "--resolution", "8", "--num-draws", "2"]
    with no_warnings(), pytest.raises(SystemExit) as leaving:
        main([str(a) for a in [*arguments, "--check-model", "--json", "-q"]])
    assert not leaving.value.code
    found = json.loads(capsys.readouterr().out)
    assert set(found["families"]) == {"klein_gordon", "telegraph"}
    assert sum(one["probability"] for one in found["families"].values()) == pytest.approx(1, abs=1e-3)
    (record,) = found["model_check"]
    assert isinstance(record["log_odds_gaussian_process"], float)
    assert len(record["sentences"]) == 2
