"""How the gallery shows examples: in an order for reading, with the pictures that they save."""

import shutil
from pathlib import Path

from sphinx_gallery.scrapers import figure_rst

ORDER = ("quickstart.py", "own_data.py", "stations.py", "air_temperature.py", "pm10.py", "coefficients.py")


class TeachingOrder:
    """Sort key of examples: those of `ORDER` first, any others after them by name."""

    def __init__(self, folder: str):
        self.folder = folder

    def __call__(self, name: str) -> tuple[int, str]:
        return (ORDER.index(name) if name in ORDER else len(ORDER), name)


def scrape(block, block_vars: dict, gallery_conf: dict) -> str:
    """Take in the PNG files that a block of an example has written, as reStructuredText."""
    pictures = []
    for saved in sorted(Path(block_vars["src_file"]).parent.glob("*.png"), key=lambda path: path.stat().st_mtime_ns):
        target = block_vars["image_path_iterator"].next()
        shutil.move(saved, target)
        pictures.append(target)
    return figure_rst(pictures, gallery_conf["src_dir"])
