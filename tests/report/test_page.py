"""The report needs nothing but itself, says what it knows and nothing more, and is never half written."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch
from report_pages import Page

import latentpde as lp
from latentpde.errors import DataError, UsageError
from latentpde.grid import Grid, resample
from latentpde.posterior import Posterior
from latentpde.report import fields as plotting
from latentpde.report import film, tables
from latentpde.report import page as report
from latentpde.report.page import render_report
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


def write(post, path, **options) -> Page:
    post.report(path / "out.html", **options)
    return Page((path / "out.html").read_text(encoding="utf-8"))


def assert_self_contained(page: Page) -> None:
    assert all(address.startswith(("data:", "#")) for address in page.addresses)
    assert not re.search(r"(?i)(?:src|href|url\()\W{0,2}(?:https?:)?//", page.html)
    assert "@import" not in page.html
    assert "default-src 'none'" in page.html  # a browser refuses what a page might still ask for


def test_point_estimate_says_so_and_shows_no_spread(case, tmp_path):
    page = write(case[0], tmp_path, case=0)
    assert_self_contained(page)
    assert page.ids == [
        "summary", "reconstruction", "coefficients", "source", "assumptions", "repeat", "colours",
    ]  # fmt: skip
    assert "map gives a point estimate without uncertainty" in page.text
    assert "u t + v·∇u = κ Δu + f" in page.text
    assert "95 %" not in page.text
    assert "nan" not in page.text.lower().split()
    for fact in ("Made from 12 readings in 12 cells at t = 0.25", "standard deviation 0.15, as given", "y: periodic"):
        assert fact in page.text
    assert set(page.layers()) == {"mean", "readings"}


def test_spread_and_truth_add_quantiles_and_scores(case, spread_path):
    post, truth = case
    page = Page(spread_path.read_text(encoding="utf-8"))
    assert_self_contained(page)
    assert "scores" in page.ids
    assert "without uncertainty" not in page.text
    for words in ("Mean ± std 5 % to 95 %", "CRPS (fair)", "Coverage of the 90 % interval"):
        assert words in page.text
    fields = plotting.case_fields(spread_out(post), 1, truth)
    rmse = np.sqrt(np.mean((fields.mean - truth.isel(case=1).values) ** 2))
    assert f"RMSE {rmse:.4g} " in page.text
    assert "0.71 if calibrated, with 6 draws" in page.text  # six draws cannot cover 90 %
    assert set(page.layers()) == {"mean", "std", "q0.05", "q0.5", "q0.95", "truth", "error", "readings"}


def test_maps_hold_what_the_posterior_says_at_every_time(case, tmp_path):
    post = spread_out(case[0])
    page = write(post, tmp_path, case=1, resolution=32, threshold=0.1)
    times, layers = page.scripts[0]["times"], page.layers()
    assert times[0] == 0
    assert times[-1] == 0.25
    for name, expected in (
        ("mean", post.mean(resolution=32, times=times)),
        ("std", post.std(resolution=32, times=times)),
        ("q0.95", post.quantiles([0.95], resolution=32, times=times).isel(quantile=0)),
        ("above", post.probability_above(0.1, resolution=32, times=times)),
    ):
        np.testing.assert_allclose(layers[name], expected.isel(case=1), atol=1e-4 * float(np.abs(expected).max()))
    np.testing.assert_allclose(
        post.probability_above(0.1, resolution=32), (post.draws(resolution=32) > 0.1).mean("draw")
    )
    cells = post.observation.mask[1, 0].numpy()
    np.testing.assert_array_equal(np.isfinite(layers["readings"][-1]), np.kron(cells, np.ones((4, 4))) > 0)


def test_frames_are_the_same_however_many_are_decoded_at_once(case, monkeypatch):
    post = spread_out(case[0])
    together = Page(render_report(post, case=0, resolution=16))
    monkeypatch.setattr(film, "_MEMORY", 0)
    one_by_one = Page(render_report(post, case=0, resolution=16))
    for name, values in one_by_one.layers().items():
        assert np.allclose(together.layers()[name], values, equal_nan=True, rtol=1e-4), name


def test_a_source_that_is_little_beside_its_uncertainty_is_still_drawn(case, tmp_path):
    post = case[0]
    q = post.latent.num_coefficients
    up, down = post.z.clone(), post.z.clone()
    down[..., q:] *= -0.9
    page = write(replace(post, z=torch.cat([up, down], 1)), tmp_path, case=0)
    scales, layers = page.scripts[1]["scales"], page.layers(1)
    assert scales["field"][1] == pytest.approx(np.abs(layers["mean"]).max(), rel=1e-3)
    assert scales["spread"][1] == pytest.approx(layers["std"].max(), rel=1e-3)
    assert "The map of the mean runs to" in page.text


def test_every_case_has_a_place_in_the_index_and_a_section(case, tmp_path):
    page = write(case[0], tmp_path)
    assert_self_contained(page)
    assert {"case-0", "case-1", "case-0-summary", "case-1-summary", "case-1-assumptions"} <= set(page.ids)
    assert {"#case-0", "#case-1"} <= set(page.addresses)
    assert "2 cases, each reconstructed by itself" in page.text
    means = [page.layers(i)["mean"] for i in (0, 2)]  # the source of each comes after it
    assert not np.allclose(*means)


def test_sensors_stand_where_they_are_and_a_steady_family_has_no_time(tmp_path):
    post, _ = reconstruct("helmholtz", observed="point")
    page = write(post, tmp_path)
    assert_self_contained(page)
    assert "Made from 12 readings at 12 stations. The field averages" in page.text
    data = page.scripts[0]
    assert len(data["times"]) == 1
    shown = {(one["x"], one["y"]): one["readings"][0][1] for one in data["stations"]}
    for (y, x), value in zip(
        post.observation.positions[0].tolist(), post.observation.values[0, 0].tolist(), strict=True
    ):
        assert shown[x, y] == pytest.approx(value, rel=1e-5)
    dots = plotting.plot_observation(post.observation).axes[1].collections[0]
    np.testing.assert_array_equal(dots.get_offsets(), post.observation.positions[0].flip(-1))


def test_rectangle_with_two_times_without_case_axis(tmp_path):
    post, truth = reconstruct("klein_gordon", shape=(16, 48), extent=(1.0, 3.0), times=(0.5, 1.0))
    post = replace(post, observation=replace(post.observation, batched=False))
    page = write(post, tmp_path, truth=truth.isel(case=0))
    assert_self_contained(page)
    assert {0.5, 1.0} <= set(page.scripts[0]["times"])
    assert page.scripts[0]["shape"][1] == 3 * page.scripts[0]["shape"][0]
    figure = plotting.plot_reconstruction(post, truth=truth.isel(case=0, time=-1))
    figure.draw_without_rendering()
    box = figure.axes[0].get_position()
    width, height = figure.get_size_inches()
    assert box.width * width == pytest.approx(3 * box.height * height, rel=1e-3)


def test_posterior_without_coefficients_leaves_their_sections_out(case, tmp_path):
    page = write(FieldPosterior(observation=case[0].observation, method="kriging"), tmp_path, case=0)
    assert_self_contained(page)
    assert page.ids == ["summary", "reconstruction", "assumptions", "repeat", "colours"]
    assert "does not identify a PDE" in page.text


def test_hostile_strings_are_text(case, tmp_path):
    frame = lp.Frame(value=HOSTILE, value_unit=HOSTILE, value_attributes={"long_name": HOSTILE})
    post = replace(
        case[0],
        method=HOSTILE,
        settings={"note": HOSTILE},
        diagnostics={HOSTILE: HOSTILE, "n": 3},
        observation=replace(case[0].observation, frame=frame),
    )
    page = write(post, tmp_path, case=0, command=HOSTILE)
    assert_self_contained(page)
    assert "<script>alert" not in page.html
    assert page.tags.count("script") == 4  # two maps, the colours, and the page's own
    assert page.scripts[0]["layers"][0]["unit"] == HOSTILE
    assert r"alert(\"x\")</script> $a_b$ {{ 7 * 7 }} [\n 1,  2]" in "".join(page.pieces)


def test_diagnostics_are_of_this_case_and_short(case):
    values = {"per_case": np.array([1.5, 2.5]), "chain": torch.arange(50), "ok": True, "shape": np.ones((2, 1, 9))}
    rows = dict(tables.diagnostics(replace(case[0], diagnostics=values), 1))
    assert rows["per case"] == "2.5"
    assert rows["chain"].startswith("0, 1, 2, 3, 4, 5 … (50")
    assert rows["ok"] == "yes"
    assert rows["shape"].endswith("(1 \u00d7 9 values)")


def test_same_posterior_same_bytes(case, spread_path):
    post, truth = case
    again = report.render_report(spread_out(post), truth=truth, case=1)
    assert again == spread_path.read_text(encoding="utf-8")


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


def test_what_the_readings_tell_of_the_coefficients_is_on_the_page():
    posterior = lp.reconstruct(lp.simulate("diffusion", num=1, seed=3, shape=(32, 32), num_modes=2, sparsity=0.5))
    page = render_report(posterior, resolution=16)
    assert "What the readings tell of them" in page
    assert "samples of each pair" in page
    assert len(lp.identifiability(posterior).names) == 3
    fixed = lp.reconstruct(posterior.observation, "advection_diffusion", fixed={"kappa": 0.1, "vx": 0.0, "vy": 0.0})
    assert "What the readings tell of them" not in render_report(fixed, resolution=16)


def test_held_out_readings_of_several_cases_stand_before_them(case, tmp_path):
    post, _ = case
    held_out = lp.holdout(post.observation, method="map", num_steps=2, num_modes=2, share=0.2)
    assert set(held_out.readings["case"]) == {0, 1}
    page = write(post, tmp_path, holdout=held_out)
    assert page.ids.index("holdout") < page.ids.index("case-0")
    assert f"{len(held_out.readings)} held-out readings" in page.text
    assert [row for row in held_out.scores.index if row not in page.text] == []
    assert "case-0-holdout" not in page.ids, "scores are of all cases together"
