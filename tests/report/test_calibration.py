"""Figures of calibration draw any number of cases, and mark what is outside its band."""

from __future__ import annotations

import pytest
from linear_gaussian import linear_gaussian

from latentpde.report import calibration as plots

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
