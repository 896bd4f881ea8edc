"""Networks of the PINN: their size, and derivatives carried through them, against autograd."""

from __future__ import annotations

import pytest
import torch
from pinn_problem import QUICK, cases, generator, problem

from latentpde.estimators import reconstruct
from latentpde.estimators.pinn.network import Features, apply, apply_operator, make_layers


@pytest.mark.parametrize("regime", ["balanced", "klein_gordon", "helmholtz"])
def test_the_papers_network_has_58757_parameters(regime):
    networks = problem(regime).networks(generator=generator())
    assert networks.num_parameters == 58_757
    posterior = reconstruct(cases(regime), num_harmonics=0, **QUICK)
    assert posterior.diagnostics["num_parameters"] == 58_757


@pytest.mark.parametrize("num_harmonics", [0, 1, 3])
@pytest.mark.parametrize("pairs", [((0, 0), (1, 1)), ((0, 0), (1, 1), (0, 1)), ((1, 1), (2, 2), (0, 0), (1, 2))])
def test_an_operator_is_carried_through_the_network_as_autograd_has_it(num_harmonics, pairs):
    """Values, operators and the gradients of both with respect to weights and the operator's coefficients."""
    features = Features(num_harmonics)
    rng = generator(1)
    layers = [p.double() for p in make_layers((features.size, 7, 6, 1), 2, generator=rng)]
    layers = [(p + 0.3 * torch.randn(p.shape, dtype=p.dtype, generator=rng)).requires_grad_(True) for p in layers]
    points = torch.rand((5, 3), dtype=torch.float64, generator=rng)
    directions = (0, 1, 2) if max(max(p) for p in pairs) == 2 else (1, 2)
    drift = torch.randn((2, 3), dtype=torch.float64, generator=rng).requires_grad_(True)
    curvature = torch.randn((2, len(pairs)), dtype=torch.float64, generator=rng).requires_grad_(True)

    slopes, bends = features.first_derivatives(points), features.second_derivatives(points)
    operated = torch.einsum("ca,apf->cpf", drift, slopes)
    for p, (i, j) in enumerate(pairs):
        if i == j:
            operated = operated + curvature[:, p, None, None] * bends[directions[i]]
    known = torch.stack([features(points), *(slopes[i] for i in directions)])
    jet = torch.cat([known.expand(2, *known.shape), operated[:, None]], 1)
    out = apply_operator(layers, jet, curvature, pairs)

    def field(case, point):
        inputs = features(point[None])[None]
        return apply([p[case : case + 1] for p in layers], inputs)[0, 0]

    expected = torch.zeros_like(out)
    for case in range(2):
        for n, point in enumerate(points):
            gradient = torch.autograd.functional.jacobian(lambda x, case=case: field(case, x), point, create_graph=True)
            hessian = torch.autograd.functional.hessian(lambda x, case=case: field(case, x), point, create_graph=True)
            second = sum(curvature[case, p] * hessian[directions[i], directions[j]] for p, (i, j) in enumerate(pairs))
            parts = [field(case, point), *(gradient[i] for i in directions), drift[case] @ gradient + second]
            expected[case, :, n] = torch.stack(parts)
    torch.testing.assert_close(out, expected, rtol=1e-10, atol=1e-11)
    weights = torch.randn(out.shape, dtype=out.dtype, generator=rng)
    unknowns = [*layers, drift, curvature]
    found, wanted = (torch.autograd.grad((weights * o).sum(), unknowns) for o in (out, expected))
    for one, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-10)


def test_harmonics_make_the_field_periodic():
    trial = problem(num_harmonics=2)
    networks = trial.networks(generator=generator())
    points = torch.rand((9, 3), generator=generator(2))
    around = points + torch.tensor([0.0, 1.0, -2.0])
    torch.testing.assert_close(trial.field(networks, points), trial.field(networks, around), atol=2e-5, rtol=0)
    torch.testing.assert_close(trial.source(networks, points), trial.source(networks, around), atol=2e-5, rtol=0)
