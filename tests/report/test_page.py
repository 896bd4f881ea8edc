"""The report needs nothing but itself, says what it knows and nothing more, and is never half written."""

from __future__ import annotations

import base64
import math
import re
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass, replace
from html.parser import HTMLParser

import numpy as np
import pytest
import torch

import latentpde as lp
from latentpde.errors import DataError, UsageError
from latentpde.grid import Grid, resample
from latentpde.posterior import Posterior
from latentpde.report import fields as plotting
from latentpde.report import page as report
from latentpde.simulation import simulate

SHAPE = (32, 32)
HOSTILE = '<script>alert("x")</script> $a_b$ {{ 7 * 7 }} [\n 1,  2]'


@dataclass(frozen=True, eq=False, kw_only=True)
class FieldPosterior(Posterior):
    """Draws of the field alone, as methods without a PDE give."""

    num_draws: int = 3  # pyright: ignore[reportIncompatibleMethodOverride]

    def fields(self, samples, grid, times):
        num_cases = len(range(*samples.indices(self.observation.num_cases)))
        generator = torch.Generator().manual_seed(0)
        shape = (num_cases, self.num_draws, len(times), *grid.shape)
        return torch.randn(shape, dtype=torch.float64, generator=generator)


class Page(HTMLParser):
    """Tags, text and addresses of a page; refuses one whose tags do not nest."""

    VOID = {"meta", "link", "img", "source", "br"}  # noqa: RUF012

    def __init__(self, html: str):
        super().__init__()
        self.html, self.open, self.tags, self.ids, self.addresses, self.pieces = html, [], [], [], [], []
        self.feed(html)
        self.close()
        assert self.open == []
        self.text = " ".join(" ".join(self.pieces).split())

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        if tag not in self.VOID:
            self.open.append(tag)
        attributes = dict(attrs)
        self.ids += [attributes["id"]] if "id" in attributes else []
        self.addresses += [attributes[name] for name in ("src", "srcset", "href", "action") if name in attributes]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] != "style":
            self.pieces.append(data)


def reconstruct(regime="advection", **options):
    cases = simulate(regime, seed=3, **{"num": 1, "shape": SHAPE, "sparsity": 0.2, **options})
    return lp.reconstruct(cases, method="map", num_steps=5, num_modes=3), cases["truth"]["field"]


def spread_out(post, num_draws=6):
    generator = torch.Generator().manual_seed(0)
    noise = torch.randn((len(post.z), num_draws, post.z.shape[-1]), dtype=torch.float64, generator=generator)
    return replace(post, z=post.z + 0.2 * noise)


@pytest.fixture(scope="module")
def case():
    return reconstruct(num=2)


@pytest.fixture(scope="module")
def spread_path(case, tmp_path_factory):
    """The fullest page: a spread and a truth."""
    post, truth = case
    path = tmp_path_factory.mktemp("report") / "out.html"
    spread_out(post).report(path, truth=truth, case=1)
    return path


@pytest.fixture
def words_only(monkeypatch):
    """Figures take seconds; tests of the words do without them."""
    blank = b'<svg xmlns="http://www.w3.org/2000/svg" width="9pt" height="9pt"/>'
    monkeypatch.setattr(report, "_svg", lambda figure: blank)


def write(post, path, **options) -> Page:
    post.report(path / "out.html", **options)
    return Page((path / "out.html").read_text(encoding="utf-8"))


def svgs(page: Page) -> list[str]:
    found = [re.fullmatch(r"data:image/svg\+xml;base64,(.+)", address) for address in page.addresses]
    return [base64.b64decode(match[1]).decode() for match in found if match]


def assert_self_contained(page: Page) -> None:
    assert all(address.startswith("data:") for address in page.addresses)
    assert not re.search(r"(?i)(?:src|href|url\()\W{0,2}(?:https?:)?//", page.html)
    assert "@import" not in page.html
    assert "script" not in page.tags
    assert svgs(page)
    for svg in svgs(page):
        ElementTree.fromstring(svg)
        assert not re.search(r'href="(?!#|data:)', svg)


@pytest.mark.usefixtures("words_only")
def test_point_estimate_says_so_and_shows_no_spread(case, tmp_path):
    page = write(case[0], tmp_path)
    assert_self_contained(page)
    assert page.ids == [
        "observed", "reconstruction", "coefficients", "source", "spectrum", "diagnostics", "settings",
    ]  # fmt: skip
    assert "map gives a point estimate without uncertainty" in page.text
    assert "u t + v·∇u = κ Δu + f" in page.text
    assert "95 %" not in page.text
    assert "nan" not in page.text.lower().split()
    for fact in ("12 of 64 (18.8 %), cells of a coarse-grid solution", "0.15", "0.25", f"version {lp.__version__}"):
        assert fact in page.text


