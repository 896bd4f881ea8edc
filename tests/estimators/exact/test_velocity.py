"""Families of order 2 that do not start at rest: the velocity at time 0 is given, or unknown with a prior."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy.integrate import solve_ivp
from scipy.stats import multivariate_normal

import latentpde as lp
from latentpde.decoder import with_velocity
from latentpde.estimators.exact.estimator import Exact
from latentpde.estimators.exact.initial_state import InitialState
from latentpde.estimators.exact.model import Model
from latentpde.estimators.exact.parameters import Parameters
from latentpde.estimators.exact.problem import Problem
from latentpde.grid import wavenumbers
from latentpde.latent import Latent
from latentpde.pde import get_family

ORDER_2 = ("klein_gordon", "telegraph")


def oscillator(family, k, theta, start, times):
    """``(u, u')`` of one mode by an integrator of ordinary differential equations."""
    values = [torch.tensor(c, dtype=torch.float64).reshape(1, 1) for c in theta]
    symbol = float(family.symbol(k, *values))
    damping = family.damping(k, *values)
    damping = 0.0 if damping is None else float(damping)
    found = solve_ivp(
        lambda t, s: [s[1], -damping * s[1] - symbol * s[0]],
        (0, times[-1]),
        start,
        t_eval=times,
        method="DOP853",
        rtol=1e-12,
        atol=1e-13,
    )
    return found.y[0]


@pytest.mark.parametrize("name", ORDER_2)
def test_the_decoder_moves_as_the_equation_does(name):
    family, times = get_family(name), np.array([0.1, 0.4, 1.0])
    latent = Latent(family, num_modes=0)
    for theta in (latent.bounds.mean(1), latent.bounds @ torch.tensor([0.1, 0.9]).double()):
        u0_hat, velocity_hat = (torch.zeros((4, 2), dtype=torch.complex128) for _ in range(2))
        u0_hat[1, 1], velocity_hat[1, 1] = 0.7, -2.0 + 1.5j
        z = latent.pack(theta, torch.zeros(0).double())
        decoder = lp.Decoder(latent, (1.0, 1.3), moving=True)
        found = decoder.spectrum(z, with_velocity(u0_hat, velocity_hat), times.tolist())[:, 1, 1].numpy()
        k = wavenumbers((4, 2), (1.0, 1.3))
        one = type(k)(k.y[1:2], k.x[:, 1:2])
        real, imaginary = (oscillator(family, one, theta.tolist(), start, times) for start in ((0.7, -2.0), (0.0, 1.5)))
        np.testing.assert_allclose(found, real + 1j * imaginary, atol=1e-8)


def waves_of(readings, k):
    return np.exp(1j * readings.positions.numpy() @ k.T)


@pytest.mark.parametrize("domain", [lp.Domain(), lp.Domain.periodic()], ids=["open", "periodic"])
@pytest.mark.parametrize("name", ORDER_2)
def test_the_likelihood_with_an_unknown_velocity_is_that_of_the_equations(name, domain):
    """State, velocity and no source; the responses by an integrator."""
    rng, family = np.random.default_rng(3), get_family(name)
    places, times = np.tile(rng.random((6, 2)), (3, 1)), np.repeat([0.0, 0.3, 0.8], 6)
    table = {"y": places[:, 0], "x": places[:, 1], "t": times, "sigma": 0.2, "grid": lp.Grid((8, 8)), "domain": domain}
    observation = lp.Observation.from_table(rng.standard_normal(18), **table)
    latent = Latent(family, num_modes=0, infers_source=True)
    problem = Problem.of(observation, latent, 0.0)
    priors = {"initial": lp.Matern(), "velocity": lp.Matern(), "source": None}
    model = problem.model(problem.num_modes(), trend="none", **priors)
    parameters = Parameters.of(model.decoder.latent, {}, {}, model.levels)
    point = parameters.at(rng.uniform(0.3, 0.7, (1, parameters.num_free)))
    named = dict(zip(parameters.names, point[0].tolist(), strict=True))
    theta = point[0, : len(family.coefficients)].tolist()
    readings, (height, width) = problem.readings, model.decoder.extent
    kept = model.likelihood.unknown.parts[0][0].modes.k.numpy()
    k = np.unique(np.round(np.concatenate([kept, -kept]), 12), axis=0)
    when = np.unique(readings.times.numpy())
    covariance = 0.2**2 / problem.units.value**2 * np.eye(18)
    for field, start in (("initial", (1.0, 0.0)), ("velocity", (0.0, 1.0))):
        std, length = named[f"{field}_prior_std"], named[f"{field}_prior_length"]
        scale = 3 / length**2
        power = std**2 * 6 * math.pi * scale**1.5 / (scale + (k**2).sum(1)) ** 2.5 / (height * width)
        wave = type(wavenumbers((2, 2), (1.0, 1.0)))
        moved = np.stack(
            [
                oscillator(family, wave(*torch.tensor([[[a]], [[b]]], dtype=torch.float64)), theta, start, when)
                for a, b in k
            ]
        )
        response = waves_of(readings, k) * moved[:, np.searchsorted(when, readings.times.numpy())].T
        covariance = covariance + ((response * power) @ response.conj().T).real
    expected = multivariate_normal(cov=covariance).logpdf(readings.values.numpy())
    assert abs(float(model.likelihood.log_likelihood(point)) - expected) < 1e-8 * abs(expected)


def moving_case(velocity, noise=0.02):
    """A wave on the torus whose start moves, read at half of the cells of a coarse grid."""
    grid, family = lp.Grid((8, 8)), get_family("klein_gordon")
    y, x = (2 * math.pi * c for c in grid.coordinates())
    u0 = torch.cos(y)[:, None] + 0.5 * torch.sin(x + 1)
    v0 = velocity * (torch.sin(y)[:, None] * torch.cos(x) + 0.4)
    latent = Latent(family, num_modes=0)
    z = latent.pack(latent.bounds.mean(1), torch.zeros(0).double())
    start = with_velocity(grid.analyse(u0), grid.analyse(v0))
    field = grid.synthesise(lp.Decoder(latent, moving=True).spectrum(z, start, [0.3, 0.7]))
    rng = np.random.default_rng(0)
    values = field.numpy() + noise * rng.standard_normal(field.shape)
    values[rng.random(values.shape) < 0.5] = np.nan
    data = {"times": [0.3, 0.7], "noise_std": noise, "domain": lp.Domain.periodic(), "pooling": 1}
    return values, u0.numpy(), v0.numpy(), field.numpy(), data


def errors_of(posterior, field):
    return float(np.sqrt(((posterior.mean(8, times=[0.3, 0.7]).values - field) ** 2).mean()))


def test_a_given_velocity_and_an_unknown_one_are_found_where_rest_fails():
    values, u0, v0, field, data = moving_case(3.0)
    observation = lp.Observation.from_arrays(values, u0, **data)
    known = {"source": "none", "bounds": {"cx": (0.5, 2.0), "cy": (0.5, 2.0), "m": (0.5, 8.0)}, "detail": False}
    given = lp.reconstruct(observation, "klein_gordon", velocity=v0, **known)
    unknown = lp.reconstruct(observation, "klein_gordon", velocity="Matern()", **known)
    with pytest.warns(lp.LatentPDEWarning):
        rest = lp.reconstruct(observation, "klein_gordon", **known)
    assert errors_of(given, field) < 0.02 < 0.2 < errors_of(rest, field)
    assert errors_of(unknown, field) < 0.05
    assert {"velocity_prior_std", "velocity_prior_length"} <= {*unknown.level_names}
    in_file = lp.Observation.from_arrays(values, u0, initial_velocity=v0, **data)
    again = lp.reconstruct(in_file, "klein_gordon", **known)
    np.testing.assert_array_equal(again.mean(8), given.mean(8))
    np.testing.assert_allclose(unknown.std(8, times=[0.0]), 0.0, atol=1e-9)  # the start itself is known


def test_the_mean_of_the_readings_has_the_given_velocity():
    """The known-start model against the decoder."""
    values, u0, v0, _, data = moving_case(2.0)
    case = lp.Observation.from_arrays(values, u0, initial_velocity=v0, **data)
    latent = Latent(get_family("klein_gordon"), num_modes=0)
    model = Model.with_known_start(case, latent, InitialState.of(case, detail=False, noise_std=0.0))
    theta = latent.bounds.mean(1)
    z = latent.pack(theta, torch.zeros(0).double())
    start = with_velocity(case.grid.analyse(torch.from_numpy(u0)), case.grid.analyse(torch.from_numpy(v0)))
    field = case.grid.synthesise(lp.Decoder(latent, moving=True).spectrum(z, start, case.times))
    assert model.likelihood.known is not None
    np.testing.assert_allclose(model.likelihood.known.mean(theta[None])[0], field[case.mask[0]], atol=1e-9)


@pytest.mark.parametrize(
    ("family", "options", "words"),
    [
        ("advection_diffusion", {"velocity": "Matern()"}, "order 1 in time"),
        ("klein_gordon", {"velocity": np.zeros((3, 3))}, "they must agree"),
        ("klein_gordon", {"velocity": "rest"}, "Matern"),
        ("klein_gordon", {"velocity": np.zeros((8, 8)), "domain": "open"}, "edges that are not open"),
        ("klein_gordon", {"velocity": np.zeros((8, 8)), "method": "map"}, "at rest"),
    ],
)
def test_velocities_that_cannot_be(family, options, words):
    values, u0, _, _, data = moving_case(1.0)
    observation = lp.Observation.from_arrays(values, u0, **data)
    with pytest.raises(lp.LatentPDEError, match=words):
        lp.reconstruct(observation, family, **options)


def test_zero_is_the_default():
    assert Exact().velocity is None
    values, u0, _, _, data = moving_case(0.0)
    observation = lp.Observation.from_arrays(values, u0, **data)
    quick = {"num_modes": 0, "fixed": {"cx": 1.0, "cy": 1.0}, "detail": False}
    default = lp.reconstruct(observation, "klein_gordon", **quick)
    zero = lp.reconstruct(observation, "klein_gordon", velocity="zero", **quick)
    np.testing.assert_array_equal(default.mean(8), zero.mean(8))
