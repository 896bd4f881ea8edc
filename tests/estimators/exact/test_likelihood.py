"""The marginal likelihood and the latent's conditional, against a dense Gaussian that the decoder itself spans."""

from __future__ import annotations

import math
import time

import numpy as np
import pytest
import torch
from known_start import KnownStart as model_of
from torch.utils._python_dispatch import TorchDispatchMode

from latentpde.decoder import Decoder
from latentpde.errors import DataError
from latentpde.estimators.exact import likelihood
from latentpde.grid import Grid, mode_numbers, pooling_attenuation
from latentpde.latent import Latent
from latentpde.observation import Observation
from latentpde.operator import ObservationOperator
from latentpde.pde import families

EXTENT = (1.0, 1.5)
FORMS = ("covariance", "information")
KINDS = ("lowres-solve", "pooled", "point")


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def normal(*shape, seed=0):
    return torch.randn(shape, dtype=torch.float64, generator=generator(seed))


def observe(kind="lowres-solve", shape=(6, 8), times=(0.2,), share=0.3, seed=0, extent=EXTENT, pooling=2, noise=None):
    """A case whose readings are arbitrary numbers: no algebra depends on their being typical."""
    grid, rng = Grid(shape, extent), np.random.default_rng(seed)
    core = (int(share * shape[0] * shape[1]),) if kind == "point" else shape
    values = rng.standard_normal((len(times), *core))
    if kind != "point" or len(times) > 1:
        values[rng.random(values.shape) > (0.8 if kind == "point" else share)] = np.nan
    return Observation.from_arrays(
        values,
        rng.standard_normal(shape),
        times=times,
        noise_std=rng.uniform(0.05, 0.4, values.shape) if noise is None else noise,
        grid=grid,
        observed=kind,
        pooling=pooling,
        positions=rng.random((*core, 2)) * np.array(extent) if kind == "point" else None,
    )


def decoder_of(family="klein_gordon", num_modes=2, extent=EXTENT, source_prior_std=2.0):
    return Decoder(Latent(families.get(family), num_modes=num_modes, source_prior_std=source_prior_std), extent)


def thetas(decoder, num=2, seed=3):
    return decoder.latent.theta(decoder.latent.draw(num, generator=generator(seed)))


class Dense:
    """Mean, and response to each whitened unknown, of one case's readings: from predictions alone."""

    def __init__(self, observation, decoder, theta, state_factor=None):
        mask, latent = observation.mask[0], decoder.latent
        predict = ObservationOperator(observation, decoder).predict
        unit = torch.cat([torch.zeros(1, latent.num_source), torch.eye(latent.num_source)]).to(torch.float64)
        z = latent.pack(theta.expand(len(unit), -1), latent.source_prior_std * unit)
        readings = predict(z[None])[0][:, mask]
        self.mean, columns = readings[0], readings[1:] - readings[0]
        if state_factor is not None:
            moved = []
            for pattern in state_factor.T:
                other = Observation(
                    **{**vars(observation), "initial": observation.initial + pattern.reshape(observation.grid.shape)}
                )
                moved.append(ObservationOperator(other, decoder).predict(z[None, :1])[0, 0][mask] - self.mean)
            columns = torch.cat([columns, torch.stack(moved)])
        self.columns = columns.T
        self.values, self.noise = observation.values[0][mask], observation.noise_std[0][mask]
        self.covariance = self.columns @ self.columns.T + torch.diag(self.noise**2)

    def log_likelihood(self):
        return torch.distributions.MultivariateNormal(self.mean, self.covariance).log_prob(self.values)

    def conditional(self):
        """Mean and covariance of the whitened unknowns."""
        gain = torch.linalg.solve(self.covariance, self.columns).T
        eye = torch.eye(self.columns.shape[1], dtype=torch.float64)
        return gain @ (self.values - self.mean), eye - gain @ self.columns


def check_against_dense(observation, decoder, **options):
    theta = thetas(decoder)
    expected = torch.stack([Dense(observation, decoder, one).log_likelihood() for one in theta])
    for form in FORMS:
        found = model_of(observation, decoder, form=form, **options).log_likelihood(theta)
        torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-8, msg=lambda m, form=form: f"{form}: {m}")


# The likelihood


@pytest.mark.parametrize("times", [(0.3,), (0.1, 0.4)], ids=["one time", "two times"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("family", families.names())
def test_both_forms_are_the_density_of_the_decoders_readings(family, kind, times):
    check_against_dense(observe(kind, times=times), decoder_of(family))


@pytest.mark.parametrize("num_modes", [0, 1, 12])
@pytest.mark.parametrize("kind", KINDS)
def test_any_number_of_modes_also_beyond_the_coarse_nyquist(kind, num_modes):
    """Twelve modes a side on 8 x 8 cells: a coarse solve drops what it cannot carry, an average folds it."""
    extent = (1.0, 1.0)
    check_against_dense(
        observe(kind, (8, 8), times=(0.1, 0.3), extent=extent), decoder_of("advection_diffusion", num_modes, extent)
    )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(5, 9), (3, 8), (1, 6)])