def test_spread_and_truth_add_quantiles_and_scores(case, spread_path):
    post, truth = case
    page = Page(spread_path.read_text(encoding="utf-8"))
    assert_self_contained(page)
    assert "scores" in page.ids
    assert "without uncertainty" not in page.text
    for words in (
        "Std 5 % 95 %",
        "CRPS (fair)",
        "Coverage of the 90 % interval",
        "of 6 draws; the interval from 0.05 to 0.95 holds 71.4 % if calibrated",
    ):
        assert words in page.text
    fields = plotting.case_fields(spread_out(post), 1, truth)
    rmse = np.sqrt(np.mean((fields.mean - truth.isel(case=1).values) ** 2))
    assert f"RMSE {rmse:.4g} " in page.text
    enough = math.ceil(np.mean(np.var(fields.draws, axis=0, ddof=1)) / (0.15 / 10) ** 2)
    assert f"6 draws; the mean of {enough} would be known to a tenth of the noise" in page.text
    assert "0.71 if calibrated, with 6 draws" in page.text  # six draws cannot cover 90 %


@pytest.mark.usefixtures("words_only")
def test_sensors_stand_where_they_are_and_a_steady_family_has_no_time(tmp_path):
    post, _ = reconstruct("helmholtz", observed="point")
    page = write(post, tmp_path)
    assert_self_contained(page)
    assert "12, point sensors" in page.text
    assert "Each dot is a sensor" in page.text
    assert "none (steady state)" in page.text
    dots = plotting.plot_observation(post.observation).axes[1].collections[0]
    np.testing.assert_array_equal(dots.get_offsets(), post.observation.positions[0].flip(-1))
    np.testing.assert_array_equal(dots.get_array(), post.observation.values[0, 0])


@pytest.mark.usefixtures("words_only")
def test_rectangle_with_two_times_without_case_axis(tmp_path):
    post, truth = reconstruct("klein_gordon", shape=(16, 48), extent=(1.0, 3.0), times=(0.5, 1.0))
    post = replace(post, observation=replace(post.observation, batched=False))
    page = write(post, tmp_path, truth=truth.isel(case=0))
    assert_self_contained(page)
    assert "Reconstruction at t = 1" in page.text
    assert "all readings share one" in page.text
    figure = plotting.plot_reconstruction(post, truth=truth.isel(case=0, time=-1))
    figure.draw_without_rendering()
    box = figure.axes[0].get_position()
    width, height = figure.get_size_inches()
    assert box.width * width == pytest.approx(3 * box.height * height, rel=1e-3)


@pytest.mark.usefixtures("words_only")
def test_posterior_without_coefficients_leaves_their_sections_out(case, tmp_path):
    page = write(FieldPosterior(observation=case[0].observation, method="kriging"), tmp_path)
    assert_self_contained(page)
    assert page.ids == ["observed", "reconstruction", "spectrum", "diagnostics", "settings"]
    assert "does not identify a PDE" in page.text
    assert "kriging reports none" in page.text


@pytest.mark.usefixtures("words_only")
def test_hostile_strings_are_text(case, tmp_path):
    post = replace(case[0], method=HOSTILE, settings={"note": HOSTILE}, diagnostics={HOSTILE: HOSTILE, "n": 3})
    page = write(post, tmp_path)
    assert_self_contained(page)
    assert "<script" not in page.html
    assert r"alert(\"x\")</script> $a_b$ {{ 7 * 7 }} [\n 1,  2]" in "".join(page.pieces)


def test_diagnostics_are_of_this_case_and_short(case):
    values = {"per_case": np.array([1.5, 2.5]), "chain": torch.arange(50), "ok": True, "shape": np.ones((2, 1, 9))}
    rows = dict(report._diagnostics(replace(case[0], diagnostics=values), 1))
    assert rows["per case"] == "2.5"
    assert rows["chain"].startswith("0, 1, 2, 3, 4, 5 … (50")
    assert rows["ok"] == "yes"
    assert rows["shape"].endswith("(1 \u00d7 9 values)")


