"""A network on its way: the rate, the moving average, and what is gone on from."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from accelerate import Accelerator

from latentpde.training.config import EncoderTable
from latentpde.training.run import Run, rate_factor

TABLE = EncoderTable(epochs=1, learning_rate=0.1, warmup=0.0, ema_decay=0.3)


def network():
    layer = torch.nn.Linear(2, 1, bias=False)
    with torch.no_grad():
        layer.weight.copy_(torch.tensor([[1.0, -1.0]]))
    return layer


def weight(model):
    """A copy of the only parameters that a model has."""
    (values,) = model.parameters()
    return values.detach().clone()


def losses(model):
    return {"loss": model(torch.tensor([[1.0, 2.0], [0.5, -1.0]])).square().sum()}


def test_the_rate_rises_and_falls():
    factors = [rate_factor(position, 0.1) for position in np.linspace(0, 1, 101)]
    assert factors[0] < 0.01
    assert max(factors) == pytest.approx(1)
    assert np.argmax(factors) == 10
    assert factors[-1] == pytest.approx(0, abs=1e-9)


def test_the_average_forgets_the_start_quickly_and_then_has_the_decay_asked_for(tmp_path):
    run = Run.start(Accelerator(), network(), TABLE, {}, tmp_path)
    kept = weight(network())
    for done in range(8):
        run.step(losses, done, 8)
        kept = kept.lerp(weight(run.model), 1 - min(0.3, (1 + done) / (10 + done)))
        assert torch.equal(weight(run.average), kept)
    assert not torch.equal(kept, weight(run.model))


def test_a_run_goes_on_with_the_same_average_and_moments(tmp_path):
    whole = Run.start(Accelerator(), network(), TABLE, {}, tmp_path / "none")
    for done in range(6):
        whole.step(losses, done, 6)
    part = Run.start(Accelerator(), network(), TABLE, {}, tmp_path)
    for done in range(3):
        part.step(losses, done, 6)
    part.epoch = 1
    part.write(tmp_path)
    resumed = Run.start(Accelerator(), network(), TABLE, {}, tmp_path)
    assert resumed.epoch == 1
    for done in range(3, 6):
        resumed.step(losses, done, 6)
    assert torch.equal(weight(resumed.model), weight(whole.model))
    assert torch.equal(weight(resumed.average), weight(whole.average))
