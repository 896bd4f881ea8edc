"""The exact posterior from end to end: against quadrature, other priors, awkward cases, and as an estimator."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from exact_case import Case, Quadrature, float64
from scipy.stats import norm

from latentpde.decoder import Decoder
from latentpde.errors import UsageError
from latentpde.estimators.base import reconstruct
from latentpde.latent import Latent
from latentpde.pde import families

# Against quadrature


@pytest.mark.parametrize(
    ("family", "name", "known", "num_modes", "time"),
    [
        ("advection_diffusion", "kappa", {"vx": 0.7, "vy": -0.4}, 2, 0.25),
        ("klein_gordon", "cx", {"cy": 0.9, "m": 1.5}, 1, 0.5),
        ("helmholtz", "kappa_y", {"kappa_x": 0.2, "k": 1.3}, 2, 1.0),
    ],
)
def test_posterior_of_one_coefficient_field_and_evidence_agree_with_quadrature(family, name, known, num_modes, time):
    names = families.get(family).coefficient_names
    middle = dict(zip(names, families.get(family).bounds.mean(-1).tolist(), strict=True)) | known
    case = Case(family, shape=(6, 8), share=0.15, times=(time,), num_modes=num_modes, theta=list(middle.values()))
    expected = Quadrature(case, name, known)
    found = case.estimate(
        fixed=known, detail=False, sweep=65_536, target=1000.0, num_mean_nodes=30_000, num_draws=10_000
    )
    j = names.index(name)
    notes, width = found.diagnostics, float(case.latent.bounds[j, 1] - case.latent.bounds[j, 0])
    assert notes["trusted"].all()
    assert abs(notes["coefficient_mean"][0, j] - expected.mean) < 1e-3 * width
    assert abs(notes["coefficient_std"][0, j] - expected.std) < 1e-3 * width
    assert abs(notes["log_evidence"][0] - expected.log_evidence) < 1e-3
    np.testing.assert_allclose(found.mean(resolution=case.grid.shape)[0], expected.field, atol=1e-3)
    np.testing.assert_allclose(found.std(resolution=case.grid.shape)[0], expected.field_std, rtol=0.03, atol=1e-3)
    draws = found.coefficients[0, :, j].values
    np.testing.assert_allclose(np.quantile(draws, [0.1, 0.5, 0.9]), weighted_quantile(expected), atol=0.02 * width)


def weighted_quantile(quadrature, levels=(0.1, 0.5, 0.9)):
    return np.interp(levels, np.cumsum(quadrature.weights), quadrature.nodes)


# Priors


KNOWN = {"vx": 0.7, "vy": -0.4}


def one_coefficient():
    return Case(shape=(6, 8), share=0.15, theta=[0.7, -0.4, 0.1])


def test_gaussian_prior_is_that_of_quadrature():
    case, mean, std = one_coefficient(), 0.25, 0.03
    low, high = case.latent.bounds[2].tolist()
    inside = norm.cdf(high, mean, std) - norm.cdf(low, mean, std)
    expected = Quadrature(
        case, "kappa", KNOWN, log_prior=lambda k: norm.logpdf(k, mean, std) + np.log((high - low) / inside)
    )
    found = case.estimate(fixed=KNOWN, gaussian={"kappa": (mean, std)}, sweep=4096, num_draws=2).diagnostics
    assert abs(found["coefficient_mean"][0, 2] - expected.mean) < 1e-3 * (high - low)
    assert abs(found["coefficient_std"][0, 2] - expected.std) < 1e-3 * (high - low)
    assert abs(found["log_evidence"][0] - expected.log_evidence) < 1e-3


def test_tighter_bounds_cut_the_posterior_off():
    bounds = [[-3.0, 3.0], [-3.0, 3.0], [0.06, 0.12]]
    case = Case(shape=(6, 8), share=0.15, theta=[0.7, -0.4, 0.1], bounds=bounds)
    expected = Quadrature(case, "kappa", KNOWN)
    found = case.estimate(fixed=KNOWN, sweep=4096)
    kappa = found.coefficients.sel(coefficient="kappa").values
    assert ((kappa > 0.06) & (kappa < 0.12)).all()
    assert abs(found.diagnostics["coefficient_mean"][0, 2] - expected.mean) < 1e-3 * 0.06
    assert abs(found.diagnostics["log_evidence"][0] - expected.log_evidence) < 1e-3


def test_fixed_coefficients_stay_and_free_ones_move():
    found = one_coefficient().estimate(fixed=KNOWN).coefficients[0]
    np.testing.assert_allclose(found.sel(coefficient="vx"), 0.7)
    np.testing.assert_allclose(found.sel(coefficient="vy"), -0.4)
    assert len(np.unique(found.sel(coefficient="kappa"))) > 10


def test_all_coefficients_known_leaves_one_gaussian():
    case = one_coefficient()
    found = case.estimate(fixed={**KNOWN, "kappa": 0.1}, detail=False, num_draws=4000)
    notes = found.diagnostics
    narrow = Latent(case.latent.family, 0.5, 2, float64([[-3.0, 3.0], [-3.0, 3.0], [0.0999, 0.1001]]))
    case.latent, case.decoder = narrow, Decoder(narrow, case.grid.extent)
    expected = Quadrature(case, "kappa", KNOWN, num=3)
    assert notes["trusted"].all()
    assert notes["num_evaluations"] == 1
    assert abs(notes["log_evidence"][0] - expected.log_evidence) < 1e-4
    np.testing.assert_allclose(found.mean(resolution=(6, 8))[0], expected.field, atol=1e-4)
    np.testing.assert_allclose(found.std(resolution=(6, 8))[0], expected.field_std, rtol=0.06)


def test_a_coefficient_fixed_at_its_bound_is_allowed():
    found = one_coefficient().estimate(fixed={"kappa": 0.35}, num_draws=3)
    np.testing.assert_allclose(found.coefficients.sel(coefficient="kappa"), 0.35, rtol=1e-6)
    assert np.isfinite(found.mean(resolution=8)).all()


def test_bounds_may_come_in_single_precision():
    """`torch.tensor([[...]])` is float32 unless told otherwise, and that is how a user writes bounds."""
    case = one_coefficient()
    bounds = torch.tensor([[0.5, 1.0], [-1.0, 0.0], [0.05, 0.2]])
    found = reconstruct(case.observation, "advection_diffusion", bounds=bounds, num_modes=1, num_draws=3)
    kappa = found.coefficients.sel(coefficient="kappa").values
    assert ((kappa >= 0.05) & (kappa <= 0.2)).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"fixed": {"speed": 1.0}}, "speed"),
        ({"fixed": {"vx": 4.0}}, r"outside its bounds \[-3, 3\]"),
        ({"fixed": {"vx": 1.0}, "gaussian": {"vx": (0.0, 1.0)}}, "at most one"),
        ({"gaussian": {"vx": (0.0, 0.0)}}, "gaussian.vx.1 of exact must be positive"),
        ({"gaussian": {"vx": (float("nan"), 1.0)}}, "gaussian.vx.0 of exact must be a finite number"),
        ({"initial_noise_std": -1.0}, "at least 0"),
        ({"num_mean_nodes": 0}, "num_mean_nodes"),
        ({"initial": 4.0}, "the option initial of exact must be an instance of Spectrum"),
        ({"trend": "quadratic"}, "trend of exact must be one of 'none', 'constant' or 'linear'"),
    ],
)
def test_nonsense_is_refused_with_a_reason(options, message):
    with pytest.raises(UsageError, match=message):
        one_coefficient().estimate(**options)
