"""Families: the multipliers against an integrator run on the PDE as it is written, and the registry."""

import numpy as np
import pytest
import sympy
import torch
from scipy.integrate import solve_ivp

from latentpde.errors import UsageError
from latentpde.grid import Wavenumbers
from latentpde.pde import Coefficient, Family, families, register_family
from latentpde.pde.transfer import phi1, sinc_sqrt, source_response, state_response

X, Y, T, KX, KY, F, U0 = sympy.symbols("x y t kx ky F U0")
U = sympy.Function("U")(T)
WAVE = sympy.exp(sympy.I * (KX * X + KY * Y))


def second_order(symbol, damping, t):
    return state_response(2, symbol, damping, t), source_response(2, symbol, damping, t)


def _laplacian(u):
    return u.diff(X, 2) + u.diff(Y, 2)


def _rotated_tensor(along, across, angle):
    """``R diag(along^2, across^2) R^T`` with the rotation ``R``: its entries xx, xy and yy."""
    rotation = sympy.Matrix([[sympy.cos(angle), -sympy.sin(angle)], [sympy.sin(angle), sympy.cos(angle)]])
    tensor = rotation * sympy.diag(along**2, across**2) * rotation.T
    return tensor[0, 0], tensor[0, 1], tensor[1, 1]


def _divergence(xx, xy, yy, u):
    return (xx * u.diff(X) + xy * u.diff(Y)).diff(X) + (xy * u.diff(X) + yy * u.diff(Y)).diff(Y)


# Each PDE as one would write it down, everything on one side. Nothing here is shared with the package.
PDES = {
    "advection_diffusion": lambda u, u0, f, vx, vy, kappa: (
        u.diff(T) + vx * u.diff(X) + vy * u.diff(Y) - kappa * _laplacian(u) - f
    ),
    "advection_diffusion_decay": lambda u, u0, f, vx, vy, kappa, mu: (
        u.diff(T) + vx * u.diff(X) + vy * u.diff(Y) - kappa * _laplacian(u) + mu * u - f
    ),
    "screened_poisson": lambda u, u0, f, length, ratio, angle: (
        u - _divergence(*_rotated_tensor(length, ratio * length, angle), u) - u0 - f
    ),
    "klein_gordon": lambda u, u0, f, cx, cy, m: (
        u.diff(T, 2) - cx**2 * u.diff(X, 2) - cy**2 * u.diff(Y, 2) + m**2 * u - f
    ),
    "helmholtz": lambda u, u0, f, kx, ky, k: -kx * u.diff(X, 2) - ky * u.diff(Y, 2) + k**2 * u - u0 - f,
    "telegraph": lambda u, u0, f, c, d: u.diff(T, 2) + d * u.diff(T) - c**2 * _laplacian(u) - f,
    "heat": lambda u, u0, f, kappa: u.diff(T) - kappa * _laplacian(u) - f,
    "poisson": lambda u, u0, f, kappa: -kappa * _laplacian(u) - u0 - f,
    "time_harmonic": lambda u, u0, f, c, omega: -(c**2) * _laplacian(u) - omega**2 * u - u0 - f,
    # the fractional Laplacian is defined by what it does to a plane wave
    "fractional_diffusion": lambda u, u0, f, kappa, alpha, mu: (
        u.diff(T) + kappa * (KX**2 + KY**2) ** (alpha / 2) * u + mu * u - f
    ),
}


def _mode_equation(name):
    """Coefficients ``p0, p1, p2`` of ``p0 U + p1 U' + p2 U'' = b U0 + F`` for a plane wave, by sympy."""
    symbols = [sympy.Symbol(f"theta{i}") for i in range(len(families.get(name).coefficients))]
    residual = sympy.expand(sympy.simplify(PDES[name](U * WAVE, U0 * WAVE, F * WAVE, *symbols) / WAVE))
    parts = [residual.coeff(U.diff(T, n) if n else U) for n in range(3)]
    assert residual.coeff(F) == -1
    return sympy.lambdify((KY, KX, *symbols), [*parts, -residual.coeff(U0)])


