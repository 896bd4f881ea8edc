"""The marginal likelihood, against a dense Gaussian that the decoder itself spans."""

from __future__ import annotations

import math
import time

import numpy as np
import pytest
import torch
from dense_readings import EXTENT, FORMS, KINDS, Dense, decoder_of, generator, observe, thetas, uncertain
from known_start import KnownStart as model_of
from torch.utils._python_dispatch import TorchDispatchMode

from latentpde.errors import DataError
from latentpde.estimators.exact import likelihood
from latentpde.grid import Grid
from latentpde.observation import Observation
from latentpde.pde import families


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


# Conditioning


def test_nearly_noiseless_readings_keep_their_digits():
    """Noise of 1e-6 makes the covariance nearly singular; both forms must still agree with exact arithmetic's limit."""
    decoder, observation = decoder_of("advection_diffusion", 3), observe(share=0.3, noise=1e-6)
    theta = thetas(decoder, 4)
    covariance, information = (model_of(observation, decoder, form=f).log_likelihood(theta) for f in FORMS)
    assert torch.isfinite(covariance).all()
    torch.testing.assert_close(covariance, information, rtol=1e-5, atol=0.0)
