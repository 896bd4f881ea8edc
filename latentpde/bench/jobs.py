"""Methods on simulated cases.

A `Job` is a row on a set of cases. Each of its cases becomes one line of JSON, kept in a `latentpde.bench.store`; what
is run when is `latentpde.bench.schedule`'s. Truths stay here: a method sees an `Observation`.
"""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import torch
from jaxtyping import Float

from latentpde import __version__
from latentpde.bench.rows import Row
from latentpde.bench.store import Picture, Store
from latentpde.estimators import methods, reconstruct
from latentpde.estimators.base import DEFAULT_SOURCE_PRIOR_STD
from latentpde.observation import Observation
from latentpde.pde import get_family
from latentpde.posterior import PDEPosterior, Posterior
from latentpde.scores.metrics import score
from latentpde.simulation import Regime, Simulation

if TYPE_CHECKING:
    import xarray as xr

NUM_DRAWN = 5  # draws that a figure shows
SEED = 7  # of the test cases of every table


@dataclass(frozen=True, kw_only=True, eq=False)
class Job:
    """A row on a set of cases. Two are equal where they give the same lines, whatever their rows are called.

    Args:
        row: the method.
        simulation: how the cases are made.
        family: another PDE than the one that made the cases, for the method to assume.
        measure: what is taken of each case, a name in `measures`.
        alone: each case by itself, as a user has it; for timing.
        drawn: what figures show of the first case: its "mean", or its "spread" too; the run is the same.
    """

    row: Row
    simulation: Simulation
    family: str | None = None
    measure: str = "scores"
    alone: bool = False
    drawn: Literal["mean", "spread"] | None = None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Job) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    @cached_property
    def key(self) -> str:
        return json.dumps(self.identity(), sort_keys=True)

    @property
    def regime(self) -> Regime:
        assert isinstance(self.simulation.regime, Regime)
        return self.simulation.regime

    @property
    def timed(self) -> bool:
        """Whether it wants the machine to itself, because its seconds are what counts."""
        return self.alone or self.measure == "time"

    def identity(self) -> dict[str, Any]:
        """What makes a line this job's, as it stands in the file."""
        known = {
            "method": self.row.method,
            "options": self.row.options(self.regime.family),
            "draws": self.row.num_draws,
            "regime": self.regime.name,
            "seed": self.simulation.seed,
            "setting": _setting(self.simulation),
        }
        if self.row.fine_initial:
            known["fine_initial"] = True
        if self.family is not None:
            known["family"] = self.family
        if self.measure != "scores":
            known["measure"] = self.measure
        if self.alone:
            known["alone"] = True
        return json.loads(json.dumps(known))


def _setting(simulation: Simulation) -> dict[str, Any]:
    """What differs from the benchmark's cases."""
    usual = Simulation(regime=simulation.regime)
    names = [f.name for f in fields(Simulation) if f.name not in ("regime", "seed")]
    return {n: getattr(simulation, n) for n in names if getattr(simulation, n) != getattr(usual, n)}


class Part(NamedTuple):
    """Some cases of a job, and of others that take another measure of the same run."""

    job: Job
    start: int
    stop: int
    others: tuple[Job, ...] = ()

    @property
    def jobs(self) -> tuple[Job, ...]:
        return (self.job, *self.others)


@dataclass(frozen=True)
class Solved:
    """Some cases as a method left them, with their truths.

    Args:
        parts: what was run.
        posterior: what the method returned.
        cases: the truths, which it has not seen.
    """

    parts: tuple[Part, ...]
    posterior: Posterior
    cases: xr.DataTree

    @property
    def job(self) -> Job:
        """The first; others differ in masks and measures alone."""
        return self.parts[0].job

    @property
    def start(self) -> int:
        """Index of the first case."""
        return self.parts[0].start

    @cached_property
    def truth(self) -> Float[np.ndarray, "case y x"]:
        """Fields at the last time."""
        return true_fields(self.cases)

    @property
    def theta(self) -> Float[np.ndarray, "case coefficient"]:
        return self.cases["truth"].to_dataset()["coefficients"].values

    @cached_property
    def mean(self) -> Float[np.ndarray, "case y x"]:
        return self.posterior.mean(self.truth.shape[-2:]).values

    @cached_property
    def draws(self) -> Float[np.ndarray, "case draw y x"] | None:
        return self.posterior.draws(self.truth.shape[-2:]).values if self.posterior.has_spread else None

    def picture(self, i: int, *, with_spread: bool) -> Picture:
        if self.draws is None or not with_spread:
            return Picture(self.mean[i])
        return Picture(self.mean[i], self.posterior.std(self.truth.shape[-2:]).values[i], self.draws[i, :NUM_DRAWN])


#: What can be taken of some solved cases: a dictionary for each.
measures: dict[str, Callable[[Solved], list[dict[str, Any]]]] = {}


def true_fields(cases: xr.DataTree) -> Float[np.ndarray, "case y x"]:
    """At the last time."""
    truth = cases["truth"].to_dataset()["field"]
    return (truth.isel(time=-1) if "time" in truth.dims else truth).values.astype(float)


