"""Readings: what each kind predicts, against the field itself; the residual; and what data are refused."""

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


# Shapes


@pytest.mark.parametrize(
    ("shape", "times", "batched"),
    [
        ((4, 6), [0.1], False),
        ((3, 4, 6), [0.1], True),
        ((2, 4, 6), [0.1, 0.2], False),
        ((3, 2, 4, 6), [0.1, 0.2], True),
        ((3, 1, 4, 6), [0.1], True),
    ],
)
def test_case_and_time_axes_may_be_left_out(shape, times, batched):
    values = np.arange(np.prod(shape), dtype=float).reshape(shape)
    num_cases = shape[0] if batched else 1
    data = Observation.from_arrays(values, times=times, noise_std=0.1)
    assert data.batched is batched
    assert len(data) == data.num_cases == num_cases
    assert data.values.shape == (num_cases, len(times), 4, 6)
    np.testing.assert_array_equal(data.values.ravel(), values.ravel())
    assert data.grid == Grid((4, 6))


@pytest.mark.parametrize("shape", [(5,), (3, 5), (2, 5), (3, 2, 5)])
def test_case_and_time_axes_of_points(shape):
    times = [0.1, 0.2] if shape in ((2, 5), (3, 2, 5)) else [0.1]
    positions = np.random.default_rng(0).random((5, 2))
    data = Observation.from_arrays(np.ones(shape), times=times, noise_std=0.1, positions=positions, grid=Grid((4, 4)))
    assert data.values.shape == (3 if shape[0] == 3 else 1, len(times), 5)
    assert data.positions is not None
    assert data.positions.shape == (len(data), 5, 2)


def test_missing_readings_are_masked_and_hold_nothing():
    values = np.arange(12.0).reshape(3, 4)
    values[1, 2] = np.nan
    data = Observation.from_arrays(values, noise_std=0.1)
    assert data.num_readings.tolist() == [11]
    assert not data.mask[0, 0, 1, 2]
    assert data.values[0, 0, 1, 2] == 0
    masked = Observation.from_arrays(values, noise_std=0.1, mask=np.arange(12).reshape(3, 4) < 5)
    assert masked.num_readings.tolist() == [5]
    assert not masked.values[~masked.mask].any()


def test_masks_and_noise_may_differ_between_samples():
    rng = np.random.default_rng(0)
    mask, noise = rng.random((3, 4, 6)) < 0.5, rng.uniform(0.1, 0.2, (3, 4, 6))
    data = Observation.from_arrays(np.ones((3, 4, 6)), noise_std=0.1, mask=mask)
    np.testing.assert_array_equal(data.mask[:, 0], mask)
    per_reading = Observation.from_arrays(np.ones((3, 1, 4, 6)), noise_std=noise[:, None])
    np.testing.assert_array_equal(per_reading.noise_std[:, 0], noise)


def test_noise_of_the_readings_own_shape_is_taken_as_it_is():
    noise = np.random.default_rng(0).uniform(0.1, 0.2, (3, 4, 6))
    data = Observation.from_arrays(np.ones((3, 4, 6)), noise_std=noise)
    np.testing.assert_array_equal(data.noise_std[:, 0], noise)


def test_slicing_takes_samples():
    rng = np.random.default_rng(0)
    data = Observation.from_arrays(
        rng.standard_normal((5, 2, 3)), rng.standard_normal((5, 4, 4)), times=[0.1, 0.2], noise_std=0.1,
        positions=rng.random((5, 3, 2)), family="telegraph", pooling=4, source_prior_std=0.5,
    )  # fmt: skip
    some = data[1:3]
    assert len(some) == 2
    for name in ("values", "mask", "noise_std", "initial", "positions"):
        assert torch.equal(getattr(some, name), getattr(data, name)[1:3])
    for name in ("times", "grid", "observed", "family", "pooling", "source_prior_std", "batched"):
        assert getattr(some, name) is getattr(data, name)
    assert len(Observation.from_arrays(np.ones((3, 4, 4)), noise_std=0.1)[1:]) == 2


# Bad data. Each message must name the trouble.

GOOD = np.ones((4, 6))


