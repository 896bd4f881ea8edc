r"""The readings' covariance without noise, as products of what they see of all modes.

With :math:`E_{im}` a mode at a reading and :math:`R_{fm}(t)` its response in field :math:`f`, readings of the times
:math:`t` and :math:`s` have the covariance

.. math:: C_{ij} = \operatorname{Re} \sum_m E_{im} E_{jm}^* \sum_f R_{fm}(t_i) R_{fm}(t_j)^* .

Where many readings have a time in common, fields made of the same waves are added up before anything is as large as the
readings (`SnapshotProducts`); where each has its own, the rows :math:`E_{im} R_{fm}(t_i)` are multiplied with each
other (`ReadingProducts`). Both take derivatives by hand: :math:`E` has none.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, reduce

import torch
from jaxtyping import Float, Inexact, Int
from torch import Tensor
from torch.autograd.function import once_differentiable

from latentpde.estimators.exact.responses import UnknownModes, UnknownPart
from latentpde.grid import Wavenumbers

_ROWS_AT_ONCE = 64  # of a symmetric product; what is above them is not computed


class SnapshotProducts:
    """The covariance from products of the modes at the readings of every two snapshots."""

    def __init__(self, unknown: UnknownModes):
        self._unknown, self._groups = unknown, []
        self.num_values = 2 * unknown.waves.numel()
        waves = unknown.waves.split([len(part.modes) for part, _ in unknown.parts], dim=1)
        for numbers in with_same_waves([part for part, _ in unknown.parts]):
            own = waves[numbers[0]].contiguous()
            self._groups.append(([unknown.parts[number] for number in numbers], own, own.conj().resolve_conj()))
        self._pairs = torch.tril_indices(unknown.places.num_snapshots, unknown.places.num_snapshots)

    def covariance(self, parameters: Tensor) -> Float[Tensor, "batch reading reading2"]:
        found, snapshots = [], self._unknown.places.snapshots
        for parts, waves, conjugates in self._groups:
            cross = summed(self._unknown, parts, parameters, partial(crossed, pairs=self._pairs))
            found.append(_OfSnapshots.apply(cross, waves, conjugates, snapshots))
        return reduce(torch.add, found)


class ReadingProducts:
    """The covariance from products of the modes at every two readings."""

    def __init__(self, unknown: UnknownModes):
        self._unknown = unknown
        self.num_values = 2 * unknown.waves.numel()
        waves = unknown.waves.split([len(part.modes) for part, _ in unknown.parts], dim=1)
        self._waves = [own.contiguous() for own in waves]
        self._conjugates = [own.conj().resolve_conj() for own in self._waves]

    def covariance(self, parameters: Tensor) -> Float[Tensor, "batch reading reading2"]:
        times, given = self._unknown.places.times_of_readings, []
        for response, amplitude in self._unknown.responses_and_amplitudes(parameters):
            given.append(response if len(times) == response.shape[1] else response[:, times])
            given.append(response.new_ones((), dtype=torch.float64) if amplitude is None else amplitude)
        return _OfReadings.apply(self._waves, self._conjugates, *given)  # pyright: ignore[reportReturnType]


class _OfSnapshots(torch.autograd.Function):
    @staticmethod
    def forward(ctx, cross, waves, conjugates, snapshots):  # pyright: ignore[reportIncompatibleMethodOverride]
        ctx.given, ctx.is_complex = (waves, conjugates, snapshots), cross.is_complex()
        rows, whole = _as_real(waves), torch.empty((len(cross), len(waves), len(waves)), dtype=torch.float64)
        for pair, (t, s) in enumerate(_pairs(snapshots)):
            later, earlier = snapshots[t], snapshots[s]
            left = _as_real(waves[later] * cross[:, pair, None])
            if t == s:
                _fill_symmetric(whole[:, later, later], left, rows[later])
            else:
                block = left @ rows[earlier].T
                whole[:, later, earlier], whole[:, earlier, later] = block, block.mT
        return whole

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):  # pyright: ignore[reportIncompatibleMethodOverride]
        waves, conjugates, snapshots = ctx.given
        rows, found = _as_real(waves), []
        for t, s in _pairs(snapshots):
            later, earlier = snapshots[t], snapshots[s]
            own = grad[:, later, earlier] if t == s else grad[:, later, earlier] + grad[:, earlier, later].mT
            found.append((conjugates[later] * _as_complex(own @ rows[earlier])).sum(1))
        to_cross = torch.stack(found, dim=1)
        return to_cross if ctx.is_complex else to_cross.real, None, None, None


class _OfReadings(torch.autograd.Function):
    @staticmethod
    def forward(ctx, waves, conjugates, *given):  # pyright: ignore[reportIncompatibleMethodOverride]
        responses, amplitudes = given[::2], given[1::2]
        num, widths = len(waves[0]), [own.shape[1] for own in waves]
        rows = torch.empty((len(responses[0]), num, sum(widths)), dtype=torch.complex128)
        for own, wave, response, amplitude in zip(rows.split(widths, -1), waves, responses, amplitudes, strict=True):
            torch.mul(response, wave, out=own)
            own *= amplitude
        ctx.conjugates, ctx.widths = conjugates, widths
        ctx.save_for_backward(rows, *given)
        whole, real = torch.empty((len(rows), num, num), dtype=torch.float64), _as_real(rows)
        _fill_symmetric(whole, real, real)
        return whole

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):  # pyright: ignore[reportIncompatibleMethodOverride]
        rows, *given = ctx.saved_tensors
        to_rows = _as_complex((grad + grad.mT) @ _as_real(rows)).split(ctx.widths, -1)
        found = []
        for own, conjugate, response, amplitude in zip(to_rows, ctx.conjugates, given[::2], given[1::2], strict=True):
            turned = own * conjugate if response.is_complex() else (own * conjugate).real
            along = _as_real(turned) * _as_real(response) if response.is_complex() else turned * response
            summed_up = along.sum(1, keepdim=True)
            if response.is_complex():
                summed_up = summed_up.unflatten(-1, (-1, 2)).sum(-1)
            found += [turned * amplitude, summed_up.sum_to_size(amplitude.shape)]
        return None, None, *found


def _pairs(snapshots: list[slice]) -> list[tuple[int, int]]:
    """Numbers of every snapshot and of those up to it."""
    return [(t, s) for t in range(len(snapshots)) for s in range(t + 1)]


def _fill_symmetric(
    whole: Float[Tensor, "batch row row"], left: Float[Tensor, "batch row k"], right: Float[Tensor, "*batch row k"]
) -> None:
    """Write ``left @ right.T``, which is symmetric, from its lower half."""
    for start in range(0, whole.shape[-1], _ROWS_AT_ONCE):
        here, before = slice(start, start + _ROWS_AT_ONCE), slice(0, start)
        strip = left[:, here] @ right[..., : here.stop, :].mT
        whole[:, here, : here.stop], whole[:, before, here] = strip, strip[..., before].mT


def _as_real(rows: Tensor) -> Tensor:
    return torch.view_as_real(rows).flatten(-2)


def _as_complex(rows: Tensor) -> Tensor:
    return torch.view_as_complex(rows.unflatten(-1, (-1, 2)))


def crossed(response: Inexact[Tensor, "batch time mode"], pairs: Int[Tensor, "2 pair"]) -> Tensor:
    """Products of responses at later times with the conjugates of those at earlier ones."""
    later, earlier = pairs
    return response[:, later] * response[:, earlier].conj()


def summed(
    unknown: UnknownModes,
    parts: list[tuple[UnknownPart, Wavenumbers]],
    parameters: Tensor,
    function: Callable[[Tensor], Tensor],
) -> Tensor:
    """Something quadratic in the responses, summed over fields that share waves, mode by mode."""
    pairs = unknown.responses_and_amplitudes(parameters, parts)
    first, *others = (function(own if amplitude is None else own * amplitude) for own, amplitude in pairs)
    return sum(others, first)


def with_same_waves(parts: list[UnknownPart]) -> list[list[int]]:
    """Numbers of fields, grouped by what these look like at the readings: mode by mode their powers can be added up."""
    groups: list[list[int]] = []
    for number, part in enumerate(parts):
        for group in groups:
            first = parts[group[0]]
            if torch.equal(first.modes.k, part.modes.k) and torch.allclose(first.scale, part.scale, rtol=1e-12):
                group.append(number)
                break
        else:
            groups.append([number])
    return groups
