"""A page and a file that are made together show the same numbers, and the posterior is decoded once for both."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from latentpde.estimators.exact.initial_state import InitialState
from latentpde.estimators.exact.posterior import ExactPosterior
from latentpde.posterior import LatentPosterior
from latentpde.posterior.fields import FieldPosterior
from latentpde.report import page
from latentpde.scores.metrics import radial_psd

QUICK = {
    "exact": ["-O", "sweep=64"],
    "map": ["-O", "num_steps=5"],
    "enkf": ["-O", 'background_options={"num_steps": 5}'],
    "kriging": [],
}


@pytest.fixture
def both(run, case_file, tmp_path, monkeypatch):
    """Runs `reconstruct` with a page; returns the figures as drawn, the page's text and the file."""

    def both(method, *options):
        figures, draw = [], page._svg

        def drawn(figure):
            figures.append(figure)
            return b'<svg xmlns="http://www.w3.org/2000/svg" width="9pt" height="9pt"/>'

        monkeypatch.setattr(page, "_svg", drawn)
        out, report = tmp_path / "out.nc", tmp_path / "out.html"
        options = ["--method", method, *QUICK[method], "--resolution", "32", *options]
        code, _, err = run("reconstruct", case_file, "-o", out, "--report", report, "-q", *options)
        assert code == 0, err
        monkeypatch.setattr(page, "_svg", draw)
        with xr.open_dataset(out) as dataset:
            return figures, report.read_text(), dataset.load()

    return both


def maps(figure) -> dict[str, np.ndarray]:
    """The numbers of each map of a figure, by title."""
    return {ax.get_title(): ax.images[0].get_array().data for ax in figure.axes if ax.images and ax.get_title()}


def assert_same(shown, written):
    """Files hold 32 bits."""
    np.testing.assert_array_equal(shown.astype(np.float32), written)


@pytest.mark.parametrize("method", QUICK)
def test_every_map_shows_what_the_file_holds(both, method):
    """Each figure is drawn for a screen and for a phone: readings, field, source."""
    figures, _, out = both(method)
    first = out.isel(case=0)
    for figure in figures[2:4]:
        shown = maps(figure)
        assert_same(shown["Point estimate" if method == "map" else "Posterior mean"], first["mean"])
        assert ("Standard deviation" in shown) == (method != "map")
        if method != "map":
            assert_same(shown["Standard deviation"], first["std"])
    if "source_mean" in out:
        for figure in figures[4:6]:
            shown = maps(figure)
            assert_same(shown["Point estimate" if method == "map" else "Posterior mean"], first["source_mean"])
            if method != "map":
                assert_same(shown["Standard deviation"], first["source_std"])


def test_spectra_and_coefficients_are_those_of_the_file(both):
    figures, text, out = both("exact", "--keep-draws", "--num-draws", "3")
    first = out.isel(case=0)
    lines = {line.get_label(): line for line in figures[-2].axes[0].lines}
    for label, field in (("mean", first["mean"]), ("draws", first["draws"].isel(draw=0))):
        shown = np.nan_to_num(lines[label].get_ydata())  # what has no power is not drawn
        np.testing.assert_allclose(shown, radial_psd(field.values), rtol=1e-3, atol=1e-11)
    for name in out["coefficient"].values:
        held = first.sel(coefficient=name)
        ends = held["coefficient_quantiles"].sel(quantile=[0.05, 0.95]).values
        row = text[text.index(f'<th scope="row">{name}</th>') :].split("</tr>")[0].replace("\u2212", "-")
        for number in (held["coefficient_mean"], held["coefficient_std"], *ends):
            assert f">{number:.4g}<" in row


def test_what_a_method_knows_better_than_its_draws_is_shown(both):
    """The mean of `exact` averages over many more coefficients than draws, and kriging knows its variance."""
    exact = both("exact", "--keep-draws")[2]
    assert np.abs(exact["mean"] - exact["draws"].mean("draw")).max() > 1e-3
    kriging = both("kriging", "--keep-draws")[2]
    assert np.abs(kriging["std"] - kriging["draws"].std("draw", ddof=1)).max() > 1e-3


def test_draws_are_decoded_once_for_both(both, monkeypatch):
    """Also those of the fine initial state, which are made anew whenever a case of `exact` is decoded."""
    calls = []

    def counted(owner, name):
        original = getattr(owner, name)

        def count(self, *args, **kwargs):
            calls.append(name)
            return original(self, *args, **kwargs)

        monkeypatch.setattr(owner, name, count)

    for owner, name in (
        (LatentPosterior, "fields"),
        (LatentPosterior, "sources"),
        (ExactPosterior, "means"),
        (FieldPosterior, "fields"),
        (InitialState, "draw"),
    ):
        counted(owner, name)
    both("exact")
    # two cases in one part, and their initial states a second time for the spread
    assert sorted(calls) == ["draw", "draw", "draw", "draw", "fields", "means", "sources"]
    calls.clear()
    both("kriging")
    assert calls == ["fields"]
