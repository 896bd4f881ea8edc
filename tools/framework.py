"""The schematic of the framework, how readings become a field; `tools/figures.py` writes it to docs/images.

The paper has such a schematic; this one is of this implementation, names its methods, and shows the bundled case.
"""

from importlib.resources import as_file, files

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

import latentpde as lp
from latentpde.report.style import MAGNITUDE_COLOURS, PALETTE, SIGNED_COLOURS

WIDTH, HEIGHT = 12.4, 5.0
DATA, START, CHAIN, PHYSICS = "#eeeeee", PALETTE[5], PALETTE[4], PALETTE[2]
ARROW = {"arrowstyle": "-|>", "color": "#555555", "linewidth": 1.2, "shrinkA": 1, "shrinkB": 1}

#: Boxes: centre, width and height, colour, title, and the lines below it.
BOXES = (
    ((1.3, 2.5), (2.2, 4.8), DATA, "data", ""),
    ((4.4, 3.65), (2.5, 1.0), START, "map", "Adam on $J + \\lambda |z|^2$,\n300 steps, 3 starts"),
    ((4.4, 2.35), (2.5, 1.0), START, "enc", "CNNs of $[y, M, d, \\rho]$\nand of $u_0$, then an MLP"),
    ((4.4, 0.7), (2.5, 1.0), PHYSICS, "exact (default)", "source integrated out,\ncoefficients sampled"),
    ((7.7, 3.0), (2.5, 2.3), CHAIN, "map-diffusion,\nenc-diffusion",
     "noise is added, then taken\noff step by step by a denoiser,\nguided by $-\\nabla J$;\nin the end refinement"),
    ((7.7, 0.7), (2.5, 1.0), DATA, "latent $z = [r, q]$", "the PDE's coefficients\nand its source; 12 draws"),
    ((10.95, 0.7), (2.5, 1.0), PHYSICS, "spectral decoder",
     "$\\hat u = G\\,\\hat u_0 + H\\,\\hat f$, exact,\nat any resolution"),
    ((10.95, 3.2), (2.5, 3.4), DATA, "field", ""),
)  # fmt: skip
#: Arrows: from a point to a point, and a word above the middle.
ARROWS = (
    ((2.4, 3.65), (3.15, 3.65), ""),
    ((2.4, 2.35), (3.15, 2.35), ""),
    ((2.4, 0.7), (3.15, 0.7), ""),
    ((5.65, 3.65), (6.45, 3.65), "start"),
    ((5.65, 2.35), (6.45, 2.35), "start"),
    ((5.65, 0.7), (6.45, 0.7), ""),
    ((7.7, 4.62), (7.7, 4.15), ""),
    ((7.7, 1.85), (7.7, 1.2), ""),
    ((8.95, 0.7), (9.7, 0.7), ""),
    ((10.95, 1.2), (10.95, 1.5), ""),
)


def framework() -> Figure:
    """Boxes for what there is and what is done, arrows between them, and fields of the bundled case."""
    figure = Figure((WIDTH, HEIGHT), dpi=100)
    ax = figure.add_axes((0, 0, 1, 1))
    ax.set(xlim=(0, WIDTH), ylim=(0, HEIGHT))
    ax.set_axis_off()
    for (x, y), (wide, high), colour, title, text in BOXES:
        shape = "round,pad=0,rounding_size=0.08"
        opacity = 1.0 if colour == DATA else 0.28
        corner = (x - wide / 2, y - high / 2)
        ax.add_patch(FancyBboxPatch(corner, wide, high, boxstyle=shape, facecolor=colour, alpha=opacity, linewidth=0))
        ax.text(x, y + high / 2 - 0.1, title, ha="center", va="top", fontsize=11, fontweight="bold")
        below = 0.14 + 0.1 * title.count("\n")
        ax.text(x, y - below, text, ha="center", va="center", fontsize=9.5, color="#333333")
    for start, end, word in ARROWS:
        ax.annotate("", end, start, arrowprops=ARROW)
        ax.text((start[0] + end[0]) / 2, start[1] + 0.05, word, ha="center", va="bottom", fontsize=9, color="#333333")
    ax.plot([2.4, 7.7], [4.62, 4.62], color=ARROW["color"], linewidth=ARROW["linewidth"])
    words = "the denoiser sees readings and initial state; $J$ is the misfit of the readings"
    ax.text(5.05, 4.66, words, ha="center", va="bottom", fontsize=9, color="#333333")
    _fields(ax)
    return figure


def _fields(ax: Axes) -> None:
    """What goes in and what comes out, in the bundled case."""
    with as_file(files("latentpde") / "data" / "demo.nc") as path:
        cases = lp.open_cases(path)
    posterior = lp.reconstruct(cases)
    readings, initial = (cases[name].isel(case=0).values.squeeze() for name in ("observed", "initial"))
    mean, std = (part(resolution=128).isel(case=0).values for part in (posterior.mean, posterior.std))
    limit = float(np.abs(mean).max())
    _picture(ax, (1.3, 3.42), 1.4, readings, limit, f"readings $y$ of\n{np.isfinite(readings).sum()} cells, noisy")
    _picture(ax, (1.3, 1.35), 1.4, initial, float(np.abs(initial).max()), "initial state $u_0$,\n32 x 32")
    _picture(ax, (10.95, 3.88), 1.26, mean, limit, "mean, 128 x 128")
    _picture(ax, (10.95, 2.45), 1.0, std, None, "standard deviation;\nevery draw solves the PDE")


def _picture(ax: Axes, centre: tuple[float, float], side: float, values: np.ndarray, limit: float | None, words: str):
    """A field with words below it; around zero where it has a limit, from zero on where it has none."""
    x, y, half = *centre, side / 2
    inset = ax.inset_axes((x - half, y - half, side, side), transform=ax.transData)
    inset.set_facecolor("#c8c8c8")
    colours = {"cmap": MAGNITUDE_COLOURS, "vmin": 0} if limit is None else {"cmap": SIGNED_COLOURS, "vmin": -limit}
    inset.imshow(values, origin="lower", vmax=limit, **colours)
    inset.set(xticks=[], yticks=[])
    ax.text(x, y - half - 0.05, words, ha="center", va="top", fontsize=9, color="#333333")
