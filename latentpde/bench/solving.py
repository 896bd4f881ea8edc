"""Running a method on the cases of a job. The truths stay on this side: a method sees an `Observation`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from latentpde.bench.jobs import Job, Part
from latentpde.bench.pictures import Picture
from latentpde.errors import no_warnings
from latentpde.estimators import reconstruct
from latentpde.estimators.base import DEFAULT_SOURCE_PRIOR_STD
from latentpde.observation import Observation
from latentpde.pde import get_family
from latentpde.posterior import Posterior
from latentpde.scores.truth import last_true_fields

if TYPE_CHECKING:
    import xarray as xr

NUM_DRAWN = 5  # draws that a figure shows


@dataclass(frozen=True)
class Solved:
    """Some cases as a method left them, with their truths.

    Args:
        parts: what was run, one part after another.
        posterior: what the method returned for all of them.
        cases: the cases with their truths, which it has not seen.
    """

    parts: tuple[Part, ...]
    posterior: Posterior
    cases: xr.DataTree

    @property
    def job(self) -> Job:
        """The first job; the others differ from it in masks and measurements alone."""
        return self.parts[0].job

    @property
    def start(self) -> int:
        """Index of the first case."""
        return self.parts[0].start

    @cached_property
    def truth(self) -> Float[np.ndarray, "case y x"]:
        """True fields at the last time."""
        return true_fields(self.cases)

    @property
    def theta(self) -> Float[np.ndarray, "case coefficient"]:
        """True coefficients of each case."""
        return self.cases["truth"].to_dataset()["coefficients"].values

    @cached_property
    def mean(self) -> Float[np.ndarray, "case y x"]:
        """Posterior means on the grid of the truth."""
        return self.posterior.mean(self.truth.shape[-2:]).values

    @cached_property
    def draws(self) -> Float[np.ndarray, "case draw y x"] | None:
        """Posterior draws on the grid of the truth; None of a point estimate."""
        return self.posterior.draws(self.truth.shape[-2:]).values if self.posterior.has_spread else None

    def picture(self, i: int, *, with_spread: bool) -> Picture:
        """What figures show of the case at place ``i``."""
        if self.draws is None or not with_spread:
            return Picture(self.mean[i])
        num = self.draws.shape[1]
        some = np.random.default_rng(i).permutation(num)[:NUM_DRAWN]  # the first ones of a chain started noisiest
        return Picture(self.mean[i], self.posterior.std(self.truth.shape[-2:]).values[i], self.draws[i, some])


def true_fields(cases: xr.DataTree) -> Float[np.ndarray, "case y x"]:
    """The true fields of some cases at their last time.

    Example:
        >>> from latentpde.bench.jobs import cases_of
        >>> true_fields(cases_of("helmholtz").cases(0, 2)).shape
        (2, 128, 128)
    """
    return last_true_fields(cases).values.astype(float)


def solve(*parts: Part, seed: int | None = None) -> Solved:
    """Run a method on some cases as one batch.

    Args:
        parts: the method and the cases, one after another, of jobs that differ in masks alone.
        seed: of the method; by default another for each batch, so that cases do not share their randomness.

    Example:
        >>> from latentpde.bench.jobs import cases_of
        >>> from latentpde.bench.rows import row
        >>> solve(Part(Job(row=row("map"), simulation=cases_of("helmholtz")), 0, 1)).mean.shape
        (1, 128, 128)
    """
    job, start = parts[0].job, parts[0].start
    trees = [part.job.simulation.cases(part.start, part.stop) for part in parts]
    cases = trees[0] if len(trees) == 1 else _joined(trees)
    fine = cases["truth/initial"] if job.row.fine_initial else None
    observation = Observation.from_dataset(cases, fine_initial=fine)
    options = job.row.options(job.regime.family)
    if job.row.bounds == "family":
        options["bounds"] = job.regime.pde.bounds
    if job.family is not None:  # nothing of what made the cases is given away
        options |= {"bounds": get_family(job.family).bounds, "source_prior_std": DEFAULT_SOURCE_PRIOR_STD}
    seed = start if seed is None else seed
    with no_warnings():
        posterior = reconstruct(
            observation, job.family, method=job.row.method, num_draws=job.row.num_draws, seed=seed, **options
        )
    return Solved(parts, posterior, cases)


def _joined(trees: list[xr.DataTree]) -> xr.DataTree:
    """The cases of several trees one after another, numbered anew."""
    import xarray as xr

    found = {}
    for path in ("/", "/truth"):
        parts = [tree[path].to_dataset().drop_vars("case") for tree in trees]
        found[path] = xr.concat(parts, "case", combine_attrs="override")
        found[path]["case"] = np.arange(found[path].sizes["case"])
    return xr.DataTree.from_dict(found)
