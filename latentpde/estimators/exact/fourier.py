"""Modes of source and initial state as flat lists, and which of them a case needs at all."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import torch
from jaxtyping import Complex, Float, Int
from torch import Tensor

from latentpde.grid import Mirror, Wavenumbers, mode_numbers, mode_weights, pooling_attenuation, wavenumbers
from latentpde.grid.mirror import ODD
from latentpde.latent import Latent
from latentpde.observation import Observation

_NEGLIGIBLE = 1e-10  # of the noise


@dataclass(frozen=True, eq=False)
class Modes:
    """Some modes of a block, as flat lists.

    Between walls a mode is a sine or a cosine along the walled axes, so its wavenumbers there are not negative; with
    walls along both its coefficient is real, and the imaginary part of what stands for it is not used.

    Args:
        k: their wavenumbers ``(y, x)``.
        weight: how often each counts in a real field.
        attenuation: what readings see of each.
        index: of each in the block; between walls, in the upper half of its rows.
        mirror: the symmetry between walls.
        margin: how far the rectangle of the modes reaches beyond that of the readings.
    """

    k: Float[Tensor, "mode 2"]
    weight: Float[Tensor, " mode"]
    attenuation: Float[Tensor, " mode"]
    index: Int[Tensor, " mode"]
    mirror: Mirror = field(default_factory=Mirror)
    margin: float = 0.0

    @classmethod
    def of(cls, block_shape: tuple[int, int], observation: Observation, mirror: Mirror | None = None) -> Modes:
        """All modes of a block, with what readings see of each: a coarse solve nothing beyond its Nyquist."""
        grid = observation.grid
        modes = cls.of_block(block_shape, grid.extent, mirror)
        if observation.observed == "lowres-solve":
            rows, cols = mode_numbers(block_shape)
            below = (2 * rows.abs() < grid.shape[0])[:, None] & (2 * cols < grid.shape[1])
            return replace(modes, attenuation=below.flatten()[modes.index].to(torch.float64))
        if observation.observed == "pooled":
            attenuation = pooling_attenuation(grid, observation.pooling, block_shape).flatten()
            return replace(modes, attenuation=attenuation[modes.index])
        return modes

    @classmethod
    def of_block(cls, block_shape: tuple[int, int], extent: tuple[float, float], mirror: Mirror | None = None) -> Modes:
        """All modes of a block on a periodic rectangle, for readings at points."""
        if mirror:
            return cls._between_walls(block_shape, extent, mirror)
        rows, cols = (n.to(torch.float64) for n in mode_numbers(block_shape))
        row, col = torch.meshgrid(rows, cols, indexing="ij")
        k = 2 * torch.pi * torch.stack([row / extent[0], col / extent[1]], dim=-1)
        weight = mode_weights(block_shape[1]).expand(block_shape).flatten()
        return cls(k.flatten(0, 1), weight, torch.ones_like(weight), torch.arange(len(weight)))

    @classmethod
    def _between_walls(cls, block_shape: tuple[int, int], extent: tuple[float, float], mirror: Mirror) -> Modes:
        half, num_cols = block_shape[0] // 2, block_shape[1]
        row, col = torch.meshgrid(torch.arange(half), torch.arange(num_cols), indexing="ij")
        k = 2 * torch.pi * torch.stack([row.double() / extent[0], col.double() / extent[1]], dim=-1)
        along = mode_weights(num_cols)[col] if mirror.y else mode_weights(half)[row]
        weight = torch.ones_like(along) if mirror.y and mirror.x else along
        modes = cls(
            k.flatten(0, 1), weight.flatten(), torch.ones_like(weight).flatten(), torch.arange(row.numel()), mirror
        )
        there = ((row > 0) | (mirror.y != ODD)) & ((col > 0) | (mirror.x != ODD))
        return modes.select(there.flatten())

    @property
    def split(self) -> Float[Tensor, " mode"]:
        """Standard deviation of the real and of the imaginary part of a coefficient whose power is one."""
        if self.mirror:
            return self._split_between_walls
        # A column of weight one holds each mode twice, as n and -n; elsewhere both parts share the variance.
        split = torch.full_like(self.weight, math.sqrt(0.5))
        split[self.weight == 1] = 1.0
        return split

    @property
    def _split_between_walls(self) -> Float[Tensor, " mode"]:
        """The same of a sine's or a cosine's, of which the images have a share; see `latentpde.grid.mirror`."""
        variance = torch.where(self.weight == 1, 1.0, 0.5).to(torch.float64)
        for axis, sign in enumerate((self.mirror.y, self.mirror.x)):
            if sign:
                variance = variance * torch.where(self.k[:, axis] == 0, 2.0, 4.0)
        return torch.sqrt(variance)

    def waves(
        self, positions: Float[Tensor, "reading 2"], cells: Float[Tensor, "reading 2"] | None = None
    ) -> Complex[Tensor, "reading mode"]:
        """What readings see of modes of unit amplitude.

        Args:
            positions: ``(y, x)`` of each reading, relative to the lower corner.
            cells: ``(height, width)`` of what each reading is the average over, zero for a point.
        """
        if not self.mirror:
            return _plane_waves(self.k, positions, cells)
        along_y, along_x = (
            _functions(sign, (positions[:, axis, None] + self.margin) * self.k[:, axis])
            for axis, sign in enumerate((self.mirror.y, self.mirror.x))
        )
        return _averaged((along_y * along_x).to(torch.complex128), self.k, cells)

    def block(
        self, values: Complex[Tensor, "batch mode"], block_shape: tuple[int, int]
    ) -> Complex[Tensor, "batch block"]:
        """The flat block of Fourier coefficients with these values for the modes, and zeros elsewhere."""
        half = block_shape[0] // 2
        flat = torch.zeros((len(values), (half if self.mirror else 2 * half) * block_shape[1]), dtype=values.dtype)
        flat[:, self.index] = values
        if not self.mirror:
            return flat
        upper = flat.unflatten(-1, (half, block_shape[1]))
        if self.mirror.y and self.mirror.x:
            upper = upper.real
        elif self.mirror.y:
            upper[..., 0] = upper[..., 0].real.to(upper.dtype)
        else:  # a real field along y
            upper[..., 0, :] = upper[..., 0, :].real.to(upper.dtype)
            upper = torch.cat([upper, torch.zeros_like(upper[..., :1, :]), upper[..., 1:, :].conj().flip(-2)], dim=-2)
        return self.mirror.block(upper).flatten(1)

    def __len__(self) -> int:
        return len(self.weight)

    def select(self, chosen: Tensor) -> Modes:
        chosen_parts = {name: getattr(self, name)[chosen] for name in ("k", "weight", "attenuation", "index")}
        return replace(self, **chosen_parts)


def all_waves(
    modes: list[Modes], positions: Float[Tensor, "reading 2"], cells: Float[Tensor, "reading 2"] | None
) -> Complex[Tensor, "reading mode"]:
    """Those of several sets of modes, side by side."""
    if any(own.mirror for own in modes):
        return torch.cat([own.waves(positions, cells) for own in modes], dim=1)
    k = torch.cat([own.k for own in modes]) if modes else torch.zeros((0, 2), dtype=torch.float64)
    return _plane_waves(k, positions, cells)


def _plane_waves(k: Tensor, positions: Tensor, cells: Tensor | None) -> Complex[Tensor, "reading mode"]:
    return _averaged(torch.exp(1j * phases(k, positions)).T, k, cells)


def _averaged(waves: Tensor, k: Tensor, cells: Tensor | None) -> Complex[Tensor, "reading mode"]:
    """Averages over the height and over the width of cells; those of sines and cosines are alike."""
    if cells is None or not bool(cells.any()):
        return waves
    return waves * torch.sinc(cells[:, None] * k / (2 * torch.pi)).prod(-1)


def _functions(sign: int, phase: Tensor) -> Tensor:
    """Sine, cosine, or, without walls, the wave."""
    if not sign:
        return torch.exp(1j * phase)
    return torch.sin(phase) if sign == ODD else torch.cos(phase)


def phases(k: Tensor, positions: Tensor) -> Float[Tensor, "mode position"]:
    return k @ positions.T


def as_wavenumbers(k: Tensor) -> Wavenumbers:
    return Wavenumbers(k[None, :, 0], k[None, :, 1])


def relevant_modes(
    k: Tensor,
    amplitude: Tensor,
    latent: Latent,
    respond: Callable[[Wavenumbers, Tensor, Tensor], Tensor],
    times: Tensor,
    noise: float,
) -> Tensor:
    """Which modes of the initial state matter at all: together the others stay below a ten-billionth of the noise,
    whatever the coefficients. What a mode can amount to is seen at the corners of the coefficients' box and inside."""
    reach = respond(as_wavenumbers(k), times, box_points(latent.bounds)).abs().amax((0, 1))[0].expand(len(k))
    amount = amplitude * reach
    order = amount.argsort()
    relevant = torch.empty(len(k), dtype=torch.bool)
    relevant[order] = amount[order].cumsum(0) > _NEGLIGIBLE * noise
    return relevant & (amplitude > 0)


