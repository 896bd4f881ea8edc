"""Fields between walls: against finite differences under refinement, round trips, gradients, and the simulator."""

import numpy as np
import pytest
import torch

import latentpde as lp
from latentpde.decoder import Decoder
from latentpde.errors import DataError, UsageError
from latentpde.grid import Grid, Mirror
from latentpde.latent import Latent
from latentpde.pde import families, get_family

SIGNS = {"dirichlet": -1, "neumann": 1, "periodic": 0}
EVEN = [name for name in families.names() if name not in ("advection_diffusion", "advection_diffusion_decay")]


def difference_matrix(n, h, edge):
    """Second differences at cell centres, with ghost cells beyond the walls: odd, even or around."""
    matrix = np.diag(np.full(n, -2.0)) + np.diag(np.ones(n - 1), 1) + np.diag(np.ones(n - 1), -1)
    if edge == "periodic":
        matrix[0, -1] = matrix[-1, 0] = 1.0
    else:
        matrix[0, 0] = matrix[-1, -1] = -2.0 + SIGNS[edge]
    return matrix / h**2


@pytest.mark.parametrize("y", SIGNS)
@pytest.mark.parametrize("x", SIGNS)
def test_decoder_is_the_limit_of_finite_differences(y, x):
    """Heat with a source: an independent solution by differences, which converges with the square of the spacing."""
    latent, extent, t = Latent(get_family("heat"), num_modes=3, source_prior_std=2.0), (1.0, 1.3), 0.3
    mirror = Mirror(SIGNS[y], SIGNS[x])
    decoder = Decoder.within(latent, extent, mirror)
    generator = torch.Generator().manual_seed(4)
    z = latent.draw(1, generator=generator)[0]
    kappa = float(latent.theta(z)[0])
    start = Grid((6, 6), extent)
    u0 = torch.randn(6, 6, generator=generator, dtype=torch.float64)
    errors = []
    for n in (16, 32):
        grid = Grid((n, n), extent)
        exact = decoder.decode(z, u0, [t], grid)[0].numpy()
        initial = decoder.on_grid(mirror.analyse(u0, start), grid).numpy()
        source = decoder.source(z, grid).numpy()
        hy, hx = grid.spacing
        ly, vy = np.linalg.eigh(difference_matrix(n, hy, y))
        lx, vx = np.linalg.eigh(difference_matrix(n, hx, x))
        rate = -kappa * (ly[:, None] + lx)
        safe = np.where(np.abs(rate) < 1e-12, 1.0, rate)
        built_up = np.where(np.abs(rate) < 1e-12, t, (1 - np.exp(-safe * t)) / safe)
        found = vy @ (np.exp(-rate * t) * (vy.T @ initial @ vx) + built_up * (vy.T @ source @ vx)) @ vx.T
        errors.append(np.abs(found - exact).max())
    assert errors[1] < 0.35 * errors[0]
    assert errors[1] < 0.05 * np.abs(exact).max()


@pytest.mark.parametrize("name", EVEN)
def test_families_run_between_walls_and_keep_to_them(name):
    family = get_family(name)
    if name == "screened_poisson":
        with pytest.raises(UsageError, match="odd derivatives"):
            Decoder.within(Latent(family), (1.0, 1.0), Mirror(-1, -1))
        return
    latent = Latent(family, num_modes=3)
    decoder = Decoder.within(latent, (1.0, 1.0), Mirror(y=-1, x=1))
    z = latent.draw(1, generator=torch.Generator().manual_seed(0))
    u_hat = decoder.spectrum(z, Mirror(-1, 1).analyse(torch.randn(8, 8).double(), Grid((8, 8))), [0.2])[:, 0]
    ends = torch.tensor([0.0, 1.0], dtype=torch.float64)
    inside, step = torch.linspace(0.1, 0.9, 5, dtype=torch.float64), 1e-5
    assert decoder.at(u_hat, ends, inside).abs().max() < 1e-12
    flux = decoder.at(u_hat, inside, ends + step) - decoder.at(u_hat, inside, ends - step)
    assert flux.abs().max() < 1e-10


def test_gradients_between_walls():
    latent = Latent(get_family("heat"), num_modes=2)
    decoder, grid = Decoder.within(latent, (1.0, 1.0), Mirror(-1, 1)), Grid((4, 4))
    z = latent.draw(1, generator=torch.Generator().manual_seed(1))[0].requires_grad_(True)
    u0 = torch.randn(4, 4, generator=torch.Generator().manual_seed(2), dtype=torch.float64).requires_grad_(True)
    assert torch.autograd.gradcheck(lambda z, u0: decoder.decode(z, u0, [0.3], grid), (z, u0))


@pytest.mark.parametrize(("y", "x"), [(-1, 1), (0, -1), (1, 0), (1, 1)])
def test_samples_and_coefficients_round_trip(y, x):
    mirror, grid = Mirror(y, x), Grid((9, 7), (1.0, 2.0))
    block = mirror.project(torch.randn((16, 4), dtype=torch.complex128, generator=torch.Generator().manual_seed(3)))
    block[8] = 0
    field = mirror.restrict(mirror.grid(grid).synthesise(block))
    torch.testing.assert_close(mirror.grid(grid).synthesise(mirror.analyse(field, grid)), mirror.extend(field))
    again = mirror.block(mirror.coefficients(block))
    wide = mirror.grid(grid)
    torch.testing.assert_close(wide.synthesise(again), wide.synthesise(block))


@pytest.mark.parametrize("observed", ["lowres-solve", "pooled", "point"])
@pytest.mark.parametrize("method", ["exact", "map"])
def test_simulated_cases_between_walls_are_reconstructed(observed, method):
    cases = lp.simulate(
        "fractional_diffusion", num=1, seed=3, shape=(32, 32), num_modes=2, sparsity=0.6, noise_std=0.01,
        observed=observed, domain="y=dirichlet,x=neumann",
    )  # fmt: skip
    options = {"sweep": 256, "target": 60.0, "num_spread_draws": 20} if method == "exact" else {"num_steps": 200}
    posterior = lp.reconstruct(cases, method=method, num_draws=4, **options)
    truth = cases["truth/field"].values[0].reshape(32, 32)
    error = np.sqrt(np.mean((posterior.mean(resolution=32).values[0] - truth) ** 2))
    assert error < (0.25 if method == "exact" else 0.5) * truth.std()


def test_others_refuse_walls():
    cases = lp.simulate("klein_gordon", num=1, shape=(32, 32), domain="neumann")
    for method in ("3dvar", "enkf", "enc"):
        with pytest.raises(DataError, match="edges only; for neumann take the method exact or map"):
            lp.reconstruct(cases, method=method)
    with pytest.raises(UsageError, match="odd derivatives"):
        lp.simulate("balanced", num=1, domain="neumann")
    with pytest.raises(UsageError, match="periodic edges or walls"):
        lp.simulate("klein_gordon", num=1, domain="open")


def test_files_may_call_the_edges_boundary():
    cases = lp.simulate("klein_gordon", num=1, shape=(32, 32)).to_dataset()
    cases.attrs.pop("domain")
    cases.attrs["boundary"] = "neumann"
    assert lp.Observation.from_dataset(cases).domain == lp.Domain("neumann", "neumann")
