"""The page in a real browser: pointing, switching, sliding, printing, on a desktop and a phone, in light and dark."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

import latentpde as lp
from latentpde.frame import Clock, Excluded, Frame

pytestmark = pytest.mark.browser
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
SIZES = {"desktop": (1280, 900), "phone": (390, 844)}


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """Stations at sea with dates, an island that is excluded, a reading that does not fit, held-out readings."""
    rng = np.random.default_rng(0)
    clock = Clock("time", "h", np.datetime64("2026-05-01T00:00"))
    frame = Frame.geographic(
        latitudes=(53.0, 55.0), longitudes=(3.0, 6.0), clock=clock, value="no2", value_unit="µg/m³"
    )
    y, x = frame.to_plane(rng.uniform(53.1, 54.9, 24), rng.uniform(3.1, 5.9, 24))
    y, x, t = np.repeat(y, 3), np.repeat(x, 3), np.tile([0.0, 3.0, 6.0], 24)
    value = 20 + 8 * np.sin((x - 6 * t) / 60) + rng.standard_normal(72)
    value[10] += 40
    land = np.zeros((20, 20), dtype=bool)
    land[8:11, 9:12] = True
    excluded = Excluded(np.linspace(-105, 105, 20), np.linspace(-95, 95, 20), land)
    outside = ~excluded.at(y, x)
    frame = replace(frame, excluded=excluded, places=tuple(f"NL{i // 3:02d}" for i in np.flatnonzero(outside)))
    observation = lp.Observation.from_table(value[outside], y=y[outside], x=x[outside], t=t[outside], sigma=1.0)
    observation = replace(observation, frame=frame)
    known = {"initial": lp.Matern(6.0, 80.0), "num_modes": 0, "fixed": {"vx": 6.0, "vy": 0.0, "kappa": 5.0}}
    with pytest.warns(lp.LatentPDEWarning):  # the wild reading
        posterior = lp.reconstruct(observation, "advection_diffusion", **known)
    path = tmp_path_factory.mktemp("report") / "out.html"
    held = lp.holdout(observation, "advection_diffusion", share=0.2, groups="stations", **known)
    posterior.report(path, holdout=held, threshold=22.0, resolution=32)
    return path


@pytest.fixture(scope="module")
def browser(chromium):
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=[*FLAGS, "--disable-sync", "--no-first-run"])
        yield browser
        browser.close()


@pytest.fixture
def opened(browser, path):
    """Opens the page; after the test there must have been no complaint and no request."""
    pages = []

    def opened(size="desktop", scheme="light", **options):
        width, height = SIZES[size]
        page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme, **options)
        problems, requests = [], []
        page.on("console", lambda message: problems.append(message.text))
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("request", lambda request: requests.append(request.url))
        page.goto(path.as_uri())
        pages.append((page, problems, requests))
        return page

    yield opened
    for page, problems, requests in pages:
        assert problems == []
        assert [url for url in requests if not url.startswith("data:")] == [path.as_uri()]
        page.close()


def readout(page):
    return page.locator(".readout").first.inner_text()


def pixels(page):
    return page.evaluate("document.querySelector('.stage canvas').toDataURL()")


def test_pointing_at_the_map_gives_value_and_spread(opened):
    page = opened()
    assert "Point at the map" in readout(page)
    page.evaluate("document.querySelector('.stage').scrollIntoView({block: 'center', behavior: 'instant'})")
    box = page.locator(".stage canvas").first.bounding_box()
    page.mouse.move(box["x"] + 0.2 * box["width"], box["y"] + 0.3 * box["height"])
    text = readout(page)
    assert re.search(r"\d+\.\d+ ± \d+\.\d+\sµg/m³", text)
    assert "90 % between" in text
    assert "2026-05-01 06:00 UTC" in text
    assert re.search(r"lon 3\.\d+°, lat 54\.\d+°", text)
    assert page.locator(".series").first.is_visible()
    page.mouse.move(box["x"] + 0.51 * box["width"], box["y"] + 0.54 * box["height"])
    assert "excluded" in readout(page)


def test_a_station_names_itself_and_its_reading(opened):
    page = opened()
    page.evaluate("document.querySelector('.station').scrollIntoView({block: 'center', behavior: 'instant'})")
    dot = page.locator(".stage .station").first.bounding_box()
    page.mouse.move(dot["x"] + dot["width"] / 2, dot["y"] + dot["height"] / 2)
    assert re.search(r"NL\d\d: read \d", readout(page))


def test_layers_switch_by_click_and_by_key(opened):
    page = opened()
    before = pixels(page)
    page.get_by_role("radio", name="Uncertainty").click()
    assert page.get_by_role("radio", name="Uncertainty").get_attribute("aria-checked") == "true"
    assert pixels(page) != before
    assert "standard deviation" in page.locator(".what").first.inner_text()
    page.keyboard.press("ArrowLeft")
    assert page.get_by_role("radio", name="Mean").first.get_attribute("aria-checked") == "true"
    assert pixels(page) == before
    assert page.get_by_role("radio", name="P(> 22").count() == 1


def test_time_slides_and_the_film_leads_to_its_frames(opened):
    page = opened()
    last = pixels(page)
    slider = page.get_by_role("slider", name="Time")
    slider.focus()
    page.keyboard.press("Home")
    assert page.locator("output").inner_text() == "2026-05-01 00:00 UTC"
    assert slider.get_attribute("aria-valuetext") == "2026-05-01 00:00 UTC"
    assert pixels(page) != last
    frames = page.locator(".strip").first.locator("button")
    assert frames.count() == int(slider.get_attribute("max")) + 1
    frames.last.click()
    assert pixels(page) == last
    page.get_by_role("button", name="Play").click()
    page.wait_for_function("document.querySelector('output').textContent !== '2026-05-01 06:00 UTC'")


def test_the_map_can_be_read_without_a_mouse(opened):
    page = opened()
    stage = page.locator(".stage").first
    assert "Map of the expected value" in stage.get_attribute("aria-label")
    stage.focus()
    page.keyboard.press("ArrowLeft")
    first = readout(page)
    for _ in range(6):
        page.keyboard.press("ArrowLeft")
    assert "±" in readout(page)
    assert readout(page) != first
    nameless = page.evaluate(
        "[...document.querySelectorAll('[role=img], button, input, canvas[role]')]"
        ".filter(e => !(e.getAttribute('aria-label') || e.textContent.trim() || e.labels?.length))"
        ".filter(e => !e.closest('noscript') && getComputedStyle(e).display !== 'none')"
        ".map(e => e.outerHTML.slice(0, 80))"
    )
    assert nameless == []


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_sticks_out_and_text_can_be_read(opened, size, scheme):
    page = opened(size, scheme)
    assert page.evaluate("document.documentElement.scrollWidth") <= SIZES[size][0]
    box = page.locator(".stage canvas").first.bounding_box()
    assert min(box["width"], box["height"]) > 200
    for name in ("body", ".lead", ".hint", ".readout", ".stage text", "thead th"):
        assert contrast(page, name) > 4.5, name


def contrast(page, name):
    """Of the text's colour and the page's background, as WCAG counts it."""
    colours = page.evaluate(
        "name => { const e = document.querySelector(name), s = getComputedStyle(e); return ["
        "e.closest('svg') ? s.fill : s.color, getComputedStyle(document.body).backgroundColor]; }",
        name,
    )
    channels = [np.array([int(n) for n in re.findall(r"\d+", colour)[:3]]) / 255 for colour in colours]
    light = [
        np.where(c <= 0.03928, c / 12.92, ((c + 0.055) / 1.055) ** 2.4) @ [0.2126, 0.7152, 0.0722] for c in channels
    ]
    return (max(light) + 0.05) / (min(light) + 0.05)


def test_a_tap_on_a_phone_reads_the_map(opened):
    page = opened("phone", has_touch=True)
    page.locator(".stage").first.scroll_into_view_if_needed()
    box = page.locator(".stage canvas").first.bounding_box()
    page.touchscreen.tap(box["x"] + 0.3 * box["width"], box["y"] + 0.3 * box["height"])
    assert "±" in readout(page)


def test_it_prints_with_everything_on_it(opened, tmp_path):
    page = opened(scheme="dark")
    page.emulate_media(media="print", color_scheme="dark")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert not page.locator(".readout").first.is_visible()
    assert not page.get_by_role("slider").first.is_visible()
    assert page.locator(".strip canvas").first.is_visible()
    page.pdf(path=tmp_path / "out.pdf")
    assert (tmp_path / "out.pdf").stat().st_size > 50_000


def test_on_paper_the_map_is_an_image_that_fills_its_frame(opened):
    page = opened("desktop", "light")
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    image, frame = (page.locator(f".stage {one}").first.bounding_box() for one in ("image", ".frame"))
    assert image == pytest.approx(frame, abs=1.5)  # the frame has a line
    page.evaluate("window.dispatchEvent(new Event('afterprint'))")
    assert page.locator(".stage").first.locator("canvas").count() == 1


def test_what_the_page_says_in_words(opened):
    text = opened().locator("main").inner_text()
    assert text.index("Careful.") < text.index("Made from")  # warnings come first
    for words in (
        "No2 at 2026-05-01 06:00 UTC averages",
        "It exceeds 22\u00a0µg/m³ on",
        "held-out readings of whole stations",
        "not fit the others; see below",
        "NL",
        "persistence",
        "plane in km that is true along 54.00° of latitude",
    ):
        assert words in text


def test_without_scripts_there_is_a_picture(browser, path):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(path.as_uri())
    assert page.locator("noscript img").first.bounding_box()["width"] > 200
    context.close()
