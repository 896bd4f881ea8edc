r"""Whether a model can have made its readings: the verdict of a few checks, and its words.

Each check gives a p-value. They depend on one another, so they are combined by Cauchy's rule (Liu and Xie 2020),

.. math:: p = \tfrac12 - \tfrac1\pi \arctan\Big( \tfrac1n \sum_i \tan\big((\tfrac12 - p_i)\,\pi\big) \Big),

whose level hardly depends on how they do. An alarm is a combined p-value below `FALSE_ALARM`.
`latentpde.estimators.exact.checks` makes the p-values; ``latentpde bench alarm`` measures how often the alarm is false.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

FALSE_ALARM = 0.01  # share of the cases with a right model that are called wrong
CLEAR = math.log(10)  # log odds from which one model is said to beat another
#: Mistakes in data that are undone to see whether they then fit better, by the number that diagnostics have for each.
MISTAKES = (
    "the initial state is transposed",
    "the initial state is turned upside down",
    "the initial state is mirrored",
    "the initial state is turned by 180 degrees",
    "the initial state is turned by 90 degrees",
    "the initial state is turned by 270 degrees",
    "the initial state is shifted",
    "the initial state is multiplied by 1,000",
    "the initial state is divided by 1,000",
    "the readings are multiplied by 1,000",
    "the readings are divided by 1,000",
)
_SMALLEST, _LARGEST = 1e-290, 0.99  # p-values of 0 and 1 would outweigh all others
_BEYOND_DOUBT, _MOST_SENTENCES = 1e-9, 3


@dataclass(frozen=True)
class Check:
    """What one check found.

    >>> Check(p=0.4, found=1.1).p
    0.4

    Args:
        p: its p-value: small where the model is wrong.
        found: what it looked at, in a unit of its own; about 1 for a right model, but for the worst reading.
        reading: number of the reading that it is about, among those of the case; -1 for all of them.
    """

    p: float
    found: float
    reading: int = -1


def combined(p_values: Iterable[float]) -> float:
    """One p-value for several; those of checks that did not apply are NaN and do not count.

    >>> round(combined([0.5, 0.5]), 6), round(combined([1e-6, 0.5]), 8), combined([1e-200, 0.5])
    (0.5, 2e-06, 2e-200)
    >>> combined([math.nan])
    1.0
    """
    known = [min(max(p, _SMALLEST), _LARGEST) for p in p_values if not math.isnan(p)]
    if not known:
        return 1.0
    # the cotangent of a small angle is its inverse
    total = sum(1 / math.tan(p * math.pi) if p > 1e-9 else 1 / (p * math.pi) for p in known) / len(known)
    return 0.5 - math.atan(total) / math.pi if total < 1e6 else 1 / (math.pi * total)


def sentences(checks: Mapping[str, Check], *, has_start: bool = True) -> list[str]:
    """What the checks that failed say, the clearest first: at least one, at most three.

    >>> for sentence in sentences({"misfit": Check(0.4, 1.1), "reading": Check(1e-9, 8.2, 17)}):
    ...     print(sentence)
    Reading 17 is 8.2 standard deviations from what all others predict of it: look whether it is an outlier.

    Args:
        checks: by name.
        has_start: whether an initial state was given.
    """
    failing = {name: check for name, check in checks.items() if not math.isnan(check.p)}
    ordered = sorted(failing, key=lambda name: max(failing[name].p, _BEYOND_DOUBT))  # then in their own order
    clear = [name for name in ordered if failing[name].p * len(failing) < FALSE_ALARM] or ordered[:1]
    words = _WORDS if has_start else {**_WORDS, "start": _unknown_start}
    return [words[name](failing[name]) for name in clear[:_MOST_SENTENCES]]


def _misfit(check: Check) -> str:
    if check.found < 1:
        return (
            f"The readings are closer to the model than their noise allows (misfit {check.found:.2g} where 1 is "
            "expected): look whether the noise is overstated, or readings, noise and initial state differ in units."
        )
    return (
        f"The readings are not explained: their misfit is {check.found:.1f} where 1 is expected. Either their noise is "
        "larger than stated, or another PDE is at work, or the bounds exclude the truth."
    )


def _reading(check: Check) -> str:
    which = f"Reading {check.reading}" if check.reading >= 0 else "A cell of the initial state"
    return (
        f"{which} is {check.found:.1f} standard deviations from what all others predict of it: look whether it is an "
        "outlier."
    )


def _noise(check: Check) -> str:
    return (
        f"Readings are {check.found:.1f} times as far as they should be from what all others predict of them: look "
        "whether their noise is larger than stated."
    )


def _neighbours(check: Check) -> str:
    return (
        "Neighbouring readings miss their predictions in the same direction: the field has structure that this PDE "
        "does not make of its initial state and source; look whether the PDE is another one, or a coefficient varies."
    )


def _times(check: Check) -> str:
    return (
        "The same places miss their predictions in the same direction at several times: look whether stations have an "
        "offset, or a source or coefficient that is taken as constant changes."
    )


def _source(check: Check) -> str:
    return (
        f"The source that the readings need is {check.found:.2g} times as strong as its prior says, which is more than "
        "chance explains: look whether another process is at work, or the source's prior is wrong."
    )


def _start(check: Check) -> str:
    return (
        "The readings contradict the initial state: look whether it is transposed, upside down, shifted, of another "
        "time or in other units, or the PDE another one."
    )


def _unknown_start(check: Check) -> str:
    return (
        f"The initial state that the readings need is {check.found:.2g} times as strong as its prior says, which is "
        "more than chance explains: look whether the PDE is another one, or the prior of the initial state is wrong."
    )


def _amplitude(check: Check) -> str:
    return (
        "The readings hold less of the initial state than the PDE leaves of it: look whether it belongs to them (its "
        "axes, place, time and units), or the PDE is another one."
    )


def against_gaussian_process(log_odds: float) -> str:
    """What the odds of the PDE against a Gaussian process without physics mean.

    >>> print(against_gaussian_process(math.log(2000)))
    The PDE explains the readings better than a Gaussian process without physics, at odds of 2,000 to 1.
    """
    if log_odds >= CLEAR:
        return (
            "The PDE explains the readings better than a Gaussian process without physics, at odds of "
            f"{as_odds(log_odds)}."
        )
    if log_odds > -CLEAR:
        sure = f"{as_odds(abs(log_odds))} {'for' if log_odds > 0 else 'against'} the PDE"
        return (
            "The PDE does not beat a Gaussian process without physics: the odds are "
            f"{sure}. What it says beyond the readings rests on the PDE being right, which they do not show."
        )
    return (
        "A Gaussian process that knows no PDE explains the readings better, at odds of "
        f"{as_odds(-log_odds)}: this PDE, its priors or the stated noise are wrong for them."
    )


def if_mistaken(log_odds: float, how: str) -> list[str]:
    """A warning where the readings fit far better once a mistake is undone.

    >>> if_mistaken(-3.0, MISTAKES[0])
    []

    Args:
        log_odds: of the data with the mistake undone against the data as given.
        how: it is undone, one of `MISTAKES`.
    """
    if log_odds < -math.log(FALSE_ALARM):
        return []
    what = "units" if "1,000" in how else "place and time" if "shifted" in how else "axes"
    whose = "of the readings" if how.startswith("the readings") else "of the initial state"
    return [f"The readings fit better if {how}, at odds of {as_odds(log_odds)}: look at the {what} {whose}."]


def as_odds(log_odds: float) -> str:
    """Odds in words.

    >>> as_odds(math.log(2.5)), as_odds(math.log(300)), as_odds(100.0)
    ('2.5 to 1', '300 to 1', '10^43 to 1')
    """
    if log_odds < math.log(10):
        return f"{math.exp(log_odds):.2g} to 1"
    return f"{math.exp(log_odds):,.0f} to 1" if log_odds < 14 else f"10^{log_odds / math.log(10):.0f} to 1"


_WORDS = {
    "misfit": _misfit,
    "reading": _reading,
    "neighbours": _neighbours,
    "times": _times,
    "source": _source,
    "start": _start,
    "amplitude": _amplitude,
    "noise": _noise,
}
#: The checks that `exact` makes in every run, in the order of its diagnostics.
EVERY_RUN = ("misfit", "reading", "neighbours", "times", "source", "start", "amplitude", "noise")
