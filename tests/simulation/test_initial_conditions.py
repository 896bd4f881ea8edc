"""Initial states are standardised, periodic, below Nyquist, and one function whatever the grid."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.backends.backend_agg import FigureCanvasAgg

from latentpde.errors import UsageError
from latentpde.grid import Grid, resample
from latentpde.report.simulation import plot_initial_conditions, plot_masks
from latentpde.simulation.initial_conditions import Broadband, draw_initial_condition, initial_conditions
from latentpde.simulation.masks import masks

every_kind = pytest.mark.parametrize("kind", initial_conditions.names())


def draw(kind, grid, seed=0):
    return draw_initial_condition(kind, grid, generator=np.random.default_rng(seed))


def mode_numbers(shape):
    """The larger of the two mode numbers of each rfft coefficient."""
    along_y = np.abs(np.fft.fftfreq(shape[0], 1 / shape[0]))
    return np.maximum(along_y[:, None], np.arange(shape[1] // 2 + 1))


@every_kind
@settings(max_examples=30)
@given(
    shape=st.tuples(st.integers(3, 48), st.integers(3, 48)),
    extent=st.tuples(st.floats(1e-3, 1e3), st.floats(1e-3, 1e3)),
    seed=st.integers(0, 2**32 - 1),
)
def test_standardised_and_below_nyquist_on_any_grid(kind, shape, extent, seed):
    u = draw(kind, Grid(shape, extent), seed)
    assert u.shape == shape
    assert u.dtype == np.float64
    assert np.isfinite(u).all()
    assert abs(u.mean()) < 1e-12
    assert abs(u.var() - 1) < 1e-12
    u_hat = np.fft.rfft2(u, norm="forward")
    at_nyquist = [u_hat[shape[0] // 2]] * (shape[0] % 2 == 0) + [u_hat[:, shape[1] // 2]] * (shape[1] % 2 == 0)
    assert all(np.abs(line).max() < 1e-13 for line in at_nyquist)


@every_kind
def test_the_seed_decides(kind):
    grid = Grid((24, 20))
    np.testing.assert_array_equal(draw(kind, grid, 5), draw(kind, grid, 5))
    assert np.abs(draw(kind, grid, 5) - draw(kind, grid, 6)).max() > 0.1


@every_kind
@pytest.mark.parametrize("seed", range(4))
def test_the_same_function_at_every_resolution(kind, seed):
    grids = {n: Grid((n, n)) for n in (64, 128, 256)}
    u = {n: torch.from_numpy(draw(kind, grid, seed)) for n, grid in grids.items()}
    for coarse, fine, tolerance in ((64, 128, 0.04), (128, 256, 0.005)):
        difference = resample(u[fine], grids[fine], grids[coarse]) - u[coarse]
        assert difference.square().mean().sqrt() < tolerance


@every_kind
def test_the_function_stretches_with_the_rectangle(kind):
    square, rectangle = Grid((40, 56)), Grid((40, 56), extent=(0.3, 12.0), origin=(5.0, -1.0))
    np.testing.assert_array_equal(draw(kind, square), draw(kind, rectangle))


@every_kind
def test_the_seam_is_no_rougher_than_the_interior(kind):
    """Over many draws, steps across the edge are as large as steps anywhere else."""
    u = np.stack([draw(kind, Grid((64, 64)), seed) for seed in range(60)])
    for axis in (1, 2):
        across = np.moveaxis(u - np.roll(u, 1, axis=axis), axis, 0)
        steps = np.sqrt(np.mean(across**2, axis=(1, 2)))
        assert steps[0] < 1.3 * steps[1:].mean()


@pytest.mark.parametrize(
    ("kind", "lowest", "highest"),
    [("broadband", 0.04, 0.06), ("fronts", 0.04, 0.06), ("dipoles", 0.0, 0.02), ("multiscale", 0.03, 0.05)],
)
def test_subgrid_structure_is_as_calibrated(kind, lowest, highest):
    """The share that 32 x 32 cells cannot see sets the error no method can undercut."""
    grid = Grid((128, 128))
    subgrid = mode_numbers(grid.shape) >= 16
    rms = []
    for seed in range(100):
        u_hat = np.fft.rfft2(draw(kind, grid, seed), norm="forward")
        rms.append(np.fft.irfft2(u_hat * subgrid, s=grid.shape, norm="forward").std())
    assert lowest <= np.mean(rms) <= highest


def test_broadband_has_the_stated_spectrum():
    """Variance per mode, averaged over draws, against the power law, in both orientations."""
    field, grid = Broadband(slope=2.0, knee=3.0, num_modes=12), Grid((30, 27))
    generator = np.random.default_rng(0)
    draws = np.stack([field(grid, generator=generator) for _ in range(1200)])
    power = np.mean(np.abs(np.fft.fft2(draws, norm="forward")) ** 2, axis=0)

    def expected(ny, nx):
        return (1 + (ny**2 + nx**2) / 9.0) ** -2.0

    for ny, nx in [(0, 1), (1, 0), (5, 0), (0, 5), (3, 4), (-3, 4), (11, 11)]:
        ratio = power[ny, nx] / power[1, 1] / (expected(ny, nx) / expected(1, 1))
        assert abs(ratio - 1) < 0.2
    assert abs(draws.var() - 1) < 0.03


def test_fronts_are_sharp_and_bands_flat():
    """Most of the domain is nearly flat and the rest steep: unlike a smooth field of the same variance."""
    u = draw("fronts", Grid((128, 128)), seed=2)
    steps = np.hypot(u - np.roll(u, 1, 0), u - np.roll(u, 1, 1))
    assert np.median(steps) < 0.1 * np.quantile(steps, 0.98)


def test_dipoles_are_localised_and_balanced():
    u = draw("dipoles", Grid((128, 128)), seed=1)
    assert np.mean(np.abs(u) > 0.5) < 0.35
    assert u.max() > 2
    assert u.min() < -2


def test_too_small_a_grid_is_refused():
    with pytest.raises(UsageError, match="carries no mode"):
        draw("broadband", Grid((1, 1)))


def test_unknown_kind_names_its_likely_meaning():
    with pytest.raises(UsageError, match="broadband"):
        draw("broad_band", Grid((8, 8)))


@pytest.mark.parametrize(
    ("make", "titles"), [(plot_initial_conditions, initial_conditions.names()), (plot_masks, masks.names())]
)
def test_galleries_show_every_kind_by_name(make, titles):
    figure = make()
    FigureCanvasAgg(figure).draw()
    shown = {ax.get_title() for ax in figure.findobj(lambda artist: hasattr(artist, "get_title"))}
    assert {title.replace("_", " ").capitalize() for title in titles} <= shown
