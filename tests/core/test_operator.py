"""What candidates would have read, and how far that is from the readings."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from latentpde.decoder import Decoder
from latentpde.errors import DataError
from latentpde.grid import Grid, at_points, average_pool, pooling_attenuation
from latentpde.latent import Latent
from latentpde.observation import Observation
from latentpde.operator import EPSILON, ObservationOperator, cell_averages
from latentpde.pde import families

EXTENT = (1.0, 1.5)
SHAPES = [((16, 24), 4, 12), ((8, 8), 4, 12), ((8, 8), 2, 12), ((8, 12), None, 12), ((24, 24), 4, 12), ((7, 10), 3, 4)]


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def band_limited(grid, below, seed=0, batch=()):
    """A rough field on ``grid`` whose modes lie strictly below the Nyquist of ``below``."""
    u = torch.randn((*batch, *below.shape), dtype=torch.float64, generator=generator(seed))
    return grid.synthesise(below.analyse(u))


def decoder_of(name="klein_gordon", num_modes=12, extent=EXTENT):
    return Decoder(Latent(families.get(name), num_modes=num_modes), extent)


def draws(decoder, num_cases=2, num_draws=3, seed=0, source=20.0):
    """Latents with a source strong enough to matter beside the initial state."""
    z = decoder.latent.draw(num_cases * num_draws, generator=generator(seed))
    r, q = decoder.latent.split(z)
    return torch.cat([r, source * q], -1).reshape(num_cases, num_draws, -1)


def observe(values, initial, grid, **options):
    """Values may be an array, or the shape of readings that do not matter."""
    values = np.zeros(values) if isinstance(values, tuple) else values
    return Observation.from_arrays(values, initial, grid=grid, **{"noise_std": 0.1, **options})


def points_of(grid, offsets=((0.0, 0.0),)):
    """Cell centres, each displaced by fractions of a cell; axes (offset, cell, 2)."""
    y, x = torch.meshgrid(*grid.coordinates(), indexing="ij")
    centres = torch.stack([y.flatten(), x.flatten()], -1)
    return centres + torch.tensor(offsets, dtype=torch.float64)[:, None] * torch.tensor(
        grid.spacing, dtype=torch.float64
    )


def averages(spectrum, grid, pooling):
    """Cell averages from the field's values: of pooling^2 samples, or by Gauss-Legendre quadrature."""
    if pooling is None:
        nodes, weights = np.polynomial.legendre.leggauss(16)
        nodes, weights = nodes / 2, weights / 2
    else:
        nodes, weights = (np.arange(pooling) + 0.5) / pooling - 0.5, np.full(pooling, 1 / pooling)
    offsets = [(a, b) for a in nodes for b in nodes]
    values = at_points(spectrum, points_of(grid, offsets).flatten(0, 1), grid.extent)
    values = values.reshape(*values.shape[:-1], len(offsets), *grid.shape)
    return (values * torch.from_numpy(np.outer(weights, weights).ravel())[:, None, None]).sum(-3)


# Predictions


@pytest.mark.parametrize("name", families.names())
def test_lowres_solve_reads_the_solution_on_the_coarse_grid(name):
    grid, times = Grid((16, 24), EXTENT), [0.1, 0.4]
    decoder = decoder_of(name)
    initial = band_limited(grid, grid, batch=(2,))
    z = draws(decoder)
    operator = ObservationOperator(observe((2, 2, *grid.shape), initial, grid, times=times, pooling=4), decoder)
    predicted = operator.predict(z)
    for i in range(2):
        for j in range(3):
            torch.testing.assert_close(predicted[i, j], decoder.decode(z[i, j], initial[i], times, grid))