def _integrate(p0, p1, p2, t, forced):
    start = [0.0, 0.0] if forced else [1.0, 0.0]
    source = 1.0 if forced else 0.0

    def rhs(_, y):
        if p2 == 0:
            return np.array([(source - p0 * y[0]) / p1, 0.0])
        return np.array([y[1], (source - p0 * y[0] - p1 * y[1]) / p2])

    start = np.array(start, dtype=complex)
    if t == 0:
        return start[0]
    with np.errstate(invalid="ignore"):  # scipy divides 0 by 0 where a step has no error at all
        solution = solve_ivp(rhs, (0, t), start, method="DOP853", rtol=1e-12, atol=1e-15)
    assert solution.success
    return solution.y[0, -1]


@pytest.mark.parametrize("name", families.names())
def test_transfer_agrees_with_an_integrator(name):
    family = families.get(name)
    equation = _mode_equation(name)
    rng = np.random.default_rng(3)
    lower, upper = family.bounds.numpy().T
    modes = [(0, 0), (1, 0), (0, -1), (3, 2), (-12, 11), (15, 15), *rng.integers(-10, 11, (10, 2))]
    for row, col in modes:
        for theta in (lower, upper, lower + (upper - lower) * rng.random(len(lower))):
            ky, kx = 2 * np.pi * float(row), 2 * np.pi * float(col)
            t = float(rng.choice([0.0, 1e-6, 1e-2, family.default_time, 2 * family.default_time * rng.random()]))
            k = Wavenumbers(torch.tensor([[ky]], dtype=torch.float64), torch.tensor([[kx]], dtype=torch.float64))
            g, h = family.transfer(k, torch.tensor([t], dtype=torch.float64), torch.as_tensor(theta))
            p0, p1, p2, b = (complex(value) for value in equation(ky, kx, *theta))
            if family.order == 0 and p0 == 0:
                expected_g, expected_h = 0, 0  # a mode without an equation: the solution of least norm
            elif family.order == 0:
                expected_g, expected_h = b / p0, 1 / p0
            else:
                expected_g, expected_h = (_integrate(p0, p1, p2, t, forced) for forced in (False, True))
            # The natural scale of a response: one for the state, and for the source what it builds up undisturbed,
            # or its steady level where that is lower.
            undisturbed = t ** max(family.order, 1) / max(family.order, 1)
            scale = abs(expected_h) if family.order == 0 else min(undisturbed, 1 / max(abs(p0), 1e-300))
            assert abs(g.item() - expected_g) <= 1e-8 * max(1.0, abs(expected_g)), (row, col, theta, t)
            assert abs(h.item() - expected_h) <= 1e-8 * scale + 1e-15, (row, col, theta, t)


@pytest.mark.parametrize("name", families.names())
def test_every_family_is_checked_against_its_pde(name):
    assert name in PDES, "write the new family's PDE into PDES, so that its symbol is tested"


@pytest.mark.parametrize("damping", [0.0, 1e-9, 1e-3, 0.5, 0.9999999, 1.0, 1.0000001, 2.0, 30.0, 3000.0])
@pytest.mark.parametrize("stiffness", [0.0, 1e-12, 1e-6, 1e-2, 0.25, 1.0, 4.0, 39.478417604357434, 1e4])
def test_damped_response_against_high_precision(damping, stiffness):
    """Roots near each other, near zero and far apart; mpmath with 60 digits is the judge."""
    import mpmath

    with mpmath.workdps(60):
        d, s, t = mpmath.mpf(damping), mpmath.mpf(stiffness), mpmath.mpf(1)
        # a vanishing shift separates double roots without being visible at 16 digits
        root = mpmath.sqrt(d**2 / 4 - s + mpmath.mpf(10) ** -40)
        r1, r2 = -d / 2 + root, -d / 2 - root
        g = (r1 * mpmath.exp(r2 * t) - r2 * mpmath.exp(r1 * t)) / (r1 - r2)

        def impulse(tau):
            return (mpmath.exp(r1 * tau) - mpmath.exp(r2 * tau)) / (r1 - r2)

        def primitive(r):
            return t if abs(r) < mpmath.mpf(10) ** -35 else mpmath.expm1(r * t) / r

        h = (primitive(r1) - primitive(r2)) / (r1 - r2)
        expected = complex(g).real, complex(h).real
    actual = second_order(
        torch.tensor(stiffness, dtype=torch.float64),
        torch.tensor(damping, dtype=torch.float64),
        torch.tensor(1.0, dtype=torch.float64),
    )
    assert actual[0].item() == pytest.approx(expected[0], rel=1e-11, abs=1e-13)
    assert actual[1].item() == pytest.approx(expected[1], rel=1e-10, abs=1e-18)


