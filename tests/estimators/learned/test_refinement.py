"""Refinement against the residual itself."""

from __future__ import annotations

import pytest
import torch
from small_operator import normal, operator

from latentpde.errors import UsageError
from latentpde.estimators.learned.refinement import Refinement


def test_refinement_lowers_its_objective_and_a_heavier_anchor_holds_tighter():
    op, z = operator(), normal(2, 3, 19)
    light, heavy = (Refinement(weight=weight)(z, op) for weight in (0.0, 10.0))
    assert (op.residual(light) < op.residual(z)).all()
    assert ((light - z).norm(dim=-1) > 2 * (heavy - z).norm(dim=-1)).all()
    assert torch.equal(Refinement(num_steps=0)(z, op), z)


@pytest.mark.parametrize("settings", [{"weight": -0.1}, {"rate": 0.0}, {"num_steps": -1}])
def test_impossible_settings_are_refused(settings):
    with pytest.raises(UsageError):
        Refinement(**settings)
