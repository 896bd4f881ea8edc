"""The numbers that files and pages show of a posterior, decoded once."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float

from latentpde.grid import Grid
from latentpde.posterior import PDEPosterior, Posterior, Resolution
from latentpde.posterior.spread import QUANTILES


@dataclass(frozen=True, eq=False, kw_only=True)
class Summary:
    """What a posterior says about the field at the last observed time, and about the source, on one grid.

    Decoding draws is the larger part of the work after a method has run, and some draws are made anew each time. So
    they are decoded here, once, a few cases at a time, and everything is taken from them: a file and a page that are
    made of one summary cannot disagree.

    >>> import latentpde as lp
    >>> posterior = lp.reconstruct(lp.simulate("diffusion", num=2), method="map", num_steps=5)
    >>> summary = Summary.of(posterior, resolution=32)
    >>> summary.mean.shape, summary.quantiles.shape
    ((2, 32, 32), (2, 5, 32, 32))

    Args:
        cases: numbers of the cases that it is about, as the posterior counts them.
        grid: where the fields are.
        mean: the posterior mean of the field.
        std: its standard deviation; NaN for a point estimate.
        quantiles: of the field, at the levels `latentpde.posterior.spread.QUANTILES`.
        source_mean: the posterior mean of the source; ``None`` where the method knows no PDE.
        source_std: its standard deviation.
        draws: of the field, for those cases of which they were to be kept.
        threshold: in the unit of the readings, where one was asked about.
        probability_above: that the field lies above it.
    """

    cases: range
    grid: Grid
    mean: Float[np.ndarray, "case y x"]
    std: Float[np.ndarray, "case y x"]
    quantiles: Float[np.ndarray, "case quantile y x"]
    source_mean: Float[np.ndarray, "case y x"] | None
    source_std: Float[np.ndarray, "case y x"] | None
    draws: dict[int, Float[np.ndarray, "draw y x"]]
    threshold: float | None = None
    probability_above: Float[np.ndarray, "case y x"] | None = None

    @classmethod
    def of(
        cls,
        posterior: Posterior,
        resolution: Resolution = None,
        *,
        cases: range | None = None,
        draws_of: Collection[int] = (),
        threshold: float | None = None,
    ) -> Summary:
        """Decode a posterior.

        Args:
            posterior: of any method.
            resolution: cells along the shorter side, or ``(ny, nx)``; by default as `Posterior.grid` has it.
            cases: consecutive ones; all by default.
            draws_of: cases whose draws are kept; a hundred draws of one case at 128 x 128 take 13 MB.
            threshold: to give the probability of lying above it, too.
        """
        cases = range(posterior.observation.num_cases) if cases is None else cases
        for case in (*cases, *draws_of):
            posterior.observation.require_case(case)
        grid, kept = posterior.grid(resolution), {}
        columns: dict[str, list[np.ndarray]] = {}
        with torch.no_grad():
            for some in posterior.parts(grid, cases=cases):
                for name, values in _of_part(posterior, some, grid, draws_of, kept, threshold).items():
                    columns.setdefault(name, []).append(values)
        found = {name: np.concatenate(parts) for name, parts in columns.items()}
        found = {"source_mean": None, "source_std": None, **found}
        return cls(cases=cases, grid=grid, draws=kept, threshold=threshold, **found)


def _of_part(
    posterior: Posterior,
    cases: slice,
    grid: Grid,
    draws_of: Collection[int],
    kept: dict[int, np.ndarray],
    threshold: float | None,
) -> dict[str, np.ndarray]:
    """All of a few cases but their draws, which go to ``kept`` where they are wanted."""
    last = posterior.observation.times[-1:]
    draws = posterior.fields(cases, grid, last)
    spread = posterior.spreads(cases, grid, last, QUANTILES, draws)
    found = {
        "mean": posterior.means(cases, grid, last, draws)[:, 0],
        "std": spread.std[:, 0],
        "quantiles": spread.quantiles[:, :, 0],
    }
    for i, case in enumerate(range(cases.start, cases.stop)):
        if case in draws_of:
            kept[case] = draws[i, :, 0].numpy().copy()  # not a view, which would keep all of the part
    del draws
    if threshold is not None:
        found["probability_above"] = posterior.exceedances(cases, grid, last, threshold)[:, 0]
    if isinstance(posterior, PDEPosterior):
        sources = posterior.sources(cases, grid)
        found["source_mean"] = posterior.source_means(cases, grid, sources)
        found["source_std"] = posterior.source_stds(cases, grid, sources)
    return {name: values.numpy() for name, values in found.items()}