def test_undamped_equals_damping_zero():
    x = torch.cat([torch.linspace(-5, 5, 401, dtype=torch.float64), torch.logspace(0, 5, 200, dtype=torch.float64)])
    t = torch.tensor(1.3, dtype=torch.float64)
    for a, b in zip(second_order(x, None, t), second_order(x, torch.zeros_like(x), t), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(
    ("function", "points"),
    [
        (phi1, [0.0, 1e-8, 0.4999999, 0.5000001, -3.0, 1j, 1e-9j, 0.1 + 0.2j, 2j * np.pi]),
        (sinc_sqrt, [0.0, 1e-9, -1e-9, 0.0999999, 0.1000001, -0.1000001, 7.0, -7.0]),
        (lambda x: second_order(x, None, torch.tensor(1.0, dtype=torch.float64))[0], [0.0, 1e-7, 0.999, 1.001, 30.0]),
        (
            lambda x: second_order(x, 0.8 + x, torch.tensor(1.0, dtype=torch.float64))[1],
            [0.0, 1e-6, 0.16, 0.2, 0.3, 9.0],
        ),
    ],
)
def test_gradients_at_the_limits(function, points):
    for point in points:
        dtype = torch.complex128 if isinstance(point, complex) else torch.float64
        assert torch.autograd.gradcheck(function, torch.tensor(point, dtype=dtype, requires_grad=True), eps=1e-7)


class Decay(Family):
    name = "decay"
    equation = "u_t = -mu u + f"
    order = 1
    coefficients = (Coefficient("mu", 0.1, 2.0, "1/T", "decay rate"),)

    def symbol(self, k, mu):
        return mu + 0 * k.squared


def test_users_register_their_own():
    register_family(Decay())
    try:
        g, h = families.get("Decay").transfer(
            Wavenumbers(torch.zeros(1, 1, dtype=torch.float64), torch.zeros(1, 1, dtype=torch.float64)),
            torch.tensor([2.0], dtype=torch.float64),
            torch.tensor([0.5], dtype=torch.float64),
        )
        assert g.item() == pytest.approx(np.exp(-1))
        assert h.item() == pytest.approx(2 * (1 - np.exp(-1)))
        with pytest.raises(UsageError, match="exists already"):
            register_family(Decay())
    finally:
        families.unregister("decay")


def test_registration_refuses_a_symbol_that_breaks_reality():
    class Broken(Decay):
        name = "broken"

        def symbol(self, k, mu):
            return torch.complex(mu * k.squared, k.squared)

    with pytest.raises(UsageError, match="conjugate"):
        register_family(Broken())
    assert "broken" not in families


def test_registration_refuses_a_symbol_that_is_not_separable():
    class Mixed(Decay):
        name = "mixed"
        separable = True

        def symbol(self, k, mu):
            return mu * (k.y * k.x) ** 2

    with pytest.raises(UsageError, match="must be symbol"):
        register_family(Mixed())
    assert "mixed" not in families


def test_names_fold_and_typos_get_a_hint():
    assert families.get("Klein-Gordon") is families.get("klein_gordon")
    with pytest.raises(UsageError, match="did you mean 'helmholtz'"):
        families.get("helmholz")


def test_entry_points_are_loaded(monkeypatch):
    from latentpde import registry
    from latentpde.pde.base import check_family

    class Entry:
        name, value = "decay", "decays:Decay"

        @staticmethod
        def load():
            return Decay()

    monkeypatch.setattr(registry, "entry_points", lambda group: [Entry] if group == "latentpde.families" else [])
    table = registry.Registry("family", "families", "latentpde.families", check_family)
    assert isinstance(table.get("decay"), Decay)