@pytest.mark.parametrize("pooling", [None, 1, 3])
def test_odd_and_narrow_rectangles_and_every_pooling(kind, shape, pooling):
    observation = observe(kind, shape, share=0.9, pooling=pooling, extent=(0.7, 2.0))
    check_against_dense(observation, decoder_of("advection_diffusion", 3, (0.7, 2.0)))


def test_a_snapshot_without_any_reading_changes_nothing():
    decoder, one = decoder_of("advection_diffusion"), observe(times=(0.3,))
    missing = torch.full_like(one.values, torch.nan)
    values = torch.where(one.mask, one.values, torch.nan)
    with_empty = Observation.from_arrays(
        torch.cat([missing, values, missing], 1),
        one.initial,
        times=(0.1, 0.3, 0.5),
        noise_std=one.noise_std.expand(1, 3, -1, -1),
        grid=one.grid,
        pooling=2,
    )
    theta = thetas(decoder)
    for form in FORMS:
        torch.testing.assert_close(
            model_of(with_empty, decoder, form=form).log_likelihood(theta),
            model_of(one, decoder, form=form).log_likelihood(theta),
        )


def test_a_grid_with_an_origin_reads_its_points_in_physical_coordinates():
    grid, rng = Grid((6, 8), EXTENT, origin=(10.0, -5.0)), np.random.default_rng(0)
    observation = Observation.from_arrays(
        rng.standard_normal(7),
        rng.standard_normal(grid.shape),
        times=(0.2,),
        noise_std=0.1,
        grid=grid,
        positions=np.array(grid.origin) + rng.random((7, 2)) * np.array(EXTENT),
    )
    check_against_dense(observation, decoder_of("advection_diffusion"))


def test_two_sensors_in_the_same_place_are_two_readings():
    observation = observe("point", share=0.1)
    positions = observation.positions.clone()
    positions[:, 1] = positions[:, 0]
    check_against_dense(Observation(**{**vars(observation), "positions": positions}), decoder_of("helmholtz"))


def test_extra_variance_adds_to_that_of_the_noise():
    decoder, observation = decoder_of(), observe("point")
    noisier = Observation(**{**vars(observation), "noise_std": torch.sqrt(observation.noise_std**2 + 0.3)})
    expected = torch.stack([Dense(noisier, decoder, one).log_likelihood() for one in thetas(decoder)])
    for form in FORMS:
        found = model_of(observation, decoder, form=form, extra_std=math.sqrt(0.3)).log_likelihood(thetas(decoder))
        torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("family", families.names())
def test_gradients_in_the_coefficients(family, form):
    decoder = decoder_of(family)
    model = model_of(observe(times=(0.2, 0.5)), decoder, form=form)
    theta = thetas(decoder).requires_grad_()
    assert torch.autograd.gradcheck(model.log_likelihood, (theta,), atol=1e-4, rtol=1e-4)


def test_a_gradient_where_the_value_was_asked_for_before():
    """Factors that are kept for another case of the layout have no graph."""
    decoder = decoder_of("advection_diffusion")
    model, theta = model_of(observe(times=(0.2, 0.5)), decoder, form="covariance"), thetas(decoder)[:1]
    model.log_likelihood(theta)
    asked = theta.clone().requires_grad_()
    (slope,) = torch.autograd.grad(model.log_likelihood(asked).sum(), asked)
    steps = 1e-5 * torch.eye(theta.shape[1], dtype=torch.float64)
    expected = (model.log_likelihood(theta + steps) - model.log_likelihood(theta - steps)) / 2e-5
    torch.testing.assert_close(slope[0], expected, rtol=1e-4, atol=1e-3)


def test_the_forms_agree_on_either_side_of_the_switch(monkeypatch):
    """The user does not choose the form, so no number may depend on it."""
    decoder, observation = decoder_of(num_modes=3), observe(times=(0.1, 0.3), share=0.5)
    theta = thetas(decoder, 5)
    results = []
    for limit in (len(observation.values[observation.mask]), len(observation.values[observation.mask]) - 1):
        monkeypatch.setattr(likelihood, "COVARIANCE_LIMIT_OF_SEVERAL", limit)
        model = model_of(observation, decoder)
        results.append((model.log_likelihood(theta), model.source(model.conditional(theta))))
    for a, b in zip(*results, strict=True):
        assert not torch.equal(a, b)  # two ways were taken
        torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-9)


