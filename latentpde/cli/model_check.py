"""`--check-model`: whether the PDE beats a Gaussian process without physics, and usual mistakes in the data."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Annotated, Any

import typer

from latentpde.errors import LatentPDEWarning, UsageError

if TYPE_CHECKING:
    from latentpde.posterior import Posterior

CheckModel = Annotated[
    bool,
    typer.Option(
        "--check-model",
        help="Also compare the PDE with a Gaussian process that knows none, and look for usual mistakes.",
    ),
]


def require_checkable(check: bool, method: str, average: bool) -> None:
    """Raise `UsageError` where the model cannot be checked, before anything is read."""
    if check and method != "exact":
        raise UsageError(f"--check-model needs the method exact, which knows the evidence; got --method {method}")
    if check and average:
        raise UsageError("--check-model is of one family, --average of several: give one of the two")


def run_check(posterior: Posterior, check: bool, quiet: bool) -> Posterior:
    """The posterior with what the comparisons found, which is printed too; as it is where none were asked for."""
    if not check:
        return posterior
    from latentpde.questions.model_check import check_model

    found = check_model(posterior)
    if not quiet:
        print(found.to_text())
    before = set(posterior.all_warnings())
    for sentence in found.posterior.all_warnings():
        if sentence not in before and quiet:
            warnings.warn(sentence, LatentPDEWarning, stacklevel=2)
    return found.posterior


def answers(posterior: Posterior) -> dict[str, Any]:
    """What ``--json`` says of the families that were compared, and of the model where it was checked."""
    found: dict[str, Any] = {}
    if "families" in posterior.settings:
        found["families"] = posterior.settings["families"]
    if "log_odds_gaussian_process" in posterior.diagnostics:
        from latentpde.questions.model_check import ModelCheck

        found["model_check"] = ModelCheck(posterior).records()  # pyright: ignore[reportArgumentType]
    return found
