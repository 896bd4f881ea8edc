"""What would become of readings: what is assumed of them, what a run takes, and what cannot work."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from latentpde.errors import LatentPDEError
from latentpde.estimators.base import DEFAULT_METHOD, make_estimator
from latentpde.estimators.setup import Setup
from latentpde.frame import PURE_NUMBER, Frame
from latentpde.inspection.contents import moment
from latentpde.io.users import coefficient_units
from latentpde.needs import available_memory, duration
from latentpde.observation import Observation
from latentpde.observation.listing import Listing
from latentpde.pde import get_family

_FEWEST_PLACES = 3
_UNCERTAIN = 3.0  # the factor that an estimate of a duration may be off by, see docs/runtime.md
_SEARCHES = 2  # where bounds come from the data: they may be widened, and the search goes on


@dataclass
class Prospects:
    """What was found so far: in words, and as numbers for programs."""

    assumed: dict[str, str] = field(default_factory=dict)
    cost: dict[str, str] = field(default_factory=dict)
    obstacles: list[str] = field(default_factory=list)
    numbers: dict[str, float] = field(default_factory=dict)


def prospects(observation: Observation, listing: Listing, family: str, *, num_runs: int) -> Prospects:
    """What is assumed, what it takes, and what cannot work.

    Args:
        observation: as it was read.
        listing: its readings, of the first case.
        family: the PDE.
        num_runs: reconstructions that the command makes; two where it holds readings out.
    """
    chosen, num_times = get_family(family), len(np.unique(listing.times))
    found = Prospects(assumed={"equation": f"{family}: {chosen.equation}"})
    if float(listing.values.std()) == 0:
        found.obstacles.append("all readings are the same: there is nothing to learn from them")
    places = len(np.unique(listing.points, axis=0))
    if places < _FEWEST_PLACES:
        found.obstacles.append(
            f"{places} place{'s' * (places > 1)} cannot tell how a field varies in space: at least {_FEWEST_PLACES} "
            "are needed, better 20"
        )
    if chosen.order and num_times < 2 and observation.initial is None:
        found.obstacles.append(
            f"{family} describes a change in time, and the readings are of one time: take a steady family (--pde "
            "screened-poisson), or give the times of the readings"
        )
    try:
        setup = Setup.of(observation, family, observation.settings)
        needs = make_estimator(DEFAULT_METHOD).needs(setup.observation, setup.latent, 12)
    except LatentPDEError as error:
        if not found.obstacles:
            found.obstacles.append(str(error))
        return found
    found.assumed |= _assumed(setup)
    seconds = num_runs * needs.seconds * (_SEARCHES if setup.latent.guessed else 1)
    found.cost = {"time": time_words(seconds, num_runs), "memory": _bytes(needs.memory)}
    if setup.latent.guessed:
        found.cost["time"] += "; longer where the readings leave very different explanations open"
    found.numbers = {"seconds": float(seconds), "memory": float(needs.memory)}
    if needs.memory > available_memory():
        found.obstacles.append(
            f"{len(listing):,} readings take {_bytes(needs.memory)}, more than there is: take a part of them "
            "(--select, or fewer rows)"
        )
    return found


def time_words(seconds: int | float, num_runs: int) -> str:
    """How long a command takes, as the range that an estimate is good for.

    >>> time_words(40.0, 2)
    '13 seconds to 2 minutes on one core, held-out readings included'
    """
    low, high = (duration(seconds * factor) for factor in (1 / _UNCERTAIN, _UNCERTAIN))
    text = "some seconds" if seconds * _UNCERTAIN < 10 else f"{low} to {high}"
    return f"{text} on one core{', held-out readings included' if num_runs > 1 else ''}"


def _assumed(setup: Setup) -> dict[str, str]:
    observation, latent = setup.observation, setup.latent
    frame, record = observation.frame or Frame(), setup.record(latent)
    noise: Any = record["noise_std"]
    units = {n: "" if unit == PURE_NUMBER else unit for n, unit in coefficient_units(latent.family, frame).items()}
    bounds = [f"{n} {low:.3g} to {high:.3g} {units[n]}".rstrip() for n, (low, high) in record["bounds"].items()]
    wider = "; widened where the readings ask for it" if latent.guessed else ""
    found = {"edges": _edges(observation, record["domain"])}
    found["noise"] = noise if isinstance(noise, str) else f"{noise:.3g} {frame.value_unit}".rstrip()
    if latent.family.order:
        at = moment(frame.times_to_user([observation.start])[0])
        found["start"] = f"unknown, at {at}" if observation.initial is None else "given"
    if not latent.num_modes:
        found["source"] = "none"
    elif latent.infers_source:
        found["source"] = "unknown and steady, its strength inferred"
    else:
        found["source"] = f"unknown and steady, of strength {latent.source_prior_std:.3g}"
    return found | {"coefficients": ", ".join(bounds) + wider}


def _edges(observation: Observation, words: str) -> str:
    if observation.settings.domain is None and observation.regime and words == "periodic":
        return f"periodic, as all cases that the simulator makes (regime {observation.regime})"
    return f"{words}: what lies beyond the map is unknown, like the rest" if words == "open" else words


def _bytes(number: int | float) -> str:
    return f"about {number / 1e9:.2g} GB" if number >= 1e9 else f"about {max(number / 1e6, 1):.0f} MB"
