"""The differential equation behind a symbol: its residual vanishes on exact solutions, in a moving frame too."""

from __future__ import annotations

import pytest
import torch
from pinn_problem import DIFFERENTIAL, QUICK, Mixed, cases, generator, problem

from latentpde.decoder import Decoder
from latentpde.errors import UsageError
from latentpde.estimators import reconstruct
from latentpde.estimators.pinn.equation import Equation, check_differential, is_differential
from latentpde.grid import Grid, at_points
from latentpde.latent import Latent
from latentpde.pde import Coefficient, Family, families


class Biharmonic(Family):
    name = "biharmonic"
    equation = "u_t = -nu Δ²u + f"
    order = 1
    coefficients = (Coefficient("nu", 0.001, 0.01, "L⁴/T", "hyperdiffusivity"),)

    def symbol(self, k, nu):
        return nu * k.squared**2


@pytest.mark.parametrize("family", [*(families.get(name) for name in DIFFERENTIAL), Mixed()], ids=lambda f: f.name)
def test_the_residual_vanishes_on_exact_solutions(family):
    """The decoder's solution, differentiated by autograd, solves the equation read off the symbol: on a rectangle."""
    extent, duration = (1.0, 1.7), 0.3
    latent = Latent(family, source_prior_std=0.4, num_modes=2)
    decoder, grid = Decoder(latent, extent), Grid((6, 6), extent)
    rng = generator(5)
    z, u0 = latent.draw(1, generator=rng)[0], torch.randn((6, 6), dtype=torch.float64, generator=rng)
    u0_hat = grid.analyse(u0)
    equation = Equation(family, extent, duration)
    terms = equation.terms(latent.theta(z)[None])

    def series(u_hat, place):
        return at_points(u_hat, (place * torch.tensor(extent, dtype=torch.float64))[None], extent)[0]

    def field(point):
        spectrum = decoder.spectrum(z, u0_hat, point[:1] * duration)[0]
        return series(spectrum, point[1:])

    for point in torch.rand((4, 3), dtype=torch.float64, generator=rng):
        gradient, hessian = torch.func.grad(field)(point), torch.autograd.functional.hessian(field, point)
        assert isinstance(hessian, torch.Tensor)
        axes = equation.directions
        second = sum(
            terms.second[0, p] * hessian[axes[i], axes[j]] for p, (i, j) in enumerate(equation.pairs)
        )  # fmt: skip
        left = terms.first[0] @ gradient + second + terms.zeroth[0] * field(point)
        right = series(latent.source_spectrum(latent.split(z)[1]), point[1:])
        if not family.order:
            right = right + series(u0_hat, point[1:])
        if family.name == "poisson":  # on a torus it leaves the mean of its right-hand side out
            right = right - (u0_hat[0, 0] + latent.source_spectrum(latent.split(z)[1])[0, 0]).real
        torch.testing.assert_close(left, equation.time_scale * right, rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("num_harmonics", [0, 2])
@pytest.mark.parametrize("moving_frame", [False, True])
def test_the_residual_is_that_of_the_field_in_a_moving_frame_too(num_harmonics, moving_frame):
    trial = problem(num_harmonics=num_harmonics, moving_frame=moving_frame)
    networks = trial.networks(generator=generator())
    networks.raw.copy_(torch.tensor([[1.0, -0.7, 0.3], [-1.5, 0.4, -1.0]]))
    residual, source = trial._residual(networks, 6, generator(3))
    rng = generator(3)
    sites = trial.sites[torch.randint(len(trial.sites), (6,), generator=rng)]
    points = torch.cat([torch.rand(6, generator=rng)[:, None], sites], 1)
    terms = trial.equation.terms(trial.theta(networks.raw))
    for case in range(2):
        drift = terms.first[case].float()
        alone, network = trial[case : case + 1], networks[case : case + 1]

        def field(point, alone=alone, network=network):
            return alone.field(network, point[None])[0, 0]

        for n, point in enumerate(points):
            at = point + moving_frame * point[0] * torch.cat([torch.zeros(1), drift[1:]])
            at[1:] %= 1
            gradient, hessian = torch.func.grad(field)(at), torch.autograd.functional.hessian(field, at)
            assert isinstance(hessian, torch.Tensor)
            expected_source = alone.source(network, at[None])[0, 0]
            torch.testing.assert_close(source[case, n], expected_source, rtol=1e-3, atol=1e-4)
            left = drift @ gradient + terms.second[case].float() @ hessian.diagonal()[1:]
            left = trial.scale[case] * left - trial.equation.time_scale * 0.4 * expected_source
            expected = (left / trial.residual_scale[case]).float()
            torch.testing.assert_close(residual[case, n], expected, rtol=1e-3, atol=1e-3)


def test_only_differential_equations_are_treated():
    assert [f.name for f in families if is_differential(f)] == list(DIFFERENTIAL)
    assert is_differential(Mixed())
    assert not is_differential(Biharmonic())
    with pytest.raises(UsageError, match=r"pinn cannot treat biharmonic.*knows: advection_diffusion, .*klein_gordon"):
        check_differential(Biharmonic())
    with pytest.raises(UsageError, match="pinn cannot treat fractional_diffusion"):
        reconstruct(cases("fractional_diffusion"), **QUICK)
