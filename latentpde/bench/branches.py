"""Which of the paper's two branches stands for LatentPDE in a regime: chosen by validation error, then frozen.

``branches.json`` beside this file records the choice and the errors it rests on; ``tools/tune.py branch`` makes it,
before any test case is looked at.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

from latentpde.errors import DataError, UsageError

BRANCHES = ("map_diffusion", "enc_diffusion")


def select_branches(errors: Mapping[str, Mapping[str, float]]) -> dict[str, str]:
    """The branch of lower validation RMSE for each regime; on a tie the first.

    Args:
        errors: the RMSE by regime, then by branch.

    Example:
        >>> select_branches({"balanced": {"map_diffusion": 0.2, "enc_diffusion": 0.1}})
        {'balanced': 'enc_diffusion'}
    """
    chosen = {}
    for regime, by_branch in errors.items():
        missing = [branch for branch in BRANCHES if not math.isfinite(by_branch.get(branch, math.nan))]
        if missing:
            raise UsageError(f"no validation error of {', '.join(missing)} for {regime}; both branches are needed")
        chosen[regime] = min(BRANCHES, key=lambda branch: by_branch[branch])
    return chosen


def branch_record(errors: Mapping[str, Mapping[str, float]], **how: Any) -> dict[str, Any]:
    """What ``branches.json`` holds: the choice, the errors that it rests on, and how they were measured."""
    rounded = {regime: {name: round(value, 6) for name, value in row.items()} for regime, row in errors.items()}
    return {"chosen": select_branches(errors), "validation_rmse": rounded, **how}


def chosen_branch(regime: str) -> str:
    """The branch that is recorded for a regime.

    Example:
        >>> chosen_branch("klein_gordon")
        'map_diffusion'
    """
    chosen = recorded_choice()
    if not chosen:
        raise UsageError("no choice of branch is recorded; make one with tools/tune.py branch")
    if regime not in chosen:
        raise UsageError(f"no choice of branch is recorded for {regime}; there is one for: {', '.join(chosen)}")
    return chosen[regime]


def recorded_choice() -> dict[str, str]:
    """The branch that is recorded for every regime; empty where none is."""
    path = files("latentpde.bench") / "branches.json"
    if not path.is_file():
        return {}
    try:
        return dict(json.loads(path.read_text())["chosen"])
    except (ValueError, KeyError, TypeError) as error:
        raise DataError(f"{path} is damaged: {error}; make it again with tools/tune.py branch") from error
