"""A user's own file on the page: by mouse, by keyboard and by touch, in the user's own words and units."""

import numpy as np
import pytest
import xarray as xr

pytestmark = pytest.mark.browser

RNG = np.random.default_rng(3)
STATIONS = RNG.uniform((47.5, 6.0), (54.5, 15.0), (8, 2))
TABLE = "date,lon,lat,pm10\n" + "".join(
    f"2026-05-{day:02d}T12:00:00Z,{lon:.3f},{lat:.3f},{20 + 6 * np.sin((lon - day) / 2) * np.cos(lat / 2):.2f}\n"
    for lat, lon in STATIONS
    for day in (1, 3)
)


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "stations.csv"
    path.write_text(TABLE)
    return path


def choose(page, path, how):
    """Open the dialog and give it a file, as a person does."""
    if how == "mouse":
        page.locator("#open-data").click()
        with page.expect_file_chooser() as chooser:
            page.locator("label[for=data-file]").click()
    else:
        page.locator("#open-data").focus()
        page.keyboard.press("Enter")
        page.keyboard.press("Tab")  # over the button that closes the dialog
        assert page.evaluate("document.activeElement.id") == "data-file"
        with page.expect_file_chooser() as chooser:
            page.keyboard.press("Space")
    chooser.value.set_files(path)
    page.wait_for_selector("#findings", timeout=60_000)


def test_findings_are_in_the_users_words_and_work_is_cancelled_by_key(visit, table):
    page = visit().open()
    choose(page, table, "keyboard")
    findings = page.locator("#findings").inner_text()
    assert "16 of pm10, at 8 places and 2 times" in findings
    assert "2026-05-01T12:00 to 2026-05-03T12:00 UTC" in findings
    page.locator("#data-noise").focus()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "data-start"
    page.keyboard.press("Enter")
    page.wait_for_selector("#data-progress:not(:empty)")
    page.keyboard.press("Tab")
    while page.evaluate("document.activeElement.id") != "data-cancel":
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_selector("#data-body [role=alert]")
    assert "Nothing was kept" in page.locator("#data-body").inner_text()
    page.keyboard.press("Escape")
    assert page.locator("#data").is_hidden()


def test_a_file_that_cannot_be_read_says_why_and_another_can_be_chosen(visit, table, tmp_path):
    page = (here := visit()).open()
    bad = tmp_path / "<img src=x onerror=alert(1)>.csv"
    bad.write_text("<script>alert(1)</script>\n")
    page.locator("#open-data").click()
    page.locator("#data-file").set_input_files(bad)
    page.wait_for_selector("#data-body [role=alert]", timeout=60_000)
    assert page.locator("#data-body script, #data-body img").count() == 0
    here.problems.clear()  # the browser itself tells of the request that was refused
    page.locator("#data-file").set_input_files(table)
    page.wait_for_selector("#findings", timeout=60_000)


def test_the_result_is_on_the_map_in_the_users_units_and_can_be_downloaded(visit, table, tmp_path):
    page = (here := visit()).open()
    example = here.map_pixels()
    choose(page, table, "mouse")
    page.locator("#data-pde").select_option("screened_poisson")
    page.locator("#data-noise").fill("0.5")
    page.locator("#data-start").click()
    page.wait_for_selector("#data-show", timeout=120_000)
    page.locator("#data-show").click()
    assert here.map_pixels() != example
    assert here.sensors == 8
    assert page.locator("#facts dd").first.inner_text() == "16"
    assert "° N" in page.locator(".sensor").first.get_attribute("aria-label")
    assert "km" in page.locator(".coefficient b").first.inner_text()
    page.mouse.move(*here.place(0.5, 0.5))
    pointed = page.locator("#about").inner_text()
    longitude, latitude = (float(part.split()[1]) for part in pointed.split(":")[0].split(", "))
    middle = (STATIONS.min(0) + STATIONS.max(0)) / 2
    assert (latitude, longitude) == pytest.approx(tuple(middle), abs=0.1)
    page.locator("#stage").focus()
    page.keyboard.press("ArrowRight")
    assert "lon" in page.locator("#said").inner_text()
    saved = {}
    for name in ("netcdf", "report"):
        with page.expect_download() as download:
            page.locator(f"#panel-{name}").click()
        saved[name] = tmp_path / download.value.suggested_filename
        download.value.save_as(saved[name])
    with xr.open_dataset(saved["netcdf"]) as found:
        assert {"lat", "lon"} <= set(found.coords)
    assert "Made from 16 readings at 8 stations" in " ".join(saved["report"].read_text().split())
    page.locator("#leave-data").click()
    here.settle()
    page.wait_for_function("before => document.getElementById('map').toDataURL() === before", arg=example)
    assert page.locator("#share").is_visible()


@pytest.mark.slow
def test_times_of_the_result_are_dates(visit, table, phone):
    page = visit(**phone).open()
    page.locator("#open-data").tap()
    page.locator("#data-file").set_input_files(table)
    page.wait_for_selector("#findings", timeout=60_000)
    page.locator("#data-pde").select_option("advection_diffusion")
    page.locator("#data-start").tap()
    page.wait_for_selector("#data-show", timeout=300_000)
    page.locator("#data-show").tap()
    assert page.locator("#time-now").inner_text() == "2026-05-03 12:00 UTC"
    page.locator("#time").fill("0.5")
    page.wait_for_function("() => document.getElementById('time-now').textContent === '2026-05-02 12:00 UTC'")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
