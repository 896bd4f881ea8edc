"""A corner plot of the parameters: each by itself, and each pair."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from latentpde.questions.identifiability import Knowledge
from latentpde.report.style import MEAN_COLOUR, PALETTE, SMALL_TEXT, round_ticks

_BINS, _MOST_POINTS = 40, 2000


def plot_corner(knowledge: Knowledge, *, size: float = 1.9) -> Figure:
    """Samples of all pairs of parameters, coloured by their mode, with histograms and the bits that were gained.

    >>> import latentpde as lp
    >>> cases = lp.simulate("diffusion", num=1, seed=3, shape=(32, 32), num_modes=2, sparsity=0.5)
    >>> len(plot_corner(lp.identifiability(lp.reconstruct(cases))).axes)  # three parameters
    6

    Args:
        knowledge: by `latentpde.identifiability`.
        size: of one panel, in inches.
    """
    samples, num = knowledge.samples, len(knowledge.names)
    figure = Figure((size * num + 0.8, size * num + 0.6), layout=ConstrainedLayoutEngine(w_pad=0.03, h_pad=0.03))
    panels = figure.subplots(num, num, squeeze=False)
    picked = np.random.default_rng(0).choice(len(samples.weights), _MOST_POINTS, p=samples.weights)
    points, modes = samples.values[picked], knowledge.mode_of_sample[picked]
    colours = np.array([PALETTE[m % len(PALETTE)] for m in range(len(knowledge.mode_weights))])
    for row in range(num):
        for col in range(num):
            axes = panels[row, col]
            if col > row:
                axes.remove()
                continue
            if row == col:
                axes.hist(samples.values[:, col], _BINS, weights=samples.weights, color=MEAN_COLOUR, alpha=0.8)
                axes.set_yticks([])
                axes.set_title(
                    f"{knowledge.names[col]}: {knowledge.bits[col]:.1f} bits", fontsize=9.5, parse_math=False
                )
            else:
                axes.scatter(points[:, col], points[:, row], s=3, c=colours[modes], alpha=0.35, linewidths=0)
                axes.yaxis.set_major_locator(round_ticks(3))
            axes.xaxis.set_major_locator(round_ticks(3))
            axes.tick_params(labelsize=SMALL_TEXT, labelbottom=row == num - 1, labelleft=col == 0 and row > 0)
            if row == num - 1:
                axes.set_xlabel(knowledge.names[col], parse_math=False)
            if col == 0 and row > 0:
                axes.set_ylabel(knowledge.names[row], parse_math=False)
    return figure
