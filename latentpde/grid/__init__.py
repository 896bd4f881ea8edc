"""Periodic rectangles, their Fourier transforms, and averages over their cells."""

from latentpde.grid.bases import Basis, on_part_between_walls
from latentpde.grid.grid import (
    Grid,
    Wavenumbers,
    add_to_block,
    at_points,
    crop_block,
    mode_numbers,
    mode_weights,
    on_part,
    pad_block,
    pointwise_variance,
    resample,
    wavenumbers,
)
from latentpde.grid.mirror import Mirror
from latentpde.grid.pooling import average_pool, pooling_attenuation, unpool_spectrum

__all__ = [
    "Basis",
    "Grid",
    "Mirror",
    "Wavenumbers",
    "add_to_block",
    "at_points",
    "average_pool",
    "crop_block",
    "mode_numbers",
    "mode_weights",
    "on_part",
    "on_part_between_walls",
    "pad_block",
    "pointwise_variance",
    "pooling_attenuation",
    "resample",
    "unpool_spectrum",
    "wavenumbers",
]
