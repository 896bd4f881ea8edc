"""What the readings tell of the parameters: in words, and as a corner plot of each by itself and of each pair."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from latentpde.questions.identifiability import Knowledge
from latentpde.report.style import MEAN_COLOUR, PALETTE, SMALL_TEXT, round_ticks
from latentpde.report.words import listed

_BINS, _MOST_POINTS = 40, 2000
_FEW_BITS, _MANY_BITS, _CORRELATED = 0.5, 3.0, 0.8


def knowledge_sentences(knowledge: Knowledge) -> list[str]:
    """What is known of the parameters, for somebody who reads this for the first time.

    >>> import latentpde as lp
    >>> cases = lp.simulate("diffusion", num=1, seed=3, shape=(32, 32), num_modes=2, sparsity=0.5)
    >>> print(knowledge_sentences(lp.identifiability(lp.reconstruct(cases)))[0])
    One bit means that the readings halved the interval in which a parameter can lie, three bits that an eighth is left.
    """
    said = [
        "One bit means that the readings halved the interval in which a parameter can lie, three bits that an eighth "
        "is left."
    ]
    pairs = list(zip(knowledge.names, knowledge.bits.tolist(), strict=True))
    much = [f"{name} ({bits:.1f})" for name, bits in pairs if bits >= _MANY_BITS]
    little = [f"{name} ({bits:.1f})" for name, bits in pairs if bits < _FEW_BITS]
    if much:
        said.append(f"The readings tell much of {listed(much)}.")
    if little:
        said.append(f"They tell next to nothing of {listed(little)}: what is shown for these is what was assumed.")
    said += knowledge.combinations
    rows, cols = np.nonzero(np.triu(np.abs(knowledge.correlations) > _CORRELATED, 1))
    tied = [
        f"{knowledge.names[i]} and {knowledge.names[j]} ({knowledge.correlations[i, j]:+.2f})"
        for i, j in zip(rows, cols, strict=True)
    ]
    if tied and not knowledge.combinations:
        said.append(f"Strongly correlated are {listed(tied)}: an error in one comes with an error in the other.")
    if len(knowledge.mode_weights) > 1:
        weights = listed([f"{100 * weight:.0f} %" for weight in knowledge.mode_weights])
        said.append(
            f"There are {len(knowledge.mode_weights)} separate explanations of the readings, of weights {weights}; "
            "each has a colour in the plot of all pairs."
        )
    return said


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
    panels = figure.subplots(num, num, squeeze=False, sharex="col")
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
                axes.scatter(
                    points[:, col], points[:, row], s=3, c=colours[modes], alpha=0.35, linewidths=0, rasterized=True
                )
                axes.yaxis.set_major_locator(round_ticks(3))
            axes.xaxis.set_major_locator(round_ticks(3))
            axes.tick_params(labelsize=SMALL_TEXT, labelbottom=row == num - 1, labelleft=col == 0 and row > 0)
            if row == num - 1:
                axes.set_xlabel(knowledge.names[col], parse_math=False)
            if col == 0 and row > 0:
                axes.set_ylabel(knowledge.names[row], parse_math=False)
    return figure