def test_large_batches_are_split_and_come_back_in_order(monkeypatch):
    decoder = decoder_of()
    theta = thetas(decoder, 23)
    for form in FORMS:
        model = model_of(observe(), decoder, form=form)
        whole = model.log_likelihood(theta), model.conditional(theta)
        with monkeypatch.context() as patch:
            patch.setattr(likelihood, "_BATCH_VALUES", 2000)
            parts = model.log_likelihood(theta), model.conditional(theta)
        torch.testing.assert_close(parts, whole)


class Largest(TorchDispatchMode):
    """Remembers the largest tensor that any operation made."""

    def __init__(self):
        super().__init__()
        self.size = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        out = function(*args, **(kwargs or {}))
        for tensor in out if isinstance(out, tuple | list) else [out]:
            if isinstance(tensor, torch.Tensor):
                self.size = max(self.size, tensor.numel())
        return out


@pytest.mark.parametrize("kind", ["lowres-solve", "point"])
def test_thousands_of_readings_need_no_array_of_readings_by_readings(kind):
    grid, rng, num = Grid((72, 72)), np.random.default_rng(0), 5000
    decoder = decoder_of("advection_diffusion", 3, (1.0, 1.0))
    mask = np.zeros(72 * 72, dtype=bool)
    mask[rng.permutation(72 * 72)[:num]] = True
    points = {"positions": rng.random((num, 2))} if kind == "point" else {"mask": mask.reshape(72, 72)}
    values = rng.standard_normal(num if kind == "point" else grid.shape)
    initial = np.random.default_rng(1).standard_normal(grid.shape)
    coarse = Grid((6, 6)).analyse(torch.from_numpy(rng.standard_normal((6, 6))))
    observation = Observation.from_arrays(values, initial, times=(0.25,), noise_std=0.15, grid=grid, **points)
    start = time.process_time()
    with Largest() as largest:
        model = model_of(observation, decoder, mean_hat=coarse)
        assert torch.isfinite(model.log_likelihood(thetas(decoder, 8))).all()
        assert torch.isfinite(model.conditional(thetas(decoder, 2), generator=generator()).abs()).all()
    assert time.process_time() - start < 5
    assert largest.size < num**2 / 10


def test_only_one_case_at_a_time():
    one = observe()
    two = Observation(**{name: getattr(one, name) for name in vars(one)})
    two = Observation(
        **{
            **vars(two),
            **{name: getattr(two, name).repeat_interleave(2, 0) for name in ("values", "mask", "noise_std", "initial")},
        }
    )
    with pytest.raises(DataError, match="one case at a time, got 2"):
        model_of(two, decoder_of())


# The conditional


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", KINDS)
def test_conditional_mean_is_the_dense_one(kind, form):
    decoder, observation = decoder_of("advection_diffusion"), observe(kind, times=(0.1, 0.3))
    model, theta = model_of(observation, decoder, form=form), thetas(decoder)
    expected = torch.stack([Dense(observation, decoder, one).conditional()[0] for one in theta])
    found = model.source(model.conditional(theta))
    torch.testing.assert_close(found, decoder.latent.source_prior_std * expected, rtol=1e-8, atol=1e-9)


def check_moments(draws, mean, covariance):
    """Sample moments within 5.5 standard errors, entry by entry: thousands of entries make no false alarm."""
    num, spread = len(draws), covariance.diagonal().clamp(min=0)
    assert ((draws.mean(0) - mean).abs() <= 5.5 * torch.sqrt(spread / num) + 1e-9).all()
    error = torch.sqrt((spread[:, None] * spread + covariance**2) / num)
    assert ((torch.cov(draws.T) - covariance).abs() <= 5.5 * error + 1e-9).all()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", KINDS)
def test_conditional_draws_have_the_dense_mean_and_covariance(kind, form):
    decoder, observation = decoder_of("telegraph"), observe(kind, times=(0.3,), share=0.2)
    theta = thetas(decoder, 1)
    model = model_of(observation, decoder, form=form)
    draws = model.source(model.conditional(theta.expand(5_000, -1), generator=generator()))
    check_moments(draws / decoder.latent.source_prior_std, *Dense(observation, decoder, theta[0]).conditional())


@pytest.mark.parametrize("form", FORMS)
def test_modes_that_no_reading_hears_are_drawn_from_the_prior(form):
    """A coarse solve on 4 x 4 cells knows nothing of modes 2 and 3; a draw without them would be too smooth."""
    decoder = decoder_of("advection_diffusion", 4, (1.0, 1.0))
    observation = observe(shape=(4, 4), share=0.6, extent=(1.0, 1.0))
    theta = thetas(decoder, 1)
    model = model_of(observation, decoder, form=form)
    draws = model.source(model.conditional(theta.expand(5_000, -1), generator=generator()))
    mean, covariance = Dense(observation, decoder, theta[0]).conditional()
    assert int((covariance.diagonal() > 1 - 1e-9).sum()) >= 20  # the case is what it should be
    check_moments(draws / decoder.latent.source_prior_std, mean, covariance)


