"""The decoder: one function at every resolution, differentiable, and a solution of the PDE it stands for."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from latentpde.decoder import Decoder
from latentpde.errors import UsageError
from latentpde.grid import Grid, at_points, mode_numbers, wavenumbers
from latentpde.latent import Latent, source_scale
from latentpde.pde import families

every_family = pytest.mark.parametrize("family", list(families), ids=lambda f: f.name)
first_order = pytest.mark.parametrize("family", [f for f in families if f.order == 1], ids=lambda f: f.name)
evolving = pytest.mark.parametrize("family", [f for f in families if f.order > 0], ids=lambda f: f.name)


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def random_state(grid, seed=0, batch=()):
    """A rough field with nothing at its Nyquist."""
    u = torch.randn((*batch, *grid.shape), dtype=torch.float64, generator=generator(seed))
    return grid.synthesise(grid.analyse(u))


def setting(family, num_modes=12, extent=(1.0, 1.0), shape=(32, 32), batch=(), seed=0):
    """A decoder with draws of the prior and an initial state."""
    latent = Latent(family, num_modes=num_modes)
    num = int(np.prod(batch, dtype=int))
    z = latent.draw(num, generator=generator(seed)).reshape(*batch, latent.size)
    grid = Grid(shape, extent)
    return Decoder(latent, extent), z, random_state(grid, seed + 1), grid


def times_of(family):
    return [0.3 * family.default_time, family.default_time]


# Resolution


@every_family
@pytest.mark.parametrize("extent", [(1.0, 1.0), (1.0, 2.5)])
def test_every_resolution_samples_the_same_function(family, extent):
    decoder, z, u0, grid = setting(family, extent=extent)
    times = times_of(family)
    points = torch.rand((50, 2), dtype=torch.float64, generator=generator(5)) * torch.tensor(
        extent, dtype=torch.float64
    )
    fields = {n: decoder.decode(z, u0, times, grid.at_resolution(n)) for n in (32, 64, 96, 128, 256)}
    values = {n: at_points(grid.at_resolution(n).analyse(u), points, extent) for n, u in fields.items()}
    scale = values[32].abs().max().item()
    for n in (64, 128, 256):
        torch.testing.assert_close(values[n], values[32], rtol=0, atol=1e-10 * max(1.0, scale))
    torch.testing.assert_close(fields[96][..., 1::3, 1::3], fields[32], rtol=0, atol=1e-10 * max(1.0, scale))


@every_family
def test_initial_state_may_come_on_any_grid(family):
    """The same function given on 16, 24 or 37 cells gives the same solution."""
    decoder, z, u0, grid = setting(family, num_modes=3, shape=(16, 16))
    target = Grid((20, 20))
    expected = decoder.decode(z, u0, times_of(family), target)
    for shape in ((24, 24), (37, 19)):
        y, x = torch.meshgrid(*grid.with_shape(shape).coordinates(), indexing="ij")
        finer = at_points(grid.analyse(u0), torch.stack([y.flatten(), x.flatten()], -1), grid.extent).reshape(shape)
        torch.testing.assert_close(decoder.decode(z, finer, times_of(family), target), expected, rtol=1e-10, atol=1e-10)


# Derivatives


@every_family
@pytest.mark.parametrize("seed", [0, 1])
def test_gradients_in_latent_state_and_times(family, seed):
    decoder, z, u0, _ = setting(family, num_modes=2, extent=(1.0, 1.5), shape=(4, 5), seed=seed)
    times = torch.tensor(times_of(family), dtype=torch.float64)
    target = Grid((3, 4), (1.0, 1.5))
    inputs = [tensor.clone().requires_grad_(True) for tensor in (z, u0, times)]
    assert torch.autograd.gradcheck(lambda z, u0, t: decoder.decode(z, u0, t, target), inputs)


@every_family
def test_gradients_are_finite_where_terms_vanish(family):
    """Time zero and the constant mode are where careless formulas give NaN."""
    decoder, z, u0, grid = setting(family, num_modes=2, shape=(4, 4))
    z = torch.stack([z, torch.full_like(z, -40.0), torch.full_like(z, 40.0)]).requires_grad_(True)
    times = torch.tensor([0.0, 1e-9, 1.0], dtype=torch.float64, requires_grad=True)
    decoder.decode(z, u0, times, grid).square().sum().backward()
    assert z.grad is not None
    assert torch.isfinite(z.grad).all()
    if family.order > 0:
        assert times.grad is not None
        assert torch.isfinite(times.grad).all()


@first_order
@pytest.mark.parametrize("shape", [(8, 10), (4, 4)], ids=["state wider", "source wider"])
def test_the_quick_way_is_the_general_one(family, shape):
    """Where times need derivatives, the general responses are used: another path to the same numbers."""
    decoder, z, u0, grid = setting(family, num_modes=3, extent=(1.0, 1.5), shape=shape, batch=(3,))
    z = torch.cat([z, torch.full_like(z[:1], -40.0), torch.full_like(z[:1], 40.0)])
    found = []
    for general in (False, True):
        inputs = [tensor.clone().requires_grad_(True) for tensor in (z, u0)]
        times = torch.tensor([0.0, 1e-9, 1e-3, 0.3, 2.0], dtype=torch.float64, requires_grad=general)
        fields = decoder.decode(*inputs, times, grid.refine(3))
        weights = torch.randn(fields.shape, dtype=torch.float64, generator=generator(4))
        found.append((fields, *torch.autograd.grad((weights * fields).sum(), inputs)))
    for quick, general in zip(*found, strict=True):
        torch.testing.assert_close(quick, general, rtol=1e-10, atol=1e-11)


# What a linear evolution must do


@evolving
def test_time_zero_gives_back_the_initial_state(family):
    decoder, z, u0, grid = setting(family)
    torch.testing.assert_close(decoder.decode(z, u0, [0.0], grid)[0], u0, rtol=0, atol=1e-12)


@every_family
def test_a_steady_family_has_one_field_for_all_times(family):
    decoder, z, u0, grid = setting(family, num_modes=3, shape=(16, 16))
    fields = decoder.decode(z, u0, [0.1, 0.2, 5.0], grid)
    assert fields.shape == (3, 16, 16)
    assert bool((fields[0] - fields[1]).abs().max() < 1e-14) == (family.order == 0)


@first_order
def test_two_steps_equal_one(family):
    decoder, z, u0, grid = setting(family)
    t1, t2 = times_of(family)
    halfway = decoder.decode(z, u0, [t1], grid)[0]
    in_two = decoder.decode(z, halfway, [t2], grid)[0]
    torch.testing.assert_close(in_two, decoder.decode(z, u0, [t1 + t2], grid)[0], rtol=0, atol=1e-11)


@every_family
def test_linear_in_state_and_source(family):
    decoder, z, u0, grid = setting(family, batch=(2,), shape=(24, 24))
    r, q = decoder.latent.split(z)
    v0, times = random_state(grid, 9), times_of(family)

    def solve(q, u0):
        return decoder.decode(torch.cat([r[0], q]), u0, times, grid)

    together = solve(2.0 * q[0] - 3.0 * q[1], 2.0 * u0 - 3.0 * v0)
    torch.testing.assert_close(together, 2.0 * solve(q[0], u0) - 3.0 * solve(q[1], v0), rtol=0, atol=1e-10)


@every_family
def test_translating_state_and_source_translates_the_field(family):
    extent, cells = (1.0, 1.5), (3, -5)
    decoder, z, u0, grid = setting(family, extent=extent, shape=(24, 36))
    r, q = decoder.latent.split(z)
    m = decoder.latent.num_modes
    rows, cols = (n.numpy() for n in mode_numbers((2 * m, m)))
    spectrum = decoder.latent.source_spectrum(q).numpy()
    moved = spectrum * np.exp(-2j * np.pi * (rows[:, None] * cells[0] / 24 + cols * cells[1] / 36))
    moved = moved.reshape(2, m, m) / source_scale(m)
    q_moved = torch.from_numpy(np.stack([moved.real, moved.imag], 1).ravel())
    # 24 rows do not carry the block's row -12, so look on a grid that does
    fine = grid.refine(2)
    still = decoder.decode(z, u0, times_of(family), fine)
    shifted = decoder.decode(torch.cat([r, q_moved]), u0.roll(cells, (0, 1)), times_of(family), fine)
    torch.testing.assert_close(shifted, still.roll((2 * cells[0], 2 * cells[1]), (-2, -1)), rtol=0, atol=1e-11)


# Special cases


def transfer(name, theta, times=(0.0, 0.1, 0.7), extent=(1.0, 1.3)):
    k = wavenumbers((16, 8), extent)
    times = torch.tensor(times, dtype=torch.float64)
    g, h = families.get(name).transfer(k, times, torch.tensor(theta, dtype=torch.float64))
    shape = (len(times), 16, 8)
    return g.expand(shape), h.expand(shape)


@pytest.mark.parametrize("vanishing", [0.0, 1e-9])
def test_telegraph_without_damping_is_klein_gordon_without_mass(vanishing):
    for a, b in zip(
        transfer("telegraph", [1.3, vanishing]), transfer("klein_gordon", [1.3, 1.3, vanishing]), strict=True
    ):
        torch.testing.assert_close(a, b, rtol=0, atol=1e-7 if vanishing else 1e-12)


def test_fractional_diffusion_of_exponent_two_is_diffusion():
    fractional = transfer("fractional_diffusion", [0.05, 2.0, 0.0])
    plain = transfer("advection_diffusion", [0.0, 0.0, 0.05])
    for a, b in zip(fractional, plain, strict=True):
        torch.testing.assert_close(a.to(b.dtype), b, rtol=1e-12, atol=1e-14)


def test_strong_damping_turns_waves_into_diffusion():
    """Telegraph with damping d tends to diffusion with diffusivity c^2 / d; the error falls as 1 / d."""
    errors = []
    for d in (1e3, 1e4):
        g, _ = transfer("telegraph", [np.sqrt(0.02 * d), d], times=(0.1, 0.3))
        expected, _ = transfer("advection_diffusion", [0.0, 0.0, 0.02], times=(0.1, 0.3))
        errors.append((g[..., :3, :3] - expected.real[..., :3, :3]).abs().max().item())
    assert errors[1] < 0.15 * errors[0] < 0.01


def test_pure_advection_moves_the_state():
    """With hardly any diffusion, the state arrives displaced by v t."""
    family = families.get("advection_diffusion")
    bounds = torch.tensor([[0.0, 2.0], [-2.0, 0.0], [0.0, 2e-13]], dtype=torch.float64)
    decoder = Decoder(Latent(family, num_modes=0, bounds=bounds))
    grid = Grid((16, 16))
    u0 = random_state(grid)
    moved = decoder.decode(torch.zeros(3, dtype=torch.float64), u0, [0.25], grid)[0]  # v = (x: 1, y: -1)
    torch.testing.assert_close(moved, u0.roll((-4, 4), (0, 1)), rtol=0, atol=1e-8)


# The PDE in physical space. Derivatives in space by numpy's FFT, in time by finite differences.


class Space:
    def __init__(self, shape, extent):
        self.ky, self.kx = (2 * np.pi * np.fft.fftfreq(n, length / n) for n, length in zip(shape, extent, strict=True))
        self.ky, self.kx = self.ky[:, None], self.kx[None, :]

    def multiply(self, u, factor):
        return np.fft.ifft2(factor * np.fft.fft2(u)).real

    def dx(self, u):
        return self.multiply(u, 1j * self.kx)

    def dy(self, u):
        return self.multiply(u, 1j * self.ky)

    def dxx(self, u):
        return self.multiply(u, -(self.kx**2))

    def dyy(self, u):
        return self.multiply(u, -(self.ky**2))

    def fractional_laplacian(self, u, alpha):
        return self.multiply(u, (self.kx**2 + self.ky**2) ** (alpha / 2))


# What must vanish, term by term: s is the space, u the field and its two derivatives in time.
RESIDUALS = {
    "advection_diffusion": lambda s, u, ut, utt, u0, f, vx, vy, kappa: (
        ut, vx * s.dx(u), vy * s.dy(u), -kappa * s.dxx(u), -kappa * s.dyy(u), -f,
    ),
    "advection_diffusion_decay": lambda s, u, ut, utt, u0, f, vx, vy, kappa, mu: (
        ut, vx * s.dx(u), vy * s.dy(u), -kappa * s.dxx(u), -kappa * s.dyy(u), mu * u, -f,
    ),
    "screened_poisson": lambda s, u, ut, utt, u0, f, length, ratio, angle: (
        u,
        -(length**2) * (np.cos(angle) ** 2 + (ratio * np.sin(angle)) ** 2) * s.dxx(u),
        -(length**2) * (np.sin(angle) ** 2 + (ratio * np.cos(angle)) ** 2) * s.dyy(u),
        -(length**2) * (1 - ratio**2) * np.sin(2 * angle) * s.dx(s.dy(u)),
        -u0,
        -f,
    ),
    "klein_gordon": lambda s, u, ut, utt, u0, f, cx, cy, m: (
        utt, -(cx**2) * s.dxx(u), -(cy**2) * s.dyy(u), m**2 * u, -f,
    ),
    "helmholtz": lambda s, u, ut, utt, u0, f, kx, ky, k: (-kx * s.dxx(u), -ky * s.dyy(u), k**2 * u, -u0, -f),
    "telegraph": lambda s, u, ut, utt, u0, f, c, d: (utt, d * ut, -(c**2) * s.dxx(u), -(c**2) * s.dyy(u), -f),
    "heat": lambda s, u, ut, utt, u0, f, kappa: (ut, -kappa * s.dxx(u), -kappa * s.dyy(u), -f),
    # on the torus the mean of the right-hand side has no solution
    "poisson": lambda s, u, ut, utt, u0, f, kappa: (
        -kappa * s.dxx(u), -kappa * s.dyy(u), u0.mean() - u0, f.mean() - f,
    ),
    "time_harmonic": lambda s, u, ut, utt, u0, f, c, omega: (
        -(c**2) * s.dxx(u), -(c**2) * s.dyy(u), -(omega**2) * u, -u0, -f,
    ),
    "fractional_diffusion": lambda s, u, ut, utt, u0, f, kappa, alpha, mu: (
        ut, kappa * s.fractional_laplacian(u, alpha), mu * u, -f,
    ),
}  # fmt: skip


@every_family
def test_decoded_field_satisfies_the_pde(family):
    assert family.name in RESIDUALS, "write the new family's PDE into RESIDUALS, so that its fields are tested"
    extent, shape = (1.0, 1.5), (24, 36)
    decoder, z, u0, coarse = setting(family, num_modes=4, extent=extent, shape=(8, 12))
    grid = Grid(shape, extent)
    # A source as strong as the state's own terms, or its share could be wrong unnoticed.
    z = torch.cat([z[: len(family.coefficients)], 300 * z[len(family.coefficients) :]])
    t, dt = 0.4 * family.default_time, 2e-4
    before2, before, now, after, after2 = decoder.decode(
        z, u0, [t - 2 * dt, t - dt, t, t + dt, t + 2 * dt], grid
    ).numpy()
    ut = (before2 - 8 * before + 8 * after - after2) / (12 * dt)
    utt = (-before2 + 16 * before - 30 * now + 16 * after - after2) / (12 * dt**2)
    f = decoder.source(z, grid).numpy()
    start = grid.synthesise(coarse.analyse(u0)).numpy()
    theta = decoder.latent.theta(z).tolist()
    terms = RESIDUALS[family.name](Space(shape, extent), now, ut, utt, start, f, *theta)
    scale = max(np.abs(term).max() for term in terms)
    assert np.abs(f).max() > 1e-3 * scale
    assert np.abs(sum(terms)).max() < 1e-6 * scale


@pytest.mark.parametrize("family", [f for f in families if f.order == 2], ids=lambda f: f.name)
def test_second_order_families_start_at_rest(family):
    decoder, z, u0, grid = setting(family, num_modes=3, shape=(8, 8))
    at0, at1, at2 = decoder.decode(z, u0, [0.0, 1e-6, 2e-6], grid)
    velocity = (-3 * at0 + 4 * at1 - at2) / 2e-6
    assert velocity.abs().max() < 1e-3


# Shapes


@every_family
def test_leading_axes_broadcast(family):
    """(case, draw) latents with one initial state per case equal a loop over both."""
    decoder, z, _, grid = setting(family, num_modes=3, extent=(2.0, 1.0), shape=(8, 6), batch=(3, 2))
    u0 = random_state(grid, 4, batch=(3,))
    target, times = Grid((10, 7), (2.0, 1.0)), times_of(family)
    together = decoder.decode(z, u0[:, None], times, target)
    assert together.shape == (3, 2, 2, 10, 7)
    for i in range(3):
        for j in range(2):
            alone = decoder.decode(z[i, j], u0[i], times, target)
            torch.testing.assert_close(together[i, j], alone, rtol=0, atol=1e-12)
            for n, t in enumerate(times):
                torch.testing.assert_close(alone[n], decoder.decode(z[i, j], u0[i], [t], target)[0], rtol=0, atol=1e-12)


@every_family
def test_without_source_modes_there_is_no_source(family):
    decoder, z, u0, grid = setting(family, num_modes=0, shape=(8, 8), batch=(2,))
    assert decoder.source(z, grid).shape == (2, 8, 8)
    assert not decoder.source(z, grid).any()
    with_modes = Latent(family, num_modes=2)
    silent = torch.cat([z, torch.zeros((2, 16), dtype=torch.float64)], -1)
    torch.testing.assert_close(
        decoder.decode(z, u0, times_of(family), grid),
        Decoder(with_modes).decode(silent, u0, times_of(family), grid),
        rtol=0,
        atol=1e-14,
    )


def test_source_is_the_trigonometric_sum_of_its_spectrum():
    extent = (1.0, 2.0)
    decoder, z, _, _ = setting(families.get("helmholtz"), num_modes=3, extent=extent)
    grid = Grid((9, 14), extent)
    spectrum = decoder.latent.source_spectrum(decoder.latent.split(z)[1]).numpy()
    y, x = np.meshgrid((np.arange(9) + 0.5) / 9, (np.arange(14) + 0.5) / 14 * 2, indexing="ij")
    expected = np.zeros((9, 14))
    for i, row in enumerate([0, 1, 2, -3, -2, -1]):
        for col in range(3):
            wave = np.exp(2j * np.pi * (row * y / extent[0] + col * x / extent[1]))
            expected += (1 if col == 0 else 2) * (spectrum[i, col] * wave).real
    np.testing.assert_allclose(decoder.source(z, grid), expected, atol=1e-13)


@every_family
def test_single_precision_is_close_to_double(family):
    decoder, z, u0, grid = setting(family, shape=(32, 32))
    double = decoder.decode(z, u0, times_of(family), grid)
    single = decoder.decode(z.float(), u0.float(), times_of(family), grid)
    assert single.dtype == torch.float32
    torch.testing.assert_close(single.double(), double, rtol=0, atol=2e-4 * double.abs().max().item())


# Mistakes


@pytest.mark.parametrize("times", [[-0.1], [0.1, float("nan")], [float("inf")], []])
def test_impossible_times_are_refused(times):
    decoder, z, u0, grid = setting(families.get("klein_gordon"), num_modes=1, shape=(4, 4))
    with pytest.raises(UsageError, match="times must be"):
        decoder.decode(z, u0, times, grid)


def test_a_grid_of_another_rectangle_is_refused():
    decoder, z, u0, _ = setting(families.get("klein_gordon"), num_modes=1, shape=(4, 4))
    with pytest.raises(UsageError, match="rectangle"):
        decoder.decode(z, u0, [0.1], Grid((4, 4), (1.0, 2.0)))