def test_same_posterior_same_bytes(case, spread_path, monkeypatch):
    """Matplotlib's identifiers are random unless salted; the spectrum stands for all figures."""
    post, truth = case
    drawn = report._svg
    monkeypatch.setattr(report, "_svg", lambda figure: drawn(figure) if figure.axes[0].get_legend() else b'width="9pt"')
    again = report.render_report(spread_out(post), truth=truth, case=1)
    page = Page(spread_path.read_text(encoding="utf-8"))
    assert svgs(Page(again))[-2:] == svgs(page)[-2:]


@pytest.mark.parametrize("number", [-1, 2])
def test_unknown_case_is_refused(case, tmp_path, number):
    with pytest.raises(UsageError, match="the cases are 0 to 1"):
        case[0].report(tmp_path / "out.html", case=number)


@pytest.mark.parametrize(
    ("truth", "words"),
    [
        (np.full(SHAPE, np.nan), "1024 NaN"),
        (np.zeros(32), "got shape"),
        (np.zeros((3, *SHAPE)), "2 case"),
        (np.zeros((2, 5, *SHAPE)), "1 time"),
        (np.zeros((1, 32)), "got shape"),
        (np.full(SHAPE, "a"), "numbers"),
    ],
)
def test_impossible_truth_is_refused_and_the_old_page_survives(case, tmp_path, truth, words):
    path = tmp_path / "out.html"
    path.write_text("old")
    with pytest.raises(DataError, match=words):
        case[0].report(path, truth=truth)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_failed_write_leaves_the_old_page(case, tmp_path, monkeypatch):
    path = tmp_path / "out.html"
    path.write_text("old")
    monkeypatch.setattr(report, "render_report", lambda *args, **kwargs: "\ud800")  # cannot be encoded
    with pytest.raises(UnicodeEncodeError):
        case[0].report(path)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_truth_may_come_in_any_layout_and_resolution(case):
    post, truth = case
    expected = truth.isel(case=1).values
    for given in (truth, truth.transpose("x", "y", "case"), truth.values, torch.tensor(expected), expected):
        fields = plotting.case_fields(post, 1, given)
        assert fields.grid.shape == SHAPE
        np.testing.assert_array_equal(fields.truth, expected)
    coarse = plotting.case_fields(post, 1, expected, resolution=16)
    wanted = resample(torch.from_numpy(expected.astype(float)), Grid(SHAPE), Grid((16, 16)))
    np.testing.assert_allclose(coarse.truth, wanted)


def test_colour_limits_are_shared_symmetric_and_start_at_zero(case):
    post, truth = case
    figure = plotting.plot_reconstruction(spread_out(post), truth=truth)
    limits = {ax.get_title(): ax.images[0].get_clim() for ax in figure.axes if ax.images}
    assert limits["Truth"] == limits["Posterior mean"]
    assert limits["Truth"][0] == -limits["Truth"][1]
    assert limits["Absolute error"] == limits["Standard deviation"]
    assert limits["Absolute error"][0] == 0


def test_unread_cells_stay_empty(case):
    observation = case[0].observation
    _, readings = plotting.observation_maps(observation)
    np.testing.assert_array_equal(np.ma.getmaskarray(readings.values), ~observation.mask[0, 0].numpy())


def test_many_snapshots_show_the_first_and_the_last():
    values = np.ones((1, 20, 4, 4))
    observation = lp.Observation.from_arrays(values, np.ones((1, 4, 4)), times=np.arange(20.0), noise_std=0.1)
    shown = plotting.shown_snapshots(observation)
    assert (len(shown), shown[0], shown[-1]) == (8, 0, 19)
    assert len(plotting.observation_maps(observation)) == 9


@pytest.mark.browser
def test_page_in_a_browser(spread_path, chromium):
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    flags = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=[*flags, "--disable-sync", "--no-first-run"])
        for width in (1280, 390):
            page = browser.new_page(viewport={"width": width, "height": 900})
            problems, requests = [], []
            page.on("console", lambda message, found=problems: found.append(message.text))
            page.on("pageerror", lambda error, found=problems: found.append(str(error)))
            page.on("request", lambda request, found=requests: found.append(request.url))
            page.goto(spread_path.as_uri())
            assert problems == []
            assert [url for url in requests if not url.startswith("data:")] == [spread_path.as_uri()]
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            sizes = page.evaluate(
                "[...document.querySelectorAll('img, svg')].map(e => [e.naturalWidth, e.clientWidth, e.clientHeight])"
            )
            assert len(sizes) == 5
            assert all(min(size) > 100 for size in sizes)
            page.close()
        browser.close()
