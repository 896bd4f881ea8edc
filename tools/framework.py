"""The schematic of the framework, how readings become a field; `tools/figures.py` writes it to docs/images.

The paper has such a schematic; this one is of this implementation, and names its methods.
"""

from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

from latentpde.report.style import PALETTE

WIDTH, HEIGHT = 12.0, 4.4
DATA, START, CHAIN, PHYSICS = "#eeeeee", PALETTE[5], PALETTE[4], PALETTE[2]

#: Boxes: centre, width and height, colour, title, and the lines below it.
BOXES = (
    ((1.2, 2.2), (2.0, 3.9), DATA, "data",
     "readings y:\n5 % of 32 x 32 cells,\nnoise 0.15\n\ninitial state u0:\n32 x 32"),
    ((4.2, 3.6), (2.5, 1.1), START, "map", "Adam on J + λ |z|²,\n300 steps, 3 starts"),
    ((4.2, 2.3), (2.5, 1.1), START, "enc", "CNNs of [y, M, d, ρ] and u0,\nthen an MLP"),
    ((4.2, 0.8), (2.5, 1.1), PHYSICS, "exact (default)", "source integrated out,\ncoefficients sampled"),
    ((7.5, 2.95), (2.5, 2.4), CHAIN, "map-diffusion,\nenc-diffusion",
     "noise added, then taken\noff by a denoiser,\nguided by J; refinement"),
    ((7.5, 0.8), (2.5, 1.1), DATA, "latent z = [r, q]", "the PDE's coefficients\nand source, 12 draws"),
    ((10.6, 0.8), (2.5, 1.1), PHYSICS, "spectral decoder", "û = G û0 + H f̂, exact,\nat any resolution"),
    ((10.6, 2.95), (2.5, 2.4), DATA, "field, 128 x 128", "mean, spread and draws;\nevery draw\nsolves the PDE"),
)  # fmt: skip
#: Arrows: from a point to a point, and a word above the middle.
ARROWS = (
    ((2.2, 3.6), (2.9, 3.6), ""),
    ((2.2, 2.3), (2.9, 2.3), ""),
    ((2.2, 0.8), (2.9, 0.8), ""),
    ((5.45, 3.6), (6.2, 3.6), "start"),
    ((5.45, 2.3), (6.2, 2.3), "start"),
    ((5.45, 0.8), (6.2, 0.8), ""),
    ((7.5, 1.75), (7.5, 1.4), ""),
    ((8.75, 0.8), (9.35, 0.8), ""),
    ((10.6, 1.4), (10.6, 1.75), ""),
)


def framework() -> Figure:
    """Boxes for what there is and what is done, and arrows between them."""
    figure = Figure((WIDTH, HEIGHT), dpi=100)
    ax = figure.add_axes((0, 0, 1, 1))
    ax.set(xlim=(0, WIDTH), ylim=(0, HEIGHT))
    ax.set_axis_off()
    for (x, y), (wide, high), colour, title, text in BOXES:
        shape = "round,pad=0,rounding_size=0.08"
        opacity = 1.0 if colour == DATA else 0.28
        corner = (x - wide / 2, y - high / 2)
        ax.add_patch(FancyBboxPatch(corner, wide, high, boxstyle=shape, facecolor=colour, alpha=opacity, linewidth=0))
        ax.text(x, y + high / 2 - 0.12, title, ha="center", va="top", fontsize=11, fontweight="bold")
        below = 0.14 + 0.1 * title.count("\n")
        ax.text(x, y - below, text, ha="center", va="center", fontsize=9.5, color="#333333")
    for start, end, word in ARROWS:
        ax.annotate("", end, start, arrowprops={"arrowstyle": "-|>", "color": "#555555", "linewidth": 1.2})
        ax.text((start[0] + end[0]) / 2, start[1] + 0.05, word, ha="center", va="bottom", fontsize=9, color="#333333")
    return figure
