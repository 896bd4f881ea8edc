"""Calibration tools: honest posteriors pass, dishonest ones are found, and the null laws are what they claim."""

from __future__ import annotations

import functools

import numpy as np
import pytest
import xarray as xr
from scipy import stats

from latentpde.errors import DataError, UsageError
from latentpde.report import calibration as plots
from latentpde.scores import calibration as cal
from latentpde.scores.metrics import coverage, rmse
from latentpde.simulation import Simulation

NUM_DRAWS = 39
FIGURES = (plots.plot_rank_histograms, plots.plot_rank_ecdf, plots.plot_coverage, plots.plot_spread_error)
TINY = Simulation(regime="helmholtz", shape=(32, 32), pooling=4, num_modes=2, sparsity=0.3)


@functools.cache
def linear_gaussian(width: float = 1.0, bias: float = 0.0, num: int = 256, seed: int = 0) -> xr.Dataset:
    """Fields ``u ~ N(0, C)`` on 6 x 6 cells, 9 of them read with noise; the posterior is known in closed form.

    Draws are ``mean + bias std + width (u - mean)`` with ``u`` from the posterior, so only (1, 0) is calibrated.
    """
    rng = np.random.default_rng(seed)
    cells = np.stack(np.meshgrid(np.arange(6), np.arange(6)), -1).reshape(-1, 2)
    prior = np.exp(-0.5 * ((cells[:, None] - cells) ** 2).sum(-1) / 2.0**2) + 1e-6 * np.eye(36)
    read, noise_std = rng.permutation(36)[:9], 0.3
    gain = np.linalg.solve(prior[np.ix_(read, read)] + noise_std**2 * np.eye(9), prior[read]).T
    posterior = prior - gain @ prior[read]
    truth = rng.standard_normal((num, 36)) @ np.linalg.cholesky(prior).T
    mean = (truth[:, read] + noise_std * rng.standard_normal((num, 9))) @ gain.T
    noise = rng.standard_normal((num, NUM_DRAWS, 36)) @ np.linalg.cholesky(posterior + 1e-9 * np.eye(36)).T
    draws = mean[:, None] + bias * np.sqrt(np.diag(posterior)) + width * noise

    some = [0, 8, 15, 22, 35]
    fields, u = draws.reshape(num, NUM_DRAWS, 6, 6), truth.reshape(num, 6, 6)
    spread = np.sqrt((NUM_DRAWS + 1) / NUM_DRAWS * draws.var(axis=1, ddof=1).mean(-1))
    return xr.Dataset(
        {
            "rank": (("case", "quantity"), cal.ranks(draws[..., some], truth[:, some])),
            "coverage": (("case", "level"), cal.coverage_curve(fields, u)),
            "spread": ("case", spread),
            "error": ("case", rmse(fields.mean(1), u)),
        },
        coords={
            "quantity": [f"u{i}" for i in some],
            "quantity_kind": ("quantity", ["coefficient"] * 2 + ["field"] * 3),
            "level": list(cal.LEVELS),
            "mask_kind": ("case", np.array(["grid", "radial"])[np.arange(num) % 2]),
            "family": ("case", np.full(num, "helmholtz")),
        },
        attrs={"num_draws": NUM_DRAWS},
    )


# Verdicts


def test_the_exact_posterior_passes():
    data = linear_gaussian()
    assert (cal.uniformity(data)["p_holm"] > 0.01).all()
    table = cal.expected_coverage(data, ())
    assert (abs(table["coverage"] - table.index) < 4 * table["standard_error"]).all()
    assert np.sqrt(np.mean(data.spread**2) / np.mean(data.error**2)) == pytest.approx(1, abs=0.08)


@pytest.mark.parametrize(
    ("width", "bias", "sign"), [(0.7, 0.0, -1), (1.5, 0.0, 1), (1.0, 0.5, None), (1.0, -0.5, None)]
)
def test_dishonest_posteriors_are_found(width, bias, sign):
    data = linear_gaussian(width, bias)
    assert (cal.uniformity(data)["p_holm"] < 0.01).all()
    if sign:
        table = cal.expected_coverage(data, ())
        assert (sign * (table["coverage"] - table.index) > 4 * table["standard_error"]).all()


# The null law of the test, of its correction and of the band


def uniform_counts(num_draws: int, num: int, size: int, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, num_draws, (size, num), endpoint=True)


@pytest.mark.parametrize(("num_draws", "num"), [(39, 256), (39, 40), (3, 60), (200, 64)])
def test_p_values_are_uniform_under_the_null(num_draws, num):
    p = np.array([cal.rank_uniformity(ranks, num_draws) for ranks in uniform_counts(num_draws, num, 1000)])
    assert stats.kstest(p, "uniform").pvalue > 1e-3
    for level in (0.01, 0.05):
        assert abs(np.mean(p < level) - level) < 4 * np.sqrt(level / len(p))


def test_the_smallest_ensemble_gives_the_sign_test():
    assert cal.rank_uniformity([0] * 30 + [1] * 10, 1) == pytest.approx(stats.chi2.sf((30 - 10) ** 2 / 40, 1))


@pytest.mark.parametrize("bad", [[], [0, 40], [-1, 3], [0.5, 2.0], [[1, 2]]])
def test_what_is_no_rank_is_refused(bad):
    with pytest.raises(DataError, match="rank"):
        cal.rank_uniformity(np.array(bad), 39)


def test_holm_by_hand():
    # Sorted 0.005, 0.01, 0.03, 0.04 times 4, 3, 2, 1 is 0.02, 0.03, 0.06, 0.04; never decreasing: 0.06 twice.
    assert cal.holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert cal.holm([0.9, 0.6]) == pytest.approx([1.0, 1.0])
    assert cal.holm([0.3]) == pytest.approx([0.3])