def solve(*parts: Part, seed: int | None = None) -> Solved:
    """Run a method on some cases. It sees an `Observation`.

    Args:
        parts: the method and the cases, one after another; of jobs that differ in masks alone.
        seed: of the method; by default another for each batch, so that cases do not share their randomness.
    """
    job, start = parts[0].job, parts[0].start
    trees = [part.job.simulation.cases(part.start, part.stop) for part in parts]
    cases = trees[0] if len(trees) == 1 else _behind_each_other(trees)
    fine = cases["truth/initial"] if job.row.fine_initial else None
    observation = Observation.from_dataset(cases, fine_initial=fine)
    options = job.row.options(job.regime.family)
    if job.family is not None:  # nothing of what made the cases is given away
        options |= {"bounds": get_family(job.family).bounds, "source_prior_std": DEFAULT_SOURCE_PRIOR_STD}
    seed = start if seed is None else seed
    posterior = reconstruct(
        observation, job.family, method=job.row.method, num_draws=job.row.num_draws, seed=seed, **options
    )
    return Solved(parts, posterior, cases)


def _behind_each_other(trees: list[xr.DataTree]) -> xr.DataTree:
    import xarray as xr

    found = {}
    for path in ("/", "/truth"):
        parts = [tree[path].to_dataset().drop_vars("case") for tree in trees]
        found[path] = xr.concat(parts, "case", combine_attrs="override")
        found[path]["case"] = np.arange(found[path].sizes["case"])
    return xr.DataTree.from_dict(found)


def measure(parts: Sequence[Part], pictures: Mapping[Job, Path] | None = None) -> list[dict[str, Any]]:
    """A line for each case and measure. Where a method fails on a batch, each is run alone, and says why if it fails.

    Args:
        parts: as `solve` has them.
        pictures: files for what figures show of the first case of some jobs.
    """
    begin, cases = time.perf_counter(), [(part, i) for part in parts for i in range(part.start, part.stop)]
    try:
        solved = solve(*parts)
        _ = solved.mean, solved.draws
    except Exception as error:
        return _one_by_one([(job, i) for part, i in cases for job in part.jobs], error, pictures)
    seconds = short((time.perf_counter() - begin) / len(cases))
    lines, truth = [], solved.cases["truth"].to_dataset()
    for k, first in enumerate(parts[0].jobs):
        of_job = [(part.jobs[k], i) for part, i in cases]
        try:
            found = measures[first.measure](solved)
        except Exception as error:
            lines += _one_by_one(of_job, error, pictures)
            continue
        for i, (job, index) in enumerate(of_job):
            if not np.isfinite(solved.mean[i]).all():
                lines.append(_line(job, index, {"failed": "the field is not finite"}))
                continue
            if index == 0 and pictures and job in pictures:
                solved.picture(i, with_spread=job.drawn == "spread").save(pictures[job])
            kinds = {name: str(truth[f"{name}_kind"].values[i]) for name in ("mask", "initial")}
            lines.append(_line(job, index, {**found[i], **kinds, "seconds": seconds}))
    return lines


def _one_by_one(cases: Sequence[tuple[Job, int]], error: Exception, pictures: Mapping[Job, Path] | None) -> list[dict]:
    """Lines of cases that failed together: each by itself; of a single one, why."""
    if len(cases) == 1:
        return [_line(*cases[0], {"failed": f"{type(error).__name__}: {error}"[:200]})]
    return [line for job, i in cases for line in measure([Part(job, i, i + 1)], pictures)]


def take_scores(solved: Solved) -> list[dict[str, Any]]:
    """Scores of the field, of the coefficients, and the evidence, as far as a method has them."""
    scores, posterior = score(solved.mean, solved.truth, solved.draws), solved.posterior
    lines = []
    for i, truth in enumerate(solved.truth):
        line = {name: short(values[i]) for name, values in scores.items() if np.isfinite(values[i])}
        line["rms_of_truth"] = short(np.sqrt(np.mean(truth**2)))
        if solved.job.family is None:
            line |= _coefficients(posterior, i, solved.theta[i])
        if "log_evidence" in posterior.diagnostics:
            line["log_evidence"] = round(float(posterior.diagnostics["log_evidence"][i]), 4)
        lines.append(line)
    return lines


measures["scores"] = take_scores


def _coefficients(posterior: Posterior, i: int, truth: np.ndarray) -> dict[str, Any]:
    """Errors and spreads of the coefficients, as shares of their intervals."""
    if not isinstance(posterior, PDEPosterior):
        return {}
    width = np.ptp(posterior.latent.bounds.numpy(), axis=1)
    theta = posterior.thetas[i].numpy()
    found = {"theta_error": [short(v) for v in np.abs(theta.mean(0) - truth) / width]}
    if len(theta) > 1:
        found["theta_std"] = [short(v) for v in theta.std(0, ddof=1) / width]
    return found


def _line(job: Job, index: int, found: dict[str, Any]) -> dict[str, Any]:
    where = {"version": __version__, "hardware": hardware(), "threads": torch.get_num_threads()}
    return {**job.identity(), "index": index, **found, **where}


def short(value: float) -> float:
    return float(f"{value:.4g}")


@cache
def hardware() -> str:
    """Cores and processor, as far as the system tells."""
    name = platform.processor() or platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        name = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), name)
    except OSError:
        pass
    return f"{os.cpu_count()} x {name}"


def picture(job: Job, store: Store) -> Picture | None:
    """What figures show of a job's first case, as it was run or run now; None where the method fails on it: tables
    count failures, a figure leaves the place empty."""
    spread = job.drawn == "spread" and methods.get(job.row.method).has_spread
    found = Picture.load(store.picture_path(job))
    if found is not None and (found.std is not None or not spread):
        return found
    try:
        found = solve(Part(job, 0, 1)).picture(0, with_spread=spread)
    except Exception:
        return None
    found.save(store.picture_path(job))
    return found
