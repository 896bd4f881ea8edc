"""The options of `latentpde reconstruct` for those who are to believe it: held-out readings, a threshold."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from latentpde.cli.options import check_range
from latentpde.errors import UsageError

if TYPE_CHECKING:
    from latentpde.observation import Observation
    from latentpde.scores.holdout import Holdout

Share = Annotated[
    float | None,
    typer.Option("--holdout", help="Share of the readings to hold out, predict and score first, such as 0.1."),
]
Threshold = Annotated[
    float | None, typer.Option(help="Also give the probability that the field lies above this, in its unit.")
]
WholeStations = Annotated[bool, typer.Option("--holdout-groups", help="Hold out whole stations, not single readings.")]


def check_holdout(share: float | None, whole_stations: bool) -> None:
    """Raise `UsageError` where the options make no sense, before anything is read."""
    check_range(share, "--holdout", "a share between 0 and 1, such as 0.1", 1e-6, 1 - 1e-6)
    if whole_stations and share is None:
        raise UsageError("--holdout-groups needs --holdout, the share of the stations to hold out, such as 0.1")


def run_holdout(
    observation: Observation, family: Any, share: float | None, whole_stations: bool, **settings
) -> Holdout | None:
    """The scores of held-out readings; ``None`` where none were asked for.

    Args:
        observation: all readings.
        family: the PDE.
        share, whole_stations: of the command line.
        settings: of `latentpde.reconstruct`.
    """
    if share is None:
        return None
    from latentpde.scores.holdout import holdout

    return holdout(observation, family, share=share, groups="stations" if whole_stations else None, **settings)
