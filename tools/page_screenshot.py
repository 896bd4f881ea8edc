"""Take the picture of the page in the docs, `docs/images/page.png`: the opening example with one more sensor."""

from __future__ import annotations

import io
import shutil
import subprocess
import sys
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

TARGET = Path(__file__).parents[1] / "docs" / "images" / "page.png"
_WIDTH, _HEIGHT = 1280, 900
_PLACE = (0.62, 0.12)  # of the new sensor: shares of the map from the left and from the top
_SERVE = [sys.executable, "-c", "from latentpde.cli import main; main()", "serve", "--port", "0"]


def screenshot(address: str) -> bytes:
    """The page of a server after a click on its map, as PNG."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": _WIDTH, "height": _HEIGHT}, reduced_motion="reduce")
        page.goto(address)
        page.wait_for_selector("#stage[data-pictures]")
        box = page.locator("#stage").bounding_box()
        assert box is not None
        page.mouse.click(box["x"] + _PLACE[0] * box["width"], box["y"] + _PLACE[1] * box["height"])
        page.wait_for_selector("#stage:not([data-pictures='1'])")
        page.wait_for_selector("body:not([data-asking])")
        page.mouse.move(5, 5)
        taken = page.screenshot()
        browser.close()
    return taken


def main() -> None:
    with subprocess.Popen(_SERVE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        taken = screenshot(server.stdout.readline().split()[4])
        server.terminate()
    picture = Image.open(io.BytesIO(taken)).convert("RGB")
    picture.quantize(256, kmeans=4, dither=Image.Dither.NONE).save(TARGET, optimize=True)


if __name__ == "__main__":
    main()