def with_value(value, at=(1, 2), shape=(4, 6)):
    array = np.ones(shape)
    array[at] = value
    return array


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"values": GOOD, "initial": with_value(np.nan)}, "initial state has 1 NaN"),
        ({"values": GOOD, "initial": with_value(np.inf)}, "initial state has 1 NaN or infinite"),
        ({"values": np.full((4, 6), np.nan)}, "no observation at all"),
        ({"values": np.stack([GOOD, np.nan * GOOD])}, r"no observation at all in case\(s\) 1"),
        ({"values": GOOD, "mask": np.zeros((4, 6), dtype=bool)}, "no observation at all"),
        ({"values": with_value(np.inf)}, "infinite"),
        ({"values": with_value(-np.inf)}, "infinite"),
        ({"values": with_value(np.nan), "mask": np.ones((4, 6), dtype=bool)}, "1 readings that the mask marks"),
        ({"values": GOOD, "mask": np.ones((4, 5), dtype=bool)}, r"mask has shape \(4, 5\)"),
        ({"values": GOOD, "mask": np.ones((6, 4), dtype=bool)}, r"mask has shape \(6, 4\)"),
        ({"values": GOOD, "noise_std": -0.1}, "noise's standard deviation must be a positive"),
        ({"values": GOOD, "noise_std": 0.0}, "noise's standard deviation must be a positive"),
        ({"values": GOOD, "noise_std": float("nan")}, "noise's standard deviation must be a positive"),
        ({"values": GOOD, "noise_std": float("inf")}, "noise's standard deviation must be a positive"),
        ({"values": GOOD, "noise_std": with_value(0.0)}, "noise's standard deviation must be a positive"),
        ({"values": GOOD, "noise_std": np.ones(5)}, r"noise standard deviation has shape \(5,\)"),
        ({"values": GOOD, "noise_std": "loud"}, "noise standard deviation must be numbers"),
        ({"values": [["a", "b"]]}, "readings must be numbers"),
        ({"values": np.ones((3, 4, 6)), "times": [0.1, 0.2]}, r"2 time\(s\), got shape \(1, 3, 4, 6\)"),
        ({"values": np.ones((2, 3, 4, 6)), "times": [0.1, 0.2]}, "are axes swapped"),
        ({"values": np.ones(6)}, "expected readings with axes"),
        ({"values": GOOD, "times": [-0.1]}, "times must be finite and not negative"),
        ({"values": GOOD, "times": [float("nan")]}, "times must be finite"),
        ({"values": GOOD, "initial": np.ones((6, 4))}, "must agree"),
        ({"values": GOOD.T, "initial": GOOD}, r"cells have shape \(6, 4\).*\(4, 6\)"),
        ({"values": GOOD, "initial": np.ones((8, 12))}, "must agree"),
        ({"values": GOOD, "initial": GOOD, "grid": Grid((6, 4))}, "must agree"),
        ({"values": np.ones((3, 4, 6)), "initial": np.ones((2, 4, 6))}, r"expected 3 initial state\(s\)"),
        ({"values": GOOD, "observed": "point"}, "sensor positions"),
    ],
)  # fmt: skip
def test_bad_cells_are_refused(arguments, message):
    with pytest.raises(DataError, match=message):
        Observation.from_arrays(**{"noise_std": 0.1, **arguments})


@pytest.mark.parametrize(
    ("positions", "message"),
    [
        ([[0.5, 0.5], [0.5, 1.6]], r"1 sensor\(s\) lie outside"),
        ([[-0.1, 0.5], [1.2, 0.5]], r"2 sensor\(s\) lie outside"),
        ([[0.5, float("nan")], [0.5, 0.5]], "outside"),
        ([[1.4, 0.9], [0.1, 0.2]], "units or axes swapped"),
        ([[0.5, 0.5]], r"positions of shape \(1, 2, 2\)"),
        ([[0.5, 0.5, 0.5], [0.5, 0.5, 0.5]], "expected positions"),
    ],
)
def test_bad_positions_are_refused(positions, message):
    with pytest.raises(DataError, match=message):
        Observation.from_arrays(
            np.ones(2), np.ones((4, 6)), noise_std=0.1, positions=positions, grid=Grid((4, 6), EXTENT)
        )


@pytest.mark.parametrize("pooling", [0, -2])
def test_impossible_pooling_is_refused(pooling):
    with pytest.raises(DataError, match="pooling"):
        Observation.from_arrays(GOOD, GOOD, noise_std=0.1, pooling=pooling)


def test_points_without_a_grid_are_refused():
    with pytest.raises(DataError, match="need a grid"):
        Observation.from_arrays(np.ones(2), noise_std=0.1, positions=[[0.1, 0.1], [0.2, 0.2]])


def test_unread_noise_does_not_matter():
    """Files fill gaps with NaN in every variable."""
    values, noise = with_value(np.nan), with_value(np.nan)
    data = Observation.from_arrays(values, noise_std=noise)
    assert torch.isfinite(data.noise_std).all()
