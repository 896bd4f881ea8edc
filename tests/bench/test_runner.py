"""Running benchmarks from the command line, and drawing what was run."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest
from guess import Guess, job_of
from matplotlib.backends.backend_agg import FigureCanvasAgg

from latentpde.bench import benchmarks, run_benchmark, run_benchmarks
from latentpde.bench.figures import Tile, tile_grid
from latentpde.bench.lines import read_entries
from latentpde.bench.page import write_page
from latentpde.bench.runner import make_plan
from latentpde.bench.store import Store
from latentpde.errors import DataError, UsageError


@pytest.fixture
def runs(monkeypatch):
    """The names of all that has run anything since."""
    seen = []
    estimate = Guess.estimate
    monkeypatch.setattr(Guess, "estimate", lambda *a, **k: seen.append("guess") or estimate(*a, **k))
    for benchmark in benchmarks:
        if hasattr(benchmark, "run_task"):
            monkeypatch.setattr(type(benchmark), "run_task", lambda self, task: seen.append(self.name) or [])
    return seen


def test_draw_only_runs_nothing_and_says_what_is_missing(tmp_path, guess, runs):
    options = {"methods": [guess], "regimes": ["balanced"]}
    names = [benchmark.name for benchmark in benchmarks]
    drawn = ["gallery", "masks", "posterior-draws", "uncertainty", "table1"]
    full = {shown.name: shown for shown in run_benchmarks(drawn, tmp_path, num=2, **options)}
    assert not any(shown.missing for shown in full.values())
    assert runs
    runs.clear()
    shutil.rmtree(tmp_path / "pictures")
    shown = {one.name: one for one in run_benchmarks(names, tmp_path, num=3, draw_only=True, **options)}
    assert not runs
    assert not (tmp_path / "pictures").exists()
    assert any("nothing of it has been run" in sentence for sentence in shown["table-no-source"].missing)
    assert any("nothing of it has been run" in sentence for sentence in shown["scaling"].missing)
    assert shown["table1"].missing == ("table1: cases that have not been run: guess 1 of 3.",)
    assert len(shown["table1"].drawings) == 1
    assert full["gallery"].drawings[0].name == "fields"
    assert [drawing.name for drawing in shown["gallery"].drawings] == ["initial-states", "masks"]
    assert any("fields that are not kept" in sentence for sentence in shown["gallery"].missing)
    assert full["posterior-draws"].drawings
    assert not shown["posterior-draws"].drawings


def test_draw_only_with_nothing_to_draw(tmp_path, guess, runs, run):
    with pytest.raises(DataError, match="has been run"):
        run_benchmark("table1", tmp_path, num=1, methods=[guess], draw_only=True)
    assert not list(tmp_path.iterdir())
    options = ["--methods", guess, "--regimes", "diffusion", "--num", 1, "-o", tmp_path]
    assert run("bench", "posterior-draws", *options)[0] == 0
    shutil.rmtree(tmp_path / "pictures")
    runs.clear()
    code, _, errors = run("bench", "posterior-draws", "--draw-only", *options)
    assert code == 3, "there are lines, but nothing that can be drawn"
    assert "fields that are not kept, and so not drawn: 1 of 1" in errors
    assert run("bench", "all", "--draw-only", *options)[0] == 0
    assert not runs


def test_a_picture_that_is_not_kept_leaves_its_place_empty(tmp_path, guess):
    options = {"num": 1, "regimes": ["diffusion"]}
    run_benchmark("gallery", tmp_path, methods=["kriging", guess], **options)
    Store(tmp_path / "runs").picture_path(job_of(guess)).unlink()
    shown = run_benchmark("gallery", tmp_path, methods=["kriging", guess], draw_only=True, **options)
    texts = [text.get_text() for ax in shown.drawings[0].figure.axes for text in ax.texts]
    assert texts.count("not kept") == 1


def test_tiles_show_their_fields():
    figure = tile_grid({"row": [Tile("high", np.ones((4, 4))), Tile("none", "failed"), Tile("low", -np.ones((4, 4)))]})
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    pixels = np.asarray(canvas.buffer_rgba()).astype(int)
    ax = figure.axes[0]
    red, grey, blue = (
        pixels[pixels.shape[0] - round(y), round(x)]
        for x, y in (ax.transData.transform((i * 1.06 + 0.3, 0.3)) for i in range(3))
    )
    assert red[0] > red[2] + 50
    assert blue[2] > blue[0] + 50
    assert np.ptp(grey[:3]) == 0


def test_the_page_says_what_to_do_where_there_is_nothing(tmp_path):
    with pytest.raises(DataError, match="latentpde bench table1"):
        write_page(tmp_path)
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables" / "table1.json").write_text("{")
    with pytest.raises(DataError, match="make it again with latentpde bench table1"):
        write_page(tmp_path)


def test_command_line(tmp_path, run):
    folder = tmp_path / "out"
    rows = ["--methods", "kriging,kriging-coarse", "--regimes", "diffusion"]
    code, printed, _ = run("bench", "table1", "--num", 1, *rows, "-o", folder)
    assert code == 0
    assert "kriging-coarse" in printed
    assert "advection-diffusion" in printed
    assert "| kriging |" in (folder / "tables" / "table1.md").read_text()
    record = json.loads((folder / "tables" / "table1.json").read_text())
    assert [cells[0] for cells in record["tables"][0]["rows"]] == ["kriging", "kriging-coarse"]
    assert (folder / "figures" / "table1.png").read_bytes()[:4] == b"\x89PNG"
    assert run("bench", "report", "-o", folder)[0] == 0
    page = (folder / "bench.html").read_text()
    assert "kriging-coarse" in page
    assert "data:image/png;base64," in page


@pytest.mark.parametrize(
    "arguments",
    [["nonsense"], ["table1", "--methods", "nonsense"], ["table1", "--regimes", "nonsense"], ["table1", "--num", "0"]],
)
def test_wrong_words_are_refused(arguments, tmp_path, run):
    assert run("bench", *arguments, "-o", tmp_path)[0] == 2
    assert not list(tmp_path.iterdir())


def test_a_place_that_cannot_be_written_to_is_found_out_before_any_work(tmp_path, refused):
    file = tmp_path / "file"
    file.write_text("precious")
    refused(2, "cannot write results", "bench", "table1", "--num", "1", "--methods", "kriging", "-o", file)
    assert file.read_text() == "precious"


def test_slow_methods_get_a_fifth_and_in_table_1_what_an_hour_allows(tmp_path):
    counts = {}
    for name in ("table1", "noise"):
        plan = make_plan(benchmarks.get(name), Store(tmp_path), num=500, methods=["exact", "pinn"])
        counts[name] = [row.count(500) for row in plan.rows]
    assert counts == {"table1": [500, 360], "noise": [500, 100]}


def test_another_seed_is_another_test_set_and_leaves_the_lines_of_the_first(tmp_path, guess, run):
    options = ["--num", 1, "--methods", guess, "--regimes", "diffusion", "-o", tmp_path]
    assert run("bench", "table1", *options)[0] == 0
    first = read_entries(tmp_path / "runs" / "guess.jsonl")
    code, printed, _ = run("bench", "table1", "--seed", 8, *options)
    assert code == 0
    assert "Test cases of seed 8." in printed
    both = read_entries(tmp_path / "runs" / "guess.jsonl")
    assert [entry.header["seed"] for entry in both] == [7, 8]
    assert both[:1] == first
    assert both[1].line["rms_of_truth"] != first[0].line["rms_of_truth"], "the cases are others"
    assert run("bench", "table1", "--seed", 8, "--again", *options)[0] == 0
    assert [e.header["seed"] for e in read_entries(tmp_path / "runs" / "guess.jsonl")] == [7, 8]
    for seed, code in ((7, 0), (8, 0), (9, 3)):
        assert run("bench", "table1", "--seed", seed, "--draw-only", *options)[0] == code


def test_every_benchmark_takes_its_cases_from_the_seed_of_its_plan(tmp_path):
    store = Store(tmp_path)
    for benchmark in benchmarks:
        if benchmark.own_seeds:
            with pytest.raises(UsageError, match="seeds of their own"):
                make_plan(benchmark, store, seed=8)
            continue
        jobs = benchmark.jobs(make_plan(benchmark, store, seed=8))
        assert {job.simulation.seed for job in jobs} == {8}, benchmark.name
