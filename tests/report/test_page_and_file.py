"""A page and a file that are made together show the same numbers."""

from __future__ import annotations

import re

import numpy as np
import pytest
import xarray as xr
from report_pages import Page

QUICK = {
    "exact": ["-O", "sweep=64"],
    "map": ["-O", "num_steps=5"],
    "enkf": ["-O", 'background_options={"num_steps": 5}'],
    "kriging": [],
}


@pytest.fixture
def both(run, case_file, tmp_path):
    """Runs `reconstruct` with a page; returns the page and the file."""

    def both(method, *options):
        out, report = tmp_path / "out.nc", tmp_path / "out.html"
        options = ["--method", method, *QUICK[method], "--resolution", "32", *options]
        code, _, err = run("reconstruct", case_file, "-o", out, "--report", report, "-q", *options)
        assert code == 0, err
        with xr.open_dataset(out) as dataset:
            return Page(report.read_text(encoding="utf-8")), dataset.load()

    return both


def assert_same(shown, written):
    """A page has five digits of the largest value; the map is of its last time."""
    size = max(float(np.nanmax(np.abs(shown))), 1e-12)
    np.testing.assert_allclose(shown[-1], written.values, atol=4e-5 * size)


@pytest.mark.parametrize("method", QUICK)
def test_every_map_shows_what_the_file_holds(both, method):
    page, out = both(method, "--threshold", "0.1")
    first, shown = out.isel(case=0), page.layers(0)
    assert_same(shown["mean"], first["mean"])
    assert ("std" in shown) == (method != "map")
    if method != "map":
        assert_same(shown["std"], first["std"])
        assert_same(shown["q0.05"], first["quantiles"].sel(quantile=0.05))
        assert_same(shown["above"], first["probability_above"])
        assert out["probability_above"].attrs["threshold"] == 0.1
    if "source_mean" in out:
        source = page.layers(1)
        assert_same(source["mean"], first["source_mean"])
        if method != "map":
            assert_same(source["std"], first["source_std"])


def test_coefficients_are_those_of_the_file(both):
    page, out = both("exact", "--num-draws", "3")
    first = out.isel(case=0)
    for name in out["coefficient"].values:
        held = first.sel(coefficient=name)
        row = page.html[page.html.index(f'<th scope="row">{name}<') :].split("</tr>")[0].replace("\u2212", "-")
        cells = [re.findall(r"-?[\d.]+", cell)[:2] for cell in re.findall(r'<td class="number">(.*?)</td>', row)]
        written = (
            held["coefficient_mean"],
            held["coefficient_std"],
            *held["coefficient_quantiles"].sel(quantile=[0.05, 0.95]),
        )
        shown = np.array(cells, dtype=float).ravel()
        np.testing.assert_allclose(shown, written, atol=0.051 * shown[1])  # to two digits of the standard deviation


def test_what_a_method_knows_better_than_its_draws_is_shown(both):
    """The mean of `exact` averages over many more coefficients than draws, and kriging knows its variance."""
    exact = both("exact", "--keep-draws")[1]
    assert np.abs(exact["mean"] - exact["draws"].mean("draw")).max() > 1e-3
    kriging = both("kriging", "--keep-draws")[1]
    assert np.abs(kriging["std"] - kriging["draws"].std("draw", ddof=1)).max() > 1e-3


def test_the_page_says_how_to_repeat_it(both, monkeypatch):
    monkeypatch.setattr("sys.argv", ["latentpde", "reconstruct", "my cases.nc", "-o", "out.nc"])
    assert "latentpde reconstruct 'my cases.nc' -o out.nc" in both("map")[0].text
