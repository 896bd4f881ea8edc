"""Write the colour tables of the page, `latentpde/web/static/colours.js`, from Matplotlib's maps.

All are safe for colour-blind readers: viridis and cividis (Nuñez, Anderton and Renslow 2018) are even in lightness;
RdBu and berlin (Crameri 2018) are light and dark in the middle, for fields with a sign on light and dark pages.
"""

from __future__ import annotations

from base64 import b64encode
from pathlib import Path

import numpy as np
from matplotlib import colormaps

MAPS = ("viridis", "cividis", "magma", "RdBu_r", "berlin")
TARGET = Path(__file__).parents[1] / "latentpde" / "web" / "static" / "colours.js"
_HEAD = "// Written by tools/page_colours.py from Matplotlib's maps: 256 colours each, red, green and blue, as base64."


def source() -> str:
    """The file's text.

    >>> source().count("export")
    1
    """
    lines = [f"  {name}: {b64encode(_table(name)).decode()!r}," for name in MAPS]
    return "\n".join([_HEAD, "export const TABLES = {", *lines, "};", ""])


def _table(name: str) -> bytes:
    return np.round(255 * colormaps[name](np.linspace(0, 1, 256))[:, :3]).astype(np.uint8).tobytes()


if __name__ == "__main__":
    TARGET.write_text(source())
