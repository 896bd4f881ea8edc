"""Runs of the benchmark: what is run, shared, kept and found again."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from guess import Guess, job_of

from latentpde.bench import execution, run_benchmark, run_benchmarks
from latentpde.bench.execution import run_batch, run_jobs
from latentpde.bench.jobs import Job, Part, cases_of
from latentpde.bench.lines import read_entries
from latentpde.bench.measurements import measurements
from latentpde.bench.pictures import Picture
from latentpde.bench.queue import missing_batches
from latentpde.bench.rows import row, with_options
from latentpde.bench.solving import solve
from latentpde.bench.store import Store, frame
from latentpde.errors import DataError
from latentpde.estimators import methods


def indices_in(path: Path) -> list[int]:
    return [entry.line["index"] for entry in read_entries(path)]


def lines_of(*parts: Part) -> list[dict]:
    return [entry.whole for entry in run_batch(parts)]


@pytest.fixture
def counted(monkeypatch):
    """How many cases were really run."""
    seen = []

    def counting(parts, pictures):
        seen.extend(index for part in parts for index in range(part.start, part.stop))
        return run_batch(parts, pictures)

    monkeypatch.setattr(execution, "run_batch", counting)
    return seen


def test_runs_are_kept_and_go_on_where_they_stopped(tmp_path, guess, counted):
    for num in (2, 2, 5):
        run_benchmark("table1", tmp_path, num=num, methods=[guess], regimes=["diffusion"])
    assert counted == [0, 1, 2, 3, 4]
    path = tmp_path / "runs" / "guess.jsonl"
    assert indices_in(path) == [0, 1, 2, 3, 4]
    header, line = read_entries(path)[0]
    assert {"seed", "version", "hardware", "threads", "options"} <= set(header)
    assert {"seconds", "rmse"} <= set(line)
    assert path.read_text().count("version") == 1, "what lines share stands in the header alone"
    run_benchmark("table1", tmp_path, num=2, methods=[guess], regimes=["diffusion"], again=True)
    assert counted[5:] == [0, 1]
    assert sorted(indices_in(path)) == [0, 1, 2, 3, 4], "what was run anew has replaced what was there"


def test_another_table_uses_what_is_there(tmp_path, guess, counted):
    run_benchmark("table1", tmp_path, num=2, methods=[guess], regimes=["diffusion"])
    run_benchmark("pareto", tmp_path, num=2, methods=[guess], regimes=["diffusion"])
    assert counted == [0, 1]
    run_benchmark("table-no-source", tmp_path, num=1, methods=[guess], regimes=["diffusion"])
    assert counted == [0, 1, 0], "other cases are other runs"


def test_a_line_cut_short_is_run_again(tmp_path, guess, counted):
    run_benchmark("table1", tmp_path, num=2, methods=[guess], regimes=["diffusion"])
    path = tmp_path / "runs" / "guess.jsonl"
    path.write_text(path.read_text()[:-40])
    run_benchmark("table1", tmp_path, num=2, methods=[guess], regimes=["diffusion"])
    assert counted == [0, 1, 1]
    assert len(Store(tmp_path / "runs").find(job_of(guess), 2)) == 2


def test_only_what_is_missing_between_others_is_run(tmp_path, guess, counted):
    run_benchmark("table1", tmp_path, num=6, methods=[guess], regimes=["diffusion"])
    path = tmp_path / "runs" / "guess.jsonl"
    kept = [line for line in path.read_text().splitlines() if json.loads(line).get("index") not in (1, 4)]
    path.write_text("\n".join(kept) + "\n")
    run_benchmark("table1", tmp_path, num=6, methods=[guess], regimes=["diffusion"])
    assert counted[6:] == [1, 4]


def test_masks_are_run_as_one_batch_and_come_out_as_alone(tmp_path):
    jobs = [job_of("kriging", mask=mask) for mask in ("grid", "radial")]
    (batch,) = missing_batches([(job, 2) for job in jobs], Store(tmp_path / "runs"))
    assert batch == [Part(job, 0, 2) for job in jobs]
    alone = [line for job in jobs for line in lines_of(Part(job, 0, 2))]
    for line, expected in zip(lines_of(*batch), alone, strict=True):
        assert line.keys() == expected.keys()
        assert {line["mask"]} == {line["setting"]["mask"]}
        assert line["rmse"] == pytest.approx(expected["rmse"], rel=1e-3)
    apart = [*jobs, job_of("kriging", mask="grid", noise_std=0.3), job_of("kriging", "advection"), job_of("enkf")]
    assert len(missing_batches([(job, 1) for job in apart], Store(tmp_path / "runs"))) == 4


def test_benchmarks_run_together_share_what_they_need(tmp_path, guess, counted):
    names, options = ["table1", "masks", "noise"], {"num": 2, "methods": [guess], "regimes": ["diffusion"]}
    first = list(run_benchmarks(names, tmp_path, **options))
    assert len(counted) == 2 + 8 + 2  # table1's cases have the noise of the first of noise's three settings
    assert len(first) == 3
    counted.clear()
    list(run_benchmarks([*names, "psd"], tmp_path, draw_only=True, **options))  # what was not run is left out
    assert not counted
    with pytest.raises(DataError, match="nothing of psd, table-no-source"):
        list(run_benchmarks(["psd", "table-no-source"], tmp_path, draw_only=True, **options))


def test_rows_of_other_names_and_other_measurements_share_a_run(tmp_path, guess, counted, monkeypatch):
    """The same options under two names, and two measurements of them: one run, and lines for both."""
    named = [row(guess), with_options(row(guess), name="dice")]
    jobs = [
        Job(row=some, simulation=cases_of("diffusion"), measurement=m) for some in named for m in ("scores", "spectra")
    ]
    store = Store(tmp_path / "runs")
    run_jobs([(job, 2) for job in jobs], store)
    assert counted == [0, 1]
    for job in jobs:
        lines = store.find(job, 2)
        alone = {i: lines_of(Part(job, i, i + 1))[0] for i in (0, 1)}
        assert all(lines[i].keys() == alone[i].keys() for i in (0, 1))
        assert lines[0]["mask"] == alone[0]["mask"]
    table = frame([job for job in jobs if job.measurement == "scores"], 2, store)
    assert list(table["row"]) == ["guess", "guess", "dice", "dice"]
    monkeypatch.setitem(measurements, "spectra", lambda solved: 1 / 0)
    kept, lost = lines_of(Part(jobs[0], 0, 1, (jobs[1],)))
    assert "rmse" in kept
    assert "ZeroDivisionError" in lost["failed"]


def test_pictures_are_of_the_run_itself(tmp_path, guess, counted):
    def draw():
        run_benchmark("gallery", tmp_path, methods=[guess], regimes=["diffusion"])
        return store.picture(job)

    store, job = Store(tmp_path / "runs"), job_of(guess)
    seen = draw()
    assert counted == [0]
    assert seen is not None
    own = solve(Part(job, job.shown, job.shown + 1))
    np.testing.assert_allclose(seen.mean, own.mean[0], rtol=1e-5, atol=1e-6)
    store.picture_path(job).write_bytes(b"damaged")
    assert store.picture(job) is None
    again = draw()
    assert again is not None
    assert np.array_equal(again.mean, seen.mean)
    assert counted == [0], "the line is not made again"
    assert indices_in(tmp_path / "runs" / "guess.jsonl") == [0]


def test_a_picture_has_the_spread_where_a_figure_shows_it(tmp_path):
    """Two benchmarks want the same run, one of them its mean alone."""
    names, options = ["gallery", "posterior-draws"], {"methods": ["enkf"], "regimes": ["diffusion"]}
    list(run_benchmarks(names, tmp_path, **options))
    store, job = Store(tmp_path / "runs"), replace(job_of("enkf"), drawn="spread")
    before = store.picture(job)
    assert before is not None
    assert before.std is not None
    assert before.draws is not None
    Picture(before.mean).save(store.picture_path(job))
    assert store.picture(job) is None
    assert store.picture(replace(job, drawn="mean")) is not None
    list(run_benchmarks(names, tmp_path, **options))
    again = store.picture(job)
    assert again is not None
    np.testing.assert_allclose(again.std, before.std, rtol=1e-6)


def test_timings_have_the_machine_to_themselves(tmp_path, guess, counted):
    """Processes would not know the method that this test registered, nor what it counts."""
    run_benchmark("runtime", tmp_path, num=4, methods=[guess], regimes=["diffusion"], workers=2)
    assert len(counted) == 4  # two alone, and the two again as a batch
    assert not any("failed" in line for _, line in read_entries(tmp_path / "runs" / "guess.jsonl"))


def test_failures_are_counted_shown_and_tried_again(tmp_path, guess, counted):
    fails = [float(np.nanmin(cases_of("diffusion").cases(i, i + 1)["observed"].values)) < -0.9 for i in range(6)]
    assert 0 < sum(fails) < 6
    bad = Job(row=with_options(row(guess), fails_below=-0.9), simulation=cases_of("diffusion"))
    entries = run_batch([Part(bad, 0, 6)])
    lines = [entry.line for entry in entries]
    assert ["failed" in line for line in lines] == fails
    assert all("rmse" in line for line, failed in zip(lines, fails, strict=True) if not failed)
    assert "a reading too low for me" in next(line for line in lines if "failed" in line)["failed"]
    store = Store(tmp_path / "runs")
    store.add(entries)
    assert {part.start for (part,) in missing_batches([(bad, 6)], store)} == {fails.index(True)}

    methods.unregister("guess")
    methods.register("guess", type("Bad", (Guess,), {"estimate": lambda *a, **k: 1 / 0}))
    shown = run_benchmark("table1", tmp_path, num=2, methods=[guess], regimes=["diffusion"])
    assert "2 failed" in shown.tables[0].rows[0][-1]
    assert any("ZeroDivisionError" in note for note in shown.tables[0].notes)


def test_processes_give_the_same_as_one(tmp_path):
    found = []
    for workers in (1, 2):
        folder = tmp_path / str(workers)
        run_benchmark("table1", folder, num=1, methods=["kriging"], regimes=["diffusion", "advection"], workers=workers)
        lines = [entry.whole for entry in read_entries(folder / "runs" / "kriging.jsonl")]
        found.append(sorted((line["regime"], line["rmse"], line["crps"]) for line in lines))
    assert found[0] == found[1]
