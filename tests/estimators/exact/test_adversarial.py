"""The exact posterior where data are scarce, extreme, contradictory or ambiguous."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from exact_case import NAMES, Case, Quadrature, check_honest
from scipy.special import logsumexp

from latentpde.estimators import reconstruct
from latentpde.estimators.exact.initial_state import InitialState
from latentpde.estimators.exact.model import Model
from latentpde.observation import Observation
from latentpde.pde import families
from latentpde.simulation import simulate

CORNER = np.zeros((12, 12), dtype=bool)
CORNER[:4, :4] = True


@pytest.mark.parametrize("family", ["advection_diffusion", "klein_gordon", "helmholtz"])
@pytest.mark.parametrize(
    "options",
    [
        pytest.param({"share": 1 / 144}, id="one reading"),
        pytest.param({"share": 1.0}, id="all cells", marks=pytest.mark.slow),
        pytest.param({"noise": 1e-6}, id="noise 1e-6", marks=pytest.mark.slow),
        pytest.param({"noise": 100.0}, id="noise 100"),
        pytest.param({"mask": CORNER}, id="a corner", marks=pytest.mark.slow),
    ],
)
def test_adversarial_cases_stay_honest(family, options):
    case = Case(family, times=(families.get(family).default_time,), seed=3, **options)
    found = case.estimate(detail=False)
    check_honest(case, found)
    assert found.diagnostics["trusted"].all()


@pytest.mark.parametrize(
    "family",
    [
        pytest.param("advection_diffusion", marks=pytest.mark.slow),
        pytest.param("klein_gordon", marks=pytest.mark.slow),
        "helmholtz",
    ],
)
@pytest.mark.parametrize("where", [0, 1], ids=["lower", "upper"])
def test_true_coefficients_at_their_bounds(family, where):
    """Central intervals exclude a bound by construction, so it is the error in standard deviations that counts."""
    bounds = families.get(family).bounds
    width = bounds[:, 1] - bounds[:, 0]
    theta = bounds[:, where] + (1e-6 if where == 0 else -1e-6) * width
    case = Case(family, times=(families.get(family).default_time,), theta=theta.tolist(), seed=1)
    found = case.estimate(detail=False)
    check_honest(case, found, least=0.2)
    notes = found.diagnostics
    assert (np.abs(notes["coefficient_mean"][0] - theta.numpy()) < 5 * notes["coefficient_std"][0]).all()
    error = found.mean(resolution=case.fine.shape)[0] - case.field[0, -1].numpy()
    assert float(np.sqrt(((error / found.std(resolution=case.fine.shape)[0]) ** 2).mean())) < 4


def test_a_needle_in_a_corner_of_the_bounds_is_found_whatever_the_last_bits():
    """A ten-millionth of the box, beside wider modes all over it; a search that depends on luck misses some of these.

    The evidence of the corner alone, by Gauss-Legendre quadrature, is what that of all must not fall short of."""
    lower, upper = families.get("klein_gordon").bounds.unbind(-1)
    case = Case("klein_gordon", times=(1.0,), theta=(lower + 1e-6 * (upper - lower)).tolist(), seed=1)
    state = InitialState.of(case.observation, detail=False, noise_std=0.0)
    model = Model.with_known_start(case.observation, case.latent, state).likelihood
    sizes = (0.03, 0.03, 0.6)
    axes = [np.polynomial.legendre.leggauss(24) for _ in sizes]
    nodes = np.stack(np.meshgrid(*(s * (x + 1) / 2 for s, (x, _) in zip(sizes, axes, strict=True)), indexing="ij"), -1)
    weights = np.einsum("i,j,k->ijk", *(s * w / 2 for s, (_, w) in zip(sizes, axes, strict=True)))
    values = model.log_likelihood(lower + (upper - lower) * torch.from_numpy(nodes.reshape(-1, 3)))
    corner = float(logsumexp(values.numpy(), b=weights.ravel()))
    for k in range(6):
        readings = case.observation.values * (1 + 1e-15 * k)
        found = case.estimate(Observation(**{**vars(case.observation), "values": readings}), detail=False)
        assert found.diagnostics["trusted"].all()
        assert found.diagnostics["num_rounds"][0] == 1  # each half found it by itself
        assert found.diagnostics["log_evidence"][0] > corner - 4 * found.diagnostics["log_evidence_error"][0], k


@pytest.mark.parametrize("value", [0.0, 7.0])
def test_constant_readings(value):
    """Seven standard deviations of any field the prior knows: a misfit, to be borne and not hidden by a crash."""
    case = Case(values=value)
    found = case.estimate()
    for name in NAMES - {"evidence_gap"}:
        assert np.isfinite(found.diagnostics[name]).all(), name
    assert np.isfinite(found.draws(resolution=24)).all()
    assert np.isfinite(found.mean(resolution=24)).all()
    if value:
        assert not found.diagnostics["trusted"].any()


@pytest.mark.parametrize("family", ["advection_diffusion", "klein_gordon", "helmholtz"])
def test_readings_that_nothing_explains_are_not_trusted(family):
    """The noise is ten times what it is said to be."""
    times = (families.get(family).default_time,)
    good = Case(family, times=times, noise=0.15, share=0.4, seed=2)
    assert good.estimate().diagnostics["trusted"].all()
    assert 0.3 < float(good.estimate().diagnostics["misfit"][0]) < 1.5
    stated = torch.full_like(good.observation.noise_std, 0.015)
    found = good.estimate(Observation(**{**vars(good.observation), "noise_std": stated}))
    assert float(found.diagnostics["misfit"][0]) > 1.5
    assert not found.diagnostics["trusted"].any()
    assert "not explained" in found.warnings(0)[0]
    assert not good.estimate().warnings(0)


def test_a_field_that_nothing_restrains_is_not_trusted():
    """With k near 0 a uniform source lifts the field without limit, and rounding is all that is left of it."""
    data = simulate("helmholtz", num=1, seed=5, shape=(64, 64))
    good, bad = (reconstruct(data, bounds={"k": (k / 2, k)}, sweep=64) for k in (1e-2, 1e-4))
    assert not good.warnings(0)
    assert "rounding errors" in bad.warnings(0)[0]
    assert not bad.diagnostics["trusted"].any()


@pytest.mark.parametrize("constant", [0.0, 2.0])
def test_constant_initial_state(constant):
    """A state at rest is what many will give; it has no spectrum to fit."""
    case = Case()
    flat = torch.full_like(case.observation.initial, constant)
    found = case.estimate(Observation(**{**vars(case.observation), "initial": flat}))
    assert np.isfinite(found.draws(resolution=24)).all()
    assert np.isfinite(found.mean(resolution=24)).all()


def test_two_modes_of_equal_weight_are_both_found():
    """Without a source, at T = 1/4 on the unit square, a velocity larger by 4 gives the same readings exactly."""
    case = Case(num_modes=0, theta=[-2.0, 0.3, 0.02], times=(0.25,), noise=0.05)
    found = case.estimate(num_draws=400, detail=False)
    assert found.diagnostics["trusted"].all()
    vx = found.coefficients.sel(coefficient="vx").values[0]
    near = np.abs(vx[:, None] - [-2.0, 2.0]) < 0.5
    assert near.any(1).all()
    np.testing.assert_allclose(near.mean(0), 0.5, atol=0.1)


def test_two_modes_weigh_what_quadrature_says():
    """With a source they are not quite equal: the source is carried along on the way."""
    known = {"vy": 0.3, "kappa": 0.02}
    case = Case(num_modes=2, theta=[-2.0, 0.3, 0.02], noise=0.3, share=0.15, source_prior_std=2.0)
    expected = Quadrature(case, "vx", known, num=4001)
    right = expected.weights[expected.nodes > 0].sum()
    assert 0.02 < right < 0.98  # the case is what it should be
    found = case.estimate(fixed=known, num_draws=2000, detail=False, sweep=4096)
    assert abs((found.coefficients.sel(coefficient="vx") > 0).mean() - right) < 0.02
