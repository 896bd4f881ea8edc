r"""All modes of a first-order equation in one step, with derivatives by hand.

.. math:: \hat u(t) = e^{-Lt}\,\hat u_0 + \frac{1 - e^{-Lt}}{L}\,\hat f

is where methods that descend a residual spend their time. Put together from the general `state_response` and
`source_response` it takes exponentials of every mode twice and leaves a long graph behind. Here :math:`H = (1 - G) / L`
reuses :math:`G`; so do the derivatives :math:`\partial G / \partial L = -t G` and
:math:`\partial H / \partial L = (t G - H) / L`; and where the symbol is a sum of one part along y and one along x, the
exponentials are taken along the axes and multiplied.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from latentpde.grid import add_to_block, crop_block
from latentpde.pde.transfer import NEAR, PHI1, expm1, series, square


def solve_first_order(symbols: Sequence[Tensor], t: Tensor, u0_hat: Tensor, f_hat: Tensor) -> Tensor:
    """Fourier coefficients at times ``t``; differentiable once, in all but the times.

    Args:
        symbols: parts whose sum is the symbol, on the initial state's block.
        t: times, shaped to broadcast with the symbols.
        u0_hat: the initial state's block.
        f_hat: the source's block, no larger.
    """
    return _FirstOrder.apply(t, u0_hat, f_hat, *symbols)  # pyright: ignore[reportReturnType]


def first_order_responses(symbol: Tensor, t: Tensor) -> tuple[Tensor, Tensor]:
    """``G`` and ``H`` at times ``t``, for less than the price of both; differentiable once, in all but the times.

    Args:
        symbol: of some modes.
        t: times, shaped to broadcast with it.
    """
    return _Responses.apply(t, symbol)  # pyright: ignore[reportReturnType]


class _Responses(torch.autograd.Function):
    @staticmethod
    def forward(ctx, t, symbol):  # pyright: ignore[reportIncompatibleMethodOverride]
        if symbol.is_complex():
            size, phase = torch.exp(symbol.real * -t), symbol.imag * -t
            g = torch.complex(size * torch.cos(phase), size * torch.sin(phase))
        else:
            g = torch.exp(-symbol * t)
        # what depends on the mode alone is not taken again for each time
        power = square(symbol)
        near = power * t**2 < NEAR**2
        inverse = 1 / torch.where(power * t.max() ** 2 < NEAR**2, 1, symbol)
        h = (1 - g) * inverse
        if bool(near.any()):
            h = h.masked_scatter_(near, _series(near, symbol, t, PHI1, 1))
        ctx.save_for_backward(t, symbol, g, h, near, inverse)
        return g, h

    @staticmethod
    @once_differentiable
    def backward(ctx, to_g, to_h):  # pyright: ignore[reportIncompatibleMethodOverride]
        t, symbol, g, h, near, inverse = ctx.saved_tensors
        decay = t * g
        slope = (decay - h) * inverse
        if bool(near.any()):
            slope = slope.masked_scatter_(near, _series(near, symbol, t, _PHI1_SLOPE, 2))
        terms = to_h.conj() * slope - to_g.conj() * decay
        return None, _onto(symbol, terms)


class _FirstOrder(torch.autograd.Function):
    @staticmethod
    def forward(ctx, t, u0_hat, f_hat, *symbols):  # pyright: ignore[reportIncompatibleMethodOverride]
        growths = [expm1(-symbol * t) for symbol in symbols]
        g = math.prod(1 + growth for growth in growths)
        growth, *others = (crop_block(part, f_hat.shape) for part in growths)
        for other in others:  # (1 + a)(1 + b) - 1, without its cancellation
            growth = growth * other + growth + other
        symbol = reduce(torch.add, (crop_block(part, f_hat.shape) for part in symbols))
        near = square(symbol * t) < NEAR**2
        inverse = 1 / torch.where(near, 1, symbol)
        h = (-growth * inverse).masked_scatter(near, _series(near, symbol, t, PHI1, 1))
        ctx.save_for_backward(t, u0_hat, f_hat, *symbols)
        ctx.known = g, h, growth, symbol, near, inverse
        return add_to_block(g * u0_hat, h * f_hat)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):  # pyright: ignore[reportIncompatibleMethodOverride]
        t, u0_hat, f_hat, *symbols = ctx.saved_tensors
        g, h, growth, symbol, near, inverse = ctx.known
        flipped = grad.conj().resolve_conj()  # once, instead of each factor below
        flipped_inner = crop_block(flipped, f_hat.shape)
        to_u0 = _onto(u0_hat, flipped * g) if ctx.needs_input_grad[1] else None
        to_f = _onto(f_hat, flipped_inner * h) if ctx.needs_input_grad[2] else None
        to_symbols = [None] * len(symbols)
        if any(ctx.needs_input_grad[3:]):
            slope = (t * (1 + growth) - h) * inverse
            slope = slope.masked_scatter(near, _series(near, symbol, t, _PHI1_SLOPE, 2))
            terms = add_to_block(flipped * (-t * g * u0_hat), flipped_inner * (slope * f_hat))
            to_symbols = [_onto(part, terms) for part in symbols]
        return None, to_u0, to_f, *to_symbols


def _series(near: Tensor, symbol: Tensor, t: Tensor, coefficients: tuple[float, ...], power: int) -> Tensor:
    """What stands in for quotients where the symbol vanishes."""
    symbol, t = (part.expand(near.shape)[near] for part in (symbol, t))
    return t**power * series(symbol * t, coefficients)


def _onto(target: Tensor, flipped: Tensor) -> Tensor:
    """The derivative in a tensor that was broadcast, from the conjugates of its terms."""
    total = flipped.sum_to_size(target.shape)
    return total.conj() if target.is_complex() else total.real


_PHI1_SLOPE = tuple(-(n + 1) / math.factorial(n + 2) for n in range(len(PHI1)))
