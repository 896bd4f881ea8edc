"""What the diagnostics of a case warn of, in words."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from latentpde.posterior.adequacy import (
    CLEAR,
    FALSE_ALARM,
    MISTAKES,
    Check,
    against_gaussian_process,
    if_mistaken,
    sentences,
)

MOST_PRIOR_TO_NOISE = 1e13  # variance of the field under the prior; beyond, its posterior is lost to rounding


def warnings_of_comparisons(notes: Mapping[str, Any]) -> list[str]:
    """Those of `latentpde.check_model`, where it was asked for.

    >>> warnings_of_comparisons({"trusted": True})
    []

    Args:
        notes: diagnostics of one case.
    """
    if "log_odds_gaussian_process" not in notes:
        return []
    names = ("log_odds_gaussian_process", "log_odds_mistake", "mistake")
    against, mistaken, how = (float(notes[name]) for name in names)
    said = [] if math.isnan(against) or against >= CLEAR else [against_gaussian_process(against)]
    return said if math.isnan(mistaken) else [*if_mistaken(mistaken, MISTAKES[int(how)]), *said]


def warnings_of_run(
    notes: Mapping[str, Any], checks: Callable[[], Mapping[str, Check]], has_start: bool = True
) -> list[str]:
    """What every run looks at: the prior, the model, the search.

    >>> warnings_of_run({"trusted": True}, dict)
    []

    Args:
        notes: diagnostics of one case.
        checks: gives the checks of its model, where they are needed.
        has_start: whether an initial state was given.
    """
    if notes["trusted"]:
        return []
    if notes["prior_to_noise"] >= MOST_PRIOR_TO_NOISE:
        return [
            f"The prior allows fields whose variance is {notes['prior_to_noise']:.0e} times that of the noise, and "
            "double precision cannot tell what the readings leave of them: mean and spread are rounding errors. "
            "Some coefficient lets a part of the field grow almost without limit, as k near 0 does in helmholtz; "
            "raise its lower bound."
        ]
    if notes["p_model"] < FALSE_ALARM:
        return sentences(checks(), has_start=has_start)
    if notes["search_trusted"]:
        return [
            "Which readings are outliers did not settle: with those set aside that are, the search finds others. Look "
            "at set_aside(), and leave out what you know to be wrong."
        ]
    return [
        f"The search for the coefficients did not settle: {notes['effective_sample_size']:.0f} effective samples, "
        f"log evidences {notes['evidence_gap']:.1f} apart. Narrow the bounds, or raise the option sweep."
    ]
