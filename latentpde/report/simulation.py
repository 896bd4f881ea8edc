"""Pictures of what the simulator draws: initial states of every kind, masks of every kind."""

from __future__ import annotations

import numpy as np
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure

from latentpde.grid import Grid
from latentpde.report.style import SIGNED_COLOURS
from latentpde.simulation.initial_conditions import draw_initial_condition, initial_conditions
from latentpde.simulation.masks import EVALUATION_MASKS, TRAINING_MASKS, draw_mask

NUM_EXAMPLES = 3
COLOUR_LIMIT = 2.5  # initial states have the standard deviation 1


def plot_initial_conditions(seed: int = 0, resolution: int = 128) -> Figure:
    """Draw three examples (rows) of each kind of initial state (columns), on one colour scale centred at zero.

    >>> figure = plot_initial_conditions(resolution=16)
    >>> figure.axes[0].get_title() == _title(initial_conditions.names()[0])
    True

    Args:
        seed: of the examples.
        resolution: cells per side.
    """
    generator = np.random.default_rng(seed)
    grid = Grid((resolution, resolution))
    kinds = initial_conditions.names()
    colours = ScalarMappable(Normalize(-COLOUR_LIMIT, COLOUR_LIMIT), SIGNED_COLOURS)
    figure = Figure(figsize=(2.1 * len(kinds) + 0.7, 2.1 * NUM_EXAMPLES + 0.3), layout="constrained")
    axes = figure.subplots(NUM_EXAMPLES, len(kinds), squeeze=False)
    for column, kind in zip(axes.T, kinds, strict=True):
        column[0].set_title(_title(kind))
        for ax in column:
            u = draw_initial_condition(kind, grid, generator=generator)
            ax.imshow(u, origin="lower", cmap=colours.cmap, norm=colours.norm)
            ax.set(xticks=[], yticks=[])
    figure.colorbar(colours, ax=axes, label="initial state (standard deviations)", extend="both", shrink=0.6, aspect=30)
    return figure


def plot_masks(seed: int = 0, shape: tuple[int, int] = (32, 32), sparsity: float = 0.05) -> Figure:
    """Draw an example of each mask: those for training above, those for evaluation below; observed cells are dark.

    >>> len(plot_masks().axes) == len(TRAINING_MASKS) + len(EVALUATION_MASKS)
    True

    Args:
        seed: of the examples.
        shape: ``(ny, nx)`` of the coarse grid.
        sparsity: share of cells that is observed.
    """
    generator = np.random.default_rng(seed)
    figure = Figure(figsize=(9.0, 5.0), layout="constrained")
    axes = figure.subplots(2, len(TRAINING_MASKS))
    for row, name, kinds in zip(axes, ("Training", "Evaluation"), (TRAINING_MASKS, EVALUATION_MASKS), strict=True):
        row[0].set_ylabel(name, fontsize="large", fontweight="bold")
        for ax, kind in zip(row, kinds, strict=True):
            mask = draw_mask(kind, shape, sparsity, generator=generator)
            ax.imshow(mask, origin="lower", cmap="Greys", vmin=0, vmax=1.15, interpolation="nearest")
            ax.set(title=_title(kind), xticks=[], yticks=[])
    return figure


def _title(kind: str) -> str:
    return kind.replace("_", " ").capitalize()
