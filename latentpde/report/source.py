"""The source of a case as a page shows it: a film of one frame."""

from __future__ import annotations

import numpy as np
import torch

from latentpde.frame import Frame
from latentpde.grid import Grid
from latentpde.posterior import PDEPosterior
from latentpde.report.film import Film, Layer

_UNSEEN = 0.2  # of a scale: colours within look like none


def source_film(posterior: PDEPosterior, case: int, grid: Grid) -> Film:
    """Mean and standard deviation of the source, to the same limit, so that a mean within its uncertainty looks so;
    where it would not be seen at all, to limits of their own.

    Args:
        posterior: which knows a source.
        case: its number, from 0.
        grid: where.
    """
    frame, one = posterior.observation.frame or Frame(), slice(case, case + 1)
    with torch.no_grad():
        mean = posterior.source_means(one, grid)[0].numpy()
        std = posterior.source_stds(one, grid)[0].numpy()
    hidden = frame.excluded_cells(grid)
    mean, std = (np.where(hidden, np.nan, values)[None] for values in (mean, std))
    unit = source_unit(frame, posterior.latent.family.order)
    title, what = ("Mean", "the expected source") if posterior.has_spread else ("Estimate", "the source that fits best")
    layers = [Layer("mean", title, mean, "field", f"{what}: red pushes the field up, blue down", unit)]
    if posterior.has_spread:
        layers.append(Layer("std", "Uncertainty", std, "spread", "the standard deviation of the source", unit))
    largest, spread = float(np.nanmax(np.abs(mean))), float(np.nanmax(std)) if posterior.has_spread else 0.0
    limit = max(largest, spread) or 1.0
    own = largest if 0 < largest < _UNSEEN * limit else limit
    scales = {"field": (-own, own, "signed"), "spread": (0.0, limit, "spread")}
    return Film(case, grid, np.zeros(1), ("",), layers, np.nanmean(mean, axis=(1, 2))[None], None, scales)


def source_unit(frame: Frame, order: int) -> str:
    """The unit of the PDE's right-hand side, where those of the field and of time are known.

    >>> source_unit(Frame(), 1)
    ''
    """
    if not frame.value_unit or (order and not frame.time_unit):
        return ""
    return frame.value_unit + {0: "", 1: f"/{frame.time_unit}", 2: f"/{frame.time_unit}²"}[order]