def box_points(bounds: Float[Tensor, "coefficient 2"], num_inside: int = 16) -> Float[Tensor, "point coefficient"]:
    """Corners of the coefficients' box, and points inside."""
    corners = torch.cartesian_prod(*bounds).reshape(-1, len(bounds))
    inside = torch.quasirandom.SobolEngine(len(bounds), seed=0).draw(num_inside, dtype=torch.float64)
    return torch.cat([corners, bounds[:, 0] + inside * (bounds[:, 1] - bounds[:, 0])])


def is_even(latent: Latent) -> bool:
    """Whether the responses are real and the same for ``(ky, kx)`` and ``(-ky, kx)``: such modes go together."""
    theta = latent.bounds[:, :1] + (latent.bounds[:, 1:] - latent.bounds[:, :1]) * torch.tensor([0.17, 0.58, 0.83])
    values = [c[:, None, None] for c in theta]
    k = wavenumbers((16, 8), (1.0, 1.3))
    for part in (latent.family.symbol, latent.family.damping):
        value, mirrored = part(k, *values), part(Wavenumbers(-k.y, k.x), *values)
        if value is not None and (mirrored is None or value.is_complex() or not torch.allclose(value, mirrored)):
            return False
    return True


def fold(k: Tensor, rows: Tensor) -> tuple[Tensor, Tensor]:
    """Rows of mirrored modes, added up."""
    folded, inverse = torch.unique(torch.stack([k[:, 0].abs(), k[:, 1]], dim=-1), dim=0, return_inverse=True)
    return folded, rows.new_zeros((len(folded), rows.shape[1])).index_add_(0, inverse, rows)
