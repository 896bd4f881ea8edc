"""Make the pictures of the README and the documentation: docs/images/*.png.

Run from anywhere with: python tools/figures.py
"""

import argparse
import io
from importlib.resources import as_file, files
from pathlib import Path

import numpy as np
from framework import framework
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from PIL import Image

import latentpde as lp
from latentpde.report.simulation import plot_initial_conditions, plot_masks

IMAGES = Path(__file__).resolve().parents[1] / "docs" / "images"
MOST_BYTES = 300_000


def teaser() -> Figure:
    """The bundled case: its readings, its reconstruction by the default method, and the truth."""
    with as_file(files("latentpde") / "data" / "demo.nc") as path:
        cases = lp.open_cases(path)
    posterior = lp.reconstruct(cases)
    readings = cases["observed"].isel(case=0).values
    truth = cases["truth/field"].isel(case=0).values
    mean = posterior.mean(resolution=truth.shape).isel(case=0).values
    rmse = np.sqrt(np.mean((mean - truth) ** 2))
    panels = [
        (f"{np.isfinite(readings).sum()} noisy readings\nof {readings.size} coarse cells", readings),
        (f"Reconstruction (method {posterior.method})\nRMSE {rmse:.3f}", mean),
        ("Truth\n(never seen by the method)", truth),
    ]
    limit = np.ceil(10 * np.abs(truth).max()) / 10
    colours = ScalarMappable(Normalize(-limit, limit), "RdBu_r")
    figure = Figure(figsize=(10.0, 3.5), layout="constrained")
    axes = figure.subplots(1, len(panels))
    for ax, (title, field) in zip(axes, panels, strict=True):
        ax.set_facecolor("#dcdcdc")
        ax.imshow(field, origin="lower", extent=(0, 1, 0, 1), cmap=colours.cmap, norm=colours.norm)
        ax.set_title(title, fontsize=11)
        ax.set(xticks=[], yticks=[])
    figure.colorbar(colours, ax=axes, shrink=0.8, aspect=25, extend="both", label="field")
    return figure


FIGURES = {"teaser": teaser, "framework": framework, "initial_conditions": plot_initial_conditions, "masks": plot_masks}


def write_png(figure: Figure, path: Path) -> None:
    """A picture of at most 300 kB or so: where full colour takes more, with a palette of 256."""
    buffer = io.BytesIO()
    figure.savefig(buffer, dpi=110)
    image = Image.open(buffer).convert("RGB")
    if buffer.getbuffer().nbytes > MOST_BYTES:
        image = image.quantize(256, dither=Image.Dither.NONE)
    image.save(path, optimize=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"some of: {', '.join(FIGURES)} [default: all]")
    parser.add_argument("--output", type=Path, default=IMAGES, help="folder to write into [default: docs/images]")
    arguments = parser.parse_args()
    unknown = sorted(set(arguments.names) - set(FIGURES))
    if unknown:
        parser.error(f"no figure named {', '.join(unknown)}; there are: {', '.join(FIGURES)}")
    arguments.output.mkdir(parents=True, exist_ok=True)
    for name in arguments.names or FIGURES:
        path = arguments.output / f"{name}.png"
        write_png(FIGURES[name](), path)
        print(f"{path.name}: {path.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
