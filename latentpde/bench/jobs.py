"""What a job is: a row of a comparison on a set of simulated cases, and what is measured there.

Solving a job is `latentpde.bench.solving`, what is measured of it `latentpde.bench.measurements`, and what of it is
still to be run `latentpde.bench.queue`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, fields
from functools import cache, cached_property
from typing import Any, Literal, NamedTuple

import numpy as np

from latentpde.bench.rows import Row
from latentpde.simulation import PAPER_REGIMES, Regime, Simulation, regimes

#: Of the test cases, unless the user names another.
SEED = 7
#: The paper's regimes of advection-diffusion, over which it averages.
ADVECTION_DIFFUSION = tuple(n for n in PAPER_REGIMES if regimes.get(n).family == "advection_diffusion")
#: One regime for each of the paper's families, as its figures show.
REPRESENTATIVES = ("balanced", "klein_gordon", "helmholtz")


@dataclass(frozen=True, kw_only=True, eq=False)
class Job:
    """A row on a set of cases. Two jobs are equal where they give the same lines, whatever their rows are called.

    Args:
        row: the method with its options, as it is in the regime of the cases.
        simulation: how the cases are made.
        family: another PDE family than the one that made the cases, for the method to assume.
        measurement: what is measured of each case, a name in `latentpde.bench.measurements.measurements`.
        alone: whether each case is run by itself, as a user has it; this is for timing.
        drawn: what figures show of one case (`shown`): its ``"mean"``, or its ``"spread"`` too; the run is the same.

    Example:
        >>> from latentpde.bench.rows import row
        >>> job = Job(row=row("exact"), simulation=cases_of("diffusion", noise_std=0.3))
        >>> job.identity()["setting"]
        {'noise_std': 0.3}
        >>> job == Job(row=row("exact"), simulation=cases_of("diffusion"))
        False
    """

    row: Row
    simulation: Simulation
    family: str | None = None
    measurement: str = "scores"
    alone: bool = False
    drawn: Literal["mean", "spread"] | None = None

    def __post_init__(self):
        object.__setattr__(self, "row", self.row.at(self.regime.name))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Job) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    @cached_property
    def key(self) -> str:
        """The identity as one word, under which lines are found."""
        return identity_key(self.identity())

    @property
    def regime(self) -> Regime:
        """The regime that the cases come from."""
        assert isinstance(self.simulation.regime, Regime)
        return self.simulation.regime

    @property
    def shown(self) -> int:
        """Index of the case that figures show: the most typical of the first ones."""
        return typical_case(self.regime, self.simulation.seed)

    @property
    def timed(self) -> bool:
        """Whether it needs the machine to itself, because its seconds are what counts."""
        return self.alone or self.measurement == "time"

    def identity(self) -> dict[str, Any]:
        """What tells this job's lines from those of all others, as a file's header holds it."""
        known = {
            "method": self.row.method,
            "options": self.row.options(self.regime.family),
            "num_draws": self.row.num_draws,
            "regime": self.regime.name,
            "seed": self.simulation.seed,
            "setting": _setting(self.simulation),
        }
        if self.row.fine_initial:
            known["fine_initial"] = True
        if self.row.bounds != "regime":
            known["bounds"] = self.row.bounds
        if self.family is not None:
            known["family"] = self.family
        if self.measurement != "scores":
            known["measurement"] = self.measurement
        if self.alone:
            known["alone"] = True
        return json.loads(json.dumps(known))


@cache
def typical_case(regime: Regime, seed: int, num: int = 20) -> int:
    """Of the first test cases of a regime, the one whose field is of middling strength.

    The rule looks at the truth alone, so it favours no method: a case whose field is weaker than the noise shows
    little, and one whose coefficients leave it undamped shows what is rare.

    Args:
        regime: where the cases come from.
        seed: of the set of cases.
        num: how many are looked at.
    """
    fields = np.asarray(Simulation(regime=regime, seed=seed).cases(0, num)["truth/field"], dtype=float)
    strength = np.sqrt(np.mean(fields**2, axis=(-2, -1)))
    return int(np.argsort(strength)[num // 2])


def identity_key(identity: dict[str, Any]) -> str:
    """An identity as one word, the same whatever the order of its entries."""
    return json.dumps(identity, sort_keys=True)


def _setting(simulation: Simulation) -> dict[str, Any]:
    """What differs from the benchmark's usual cases."""
    usual = Simulation(regime=simulation.regime)
    names = [f.name for f in fields(Simulation) if f.name not in ("regime", "seed")]
    return {n: getattr(simulation, n) for n in names if getattr(simulation, n) != getattr(usual, n)}


class Part(NamedTuple):
    """Some cases of a job, and the other jobs that measure something else of the same run.

    Args:
        job: what is run.
        start: index of the first case.
        stop: index behind the last case.
        others: jobs that differ from ``job`` in their measurement alone.
    """

    job: Job
    start: int
    stop: int
    others: tuple[Job, ...] = ()

    @property
    def jobs(self) -> tuple[Job, ...]:
        """The job itself, then the others."""
        return (self.job, *self.others)

    @property
    def num_cases(self) -> int:
        """How many cases it has."""
        return self.stop - self.start


def cases_of(regime: str, *, seed: int = SEED, **setting) -> Simulation:
    """The test cases that every method sees.

    Args:
        regime: one of ``latentpde list regimes``.
        seed: of the set of cases; another seed is another set, which no method has met.
        setting: what is changed of its cases, as `latentpde.simulation.Simulation` has it.

    Example:
        >>> cases_of("helmholtz", mask="radial").seed
        7
    """
    return Simulation(regime=regime, seed=seed, **setting)


def jobs_on(
    rows: Iterable[Row],
    names: Iterable[str],
    *,
    measurement: str = "scores",
    alone: bool = False,
    drawn: Literal["mean", "spread"] | None = None,
    **setting,
) -> list[Job]:
    """Every row on the test cases of every regime.

    Args:
        rows: the methods.
        names: of regimes.
        measurement: as `Job` has it, and so are ``alone`` and ``drawn``.
        setting: the seed of the cases, and what is changed of them, as `cases_of` has it.

    Example:
        >>> from latentpde.bench.rows import row
        >>> [job.regime.name for job in jobs_on([row("exact")], ["diffusion", "helmholtz"], noise_std=0.3)]
        ['diffusion', 'helmholtz']
    """
    names = tuple(names)
    return [
        Job(row=row, simulation=cases_of(name, **setting), measurement=measurement, alone=alone, drawn=drawn)
        for row in rows
        for name in names
    ]