@pytest.mark.parametrize(("num", "num_draws", "level"), [(64, 39, 0.9), (256, 39, 0.99), (30, 9, 0.95)])
def test_the_band_holds_whole_curves_as_often_as_it_says(num, num_draws, level):
    low, high = cal.ecdf_band(num, num_draws, level)
    counts = np.random.default_rng(3).multinomial(num, np.full(num_draws + 1, 1 / (num_draws + 1)), size=20000)
    ecdf = counts.cumsum(1) / num
    inside = np.mean(np.all((low <= ecdf) & (ecdf <= high), axis=1))
    error = np.sqrt(level * (1 - level) / len(ecdf))
    # A band of whole counts cannot meet the level exactly; it errs to the wide side.
    assert level - 4 * error < inside < level + 4 * error + 0.3 * (1 - level)


def test_the_band_of_two_ranks_is_binomial():
    low, high = cal.ecdf_band(20, 1, 0.95)
    assert (low[0], high[0]) == (stats.binom.ppf(0.025, 20, 0.5) / 20, stats.binom.ppf(0.975, 20, 0.5) / 20)
    assert (low[1], high[1]) == (1, 1)


# Ranks and coverage


def test_ranks_count_draws_below_and_break_ties_evenly():
    draws = np.arange(5.0)[None, :, None].repeat(2, axis=2)
    assert cal.ranks(draws, np.array([[-1.0, 2.5]])).tolist() == [[0, 3]]
    tied = cal.ranks(np.zeros((4000, 3)), np.zeros(4000))
    assert cal.rank_uniformity(tied, 3) > 1e-3


def test_coverage_curve_takes_what_metrics_take():
    rng = np.random.default_rng(0)
    draws, truth = rng.standard_normal((3, 39, 4, 5)), rng.standard_normal((3, 4, 5))
    curve = cal.coverage_curve(draws, truth, (0.5, 0.9))
    assert curve.shape == (3, 2)
    assert np.array_equal(curve[:, 1], coverage(draws, truth, 0.9))
    named = cal.coverage_curve(
        xr.DataArray(draws, dims=("case", "draw", "y", "x")),
        xr.DataArray(truth, dims=("case", "y", "x")),
        (0.5, 0.9),
    )
    assert named.dims == ("case", "level")
    assert named.level.values.tolist() == [0.5, 0.9]
    assert np.array_equal(named.values, curve)


def test_expected_coverage_groups_cases():
    data = linear_gaussian()
    table = cal.expected_coverage(data, ("mask_kind", "family"))
    row = table.loc[("radial", "helmholtz", 0.9)]
    values = data.coverage.sel(level=0.9).values[1::2]
    assert row["num"] == 128
    assert row["coverage"] == pytest.approx(values.mean())
    assert row["standard_error"] == pytest.approx(values.std(ddof=1) / np.sqrt(128))
    assert table.equals(cal.expected_coverage(data, ["mask_kind", "family"]))
    assert cal.expected_coverage(data, "mask_kind").index.names == ["mask_kind", "level"]
    with pytest.raises(UsageError, match=r"season.*mask_kind"):
        cal.expected_coverage(data, "season")


# Figures


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


# From simulation to verdict


def test_simulation_based_calibration_of_exact():
    data = cal.simulation_based_calibration("exact", TINY, 4, num_draws=9, points=[(3, 4), (20, 31)], num_mean_nodes=8)
    assert dict(data.sizes) == {"case": 4, "quantity": 5, "level": len(cal.LEVELS)}
    assert data.quantity.values.tolist() == ["kappa_x", "kappa_y", "k", "u[3, 4]", "u[20, 31]"]
    assert data.quantity_kind.values.tolist() == ["coefficient"] * 3 + ["field"] * 2
    assert np.issubdtype(data["rank"].dtype, np.integer)
    assert 0 <= data["rank"].min() <= data["rank"].max() <= 9
    assert (np.diff(data.coverage.values, axis=1) >= 0).all()
    assert data.attrs["regime"] == data.attrs["family"] == "helmholtz"
    assert (data.attrs["method"], data.attrs["num_draws"]) == ("exact", 9)
    truth = TINY.cases(0, 4)["truth"]
    for name in ("mask_kind", "initial_kind"):
        assert data[name].values.tolist() == truth[name].values.tolist()
    # The ensemble of 9 is a little worse than the mean, and both are of the size of the spread.
    assert (data.rmse < 0.3).all()
    assert 0.3 < float(np.sqrt((data.spread**2).mean() / (data.error**2).mean())) < 3

    later = cal.simulation_based_calibration(
        "exact", TINY, 1, num_draws=9, points=[(3, 4), (20, 31)], num_mean_nodes=8, start=1, seed=0
    )
    assert xr.concat([data.isel(case=[0]), later], "case").case.values.tolist() == [0, 1]
    assert later["rank"].equals(data["rank"].isel(case=[1]))


def test_a_method_without_a_spread_is_refused():
    with pytest.raises(UsageError, match=r"'map'.*without a spread"):
        cal.simulation_based_calibration("map", TINY, 4, num_steps=2, num_restarts=1)


@pytest.mark.parametrize(
    "options", [{"num": 0}, {"num_draws": 1}, {"points": [(0, 32)]}, {"points": [(1, 1), (1, 1)]}, {"start": -1}]
)
def test_impossible_requests_are_refused(options):
    with pytest.raises(UsageError):
        cal.simulation_based_calibration("exact", TINY, **{"num": 2, **options})
