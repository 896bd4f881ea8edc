r"""Periodic rectangles, and the one pair of transforms that everything spectral goes through.

A band-limited field on the rectangle is its Fourier series in physical coordinates,

.. math:: u(x) = \sum_n \hat u_n \, e^{i k_n \cdot x}, \qquad k_n = 2\pi n / \text{extent},

so its coefficients do not depend on the grid that samples it. We keep them as a *block*: a complex
array ``(..., 2 My, Mx)`` whose rows are the mode numbers ``0 .. My-1, -My .. -1`` and whose columns are
``0 .. Mx-1``. Columns with negative mode numbers follow from ``u`` being real:

.. math:: u(x) = \operatorname{Re} \sum_{\text{block}} w_n \hat u_n e^{i k_n \cdot x},
          \qquad w_n = 1 \text{ in column } 0, \; 2 \text{ elsewhere.}

`Grid.analyse` and `Grid.synthesise` go between samples and block. Resampling is one after the other:
zero-padding or truncation, with the phase of the half cell, because samples sit at cell centres
``x_i = (i + 1/2) / n * extent``. The Nyquist mode of an even grid has no defined odd derivative and is
left out: a grid of ``n`` points carries the modes strictly below ``n / 2``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Annotated, Any

import torch
from annotated_types import Ge, Le
from jaxtyping import Complex, Float, Shaped
from torch import Tensor

from latentpde.errors import UsageError
from latentpde.validation import LARGEST, SMALLEST, check_value, shortened

_MOST_CELLS = 10**7  # along one side
_Resolution = Annotated[int, Ge(1), Le(_MOST_CELLS)]


@dataclass(frozen=True, eq=False)
class Wavenumbers:
    """Angular wavenumbers of a block along y and x, in rad per unit length, shaped to broadcast to ``(row, col)``."""

    y: Float[Tensor, "#row #col"]
    x: Float[Tensor, "#row #col"]

    @cached_property
    def squared(self) -> Float[Tensor, "row col"]:
        """``|k|^2``, the symbol of minus the Laplacian."""
        return self.y**2 + self.x**2

    @cached_property
    def axes(self) -> tuple[Wavenumbers, Wavenumbers]:
        """Those along y, with none along x, and those along x."""
        zero = self.y.new_zeros(1, 1)
        return Wavenumbers(self.y, zero), Wavenumbers(zero, self.x)


@dataclass(frozen=True)
class Grid:
    """A periodic rectangle sampled at cell centres.

    >>> grid = Grid((4, 8), extent=(1.0, 2.0))
    >>> y, x = grid.coordinates()
    >>> y
    tensor([0.1250, 0.3750, 0.6250, 0.8750], dtype=torch.float64)
    >>> wave = torch.sin(2 * torch.pi * y)[:, None].expand(4, 8)
    >>> finer = grid.refine(2).synthesise(grid.analyse(wave))  # the same wave at twice as many points
    >>> torch.allclose(finer[:, 0], torch.sin(2 * torch.pi * grid.refine(2).coordinates()[0]))
    True

    Args:
        shape: ``(ny, nx)``, numbers of cells.
        extent: ``(height, width)`` in physical units, positive.
        origin: physical coordinates ``(y, x)`` of the lower corner.
    """

    shape: tuple[int, int]
    extent: tuple[float, float] = (1.0, 1.0)
    origin: tuple[float, float] = (0.0, 0.0)

    def __post_init__(self):
        if not _is_pair(self.shape, lambda n: int(n) == n and 1 <= n <= _MOST_CELLS):
            raise UsageError(f"a grid needs a shape (ny, nx) of positive whole numbers, got {shortened(self.shape)}")
        if not _is_pair(self.extent, lambda length: SMALLEST <= length <= LARGEST):
            raise UsageError(f"a grid needs a positive, finite extent (height, width), got {shortened(self.extent)}")
        if not _is_pair(self.origin, lambda place: -LARGEST <= place <= LARGEST):
            raise UsageError(f"a grid needs a finite origin (y, x), got {shortened(self.origin)}")

    @property
    def spacing(self) -> tuple[float, float]:
        """``(height, width)`` of a cell, in physical units."""
        return self.extent[0] / self.shape[0], self.extent[1] / self.shape[1]

    @property
    def block_shape(self) -> tuple[int, int]:
        """Shape of the block that holds every mode strictly below this grid's Nyquist."""
        return 2 * _num_nonnegative(self.shape[0]), _num_nonnegative(self.shape[1])

    def coordinates(self) -> tuple[Float[Tensor, " y"], Float[Tensor, " x"]]:
        """Cell centres along y and x."""
        y, x = (
            start + (torch.arange(n, dtype=torch.float64) + 0.5) * (length / n)
            for start, n, length in zip(self.origin, self.shape, self.extent, strict=True)
        )
        return y, x

    def with_shape(self, shape: tuple[int, int]) -> Grid:
        """The same rectangle at another resolution."""
        return replace(self, shape=(int(shape[0]), int(shape[1])))

    def refine(self, factor: int) -> Grid:
        """The grid whose cells are those of this one, cut into ``factor`` x ``factor``."""
        return self.with_shape((self.shape[0] * factor, self.shape[1] * factor))

    def coarsen(self, factor: int) -> Grid:
        """The grid of cells that each hold ``factor`` x ``factor`` cells of this one."""
        if not isinstance(factor, int) or factor < 1 or any(n % factor for n in self.shape):
            raise UsageError(
                f"a grid of shape {self.shape} cannot be pooled by {shortened(factor)}: both sides must divide by it"
            )
        return self.with_shape((self.shape[0] // factor, self.shape[1] // factor))

    def at_resolution(self, resolution: int | tuple[int, int] | None) -> Grid:
        """The same rectangle with other cells.

        >>> Grid((4, 8), extent=(1.0, 2.0)).at_resolution(6).shape
        (6, 12)

        Args:
            resolution: cells along the shorter side, which keep this grid's proportions; or ``(ny, nx)`` as it is; or
                ``None`` for this grid.
        """
        if resolution is None:
            return self
        if isinstance(resolution, tuple):
            return replace(self, shape=resolution)
        scale = check_value(_Resolution, resolution, "the resolution") / min(self.shape)
        return self.with_shape((max(1, round(self.shape[0] * scale)), max(1, round(self.shape[1] * scale))))

    def analyse(self, u: Float[Tensor, "*batch y x"]) -> Complex[Tensor, "*batch row col"]:
        """Fourier coefficients, in physical coordinates, of the band-limited field through these samples."""
        if tuple(u.shape[-2:]) != tuple(self.shape):
            raise UsageError(f"expected a field of shape {self.shape} on its last two axes, got {tuple(u.shape)}")
        block = self.block_of(torch.fft.rfft2(u, norm="forward"))
        return block * self._half_cell_phase(self.block_shape, block.dtype, u.device).conj()

    def synthesise(self, u_hat: Complex[Tensor, "*batch row col"]) -> Float[Tensor, "*batch y x"]:
        """Samples of the Fourier series, truncated to the modes that this grid carries."""
        above, below = self._carried(u_hat)
        gap = u_hat.new_zeros((*above.shape[:-2], self.shape[0] - above.shape[-2] - below.shape[-2], above.shape[-1]))
        return torch.fft.irfft2(torch.cat([above, gap, below], dim=-2), s=self.shape, norm="forward")

    def synthesise_rows(
        self, u_hat: Complex[Tensor, "*batch row col"], rows: range
    ) -> Float[Tensor, "*batch some_y x"]:
        """Some rows of what `synthesise` gives, where all of them would take too much memory.

        >>> grid = Grid((4, 6))
        >>> u_hat = grid.analyse(torch.arange(24.0, dtype=torch.float64).reshape(4, 6) % 5)
        >>> torch.allclose(grid.synthesise_rows(u_hat, range(1, 3)), grid.synthesise(u_hat)[1:3])
        True
        """
        above, below = self._carried(u_hat)
        modes = torch.cat([torch.arange(above.shape[-2]), torch.arange(-below.shape[-2], 0)])
        # whole turns are taken out first, exactly
        turns = (torch.tensor(rows)[:, None] * modes % self.shape[0]).to(u_hat.real) / self.shape[0]
        waves = torch.polar(torch.ones_like(turns), 2 * torch.pi * turns)
        return torch.fft.irfft(waves @ torch.cat([above, below], dim=-2), n=self.shape[1], norm="forward")

    def _carried(self, u_hat: Tensor) -> tuple[Tensor, Tensor]:
        """The modes of a block that this grid carries, those of rows from 0 up and those below, seen from the first
        cell's centre."""
        rows, cols = u_hat.shape[-2:]
        half, most_y, most_x = rows // 2, _num_nonnegative(self.shape[0]), _num_nonnegative(self.shape[1])
        num_above, num_below, num_cols = min(half, most_y), min(half, most_y - 1), min(cols, most_x)
        u_hat = (u_hat * self._half_cell_phase((rows, cols), u_hat.dtype, u_hat.device))[..., :num_cols]
        return u_hat[..., :num_above, :], u_hat[..., rows - num_below :, :]

    def block_of(self, half_plane: Shaped[Tensor, "*batch y half_x"]) -> Shaped[Tensor, "*batch row col"]:
        """The block within what `torch.fft.rfft2` gives for this grid: coefficients, their powers, or the like.

        The row of mode ``-My``, which is the Nyquist mode or beyond it, is zero.

        >>> grid = Grid((4, 4))
        >>> grid.block_of(torch.arange(12.0).reshape(4, 3))
        tensor([[ 0.,  1.],
                [ 3.,  4.],
                [ 0.,  0.],
                [ 9., 10.]])
        """
        rows, cols = self.block_shape
        half, kept = rows // 2, half_plane[..., :cols]
        nyquist = kept.new_zeros((*kept.shape[:-2], 1, cols))
        return torch.cat([kept[..., :half, :], nyquist, kept[..., kept.shape[-2] - (half - 1) :, :]], dim=-2)

    def _half_cell_phase(self, block_shape: tuple[int, int], dtype: torch.dtype, device) -> Tensor:
        return _half_cell_phase(self.shape, block_shape, dtype, str(device))


def mode_numbers(block_shape: tuple[int, int]) -> tuple[Tensor, Tensor]:
    """Whole mode numbers of a block's rows and columns: periods across the rectangle.

    >>> mode_numbers((4, 3))
    (tensor([ 0,  1, -2, -1]), tensor([0, 1, 2]))
    """
    half = block_shape[0] // 2
    rows = torch.cat([torch.arange(half), torch.arange(-half, 0)])
    return rows, torch.arange(block_shape[1])


def mode_weights(num_cols: int) -> Float[Tensor, " col"]:
    """How often a block's columns count in the sum over all modes: column 0 once, the others twice, because the
    columns with negative mode numbers are left out of a block.

    >>> mode_weights(3)
    tensor([1., 2., 2.], dtype=torch.float64)
    """
    weights = torch.full((num_cols,), 2.0, dtype=torch.float64)
    weights[0] = 1.0
    return weights


def pointwise_variance(power: Float[Tensor, "row col"]) -> Float[Tensor, ""]:
    """Variance, the same at every point, of a stationary random field with the powers ``E|u_k|^2`` in its block.

    >>> pointwise_variance(torch.tensor([[0.0, 0.5], [0.0, 0.25]]))  # each of these modes counts twice
    tensor(1.5000)
    """
    return 2 * power.sum() - power[:, 0].sum()


@lru_cache(maxsize=64)
def wavenumbers(
    block_shape: tuple[int, int], extent: tuple[float, float], dtype: torch.dtype = torch.float64, device=None
) -> Wavenumbers:
    """Wavenumbers of a block.

    >>> k = wavenumbers((2, 2), extent=(1.0, 2.0))
    >>> k.x / torch.pi
    tensor([[0., 1.]], dtype=torch.float64)

    Args:
        block_shape: ``(rows, columns)``; rows are even.
        extent: ``(height, width)`` of the rectangle.
        dtype, device: of the tensors.
    """
    rows, cols = mode_numbers(block_shape)
    ky, kx = (
        2 * torch.pi * n.to(dtype=dtype, device=device) / length for n, length in zip((rows, cols), extent, strict=True)
    )
    return Wavenumbers(ky[:, None], kx[None, :])


def crop_block(block: Tensor, shape: Sequence[int]) -> Tensor:
    """The modes of a smaller block, as the last two axes of ``shape`` have it. Axes of length one stay."""
    half = shape[-2] // 2
    block = block[..., : shape[-1]]
    return block if block.shape[-2] <= 2 * half else torch.cat([block[..., :half, :], block[..., -half:, :]], dim=-2)


def pad_block(block: Tensor, shape: Sequence[int]) -> Tensor:
    """A block padded with zeros to hold at least the modes that one of this shape has."""
    half, num_rows, num_cols = block.shape[-2] // 2, *block.shape[-2:]
    rows, cols = max(num_rows, shape[-2]), max(num_cols, shape[-1])
    if (num_rows, num_cols) == (rows, cols):
        return block
    block = torch.nn.functional.pad(block, (0, cols - num_cols))
    gap = block.new_zeros((*block.shape[:-2], rows - num_rows, cols))
    return torch.cat([block[..., :half, :], gap, block[..., half:, :]], dim=-2)


def add_to_block(block: Tensor, part: Tensor) -> Tensor:
    """Add a smaller block to a larger, in place."""
    half, num_cols = part.shape[-2] // 2, part.shape[-1]
    block[..., :half, :num_cols] += part[..., :half, :]
    block[..., block.shape[-2] - half :, :num_cols] += part[..., half:, :]
    return block


def resample(u: Float[Tensor, "*batch y x"], source: Grid, target: Grid) -> Float[Tensor, "*batch y2 x2"]:
    """The same band-limited function on another grid of the same rectangle; modes that ``target`` cannot hold go.

    >>> y = Grid((4, 4)).coordinates()[0]
    >>> wave = torch.cos(2 * torch.pi * y)[:, None].expand(4, 4)
    >>> resample(wave, Grid((4, 4)), Grid((8, 2))).shape
    torch.Size([8, 2])
    """
    return target.synthesise(source.analyse(u))


def at_points(
    u_hat: Complex[Tensor, "*batch row col"],
    positions: Float[Tensor, "*#batch point 2"],
    extent: tuple[float, float],
    origin: tuple[float, float] = (0.0, 0.0),
) -> Float[Tensor, "*batch point"]:
    """The Fourier series at any points: the field itself there, not the nearest cell.

    >>> grid = Grid((8, 8))
    >>> wave = torch.sin(2 * torch.pi * grid.coordinates()[1]).expand(8, 8)
    >>> points = torch.tensor([[0.3, 0.25], [0.7, 0.5]], dtype=torch.float64)
    >>> at_points(grid.analyse(wave), points, grid.extent).round(decimals=6).abs()
    tensor([1., 0.], dtype=torch.float64)

    Args:
        u_hat: a block of Fourier coefficients.
        positions: ``(y, x)`` in physical coordinates; beyond the rectangle the series is periodic.
        extent: ``(height, width)`` of the rectangle.
        origin: physical coordinates ``(y, x)`` of its lower corner.
    """
    k = wavenumbers((u_hat.shape[-2], u_hat.shape[-1]), extent, positions.dtype, positions.device)
    waves_y = torch.exp(1j * (positions[..., 0, None] - origin[0]) * k.y[:, 0])
    waves_x = 2 * torch.exp(1j * (positions[..., 1, None] - origin[1]) * k.x[0])
    waves_x = torch.cat([waves_x[..., :1] / 2, waves_x[..., 1:]], dim=-1)
    along_x = u_hat @ waves_x.mT
    return (waves_y.mT * along_x).sum(-2).real


def on_part(
    u_hat: Complex[Tensor, "*batch row col"],
    extent: tuple[float, float],
    y: Float[Tensor, " y"],
    x: Float[Tensor, " x"],
) -> Float[Tensor, "*batch y x"]:
    """The Fourier series of a periodic rectangle at all pairs of some coordinates: a grid that need not cover it.

    >>> whole = Grid((8, 8), extent=(1.0, 2.0))
    >>> wave = torch.cos(torch.pi * whole.coordinates()[1]).expand(8, 8)
    >>> x = torch.tensor([0.0, 0.5, 1.0], dtype=torch.float64)
    >>> on_part(whole.analyse(wave), whole.extent, x[:1], x).round(decimals=6).abs()
    tensor([[1., 0., 1.]], dtype=torch.float64)

    Args:
        u_hat: a block of Fourier coefficients.
        extent: ``(height, width)`` of the periodic rectangle.
        y, x: coordinates relative to its lower corner.
    """
    k = wavenumbers((u_hat.shape[-2], u_hat.shape[-1]), extent)
    along_x = u_hat @ (mode_weights(u_hat.shape[-1])[:, None] * torch.exp(1j * k.x[0][:, None] * x))
    waves = torch.exp(1j * y[:, None] * k.y[:, 0])
    return waves.real @ along_x.real - waves.imag @ along_x.imag


def _is_pair(values: Any, valid: Callable[[Any], bool]) -> bool:
    try:
        first, second = values
        return bool(valid(first) and valid(second))
    except (TypeError, ValueError, OverflowError):  # not two, not numbers
        return False


def _num_nonnegative(n: int) -> int:
    """How many of the modes 0, 1, 2, ... an n-point grid carries strictly below its Nyquist."""
    return (n - 1) // 2 + 1


@lru_cache(maxsize=64)
def _half_cell_phase(shape: tuple[int, int], block_shape: tuple[int, int], dtype: torch.dtype, device: str) -> Tensor:
    rows, cols = mode_numbers(block_shape)
    angle = torch.pi * (rows[:, None].to(torch.float64) / shape[0] + cols[None, :].to(torch.float64) / shape[1])
    return torch.polar(torch.ones_like(angle), angle).to(dtype=dtype, device=device)
