"""Data as they come: the likelihood against dense Gaussians from the equations themselves, and what must not matter."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy.integrate import quad_vec
from scipy.linalg import null_space
from scipy.stats import multivariate_normal

import latentpde as lp
from latentpde.estimators.exact.embedding import Embedding
from latentpde.estimators.exact.model import Model
from latentpde.estimators.exact.parameters import Parameters
from latentpde.estimators.exact.readings import Readings
from latentpde.latent import Latent
from latentpde.observation.tables import typical_distance
from latentpde.pde import get_family
from latentpde.pde.scales import exponents, scaled_bounds

EXTENT = (3.0, 5.0)
GRID = lp.Grid((6, 10), EXTENT, (10.0, -2.0))
FAMILY = get_family("advection_diffusion")
LATENT = Latent(FAMILY, bounds=torch.tensor([[-2.0, 2.0], [-2.0, 2.0], [0.05, 0.5]]), infers_source=True)


def table(num=30, seed=0, ship=False, **columns):
    """A table of arbitrary numbers: stations at three times, or a ship that is never twice at a place."""
    rng = np.random.default_rng(seed)
    places = rng.random((num if ship else num // 3, 2)) * EXTENT + np.array(GRID.origin)
    places = places if ship else np.tile(places, (3, 1))
    times = np.sort(rng.random(num)) if ship else np.repeat([4.0, 4.5, 5.5], num // 3)
    return {"value": 2 + rng.standard_normal(len(times)), "y": places[:, 0], "x": places[:, 1], "t": times, **columns}


def model_of(observation, latent=LATENT, most_modes=40, **options):
    readings = Readings.of(observation)
    distance, duration = typical_distance(readings.positions.numpy(), EXTENT), float(readings.times.max())
    domain = observation.domain
    around = Embedding.of(observation.grid, domain, latent.family, latent.bounds, duration, distance, most_modes)
    return Model.with_unknown_start(readings, observation.grid, latent, around, **options), readings


def some_parameters(model, num=3, seed=1):
    parameters = Parameters.of(model.decoder.latent, {}, {}, model.levels)
    return parameters.at(np.random.default_rng(seed).uniform(0.2, 0.8, (num, parameters.num_free))), parameters.names


class Dense:
    """The covariance of readings by sums over all modes of the plane, the response to a source by quadrature."""

    def __init__(self, model, readings, named):
        (height, width), kept = model.decoder.extent, model.likelihood.unknown.parts[0][0].modes.k.numpy()
        self.k = np.unique(np.round(np.concatenate([kept, -kept]), 12), axis=0)  # negative columns too
        self.area, self.named = height * width, named
        self.at, self.times, self.cells = (
            part.numpy() for part in (readings.positions, readings.times, readings.cells)
        )

    def matern(self, field):
        std, length, nu = self.named[f"{field}_prior_std"], self.named[f"{field}_prior_length"], 1.5
        scale = 2 * nu / length**2
        # the two-dimensional Fourier transform of Matern's correlation with smoothness 3/2
        return std**2 * 6 * math.pi * scale**nu / (scale + (self.k**2).sum(1)) ** (nu + 1) / self.area * (nu / 1.5)

    def covariance(self):
        ky, kx = self.k.T
        rate = self.named["kappa"] * (ky**2 + kx**2) + 1j * (self.named["vx"] * kx + self.named["vy"] * ky)
        half = self.cells[:, None] * self.k / 2
        averages = np.where(half == 0, 1.0, np.sin(half) / np.where(half == 0, 1.0, half)).prod(-1)  # over cells
        waves = averages * np.exp(1j * self.at @ self.k.T)
        state = waves * np.exp(-rate * self.times[:, None])
        grown = np.stack([quad_vec(lambda s: np.exp(-rate * s), 0, t, epsabs=1e-13)[0] for t in self.times])
        source = waves * grown
        return sum(
            ((response * self.matern(field)) @ response.conj().T).real
            for field, response in (("initial", state), ("source", source))
        )


@pytest.mark.parametrize("form", ["covariance", "information"])
@pytest.mark.parametrize("trend", ["none", "constant", "linear"])
@pytest.mark.parametrize("ship", [False, True], ids=["stations", "ship"])
@pytest.mark.parametrize("edges", [("open", "open"), ("periodic", "open"), ("periodic", "periodic")])
def test_the_likelihood_is_that_of_the_equations(edges, ship, trend, form):
    """With noise groups, one of them known. A flat prior leaves the density of contrasts, which no trend changes."""
    columns = table(ship=ship)
    groups = np.arange(30) % 3
    sigma = np.where(groups == 2, 0.3, np.nan)
    domain = lp.Domain(*edges)
    observation = lp.Observation.from_table(**columns, group=groups, sigma=sigma, grid=GRID, domain=domain)
    model, readings = model_of(observation, trend=trend, form=form)
    parameters, names = some_parameters(model)
    found = model.likelihood.log_likelihood(parameters)
    for row, log_likelihood in zip(parameters.numpy(), found.tolist(), strict=True):
        named = dict(zip(names, row, strict=True))
        levels = np.array([named["noise_std_0"], named["noise_std_1"], 0.3])
        covariance = Dense(model, readings, named).covariance() + np.diag(levels[readings.groups.numpy()] ** 2)
        centred = readings.positions.numpy() - np.array(EXTENT) / 2
        phi = np.column_stack([np.ones(30), centred])[:, : {"none": 0, "constant": 1, "linear": 3}[trend]]
        contrasts = null_space(phi.T).T if phi.shape[1] else np.eye(30)
        expected = multivariate_normal(cov=contrasts @ covariance @ contrasts.T).logpdf(
            contrasts @ readings.values.numpy()
        )
        expected -= 0.5 * np.linalg.slogdet(phi.T @ phi)[1] if phi.shape[1] else 0.0
        assert abs(log_likelihood - expected) < 1e-8 * max(1, abs(expected))


@pytest.mark.parametrize("form", ["covariance", "information"])
@pytest.mark.parametrize("trend", ["none", "constant"])
@pytest.mark.parametrize("start_noise", [0.25, 1e-3], ids=["noisy start", "start"])
@pytest.mark.parametrize("edges", [("open", "open"), ("periodic", "periodic")])
def test_the_likelihood_of_a_start_with_gaps_is_that_of_the_equations(edges, start_noise, trend, form):
    """Cells of the state with gaps and noise of their own, and gappy averages over cells at two later times."""
    rng = np.random.default_rng(7)
    values, initial = 2 + rng.standard_normal((2, 4, 5)), 2 + rng.standard_normal((4, 5))
    values[rng.random(values.shape) < 0.4], initial[rng.random(initial.shape) < 0.3] = np.nan, np.nan
    grid, domain = lp.Grid((4, 5), EXTENT), lp.Domain(*edges)
    given = {"times": [0.4, 1.0], "noise_std": 0.3, "observed": "pooled", "grid": grid, "domain": domain}
    readings = Readings.of(lp.Observation.from_arrays(values, initial, **given), start_noise)
    assert int((readings.order < 0).sum()) == int(np.isfinite(initial).sum()) < 20
    around = Embedding.of(grid, domain, FAMILY, LATENT.bounds, 1.0, 0.8, 40)
    model = Model.with_unknown_start(readings, grid, LATENT, around, trend=trend, form=form)
    parameters, names = some_parameters(model, 2)
    found, num = model.likelihood.log_likelihood(parameters), len(readings.values)
    noise = np.where(readings.order.numpy() < 0, start_noise, 0.3)
    for row, log_likelihood in zip(parameters.numpy(), found.tolist(), strict=True):
        dense = Dense(model, readings, dict(zip(names, row, strict=True)))
        phi = np.ones((num, 1 if trend == "constant" else 0))
        contrasts = null_space(phi.T).T if phi.shape[1] else np.eye(num)
        covariance = contrasts @ (dense.covariance() + np.diag(noise**2)) @ contrasts.T
        expected = multivariate_normal(cov=covariance).logpdf(contrasts @ readings.values.numpy())
        expected -= 0.5 * np.linalg.slogdet(phi.T @ phi)[1] if phi.shape[1] else 0.0
        assert abs(log_likelihood - expected) < 1e-8 * max(1, abs(expected))


def test_cells_are_averages():
    """A cell of the field reads what a fine grid of points in it reads on average."""
    rng = np.random.default_rng(0)
    values = rng.standard_normal((2, *GRID.shape))
    domain = lp.Domain()
    arrays = {"times": [0.0, 0.7], "noise_std": 0.2, "grid": GRID, "domain": domain}
    observation = lp.Observation.from_arrays(values, observed="pooled", **arrays)
    model, readings = model_of(observation)
    parameters, _ = some_parameters(model, 1)
    offsets = (np.arange(24) + 0.5) / 24 - 0.5
    shifts = np.stack(np.meshgrid(*(offsets * h for h in GRID.spacing), indexing="ij"), -1).reshape(-1, 2)
    k = model.likelihood.unknown.parts[0][0].modes.k.numpy()
    averaged = np.exp(1j * (readings.positions.numpy()[:, None] + shifts) @ k.T).mean(1)
    scale = model.likelihood.unknown.scale[: len(k)].numpy()
    np.testing.assert_allclose(model.likelihood.unknown.waves[:, : len(k)], scale * averaged, atol=2e-3 * scale.max())
    assert torch.isfinite(model.likelihood.log_likelihood(parameters)).all()


@pytest.mark.parametrize("form", ["covariance", "information"])
@pytest.mark.parametrize("trend", ["none", "linear"])
def test_leaving_one_out_is_leaving_it_out(form, trend):
    columns = table()
    model, readings = model_of(
        lp.Observation.from_table(**columns, grid=GRID, domain=lp.Domain()), trend=trend, form=form
    )
    parameters, names = some_parameters(model, 1)
    (mean,), (std,) = model.likelihood.leave_one_out(parameters)
    named = dict(zip(names, parameters[0].numpy(), strict=True))
    covariance = Dense(model, readings, named).covariance() + named["noise_std"] ** 2 * np.eye(30)
    centred = readings.positions.numpy() - np.array(EXTENT) / 2
    # a flat prior, as the limit of a broad one
    phi = np.column_stack([np.ones(30), centred])
    covariance = covariance + (1e6 * phi @ phi.T if trend == "linear" else 0.0)
    values = readings.values.numpy()
    for i in (0, 11, 29):
        rest = np.arange(30) != i
        gain = np.linalg.solve(covariance[np.ix_(rest, rest)], covariance[rest, i])
        assert abs(gain @ values[rest] - float(mean[i])) < 1e-4
        assert abs(math.sqrt(covariance[i, i] - gain @ covariance[rest, i]) - float(std[i])) < 1e-4


def reconstructed(columns, *, length=1.0, time=1.0, unit=1.0, **options):
    """The same data in other units, and what is found of them."""
    columns = {
        "value": columns["value"] * unit,
        "y": columns["y"] * length,
        "x": columns["x"] * length,
        "t": columns["t"] * time,
        **options,
    }
    extent, origin = (tuple(length * side for side in sides) for sides in (EXTENT, GRID.origin))
    observation = lp.Observation.from_table(**columns, grid=lp.Grid(GRID.shape, extent, origin))
    return lp.reconstruct(observation, "advection_diffusion", num_draws=30, seed=3)


@pytest.fixture(scope="module")
def smooth():
    """Readings of a wave that moves, with noise, and what is found of them."""
    columns, rng = table(36, seed=4), np.random.default_rng(5)
    phase = 1.3 * (columns["x"] - 0.8 * columns["t"]) + columns["y"]
    columns["value"] = 7 + np.sin(phase) + 0.1 * rng.standard_normal(36)
    return columns, reconstructed(columns)


def check_same(found, expected, length=1.0, time=1.0, unit=1.0, rtol=1e-5):
    for name, other in (("mean", found.mean(16)), ("std", found.std(16))):
        np.testing.assert_allclose(other, unit * getattr(expected, name)(16), rtol=rtol, atol=rtol * unit)
    for j, coefficient in enumerate(FAMILY.coefficients):
        of_length, of_time = (float(power) for power in exponents(coefficient.unit))
        factor = length**of_length * time**of_time
        np.testing.assert_allclose(
            found.coefficients.values[:, j], factor * expected.coefficients.values[:, j], rtol=rtol, atol=rtol * factor
        )


@pytest.mark.parametrize(
    "units", [{"unit": 1000.0}, {"length": 1e3, "time": 1 / 3600}], ids=["values", "metres and hours"]
)
def test_units_do_not_matter(smooth, units):
    columns, expected = smooth
    check_same(reconstructed(columns, **units), expected, **units)


def test_neither_the_order_of_readings_nor_their_grouping_matters(smooth):
    columns, expected = smooth
    order = np.random.default_rng(0).permutation(36)
    check_same(reconstructed({name: column[order] for name, column in columns.items()}), expected)


def test_a_level_is_inferred_for_each_group(smooth):
    columns, _ = smooth
    rng, second = np.random.default_rng(7), np.arange(36) % 2 == 1
    noisier = {**columns, "value": columns["value"] + 0.8 * second * rng.standard_normal(36)}
    found = reconstructed(noisier, group=np.where(second, "cheap", "good"))
    cheap, good = found.levels.sel(level=["noise_std_0", "noise_std_1"]).median("draw").values  # in alphabetical order
    assert 0.4 < cheap < 1.6
    assert good < 0.35


def test_bounds_that_nobody_gave_are_widened(smooth):
    columns, rng = smooth[0], np.random.default_rng(6)
    # bounds that follow from the data end at 2.5, and what they allow across the crests at 3.75
    phase = 1.3 * (columns["x"] - 3.2 * columns["t"]) + 0.2 * columns["y"]
    with pytest.warns(lp.LatentPDEWarning, match="widened: .*vx to"):
        found = reconstructed({**columns, "value": np.sin(phase) + 0.05 * rng.standard_normal(36)})
    vx, vy, _ = found.coefficients.mean("draw").values
    assert abs(1.3 * vx + 0.2 * vy - 1.3 * 3.2) < 0.3  # of a plane wave the motion across its crests is all that shows


def test_cases_do_not_take_each_others_maxima_for_their_own():
    """Where one of two needs wider bounds, both are searched anew within these, as if they had been given."""
    rng, t = np.random.default_rng(8), np.array([0.0, 0.5, 1.0])
    y, x = (c.numpy() for c in lp.Grid((4, 6)).coordinates())
    moved = x - np.array([0.1, 4.2])[:, None, None] * t[:, None]  # case, time, x
    values = np.sin(1.3 * moved)[:, :, None] + 0.2 * y[:, None] + 0.05 * rng.standard_normal((2, 3, 4, 6))
    data = lp.Observation.from_arrays(values, times=t, domain=lp.Domain(), noise_std=0.05)
    options = {"num_draws": 8, "seed": 1, "source": lp.WhiteBand(0, 1.0), "initial": lp.Matern(1.0, 0.3)}
    with pytest.warns(lp.LatentPDEWarning, match="widened"):
        found = lp.reconstruct(data, "advection_diffusion", **options)
    bounds = dict(zip(found.prior.family.coefficient_names, map(tuple, found.prior.bounds.tolist()), strict=True))
    expected = lp.reconstruct(data, "advection_diffusion", bounds=bounds, **options)
    np.testing.assert_allclose(found.coefficients, expected.coefficients, rtol=1e-9)


def test_noise_that_nobody_knows_is_inferred_with_a_known_start():
    cases = lp.simulate("balanced", num=1, seed=5, sparsity=0.3, noise_std=0.2)
    data = (
        cases.to_dataset()
        .drop_attrs(deep=False)
        .assign_attrs({name: value for name, value in cases.attrs.items() if name != "noise_std"})
    )
    with pytest.warns(lp.LatentPDEWarning, match="the noise is inferred"):
        found = lp.reconstruct(lp.Observation.from_dataset(data))
    assert found.level_names == ("noise_std",)
    assert 0.17 < float(found.levels.mean()) < 0.23


def test_a_start_with_gaps_is_worth_more_than_none():
    """On the torus, with a quarter of the cells missing: the gaps are filled, and the rest is used."""
    cases = lp.simulate("balanced", num=1, seed=2, shape=(64, 64), sparsity=0.3, source=False)
    data, truth = cases.to_dataset(), cases["truth/field"].values[0]
    gaps = np.random.default_rng(0).random(data.initial.shape) < 0.25
    errors = []
    for initial in (data.initial.where(~gaps), None):
        some = data.drop_vars("initial") if initial is None else data.assign(initial=initial)
        found = lp.reconstruct(lp.Observation.from_dataset(some), num_modes=0)
        errors.append(float(np.sqrt(((found.mean(64).values[0] - truth) ** 2).mean())))
    assert errors[0] < 0.7 * errors[1]
    with pytest.raises(lp.DataError, match=r"initial state has .* NaN values; fill them, or take the method exact"):
        lp.reconstruct(lp.Observation.from_dataset(data.assign(initial=data.initial.where(~gaps))), method="map")


def test_a_reading_that_the_others_do_not_expect_stands_out(smooth):
    columns, posterior = smooth
    usual = posterior.leave_one_out()
    np.testing.assert_allclose(usual["value"], columns["value"])
    assert 0.6 < float(usual["z"].std()) < 1.5
    wrong = columns["value"].copy()
    wrong[7] += 3.0
    found = reconstructed({**columns, "value": wrong}).leave_one_out()
    assert int(np.abs(found["z"].values).argmax()) == 7
    assert found["z"][7] > 3


def test_places_and_times_are_those_of_the_grid(smooth):
    _, posterior = smooth
    grid = posterior.grid(12)
    y, x = (c.numpy() for c in grid.coordinates())
    points = np.stack(np.meshgrid(y, x, indexing="ij"), -1).reshape(-1, 2)
    for time in (4.0, 4.7, 6.0):
        at, field = posterior.at(points, time), posterior.mean(12, times=[time])
        np.testing.assert_allclose(at["mean"], field.values.ravel(), atol=1e-9)
        np.testing.assert_allclose(at["std"], posterior.std(12, times=[time]).values.ravel(), atol=1e-9)
        np.testing.assert_allclose(
            at["draws"].values, posterior.draws(12, times=[time]).values.reshape(30, -1), atol=1e-9
        )
    assert posterior.mean(12).time == 5.5


def test_bounds_have_the_units_of_the_data():
    small, large = scaled_bounds(FAMILY, 1.0, 0.25), scaled_bounds(FAMILY, 1000.0, 0.25 * 60)
    np.testing.assert_allclose(small, FAMILY.bounds)
    np.testing.assert_allclose(large, small * torch.tensor([[1000 / 60], [1000 / 60], [1e6 / 60]]))


def test_one_time_says_nothing_of_a_change():
    columns = table()
    observation = lp.Observation.from_table(columns["value"], y=columns["y"], x=columns["x"])
    with pytest.raises(lp.UsageError, match="all readings are of the start"):
        lp.reconstruct(observation, "advection_diffusion")


@pytest.mark.parametrize("method", ["map", "3dvar"])
def test_methods_for_the_benchmark_say_what_they_cannot_take(method):
    with pytest.raises(lp.DataError, match="for a table of readings take the method exact"):
        lp.reconstruct(lp.Observation.from_table(**table()), "advection_diffusion", method=method)
    cells = np.zeros((8, 8))
    unknown_noise = lp.Observation.from_arrays(cells, cells, noise_std=None)
    with pytest.raises(lp.DataError, match="needs the noise"):
        lp.reconstruct(unknown_noise, "advection_diffusion", method=method)
