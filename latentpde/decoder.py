r"""The spectral decoder: the exact solution of the PDE, at any times, on any grid.

.. math:: \hat u(t) = G(k, t; \theta)\,\hat u_0 + H(k, t; \theta)\,\hat f(q)

It is exact for the band-limited initial state and source it is given, and differentiable in all of
:math:`z`, :math:`u_0` and :math:`t`. Between walls it works on the rectangle with its mirror images, whose Fourier
series are the sines and cosines of the rectangle (`latentpde.grid.mirror`). Work is proportional to the modes that
carry something: the initial state's and the source's, not the output's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from jaxtyping import Complex, Float
from torch import Tensor

from latentpde.errors import UsageError
from latentpde.grid import (
    Basis,
    Grid,
    Mirror,
    Wavenumbers,
    add_to_block,
    at_points,
    on_part_between_walls,
    pad_block,
    wavenumbers,
)
from latentpde.latent import Latent
from latentpde.lift import Lift
from latentpde.validation import LATEST, shortened


@dataclass(frozen=True, eq=False)
class Decoder:
    """Latents to fields, by the exact solution of the PDE.

    >>> from latentpde.pde import get_family
    >>> latent = Latent(get_family("advection_diffusion"), num_modes=0)
    >>> decoder, grid = Decoder(latent), Grid((8, 8))
    >>> z = latent.pack(torch.tensor([1.0, 0.0, 0.01]).double(), torch.zeros(0).double())  # a wind along x
    >>> u0 = torch.sin(2 * torch.pi * grid.coordinates()[1]).expand(8, 8)
    >>> field = decoder.decode(z, u0, times=[0.25], grid=grid)
    >>> decay = torch.exp(torch.tensor(-0.01 * 0.25 * (2 * torch.pi) ** 2))
    >>> torch.allclose(field[0], decay * u0.roll(2, dims=1))  # by two cells of width 1/8
    True

    Args:
        latent: the layout of ``z`` and the family behind it.
        extent: ``(height, width)`` of the periodic rectangle, in physical units; between walls, with the images.
        moving: whether initial states carry the velocity that they start with, in a block beside that of the field, as
            `with_velocity` puts them together; for families of order 2.
        mirror: the symmetry of fields between walls.
        source_basis: that of the source's latent, where it is not the field's.
        lift: what is known on walls; spectra are of the rest of the field, and fields on grids and at places have both.
    """

    latent: Latent
    extent: tuple[float, float] = (1.0, 1.0)
    moving: bool = False
    mirror: Mirror = field(default_factory=Mirror)
    source_basis: Basis | None = None
    lift: Lift | None = None

    def __post_init__(self):
        self.latent.family.require_even(self.mirror)
        if self.lift is not None:
            self.lift.require(self.latent.family)

    @classmethod
    def within(cls, latent: Latent, extent: tuple[float, float], mirror: Mirror) -> Decoder:
        """The decoder for a rectangle of this extent between walls.

        >>> from latentpde.pde import get_family
        >>> latent = Latent(get_family("heat"), num_modes=0)
        >>> decoder, grid = Decoder.within(latent, (1.0, 1.0), Mirror(y=-1, x=-1)), Grid((8, 8))
        >>> y, x = (torch.sin(torch.pi * c) for c in grid.coordinates())
        >>> z = latent.pack(torch.tensor([0.1]).double(), torch.zeros(0).double())
        >>> field = decoder.decode(z, y[:, None] * x, times=[0.5], grid=grid)[0]
        >>> decay = torch.exp(torch.tensor(-0.1 * 2 * torch.pi**2 * 0.5))
        >>> torch.allclose(field, y[:, None] * x * decay)
        True
        """
        return cls(latent, mirror.grid(Grid((1, 1), extent)).extent, mirror=mirror)

    @property
    def rectangle(self) -> tuple[float, float]:
        """``(height, width)`` without images."""
        height, width = self.extent
        return height / (2 if self.mirror.y else 1), width / (2 if self.mirror.x else 1)

    def decode(
        self,
        z: Float[Tensor, "*batch latent"],
        u0: Float[Tensor, "*batch0 y0 x0"],
        times: Sequence[float] | Float[Tensor, " time"],
        grid: Grid,
    ) -> Float[Tensor, "*batch1 time y x"]:
        """The field on ``grid`` at ``times``.

        Args:
            z: latents.
            u0: the initial state on any grid of the same rectangle; its leading axes broadcast with those of ``z``.
            times: PDE times, not negative; a family of order 0 has the same field at all of them.
            grid: where to evaluate.
        """
        if grid.extent != self.rectangle:
            raise UsageError(f"the decoder's rectangle is {self.rectangle}, the grid's {grid.extent}")
        of_u0 = Grid((u0.shape[-2], u0.shape[-1]), self.rectangle)
        if self.lift is not None and self.latent.family.order:
            u0 = u0 - self.lift.on_grid(of_u0)
        u0_hat = self.mirror.analyse(u0, of_u0)
        return self.on_grid(self.spectrum(z, u0_hat, times), grid)

    def spectrum(
        self,
        z: Float[Tensor, "*batch latent"],
        u0_hat: Complex[Tensor, "*batch0 row0 col0"],
        times: Sequence[float] | Float[Tensor, " time"],
    ) -> Complex[Tensor, "*batch1 time row col"]:
        """Fourier coefficients at ``times``, in a block that holds both the initial state's modes and the source's.

        Args:
            z: latents.
            u0_hat: the initial state's block; its leading axes broadcast with those of ``z``.
            times: PDE times, not negative.
        """
        times = as_times(times, z)
        theta, latent = self.latent.theta(z), self.latent
        u0_hat, velocity_hat = u0_hat.tensor_split(2, dim=-1) if self.moving else (u0_hat, None)
        source_hat = self.source_spectrum(latent.split(z)[1]) if latent.num_modes else u0_hat.new_zeros((2, 1))
        if self.source_basis is not None:
            source_hat = self.source_basis.to_field(source_hat)
        if self.lift is not None and self.lift.drives(latent.family):
            driven = pad_block(self.lift.source_block(latent.family, theta), source_hat.shape)
            source_hat = add_to_block(driven, source_hat)
        u0_hat = pad_block(u0_hat, source_hat.shape)
        total = latent.family.solve(self._wavenumbers(u0_hat), times, theta, u0_hat, source_hat)
        if velocity_hat is not None:
            velocity_hat = pad_block(velocity_hat, u0_hat.shape)
            response = latent.family.velocity_response(self._wavenumbers(velocity_hat), times, theta)
            total = total + response * velocity_hat[..., None, :, :]
        return total.expand(*total.shape[:-3], len(times), *total.shape[-2:])

    def source(self, z: Float[Tensor, "*batch latent"], grid: Grid) -> Float[Tensor, "*batch y x"]:
        """The source term on ``grid``; zero where the latent has none."""
        _, q = self.latent.split(z)
        if not self.latent.num_modes:
            return torch.zeros((*z.shape[:-1], *grid.shape), dtype=z.dtype, device=z.device)
        source_hat, basis = self.source_spectrum(q), self.source_basis
        if basis is None:
            return self._on_grid(source_hat, grid)
        y, x = (c - start for c, start in zip(grid.coordinates(), grid.origin, strict=True))
        return basis.at(source_hat, y, x)

    def source_at_points(
        self, z: Float[Tensor, "*batch latent"], points: Float[Tensor, "point 2"], origin: tuple[float, float]
    ) -> Float[Tensor, "*batch point"]:
        """The source term at places ``(y, x)``; zero where the latent has none.

        Args:
            z: latents.
            points: in physical coordinates.
            origin: the lower corner of the rectangle.
        """
        if not self.latent.num_modes:
            return torch.zeros((*z.shape[:-1], len(points)), dtype=z.dtype, device=z.device)
        source_hat, basis = self.source_spectrum(self.latent.split(z)[1]), self.source_basis
        if basis is None:
            return at_points(source_hat, points, self.extent, origin)
        margin = torch.tensor(origin, dtype=points.dtype) - basis.margin
        return at_points(source_hat, points - margin, basis.extent)

    def source_spectrum(self, q: Float[Tensor, "*batch source"]) -> Complex[Tensor, "*batch row col"]:
        """Fourier coefficients of the source, in its basis."""
        mirror = self.mirror if self.source_basis is None else self.source_basis.mirror
        return mirror.fold(self.latent.source_spectrum(q))

    def on_grid(
        self, u_hat: Complex[Tensor, "*batch row col"], grid: Grid, rows: range | None = None
    ) -> Float[Tensor, "*batch y x"]:
        """A field of the periodic rectangle on a grid of it, or of a part of it with the same lower corner; what is
        known on walls is added.

        Args:
            u_hat: its block of Fourier coefficients.
            grid: where to evaluate.
            rows: of the grid; all by default.
        """
        fields = self._on_grid(u_hat, grid, rows)
        return fields if self.lift is None else fields + self.lift.on_grid(grid, rows)

    def _on_grid(
        self, u_hat: Complex[Tensor, "*batch row col"], grid: Grid, rows: range | None = None
    ) -> Float[Tensor, "*batch y x"]:
        if grid.extent == self.rectangle:
            wide = self.mirror.grid(grid)
            fields = wide.synthesise(u_hat) if rows is None else wide.synthesise_rows(u_hat, rows)
            return fields[..., : grid.shape[0], : grid.shape[1]]
        y, x = (c - start for c, start in zip(grid.coordinates(), grid.origin, strict=True))
        y = y if rows is None else y[rows.start : rows.stop]
        return on_part_between_walls(u_hat, self.extent, self.mirror, y, x)

    def at(
        self, u_hat: Complex[Tensor, "*batch row col"], y: Float[Tensor, " y"], x: Float[Tensor, " x"]
    ) -> Float[Tensor, "*batch y x"]:
        """A field at all pairs of coordinates, relative to the lower corner, with what is known on walls."""
        fields = on_part_between_walls(u_hat, self.extent, self.mirror, y, x)
        return fields if self.lift is None else fields + self.lift.at(y[:, None], x[None])

    def at_points(
        self,
        u_hat: Complex[Tensor, "*batch row col"],
        points: Float[Tensor, "*batch2 point 2"],
        origin: tuple[float, float],
    ) -> Float[Tensor, "*batch3 point"]:
        """A field at places ``(y, x)``, with what is known on walls.

        Args:
            u_hat: its block of Fourier coefficients.
            points: in physical coordinates.
            origin: the lower corner of the rectangle.
        """
        fields = at_points(u_hat, points, self.extent, origin)
        if self.lift is None:
            return fields
        y, x = (points - torch.tensor(origin, dtype=points.dtype)).unbind(-1)
        return fields + self.lift.at(y, x)

    def _wavenumbers(self, block: Tensor) -> Wavenumbers:
        return wavenumbers((block.shape[-2], block.shape[-1]), self.extent, block.real.dtype, block.device)


def with_velocity(
    u0_hat: Complex[Tensor, "*batch row col"], velocity_hat: Complex[Tensor, "*batch0 row0 col0"]
) -> Complex[Tensor, "*batch1 row1 col1"]:
    """An initial state with its velocity, as a `Decoder` that is ``moving`` takes it.

    >>> with_velocity(torch.zeros(5, 6, 3) + 0j, torch.zeros(4, 2) + 0j).shape
    torch.Size([5, 6, 6])
    """
    u0_hat, velocity_hat = pad_block(u0_hat, velocity_hat.shape), pad_block(velocity_hat, u0_hat.shape)
    shape = torch.broadcast_shapes(u0_hat.shape, velocity_hat.shape)
    return torch.cat([u0_hat.expand(shape), velocity_hat.expand(shape)], dim=-1)


def as_times(times: Sequence[float] | Tensor, like: Tensor, start: float = 0.0) -> Float[Tensor, " time"]:
    """Times as a tensor; negative ones are refused, because backwards these PDEs amplify noise without bound."""
    try:
        tensor = torch.as_tensor(times, dtype=like.dtype, device=like.device) - start
    except (TypeError, ValueError, RuntimeError) as error:
        raise UsageError(f"times must be a list of finite numbers >= 0, got {shortened(times)}") from error
    if tensor.ndim != 1 or not len(tensor) or not bool(((tensor >= 0) & (tensor <= LATEST)).all()):
        raise UsageError(
            f"times must be a list of finite numbers >= 0, at most {LATEST:g}, got {shortened(tensor.tolist())}"
        )
    return tensor
