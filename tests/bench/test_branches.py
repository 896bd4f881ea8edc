"""Which of the paper's branches stands for LatentPDE."""

import json

import pytest

from latentpde.bench.branches import branch_record, chosen_branch, select_branches
from latentpde.errors import UsageError


def test_the_branch_of_lower_error_is_chosen():
    errors = {
        "a": {"map_diffusion": 0.1, "enc_diffusion": 0.2},
        "b": {"map_diffusion": 0.3, "enc_diffusion": 0.2},
        "c": {"map_diffusion": 0.3, "enc_diffusion": 0.3},
    }
    assert select_branches(errors) == {"a": "map_diffusion", "b": "enc_diffusion", "c": "map_diffusion"}
    record = branch_record(errors, split="validation")
    assert record["split"] == "validation"
    assert json.loads(json.dumps(record))["validation_rmse"]["b"]["enc_diffusion"] == 0.2


@pytest.mark.parametrize("row", [{"map_diffusion": 0.1}, {"map_diffusion": 0.1, "enc_diffusion": float("nan")}])
def test_both_branches_need_an_error(row):
    with pytest.raises(UsageError, match="both branches"):
        select_branches({"a": row})


def test_a_regime_without_a_choice_is_refused():
    with pytest.raises(UsageError, match="no choice of branch"):
        chosen_branch("nowhere")
