"""Posteriors of fields: other resolutions, the times they know, and files, reports and scores made of them."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
import xarray as xr
from scipy import stats

from latentpde.errors import UsageError
from latentpde.grid import Grid
from latentpde.observation import Observation
from latentpde.posterior.fields import FieldPosterior

NATIVE = Grid((12, 16), (1.0, 2.0))


def wave(grid: Grid, phase: float) -> np.ndarray:
    y, x = (c.numpy() for c in grid.coordinates())
    return np.cos(2 * np.pi * (2 * y[:, None] - 3 * x / 2) + phase) + phase


def posterior(num_draws: int = 3, **known) -> FieldPosterior:
    """Two cases at two times; draws are waves of different phase."""
    data = Observation.from_arrays(
        np.zeros((2, 2, 6, 8)), times=(0.1, 0.4), noise_std=0.1, grid=Grid((6, 8), (1.0, 2.0))
    )
    phases = np.arange(2 * num_draws * 2).reshape(2, num_draws, 2)
    values = np.array([[[wave(NATIVE, p) for p in row] for row in case] for case in phases])
    return FieldPosterior(observation=data, method="test", native=NATIVE, values=torch.from_numpy(values), **known)


def test_fields_are_the_same_function_at_any_resolution():
    for shape in [(12, 16), (24, 32), (9, 20)]:
        draws = posterior().draws(shape, times=[0.1, 0.4])
        assert draws.shape == (2, 3, 2, *shape)
        expected = [
            [[wave(NATIVE.with_shape(shape), 6 * s + 2 * d + t) for t in (0, 1)] for d in range(3)] for s in (0, 1)
        ]
        np.testing.assert_allclose(draws, expected, atol=1e-12)


def test_on_its_own_grid_nothing_is_filtered():
    rng = np.random.default_rng(0)
    values = torch.from_numpy(rng.standard_normal((2, 1, 2, 12, 16)))
    data = posterior().observation
    rough = FieldPosterior(observation=data, method="test", native=NATIVE, values=values)
    np.testing.assert_array_equal(rough.mean((12, 16), times=[0.1, 0.4]), values[:, 0])


def test_times_are_chosen_and_others_refused_by_name():
    fields = posterior()
    np.testing.assert_array_equal(fields.mean(12), fields.mean(12, times=[0.1, 0.4]).isel(time=1))
    back = fields.mean(12, times=[0.4, 0.1, 0.4])
    np.testing.assert_array_equal(back.isel(time=0), back.isel(time=2))
    assert not np.allclose(back.isel(time=0), back.isel(time=1))
    for method in (fields.mean, fields.std, fields.draws):
        with pytest.raises(UsageError, match=r"times only: 0.1, 0.4; asked for 0.2"):
            method(12, times=[0.2])


def test_what_the_method_knows_better_wins():
    mean, variance = torch.full((2, 2, 12, 16), 7.0).double(), torch.full((2, 2, 12, 16), 9.0).double()
    fields = posterior(mean_values=mean, variance=variance)
    np.testing.assert_allclose(fields.mean(20), 7.0)
    np.testing.assert_allclose(fields.std(20), 3.0)
    for num_draws in (1, 3):  # what is known does not depend on how many draws are kept
        known = posterior(num_draws=num_draws, mean_values=mean, variance=variance)
        assert known.has_spread
        np.testing.assert_allclose(known.std(20), 3.0)
        quantiles = known.quantiles([0.05, 0.5], resolution=20)
        np.testing.assert_allclose(quantiles.sel(quantile=0.05), stats.norm(7, 3).ppf(0.05))
        np.testing.assert_allclose(quantiles.sel(quantile=0.5), 7.0)
    plain = posterior()
    np.testing.assert_allclose(plain.std(12), plain.draws(12).std("draw", ddof=1))
    assert np.isnan(posterior(num_draws=1).std(12)).all()


def test_variances_are_interpolated_linearly_and_stay_positive():
    variance = torch.zeros((2, 2, 12, 16), dtype=torch.float64)
    variance[:, :, 3, 5] = 1.0
    std = posterior(variance=variance).std((24, 32)).isel(case=0).values
    assert std.min() == 0
    assert std[6, 10] ** 2 == pytest.approx(0.75 * 0.75)
    assert (std**2).sum() == pytest.approx(4.0)
    # across the periodic edge
    variance = torch.zeros((2, 2, 12, 16), dtype=torch.float64)
    variance[:, :, 0, 0] = 1.0
    std = posterior(variance=variance).std((24, 32)).isel(case=0).values
    assert std[-1, -1] ** 2 == pytest.approx(0.25 * 0.25)


@pytest.mark.parametrize("method", ["3dvar", "enkf", "kriging"])
def test_files_report_and_scores_from_the_command_line(method, tmp_path, run):
    """Without coefficients and source, which these methods do not know."""
    cases, out, page = (str(tmp_path / name) for name in ("cases.nc", "out.nc", "out.html"))
    assert run("simulate", "balanced", "--num", "2", "--resolution", "32", "-o", cases, "-q")[0] == 0
    options = [] if method == "kriging" else ["-O", 'background_options={"num_steps": 10}']
    command = ["reconstruct", cases, "--method", method, *options, "--fine-initial", cases]
    assert run(*command, "-o", out, "--report", page, "-q")[0] == 0
    with xr.open_dataset(out) as dataset:
        assert dataset.attrs["method"] == method
        assert dataset.attrs["has_spread"] == (method != "3dvar")
        assert {"mean", "std", "quantiles"} <= set(dataset)
        assert not {"coefficients", "source_mean"} & set(dataset)
        assert dataset["mean"].shape == (2, 128, 128)
    text = (tmp_path / "out.html").read_text()
    assert method in text
    assert "Source term" not in text
    scores = json.loads(run("evaluate", out, cases, "--json")[1])
    assert 0 < scores["rmse"] < 1
    assert (scores["coverage90"] is None) == (method == "3dvar")
