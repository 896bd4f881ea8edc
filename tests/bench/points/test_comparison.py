"""Studies at points: what is recorded, what is shown, and what is missing."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import ClassVar

import numpy as np
import pytest
import xarray as xr

from latentpde.bench import run_benchmark
from latentpde.bench.lines import read_entries
from latentpde.bench.points import comparison, measured, model, plumes
from latentpde.bench.points.comparison import TaskSet, compare
from latentpde.bench.points.left_out import gaussian_process_left_out, kriging_left_out
from latentpde.bench.studies import plumes as plumes_study
from latentpde.bench.studies import real as real_study
from latentpde.scores.points.task import Prediction, Readings, Task


def task_of(values, truth=()):
    asked = Readings(np.zeros((len(values), 2)), np.zeros(len(values)), np.array(values), np.arange(len(values)))
    return Task("test", asked, asked, (0.0, 0.0), (1.0, 1.0), noisy=False, truth=dict(truth))


def zero(task, *, seed):
    return Prediction(np.zeros(len(task.asked)), np.ones(len(task.asked)), 0.0)


def test_tasks_that_belong_together_count_by_their_errors():
    line = compare([task_of([3.0]), task_of([0.0, 0.0, 0.0])], zero, seed=0)
    assert line["rmse"] == pytest.approx(1.5)
    assert line["bias"] == pytest.approx(-0.75)
    assert line["coverage90"] == 0.75
    assert line["num"] == 4


def test_coefficients_are_recorded_with_where_the_truth_lies():
    def method(task, *, seed):
        return Prediction(np.zeros(1), np.ones(1), 0.0, coefficients={"kappa": np.arange(10.0), "c": np.arange(4.0)})

    line = compare([task_of([0.0], {"kappa": 2.5})], method, seed=0)
    assert line["coefficients"]["kappa"] == {"mean": 4.5, "std": 3.028, "true": 2.5, "below": 0.3}
    assert line["coefficients"]["c"]["mean"] == 1.5


def test_plumes_are_run_once_and_shown(tmp_path, monkeypatch):
    monkeypatch.setattr(plumes, "SHAPE", (4, 6))
    monkeypatch.setattr(plumes_study, "_tasks", lambda index: (plumes.plume_task(index, spacing=2.0),))
    names = ["exact", "kriging", "persistence"]
    monkeypatch.setattr(plumes_study, "RIVALS", {name: plumes_study.RIVALS[name] for name in names[1:]})
    monkeypatch.setattr(plumes_study, "Exact", lambda family: plumes_study.RIVALS["kriging"])
    monkeypatch.setattr(comparison, "REFERENCE", "kriging")
    shown = run_benchmark("plumes", tmp_path, num=2)
    (table,) = shown.tables
    assert [cells[0] for cells in table.rows] == names
    assert all(len(cells) == len(table.columns) for cells in table.rows)
    assert not shown.missing
    assert table.rows[0][table.columns.index("RMSE ratio")] == "1.00", "kriging stands in for exact here"
    again = run_benchmark("plumes", tmp_path, num=2)
    assert again.tables == shown.tables
    assert len(read_entries(tmp_path / "runs" / "plumes.jsonl")) == 6


def test_what_is_not_installed_is_left_out_and_named(tmp_path, monkeypatch):
    monkeypatch.setattr(measured, "_R_LIBRARIES", ())
    monkeypatch.delenv("R_LIBS", raising=False)
    monkeypatch.setattr(real_study, "RIVALS", {"mean of readings": real_study.RIVALS["mean of readings"]})
    monkeypatch.setattr(real_study, "Exact", lambda family: real_study.RIVALS["mean of readings"])
    monkeypatch.setattr(real_study, "SnapshotBySnapshot", lambda model: model)
    measured.pm10.cache_clear()
    shown = run_benchmark("real", tmp_path, num=1)
    air, dust, vignette = shown.tables
    assert [cells[0] for cells in air.rows] == ["exact", "mean of readings"]
    assert not dust.rows
    assert "apt-get install r-cran-gstat" in dust.notes[-1]
    assert "6.05" in vignette.notes[0]


def test_a_method_that_fails_is_shown_and_tried_again(tmp_path, monkeypatch):
    def failing(task, *, seed):
        raise ValueError("no luck")

    sets = (TaskSet("some", lambda index: [task_of([1.0])], {"zero": zero, "failing": failing}, most=1),)
    monkeypatch.setattr(type(plumes_study.Plumes()), "sets", sets)
    for _ in range(2):
        shown = run_benchmark("plumes", tmp_path, num=3)
    assert [cells[0] for cells in shown.tables[0].rows] == ["zero"]
    assert "no luck" in shown.tables[1].rows[0][0]
    assert len(shown.missing) == 1
    assert len(read_entries(tmp_path / "runs" / "plumes.jsonl")) == 3


def test_the_model_is_given_readings_and_the_family_alone(monkeypatch):
    given = {}
    rng = np.random.default_rng(0)

    class Posterior:
        coefficients = xr.DataArray(
            rng.random((5, 2)), dims=("draw", "coefficient"), coords={"coefficient": ["vx", "kappa"]}
        )
        levels = xr.DataArray(np.full((5, 1), 0.3), dims=("draw", "level"), coords={"level": ["noise_std"]})
        diagnostics: ClassVar = {"trusted": np.array([True]), "num_evaluations": np.array([7])}

        def at(self, points, times):
            draws = rng.random((5, len(points)))
            return xr.Dataset({"mean": ("p", draws.mean(0)), "std": ("p", draws.std(0)), "draws": (("d", "p"), draws)})

    fake = SimpleNamespace(
        Observation=SimpleNamespace(from_table=lambda values, **table: given.update(table) or "observation"),
        Grid=lambda shape, extent, origin: (shape, extent, origin),
        reconstruct=lambda observation, family, **options: given.update(options, family=family) or Posterior(),
    )
    monkeypatch.setattr(model, "lp", fake)
    task = stations_and_days()
    found = model.Exact("advection_diffusion", num_draws=5)(task, seed=3)
    assert set(given) == {"y", "x", "t", "grid", "family", "num_draws", "seed"}
    np.testing.assert_array_equal(given["y"], task.readings.points[:, 0])
    assert given["grid"] == ((32, 32), (10.0, 10.0), (0.0, 0.0))
    assert found.noise_std == pytest.approx(0.3)
    assert set(found.coefficients) == {"vx", "kappa"}
    assert found.found == {"noise_std": pytest.approx(0.3), "trusted": True, "evaluations": 7}


def test_a_steady_family_sees_one_time_after_another(monkeypatch):
    seen = []

    def one_time(self, task, *, seed):
        (time,) = set(task.readings.times)
        seen.append(time)
        num = len(task.asked)
        return Prediction(np.full(num, time), np.ones(num), 0.1 * time, np.full((3, num), time))

    monkeypatch.setattr(model.Exact, "__call__", one_time)
    task = stations_and_days()
    found = model.SnapshotBySnapshot(model.Exact("screened_poisson", num_draws=3))(task, seed=0)
    assert seen == [0, 1, 2, 3]
    np.testing.assert_array_equal(found.mean, task.asked.times)
    np.testing.assert_allclose(found.noise_std, 0.1 * task.asked.times)
    assert compare([task], lambda task, *, seed: found, seed=0)["num"] == len(task.asked)


@pytest.mark.slow
@pytest.mark.parametrize("steady", [False, True])
def test_the_model_predicts_what_it_was_not_shown(steady):
    task = stations_and_days()
    hidden = task.readings.stations == 4
    task = replace(task, readings=task.readings[~hidden], asked=task.readings[hidden])
    family = "screened_poisson" if steady else "advection_diffusion"
    method = model.Exact(family, num_draws=20)
    found = (model.SnapshotBySnapshot(method) if steady else method)(task, seed=0)
    z = (found.mean - task.asked.values) / np.hypot(found.std, found.noise_std)
    assert np.abs(z).max() < 4
    assert found.draws.shape == (20, 4)


def stations_and_days():
    rng = np.random.default_rng(0)
    places = rng.uniform(0, 10, (9, 2))
    values = np.sin(places.sum(1) / 3)[None] + rng.standard_normal((4, 1)) + 0.1 * rng.standard_normal((4, 9))
    readings = Readings(
        np.tile(places, (4, 1)), np.repeat(np.arange(4.0), 9), 20 + 5 * values.ravel(), np.tile(np.arange(9), 4)
    )
    return Task("test", readings, readings, (0.0, 0.0), (10.0, 10.0), noisy=True)


@pytest.mark.parametrize("method", [gaussian_process_left_out, kriging_left_out])
def test_stations_left_out_are_predicted_as_well_as_is_said(method):
    task = stations_and_days()
    found = method(task, seed=0)
    error = found.mean - task.asked.values
    assert 0.3 < np.sqrt(np.mean(error**2)) < 4
    assert np.sqrt(np.mean((error / found.std) ** 2)) == pytest.approx(1, abs=0.5)