@pytest.mark.parametrize(("shape", "pooling", "num_modes"), SHAPES)
def test_pooled_reads_the_average_of_the_fine_field(shape, pooling, num_modes):
    """Also where the source has modes beyond the coarse Nyquist, which fold, and where it has them exactly there."""
    grid, times = Grid(shape, EXTENT), [0.05, 0.3]
    decoder = decoder_of(num_modes=num_modes)
    fine = grid.refine(pooling or 1)
    u0 = band_limited(fine, grid, batch=(2,))
    u0_hat = fine.analyse(u0)
    initial = averages(u0_hat, grid, pooling)
    z = draws(decoder)
    data = observe((2, 2, *shape), initial, grid, times=times, observed="pooled", pooling=pooling)
    predicted = ObservationOperator(data, decoder).predict(z)
    expected = averages(decoder.spectrum(z, u0_hat[:, None], times), grid, pooling)
    torch.testing.assert_close(predicted, expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize(("shape", "factor"), [((16, 16), 4), ((16, 16), 2), ((8, 8), 4)])
def test_pooled_equals_decoding_finely_and_pooling(shape, factor):
    """On a fine grid that carries every mode, pooling its cells is the same thing."""
    grid = Grid(shape)
    fine = grid.refine(factor)
    decoder = decoder_of("advection_diffusion", extent=(1.0, 1.0))
    u0 = band_limited(fine, grid, batch=(1,))
    data = observe((1, *shape), average_pool(u0, factor), grid, times=[0.1], observed="pooled", pooling=factor)
    z = draws(decoder, num_cases=1)
    expected = average_pool(decoder.decode(z, u0[:, None], [0.1], fine), factor)
    torch.testing.assert_close(ObservationOperator(data, decoder).predict(z), expected, rtol=0, atol=1e-10)


@settings(max_examples=20)
@given(shape=st.tuples(st.integers(2, 9), st.integers(2, 9)), half=st.integers(1, 5), cols=st.integers(1, 5))
def test_cell_averages_of_any_block_on_any_grid(shape, half, cols):
    grid = Grid(shape, EXTENT)
    parts = torch.randn((2, 2 * half, cols), dtype=torch.float64, generator=generator())
    u_hat = torch.complex(parts[0], parts[1])
    for pooling in (1, 2, None):
        torch.testing.assert_close(
            cell_averages(u_hat, grid, pooling), averages(u_hat, grid, pooling), rtol=0, atol=1e-10
        )


@pytest.mark.parametrize("origin", [(0.0, 0.0), (2.0, -1.0)])
@pytest.mark.parametrize("pooling", [1, 4])
def test_point_reads_the_field_at_its_position(origin, pooling):
    """Points chosen so that they are cell centres of a fine grid, where the decoder itself can be asked."""
    grid, times = Grid((8, 12), EXTENT, origin), [0.05, 0.3]
    fine = grid.refine(5)
    decoder = decoder_of()
    u0 = band_limited(grid.refine(pooling), grid, batch=(2,))
    cells = torch.tensor([[[0, 0], [39, 59], [17, 3]], [[5, 5], [20, 31], [38, 0]]])
    y, x = fine.coordinates()
    positions = torch.stack([y[cells[..., 0]], x[cells[..., 1]]], -1)
    data = observe((2, 2, 3), average_pool(u0, pooling), grid, times=times, positions=positions, pooling=pooling)
    assert data.observed == "point"
    z = draws(decoder)
    predicted = ObservationOperator(data, decoder).predict(z)
    field = decoder.decode(z, u0[:, None], times, fine)
    for i in range(2):
        for s, (row, col) in enumerate(cells[i].tolist()):
            torch.testing.assert_close(predicted[i, ..., s], field[i, ..., row, col], rtol=0, atol=1e-10)


def test_solving_then_pooling_differs_from_pooling_then_solving_only_in_the_source():
    """Pooling multiplies modes, and so does the PDE: without a source the two orders agree exactly. The source
    is attenuated when the fine solution is pooled, and is not when the coarse grid solves."""
    for name in families.names():
        decoder = decoder_of(name, extent=(1.0, 1.0))
        coarse, factor, times = Grid((32, 32)), 4, [0.2]
        fine = coarse.refine(factor)
        u0 = band_limited(fine, coarse)
        (z,) = draws(decoder, 1, 1)
        r, q = decoder.latent.split(z)
        silent, zero = torch.cat([r, 0 * q], -1), torch.zeros_like(u0)

        solved_then_pooled = average_pool(decoder.decode(silent, u0, times, fine), factor)
        pooled_then_solved = decoder.decode(silent, average_pool(u0, factor), times, coarse)
        torch.testing.assert_close(solved_then_pooled, pooled_then_solved, rtol=0, atol=1e-11)

        driven = coarse.analyse(decoder.decode(z, average_pool(zero, factor), times, coarse))
        attenuated = coarse.synthesise(pooling_attenuation(coarse, factor) * driven)
        gap = average_pool(decoder.decode(z, u0, times, fine), factor) - decoder.decode(
            z, average_pool(u0, factor), times, coarse
        )
        torch.testing.assert_close(gap, attenuated - coarse.synthesise(driven), rtol=0, atol=1e-11)
        assert gap.abs().max() > 1e-6


# The residual


@pytest.mark.parametrize("kind", ["lowres-solve", "pooled", "point"])
@pytest.mark.parametrize("same_noise", [True, False])
def test_residual_is_the_weighted_masked_mean_square(kind, same_noise):
    rng = np.random.default_rng(0)
    grid, times, decoder = Grid((6, 9), EXTENT), [0.1, 0.3], decoder_of(num_modes=2)
    shape = (2, 2, 5) if kind == "point" else (2, 2, *grid.shape)
    values, mask = rng.standard_normal(shape), rng.random(shape) < 0.4
    mask[0, 0, 0], mask[1, 0] = True, False  # no reading at all in one snapshot
    mask[1, 1, ..., 0] = True
    noise = np.full(shape, 0.2) if same_noise else rng.uniform(0.05, 0.5, shape)
    positions = rng.random((2, 5, 2)) * EXTENT if kind == "point" else None
    data = observe(
        values,
        rng.standard_normal((2, *grid.shape)),
        grid,
        times=times,
        mask=mask,
        noise_std=noise,
        observed=kind,
        positions=positions,
    )
    operator, z = ObservationOperator(data, decoder), draws(decoder)
    predicted, residual = operator.predict(z).numpy(), operator.residual(z)
    assert residual.shape == (2, 3)
    for i in range(2):
        read = np.argwhere(mask[i])
        count = len(read)
        typical = count / sum(1 / noise[i][tuple(at)] ** 2 for at in read)
        for j in range(3):
            total = 0.0
            for at in map(tuple, read):
                weight = 1.0 if same_noise else typical / noise[i][at] ** 2
                total += weight * (predicted[i, j][at] - values[i][at]) ** 2
            assert residual[i, j].item() == pytest.approx(total / (count + EPSILON), rel=1e-8)


def test_residual_vanishes_at_the_truth_and_ignores_what_was_not_read():
    grid, decoder = Grid((8, 8), EXTENT), decoder_of(num_modes=2)
    z = draws(decoder, 1, 1)
    initial = band_limited(grid, grid, batch=(1,))
    clean = decoder.decode(z[0, 0], initial[0], [0.3], grid)
    mask = torch.rand((8, 8), generator=generator()) < 0.5
    spoiled = torch.where(mask, clean, 1e6)
    for values, given_mask in ((spoiled, mask), (torch.where(mask, clean, torch.nan), None)):
        data = observe(values, initial, grid, times=[0.3], mask=given_mask)
        assert ObservationOperator(data, decoder).residual(z).item() < 1e-24


def test_residual_has_a_gradient():
    grid, decoder = Grid((5, 6), EXTENT), decoder_of(num_modes=1)
    for kind, extra in (("lowres-solve", {}), ("pooled", {}), ("point", {"positions": [[0.1, 0.2], [0.9, 1.4]]})):
        shape = (1, 1, 2) if kind == "point" else (1, 1, 5, 6)
        data = observe(np.ones(shape), np.ones((1, 5, 6)), grid, times=[0.3], observed=kind, **extra)
        z = draws(decoder, 1, 1).requires_grad_(True)
        assert torch.autograd.gradcheck(ObservationOperator(data, decoder).residual, (z,))


def test_an_operator_needs_the_initial_state():
    data = Observation.from_arrays(np.ones((4, 4)), noise_std=0.1)
    with pytest.raises(DataError, match="initial state"):
        ObservationOperator(data, decoder_of(extent=(1.0, 1.0)))
