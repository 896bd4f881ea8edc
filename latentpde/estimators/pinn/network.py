r"""Networks of a PINN, one per case and all trained at once, and differential operators carried through them.

A residual needs a second-order operator of the network's output, :math:`D u = \sum_i b_i\,\partial_i u + \sum_{ij}
C_{ij}\,\partial_i \partial_j u`. Nested reverse-mode differentiation would build each derivative as a graph of its own.
Instead the operator is pushed forward beside the value: through an affine layer everything passes linearly, and
through :math:`h = \sigma(z)`

.. math:: \partial_i h = \sigma'(z)\,\partial_i z, \qquad
          D h = \sigma'(z)\,D z + \sigma''(z) \sum_{ij} C_{ij}\,\partial_i z\,\partial_j z .

So a value, its first derivatives along the directions that occur in :math:`C`, and :math:`D` itself are all that a
layer carries, however many terms the operator has, and one reverse pass gives the gradients of everything, the
operator's coefficients included. Layers are batched matrix products over the cases.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

Layers = list[Tensor]  # weight (case, in, out) and bias (case, 1, out) of each layer in turn
Pair = tuple[int, int]
FIELD_WIDTHS = (128, 128, 128, 128)
SOURCE_WIDTHS = (64, 64, 64)


def make_layers(widths: Sequence[int], num_cases: int, *, generator: torch.Generator) -> Layers:
    """Layers with Glorot's initial weights and zero biases, the same for every case, which then depends on no other.

    Args:
        widths: the number of inputs, of hidden units in each layer, and of outputs.
        num_cases: how many networks of this kind, one per case.
        generator: where the weights come from.

    Example:
        >>> layers = make_layers((3, 8, 1), num_cases=2, generator=torch.Generator().manual_seed(0))
        >>> [tuple(layer.shape) for layer in layers]
        [(2, 3, 8), (2, 1, 8), (2, 8, 1), (2, 1, 1)]
    """
    layers = []
    for num_in, num_out in pairwise(widths):
        limit = math.sqrt(6 / (num_in + num_out))
        weight = limit * (2 * torch.rand((num_in, num_out), generator=generator) - 1)
        layers += [weight.repeat(num_cases, 1, 1), torch.zeros(num_cases, 1, num_out)]
    return layers


def apply(layers: Layers, inputs: Float[Tensor, "case point feature"]) -> Float[Tensor, "case point"]:
    """The outputs of all cases' networks, which have one output each.

    Example:
        >>> layers = make_layers((3, 8, 1), num_cases=2, generator=torch.Generator().manual_seed(0))
        >>> tuple(apply(layers, torch.zeros(2, 5, 3)).shape)
        (2, 5)
    """
    h = inputs
    for i in range(0, len(layers), 2):
        h = torch.baddbmm(layers[i + 1], torch.tanh(h) if i else h, layers[i])
    return h[..., 0]


def apply_operator(
    layers: Layers,
    jet: Float[Tensor, "case channel point feature"],
    second: Float[Tensor, "case pair"],
    pairs: tuple[Pair, ...],
) -> Float[Tensor, "case channel point"]:
    """The outputs with their first derivatives and a differential operator applied to them.

    Args:
        layers: the networks.
        jet: the inputs: channel 0 their values, the last channel the operator applied to them, and between these their
            first derivatives along some directions. Without a channel for the operator where ``pairs`` is empty.
        second: the operator's second-order coefficients.
        pairs: the directions that each of them differentiates along, as they are numbered in ``jet``; an unequal pair
            is counted once.

    Returns:
        The same channels of the outputs.
    """
    h = jet
    for i in range(0, len(layers), 2):
        num_channels = h.shape[1]
        h = torch.bmm(h.flatten(1, 2), layers[i]).unflatten(1, (num_channels, -1))
        if i < len(layers) - 2:
            h = _Tanh.apply(h, layers[i + 1], second, pairs)
    h = h[..., 0]
    return torch.cat([h[:, :1] + layers[-1], h[:, 1:]], dim=1)


class _Tanh(torch.autograd.Function):
    """The hyperbolic tangent of a jet plus a bias.

    Its reverse pass is written out, because what autograd would record takes longer than the matrix products around it.
    """

    @staticmethod
    def forward(ctx: Any, z: Tensor, bias: Tensor, second: Tensor, pairs: tuple[Pair, ...]) -> Tensor:
        out = torch.empty_like(z)
        h = torch.tanh(z[:, 0] + bias)
        slope = 1 - h * h
        out[:, 0] = h
        torch.mul(z[:, 1:], slope[:, None], out=out[:, 1:])
        if pairs:
            out[:, -1].addcmul_(_quadratic(z, second, pairs), h * slope, value=-2)
        ctx.save_for_backward(z, h, second)
        ctx.pairs = pairs
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> tuple[Tensor, Tensor, Tensor | None, None]:
        (grad,) = grads
        z, h, second = ctx.saved_tensors
        slope = 1 - h * h
        bend = -2 * h * slope
        back = grad * slope[:, None]
        back[:, 0].addcmul_(bend, (grad[:, 1:] * z[:, 1:]).sum(1))
        back_second = []
        if ctx.pairs:
            quadratic = _quadratic(z, second, ctx.pairs)
            back[:, 0].addcmul_(grad[:, -1] * quadratic, slope * (6 * h * h - 2))
            weighted = grad[:, -1] * bend
            for p, (i, j) in enumerate(ctx.pairs):
                scaled = weighted * second[:, p, None, None]
                zi, zj = z[:, i + 1], z[:, j + 1]
                back[:, i + 1].addcmul_(scaled, zj)
                back[:, j + 1].addcmul_(scaled, zi)
                back_second.append((weighted * zi * zj).sum((1, 2)))
        bias = back[:, 0].sum(1, keepdim=True)
        return back, bias, torch.stack(back_second, 1) if back_second else None, None


def _quadratic(z: Tensor, second: Tensor, pairs: tuple[Pair, ...]) -> Tensor:
    """The sum over pairs of directions of a coefficient times both first derivatives."""
    total = None
    for p, (i, j) in enumerate(pairs):
        term = second[:, p, None, None] * z[:, i + 1] * z[:, j + 1]
        total = term if total is None else total.add_(term)
    assert total is not None
    return total


@dataclass(frozen=True)
class Features:
    """What a network sees of a point ``(t, y, x)``, each coordinate in units of its whole range.

    Args:
        num_harmonics: 0 for the coordinates themselves, scaled to [-1, 1]; ``n`` for the cosines and sines of the
            first ``n`` harmonics of ``y`` and ``x``, which make every output periodic.
        has_time: whether time, scaled to [-1, 1], is one of the inputs.

    Example:
        >>> Features()(torch.tensor([[0.0, 0.5, 1.0]])).tolist()
        [[-1.0, 0.0, 1.0]]
        >>> Features(num_harmonics=3, has_time=False).size
        12
    """

    num_harmonics: int = 0
    has_time: bool = True

    @property
    def size(self) -> int:
        """The number of inputs of a network that sees these features."""
        return int(self.has_time) + 2 * max(1, 2 * self.num_harmonics)

    @property
    def of_space(self) -> Features:
        """The same features without time."""
        return Features(self.num_harmonics, has_time=False)

    def __call__(self, points: Float[Tensor, "*batch point 3"]) -> Float[Tensor, "*batch point feature"]:
        return torch.cat(self._columns(points, 0), -1)

    def first_derivatives(self, points: Float[Tensor, "point 3"]) -> Float[Tensor, "3 point feature"]:
        """First derivatives of the features along t, y and x."""
        return self._derivatives(points, 1)

    def second_derivatives(self, points: Float[Tensor, "point 3"]) -> Float[Tensor, "3 point feature"]:
        """Second derivatives along t, y and x; the mixed ones vanish, since no feature depends on two of them."""
        return self._derivatives(points, 2)

    def _columns(self, points: Tensor, order: int) -> list[Tensor]:
        """The features of t, of y and of x, each differentiated ``order`` times along its own coordinate."""
        time = [_linear(points[..., :1], order)] if self.has_time else []
        return [*time, *(self._space(points[..., i : i + 1], order) for i in (1, 2))]

    def _derivatives(self, points: Tensor, order: int) -> Tensor:
        columns = self._columns(points, order)
        out = points.new_zeros(3, len(points), self.size)
        start = 0
        for axis, column in enumerate(columns, start=3 - len(columns)):
            out[axis, :, start : start + column.shape[1]] = column
            start += column.shape[1]
        return out

    def _space(self, x: Tensor, order: int) -> Tensor:
        if not self.num_harmonics:
            return _linear(x, order)
        k = 2 * torch.pi * torch.arange(1, self.num_harmonics + 1, dtype=x.dtype)
        turn = order * torch.pi / 2  # a derivative turns the phase by a quarter
        return torch.cat([k**order * torch.cos(k * x + turn), k**order * torch.sin(k * x + turn)], -1)


@dataclass(frozen=True, eq=False)
class Networks:
    """What is trained: for every case the network of its field, that of its source, and raw coefficients.

    Args:
        field: layers of the field's networks.
        source: layers of the source's networks; none for a PDE without a source.
        raw: coefficients before the sigmoid onto their bounds.
    """

    field: Layers
    source: Layers
    raw: Float[Tensor, "case coefficient"]

    @classmethod
    def untrained(
        cls,
        features: Features,
        num_cases: int,
        num_coefficients: int,
        *,
        has_source: bool = True,
        generator: torch.Generator,
    ) -> Networks:
        """Networks of the paper's sizes with initial weights, and raw coefficients of zero, the middle of the bounds.

        Example:
            >>> networks = Networks.untrained(Features(), 2, 3, generator=torch.Generator().manual_seed(0))
            >>> networks.num_parameters
            58757
        """
        field = make_layers((features.size, *FIELD_WIDTHS, 1), num_cases, generator=generator)
        source = make_layers((features.of_space.size, *SOURCE_WIDTHS, 1), num_cases, generator=generator)
        return cls(field, source if has_source else [], torch.zeros(num_cases, num_coefficients))

    @property
    def parameters(self) -> list[Tensor]:
        """Everything that is trained, with cases on the first axis of each."""
        return [*self.field, *self.source, self.raw]

    @property
    def num_parameters(self) -> int:
        """The number of trained values per case."""
        return sum(p[0].numel() for p in self.parameters)

    def __getitem__(self, cases: slice) -> Networks:
        return Networks([p[cases] for p in self.field], [p[cases] for p in self.source], self.raw[cases])

    @classmethod
    def join(cls, parts: list[Networks]) -> Networks:
        """The networks of several sets of cases as one set."""
        field = [torch.cat(p) for p in zip(*(part.field for part in parts), strict=True)]
        source = [torch.cat(p) for p in zip(*(part.source for part in parts), strict=True)]
        return cls(field, source, torch.cat([part.raw for part in parts]))


def _linear(x: Tensor, order: int) -> Tensor:
    """A coordinate scaled from [0, 1] to [-1, 1], or its first or second derivative."""
    return (2 * x - 1, torch.full_like(x, 2.0), torch.zeros_like(x))[order]