def test_draws_repeat_with_the_generator_and_differ_without():
    decoder = decoder_of()
    model, theta = model_of(observe(), decoder), thetas(decoder)
    first, again, other = (model.conditional(theta, generator=generator(seed)) for seed in (1, 1, 2))
    assert torch.equal(first, again)
    assert not torch.allclose(first, other)


def test_without_a_source_there_is_nothing_to_draw():
    decoder = decoder_of(num_modes=0)
    model = model_of(observe(), decoder)
    unknown = model.conditional(thetas(decoder), generator=generator())
    assert unknown.shape == (2, 0)
    assert model.source(unknown).shape == (2, 0)
    assert model.state(unknown) is None


# An uncertain initial state


def uncertain(observation, seed=5):
    """A standard deviation for each of the state's coefficients, and a factor of the cells' covariance it means."""
    grid = observation.grid
    rows, cols = (n.to(torch.float64) for n in mode_numbers(grid.block_shape))
    std = 1 / (1 + rows[:, None] ** 2 + 2 * cols**2)
    std[grid.block_shape[0] // 2] = 0.0
    heard = std if observation.observed == "lowres-solve" else std * pooling_attenuation(grid, observation.pooling)
    y, x = (c.flatten() for c in torch.meshgrid(*grid.coordinates(), indexing="ij"))
    covariance = torch.zeros((len(y), len(y)), dtype=torch.float64)
    for i, row in enumerate(rows):
        for j, col in enumerate(cols):
            phase = row * (y[:, None] - y) / grid.extent[0] + col * (x[:, None] - x) / grid.extent[1]
            covariance += (1 if j == 0 else 2) * heard[i, j] ** 2 * torch.cos(2 * math.pi * phase)
    values, vectors = torch.linalg.eigh(covariance)
    kept = values > 1e-12
    return std, vectors[:, kept] * torch.sqrt(values[kept])


@pytest.mark.parametrize("num_modes", [0, 2])
@pytest.mark.parametrize("kind", KINDS)
def test_uncertain_initial_state_density(kind, num_modes):
    decoder, observation = decoder_of("advection_diffusion", num_modes), observe(kind, (5, 6), times=(0.05, 0.2))
    std, factor = uncertain(observation)
    theta = thetas(decoder)
    expected = torch.stack([Dense(observation, decoder, one, factor).log_likelihood() for one in theta])
    for form in FORMS:
        found = model_of(observation, decoder, initial_std=std, form=form).log_likelihood(theta)
        torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-8)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", KINDS)
def test_uncertain_initial_state_conditional(kind, form):
    """Source and state are drawn together: they share the readings, so they are correlated."""
    decoder, observation = decoder_of("klein_gordon", 1), observe(kind, (4, 5), times=(0.3,))
    std, factor = uncertain(observation)
    theta, grid = thetas(decoder, 1), observation.grid
    mean, covariance = Dense(observation, decoder, theta[0], factor).conditional()
    num = decoder.latent.num_source
    to_cells = torch.block_diag(decoder.latent.source_prior_std * torch.eye(num, dtype=torch.float64), factor)
    mean, covariance = to_cells @ mean, to_cells @ covariance @ to_cells.T

    model = model_of(observation, decoder, initial_std=std, form=form)

    def source_and_cells(unknown):
        block = model.state(unknown).unflatten(-1, grid.block_shape)
        if kind != "lowres-solve":
            block = block * pooling_attenuation(grid, observation.pooling)
        return torch.cat([model.source(unknown), grid.synthesise(block).flatten(1)], 1)

    torch.testing.assert_close(source_and_cells(model.conditional(theta))[0], mean, rtol=1e-8, atol=1e-8)
    draws = source_and_cells(model.conditional(theta.expand(5_000, -1), generator=generator()))
    check_moments(draws, mean, covariance)


# Conditioning


def test_nearly_noiseless_readings_keep_their_digits():
    """Noise of 1e-6 makes the covariance nearly singular; both forms must still agree with exact arithmetic's limit."""
    decoder, observation = decoder_of("advection_diffusion", 3), observe(share=0.3, noise=1e-6)
    theta = thetas(decoder, 4)
    covariance, information = (model_of(observation, decoder, form=f).log_likelihood(theta) for f in FORMS)
    assert torch.isfinite(covariance).all()
    torch.testing.assert_close(covariance, information, rtol=1e-5, atol=0.0)
