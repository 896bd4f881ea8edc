"""What tells a job from another, and what a row of a comparison is."""

from __future__ import annotations

import json
import math

import pytest
from guess import job_of

from latentpde.bench.jobs import Job, cases_of
from latentpde.bench.rows import row, with_options
from latentpde.errors import UsageError


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
    paper = row("map_diffusion-paper")
    assert with_options(paper, guidance_scale=80.0).extra == paper.extra


def test_rows_are_given_what_the_paper_gives_them():
    assert row("3dvar").fine_initial
    assert not row("3dvar-coarse").fine_initial
    assert not row("exact").fine_initial
    assert row("enkf-paper").options("helmholtz")["correction"] == 1.0
    with pytest.raises(UsageError, match="unknown method"):
        row("nonsense-coarse")
