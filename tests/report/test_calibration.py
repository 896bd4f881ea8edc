"""Figures of calibration draw any number of cases, and mark what is outside its band."""

from __future__ import annotations

import numpy as np
import pytest
from linear_gaussian import linear_gaussian
from matplotlib.colors import to_hex

from latentpde.report import calibration as plots
from latentpde.scores.calibration import expected_coverage

FIGURES = (plots.plot_rank_histograms, plots.plot_rank_ecdf, plots.plot_coverage, plots.plot_spread_error)


@pytest.mark.parametrize("plot", FIGURES)
def test_figures_draw_few_cases_and_bad_ones(plot, tmp_path):
    assert plot(linear_gaussian(0.7)).axes
    figure = plot(linear_gaussian(num=3))
    figure.savefig(tmp_path / "figure.png", dpi=50)
    assert all(ax.get_xlabel() and ax.get_ylabel() for ax in figure.axes)


def test_the_ecdf_figure_marks_curves_outside_the_band():
    for width, expected in ((1.0, False), (0.6, True)):
        legends = [ax.get_legend().get_texts() for ax in plots.plot_rank_ecdf(linear_gaussian(width)).axes]
        assert all(("outside" in text.get_text()) == expected for texts in legends for text in texts)


def test_methods_keep_their_colours_and_are_not_averaged_together():
    rng = np.random.default_rng(0)
    styles = {"one": ("#ff0000", "o"), "two": ("#0000ff", "s")}
    groups = {name: (rng.random(30) + 0.5, rng.random(30) + 0.5) for name in styles}
    figure = plots.spread_error_figure(groups, styles)
    assert [text.get_text() for text in figure.axes[0].get_legend().get_texts()] == ["one", "two"]
    colours = [to_hex(dots.get_facecolor()[0]) for dots in figure.axes[0].collections]
    assert colours == ["#ff0000", "#0000ff"]
    coverage = plots.coverage_figure({name: rng.random((30, 2)) for name in styles}, [0.5, 0.9], styles)
    lines = [line for line in coverage.axes[0].lines if line.get_marker() in ("o", "s")]
    assert [to_hex(line.get_color()) for line in lines] == ["#ff0000", "#0000ff"]


def test_coverage_is_the_mean_over_cases_with_its_standard_error():
    data = linear_gaussian(0.7, num=20)
    figure = plots.plot_coverage(data, by=[])
    expected = expected_coverage(data, by=[])
    np.testing.assert_allclose(figure.axes[0].lines[0].get_ydata(), 100 * expected["coverage"])
    (bars,) = figure.axes[0].collections
    heights = [segment[1, 1] - segment[0, 1] for segment in bars.get_segments()]
    np.testing.assert_allclose(heights, 400 * expected["standard_error"])
