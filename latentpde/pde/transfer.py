r"""Exact response of one Fourier mode to its initial state and a steady source.

With :math:`L` the symbol of the spatial operator on the left-hand side, a mode obeys one of

.. math::
    \text{order 0:}\quad & L \hat u = \hat u_0 + \hat f \\
    \text{order 1:}\quad & \hat u' + L \hat u = \hat f, & \hat u(0) = \hat u_0 \\
    \text{order 2:}\quad & \hat u'' + d\, \hat u' + L \hat u = \hat f, & \hat u(0) = \hat u_0, \; \hat u'(0) = 0

and `state_response`, `source_response` are the multipliers of :math:`\hat u(t) = G \hat u_0 + H \hat f`. Where an
equation of order 2 does not start at rest, `velocity_response` is that of :math:`\hat u'(0)`, which is added. All are
entire functions of :math:`L t` (and :math:`d t`), and they are evaluated so: no branch divides by something small or
subtracts nearly equal numbers, and the derivatives at the limits are right, because the Taylor
branches carry them. Branches that `torch.where` discards get harmless arguments, so that no NaN leaks
through their gradients.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from latentpde.errors import UsageError


def state_response(order: int, symbol: Tensor, damping: Tensor | None, t: Tensor) -> Tensor:
    r""":math:`G`: :math:`1 / L`, :math:`e^{-Lt}`, or :math:`\cos \sqrt{L}\,t` and its damped kin."""
    if order == 0:
        return _inverse(symbol)
    if order == 1:
        return _exp(-symbol * t)
    x = symbol * t**2
    return _cos_sqrt(x) if damping is None else _damped_state(x, damping * t / 2)[0]


def source_response(order: int, symbol: Tensor, damping: Tensor | None, t: Tensor) -> Tensor:
    r""":math:`H`: :math:`1 / L`, :math:`t\,\varphi_1(-Lt)` with :math:`\varphi_1(z) = (e^z - 1) / z`, or
    :math:`\tfrac{t^2}{2} \operatorname{sinc}^2 \tfrac{\sqrt{L}\,t}{2}` and its damped kin."""
    if order == 0:
        return _inverse(symbol)
    if order == 1:
        return t * phi1(-symbol * t)
    x = symbol * t**2
    return t**2 * (sinc_sqrt(x / 4) ** 2 / 2 if damping is None else _damped_source(x, damping * t / 2))


def velocity_response(order: int, symbol: Tensor, damping: Tensor | None, t: Tensor) -> Tensor:
    r"""Of a second-order equation to its initial velocity, :math:`\hat u'(0)`: :math:`\sin(\sqrt{L}\,t) / \sqrt{L}`
    and its damped kin."""
    if order != 2:
        raise UsageError(f"an equation of order {order} in time has no initial velocity")
    x = symbol * t**2
    return t * (sinc_sqrt(x) if damping is None else _damped_state(x, damping * t / 2)[1])


def _inverse(symbol: Tensor) -> Tensor:
    """Where the symbol vanishes the mode has no equation, and the solution of least norm, zero, is taken: for
    Poisson's equation that is the solution of zero mean."""
    solvable = symbol != 0
    return torch.where(solvable, 1 / torch.where(solvable, symbol, 1), 0)


def _damped_state(x: Tensor, a: Tensor) -> tuple[Tensor, Tensor]:
    r"""Damped oscillator in :math:`x = L t^2` and :math:`a = d t / 2`, with :math:`w = x - a^2`:

    .. math:: G = e^{-a} \cos\sqrt w + a S, \qquad S = e^{-a} \frac{\sin\sqrt w}{\sqrt w}

    which turns to hyperbolic functions where :math:`w < 0`. There the roots are :math:`-a \pm \sqrt{-w}`, and the slow
    one is taken as :math:`-x / (a + \sqrt{-w})`, free of cancellation. Returns ``(G, S)``.
    """
    x, a = torch.broadcast_tensors(x, a)
    over, slow, fast, mu = _overdamped_roots(x, a)
    w = torch.where(over, 0.0, x - a**2)
    grow, shrink, decay = torch.exp(slow), torch.exp(fast), torch.exp(-torch.where(over, 0.0, a))
    s = torch.where(over, (grow - shrink) / (2 * mu), decay * sinc_sqrt(w))
    return torch.where(over, (grow + shrink) / 2, decay * _cos_sqrt(w)) + a * s, s


