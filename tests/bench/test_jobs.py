"""What tells a job from another, and what a row of a comparison is."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from guess import job_of

from latentpde.bench import run_benchmark
from latentpde.bench.jobs import Job, Part, cases_of
from latentpde.bench.rows import row, with_options
from latentpde.bench.solving import solve
from latentpde.bench.variants import VARIANTS
from latentpde.errors import UsageError
from latentpde.estimators import make_estimator, reconstruct
from latentpde.simulation import simulate
from latentpde.training.config import load_config


def test_what_differs_in_anything_is_another_run(guess):
    same = job_of(guess)
    others = [
        job_of(guess, "advection"),
        job_of(guess, noise_std=0.3),
        job_of(guess, mask="grid"),
        Job(row=with_options(row(guess), fails_below=-9.0), simulation=cases_of("diffusion")),
        Job(row=with_options(row(guess), num_draws=5), simulation=cases_of("diffusion")),
        Job(row=row(guess), simulation=cases_of("diffusion"), alone=True),
        Job(row=row(guess), simulation=cases_of("diffusion"), measurement="spectra"),
        Job(row=row(guess), simulation=cases_of("diffusion"), family="helmholtz"),
    ]
    keys = {json.dumps(job.identity(), sort_keys=True) for job in (same, job_of(guess), *others)}
    assert len(keys) == 1 + len(others)


def test_an_option_as_it_is_anyway_is_the_same_run(guess):
    assert with_options(row(guess), fails_below=-math.inf) == row(guess)
    changed = with_options(row(guess), fails_below=-9.0)
    assert changed != row(guess)
    assert dict(with_options(changed, fails_below=-math.inf).extra)["fails_below"] == -math.inf
    target = row("map_diffusion-target-map")
    assert with_options(target, guidance_scale=80.0).extra == target.extra


def test_rows_are_given_what_the_paper_gives_them():
    assert row("3dvar").fine_initial
    assert not row("3dvar-coarse").fine_initial
    assert not row("exact").fine_initial
    assert row("enkf-paper").options("helmholtz")["correction"] == 1.0
    assert row("enkf-enc").options("helmholtz") == {**row("enkf-paper").options("helmholtz"), "background": "enc"}
    with pytest.raises(UsageError, match="unknown method"):
        row("nonsense-coarse")


def test_every_variant_is_a_method_that_takes_its_options():
    for name in VARIANTS:
        some = row(name)
        for family in ("advection_diffusion", "klein_gordon", "helmholtz"):
            estimator = make_estimator(some.method, **some.options(family))
            assert all(getattr(estimator, option) == value for option, value in VARIANTS[name].options.items())
        assert VARIANTS[name].differs


def test_the_published_learned_rows_are_the_paper_s():
    """Its own networks, targets and bounds, and guidance without our guard where the chain runs."""
    for name, target in (("map_diffusion-paper", "map"), ("enc_diffusion-paper", "enc")):
        some = row(name)
        options = some.options("helmholtz")
        assert options["weights"] == "runs/helmholtz-paper"
        assert options["weights"] == load_config(some.trained.format(family="helmholtz")).output
        assert (options["target"], options["guidance_guard"], options["guidance_space"]) == (
            target,
            False,
            "normalised",
        )
        assert some.bounds == "family"


def test_the_published_pinn_has_the_published_number_of_parameters():
    cases = simulate("balanced", num=1, shape=(32, 32))
    posterior = reconstruct(
        cases, method="pinn", **{**row("pinn-paper").options("advection_diffusion"), "num_steps": 1}
    )
    assert posterior.diagnostics["num_parameters"] == 58_757


def test_bounds_of_the_family_are_another_run_and_reach_the_method():
    own, family = (Job(row=row(name), simulation=cases_of("diffusion")) for name in ("map", "map-family-bounds"))
    assert own.key != family.key
    solved = [solve(Part(replace(job, row=with_options(job.row, num_steps=1)), 0, 1)) for job in (own, family)]
    found = [some.posterior.latent.bounds.tolist() for some in solved]
    assert found == [[[-1.0, 1.0], [-1.0, 1.0], [0.02, 0.35]], [[-3.0, 3.0], [-3.0, 3.0], [0.001, 0.35]]]


def test_a_row_without_its_networks_is_left_out_and_says_how_to_train_them(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    methods = ["map", "map_diffusion-paper"]
    shown = run_benchmark("table1", tmp_path, num=1, methods=methods, regimes=["helmholtz"])
    assert [cells[0] for table in shown.tables for cells in table.rows] == ["map"]
    assert any("latentpde train helmholtz-paper" in sentence for sentence in shown.missing)
    assert not (tmp_path / "runs" / "map_diffusion.jsonl").exists()


def test_a_line_says_which_networks_it_is_of(tmp_path, monkeypatch):
    """Networks that are trained further give other scores under the same options."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "runs" / "helmholtz-paper"
    folder.mkdir(parents=True)
    manifest = {"training": {"epochs": 12}, "sha256": "0123456789abcdef"}
    (folder / "helmholtz-denoiser_map.json").write_text(json.dumps(manifest))
    some = row("map_diffusion-paper")
    assert some.untrained("helmholtz") is None
    assert some.networks("helmholtz") == {"denoiser_map": "12 epochs, 0123456789"}
    assert "encoder" in row("enc_diffusion-paper").untrained("helmholtz")


def test_figures_show_a_case_of_middling_strength():
    """Ten of the first twenty fields are weaker, and nine stronger; the choice looks at no method."""
    job = Job(row=row("exact"), simulation=cases_of("balanced", noise_std=0.45))
    fields = cases_of("balanced").cases(0, 20)["truth/field"].values.astype(float)
    strength = [float(np.sqrt((field**2).mean())) for field in fields]
    assert sum(value < strength[job.shown] for value in strength) == 10
    assert strength[job.shown] > 0.15, "stronger than the usual noise"
    assert job.shown == Job(row=row("map"), simulation=cases_of("balanced")).shown
