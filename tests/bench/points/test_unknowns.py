"""The study of unknowns: what is told, what is recorded, and what its table makes of it."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import xarray as xr

from latentpde.bench import run_benchmark
from latentpde.bench.points.prior_draws import BOUNDS, LEVELS
from latentpde.bench.studies import unknowns
from latentpde.bench.studies.unknowns import KNOWN, NUM_DRAWS, UNKNOWNS, Unknown, measure


class Calibrated:
    """A posterior that knows nothing but how wrong it is: truth and draws are alike about a centre."""

    def __init__(self, case, rng, spread):
        self.case, self.rng, self.spread = case, rng, spread
        self.diagnostics = {"trusted": np.array([True])}
        self.coefficients = self._draws(case.task.truth, "coefficient")
        self.levels = self._draws(case.levels, "level")

    def _about(self, truth):
        truth = np.asarray(truth)
        centre = truth + self.spread * self.rng.standard_normal(truth.shape)
        return centre + self.spread * self.rng.standard_normal((NUM_DRAWS, *truth.shape))

    def _draws(self, truths, axis):
        return xr.DataArray(self._about([*truths.values()]), dims=("draw", axis), coords={axis: [*truths]})

    def at(self, points, times):
        draws = self._about(self.case.task.asked.values)
        found = {"mean": ("point", draws.mean(0)), "std": ("point", draws.std(0)), "draws": (("draw", "point"), draws)}
        return xr.Dataset(found)


@pytest.fixture
def calibrated(monkeypatch):
    rng = np.random.default_rng(0)

    def posterior(self, case, seed):
        return Calibrated(case, rng, 0.2 if self == Unknown() else 0.3)

    monkeypatch.setattr(Unknown, "posterior", posterior)
    some = {name: UNKNOWNS[name] for name in (KNOWN, "noise")}
    monkeypatch.setattr(unknowns, "UNKNOWNS", some)


def test_a_calibrated_posterior_passes(calibrated, tmp_path):
    shown = run_benchmark("unknowns", tmp_path, num=40)
    (table,) = shown.tables
    assert not shown.missing
    rows = {cells[0]: dict(zip(table.columns, cells, strict=True)) for cells in table.rows}
    assert [*rows] == [KNOWN, "noise"]
    assert rows[KNOWN]["price"] == "1.000"
    assert float(rows["noise"]["price"]) == pytest.approx(1.5, abs=0.05)
    for row in rows.values():
        assert float(row["field"]) == pytest.approx(0.9, abs=0.02)
        assert float(row["coefficients"]) == pytest.approx(0.9, abs=0.08)
        assert float(row["levels"]) == pytest.approx(0.9, abs=0.07)
        assert float(row["smallest p"]) > 0.001


def test_ranks_are_of_all_that_was_drawn(calibrated):
    line = measure(UNKNOWNS["noise"], 0)
    assert {*BOUNDS, *LEVELS} < set(line["ranks"])
    assert len([name for name in line["ranks"] if name.startswith("u[")]) == 4
    assert all(0 <= rank <= NUM_DRAWS for rank in line["ranks"].values())


def test_what_is_told_is_all_but_the_unknown(monkeypatch):
    told = []
    fake = SimpleNamespace(
        Observation=SimpleNamespace(from_table=lambda values, **given: given),
        Grid=lambda shape: shape,
        Domain=lambda **edges: edges,
        Matern=lambda **levels: levels,
        reconstruct=lambda observation, family, **given: told.append({**observation, **given}),
    )
    monkeypatch.setattr(unknowns, "lp", fake)
    for unknown in UNKNOWNS.values():
        unknown.posterior(unknown.case(0), 0)
    base, levels = told[0], UNKNOWNS[KNOWN].case(0).levels
    assert base["sigma"] == levels["noise_std"]
    assert base["initial"] == {"std": levels["initial_prior_std"], "length": levels["initial_prior_length"]}
    assert base["domain"] == {"y": "periodic", "x": "periodic"}
    assert base["bounds"] == BOUNDS
    names = ("sigma", "initial", "source", "trend", "domain")
    changed = [{name for name in names if given[name] != base[name]} for given in told]
    assert changed == [set(), {"sigma"}, {"initial"}, {"source"}, {"trend"}, {"trend"}, {"domain"}, set(names)]
    assert told[-1]["source"] == {"std": LEVELS["source_prior_std"], "length": LEVELS["source_prior_length"]}
    assert told[-1]["sigma"] is None
