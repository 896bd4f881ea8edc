"""The paper's networks, which are told nothing of the prior: from training to the rows that use them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tiny_training import DATA, DENOISER, config
from tiny_weights import SIZE

from latentpde.bench.rows import row
from latentpde.estimators import reconstruct
from latentpde.nn.presets import PRESETS
from latentpde.pde import get_family
from latentpde.simulation import simulate
from latentpde.training.loop import train


@pytest.fixture
def trained(tmp_path, monkeypatch):
    """Networks of two regimes whose bounds differ, trained for an epoch."""
    monkeypatch.setitem(PRESETS, "tiny", replace(SIZE, num_probes=0, told_prior=False))
    stages = {"encoder": {"epochs": 1, "batch_size": 4}, "denoiser_enc": DENOISER, "denoiser_map": DENOISER}
    known = {"family": "advection_diffusion", "regimes": ["diffusion", "advection"]}
    train(config(tmp_path, data={**DATA, "bounds": "family"}, **known, **stages))
    return tmp_path


@pytest.mark.parametrize("method", ["map_diffusion", "enc_diffusion"])
def test_one_network_serves_regimes_with_the_family_s_bounds(trained, method):
    options = {**row(f"{method}-paper").options("advection_diffusion"), "weights": trained}
    bounds = get_family("advection_diffusion").bounds
    for regime in ("diffusion", "advection"):
        cases = simulate(regime, num=1, shape=(32, 32), num_modes=2)
        posterior = reconstruct(cases, method=method, num_draws=3, bounds=bounds, **options)
        assert np.isfinite(posterior.draws(32).values).all()
        assert not any("other bounds" in sentence for sentence in posterior.warnings(0)), "they are the networks'"
        own = reconstruct(cases, method=method, num_draws=3, **options)
        assert any("other bounds" in sentence for sentence in own.warnings(0))