def _damped_source(x: Tensor, a: Tensor) -> Tensor:
    r""":math:`H / t^2 = (1 - G) / x` in the terms of `_damped_state`, without its cancellation as :math:`x \to 0`.

    It is the divided difference of the exponential at :math:`0, z_+, z_-`. Overdamped, that is
    :math:`(\varphi_1(z_+) - S) / (-z_-)`. Where both roots are small it is summed as :math:`\sum_n h_n / (n+2)!` with
    :math:`h_n = -2a\,h_{n-1} - x\,h_{n-2}`. Elsewhere :math:`1 - G` is written so that it is exactly
    :math:`2 \sin^2(\sqrt w / 2)` when there is no damping.
    """
    x, a = torch.broadcast_tensors(x, a)
    over, slow, _, mu = _overdamped_roots(x, a)
    small = (a <= 0.5) & (x.abs() <= 0.25)
    w = torch.where(over, 0.0, x - a**2)
    _, s = _damped_state(x, a)
    rest = -torch.expm1(-a) + torch.exp(-a) * (w / 2 * sinc_sqrt(w / 4) ** 2 - a * sinc_sqrt(w))
    h_under = rest / torch.where(small | over, 1.0, x)
    h_over = (phi1(slow) - s) / torch.where(over, a + mu, 1.0)
    h_small = _small_roots(torch.where(small, x, 0.0), torch.where(small, a, 0.0))
    return torch.where(small, h_small, torch.where(over, h_over, h_under))


def _overdamped_roots(x: Tensor, a: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Where the roots are real and apart; the slow and the fast one, and half their distance; harmless elsewhere."""
    over = x - a**2 < -NEAR
    mu = torch.sqrt(torch.where(over, a**2 - x, 1.0))
    slow = torch.where(over, -x / (torch.where(over, a, 1.0) + mu), 0.0)
    return over, slow, torch.where(over, -a - mu, 0.0), mu


def _small_roots(x: Tensor, a: Tensor, num_terms: int = 20) -> Tensor:
    before, current = torch.zeros_like(x), torch.ones_like(x)
    total = current / 2
    for n in range(1, num_terms):
        before, current = current, -2 * a * current - x * before
        total = total + current / float(math.factorial(n + 2))
    return total


def phi1(z: Tensor) -> Tensor:
    r""":math:`(e^z - 1) / z`, one at zero; real or complex."""
    small = square(z) < NEAR**2
    safe = torch.where(small, torch.ones_like(z), z)
    return _quotient(expm1(safe), safe).masked_scatter(small, series(-z[small], PHI1))


def expm1(z: Tensor) -> Tensor:
    """Real or complex: torch has no complex one."""
    if not z.is_complex():
        return torch.expm1(z)
    growth, sine, cosine = torch.expm1(z.real), torch.sin(z.imag / 2), torch.cos(z.imag / 2)
    twice = 2 * (growth + 1) * sine
    return torch.complex(growth - twice * sine, twice * cosine)


def _quotient(a: Tensor, b: Tensor) -> Tensor:
    """In real arithmetic: torch's complex division takes several times as long."""
    if not a.is_complex():
        return a / b
    size = square(b)
    real, imag = a.real * b.real + a.imag * b.imag, a.imag * b.real - a.real * b.imag
    return torch.complex(real / size, imag / size)


def _exp(z: Tensor) -> Tensor:
    if not z.is_complex():
        return torch.exp(z)
    size = torch.exp(z.real)
    return torch.complex(size * torch.cos(z.imag), size * torch.sin(z.imag))


def square(z: Tensor) -> Tensor:
    return z.real**2 + z.imag**2 if z.is_complex() else z**2


def sinc_sqrt(x: Tensor) -> Tensor:
    r""":math:`\sin\sqrt x / \sqrt x`, and its continuation :math:`\sinh\sqrt{-x} / \sqrt{-x}` to negative arguments."""
    if bool((x > NEAR).all()):
        root = torch.sqrt(x)
        return torch.sin(root) / root
    root, minus_root = _roots(x)
    value = torch.where(x > NEAR, torch.sin(root) / root, series(x.clamp(-NEAR, NEAR), _SINC))
    return torch.where(x < -NEAR, torch.sinh(minus_root) / minus_root, value)


def _cos_sqrt(x: Tensor) -> Tensor:
    if bool((x > NEAR).all()):
        return torch.cos(torch.sqrt(x))
    root, minus_root = _roots(x)
    value = torch.where(x > NEAR, torch.cos(root), series(x.clamp(-NEAR, NEAR), _COS))
    return torch.where(x < -NEAR, torch.cosh(minus_root), value)


def _roots(x: Tensor) -> tuple[Tensor, Tensor]:
    return torch.sqrt(torch.where(x > NEAR, x, 1.0)), torch.sqrt(torch.where(x < -NEAR, -x, 1.0))


def series(x: Tensor, coefficients: tuple[float, ...]) -> Tensor:
    """sum of c_n (-x)^n, by Horner's rule."""
    total = coefficients[-1]
    for c in reversed(coefficients[:-1]):
        total = c - x * total
    return total  # pyright: ignore[reportReturnType]


# Below |x| = NEAR series stand in for closed forms. The closed forms are accurate everywhere but at 0; it is
# their derivatives, of relative error 1e-16 / |x|, that set the limit. With these terms the series are exact there.
NEAR = 1e-3
_COS = tuple(1 / math.factorial(2 * n) for n in range(5))
_SINC = tuple(1 / math.factorial(2 * n + 1) for n in range(5))
PHI1 = tuple(1 / math.factorial(n + 1) for n in range(6))
