r"""Whether a method's uncertainty is honest: ranks, coverage, and spread against error, over many simulated cases.

**Simulation-based calibration** (Talts et al., *Validating Bayesian Inference Algorithms with Simulation-Based
Calibration*, 2018). Draw a truth from the prior, readings from the truth, and :math:`S` draws from the posterior:

.. math:: v \sim p(v), \quad y \sim p(y \mid v), \quad v^{(s)} \sim p(v \mid y)
          \;\Longrightarrow\; r = \#\{s : v^{(s)} < v\} \sim \mathcal U\{0, \dots, S\}

because, given :math:`y`, truth and draws come from the same distribution and any order of them is as likely as another.
It holds for every scalar :math:`v`: here each coefficient, and the field at some points. `latentpde.scores.ranks` tests
whether ranks are uniform. Only averages over cases are tested, so a method that returns the prior passes too: read
ranks beside the RMSE.

**Coverage.** A central interval of level :math:`c` should hold the truth with probability :math:`c`. One case's field
is one correlated experiment, not as many as it has cells: `expected_coverage` averages over cases, and its standard
errors come from the scatter between cases.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
import pandas as pd
import xarray as xr
from jaxtyping import Float, Int

from latentpde.errors import UsageError, no_warnings
from latentpde.estimators import reconstruct
from latentpde.posterior import LatentPosterior, Posterior
from latentpde.progress import progress
from latentpde.scores.arrays import Array
from latentpde.scores.metrics import coverage, ensemble_spread, rmse
from latentpde.scores.ranks import holm, rank_uniformity, ranks
from latentpde.scores.truth import last_true_fields
from latentpde.simulation import Simulation

__all__ = [
    "LEVELS",
    "compare",
    "coverage_curve",
    "expected_coverage",
    "grouped",
    "ranks_of",
    "simulation_based_calibration",
    "standard_error",
    "uniformity",
]

#: Nominal levels. With 39 draws the ends of each of these intervals are draws, so nothing is interpolated.
LEVELS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)

_CASES_AT_ONCE = 8  # 39 draws of each at 128 x 128 take 40 MB
_LABELS = ("mask_kind", "initial_kind", "regime", "family")
_ATTRIBUTES = ("family", "regime", "noise_std", "observed_kind", "source_prior_std", "split")


def simulation_based_calibration(
    method: str,
    simulation: Simulation,
    num: int,
    *,
    num_draws: int = 39,
    points: Sequence[tuple[int, int]] | None = None,
    levels: Sequence[float] = LEVELS,
    start: int = 0,
    seed: int = 0,
    show_progress: bool = False,
    **options,
) -> xr.Dataset:
    """Reconstruct simulated cases and compare every posterior with its truth.

    Args:
        method: a name of ``latentpde list methods``; it must return several draws.
        simulation: how cases are made. Its prior is the one that the method is told.
        num: how many cases, at least 1.
        num_draws: posterior draws per case, at least 2. With 39 a rank has 40 values.
        points: cells ``(row, column)`` of the fine grid at which the field is ranked; by default 8 evenly spaced ones.
        levels: probabilities of the central intervals whose coverage is counted, each in (0, 1).
        start: number of the first case, not negative; a long run can be made in parts and joined with
            ``xarray.concat(parts, "case")``.
        seed: seed of the method's random numbers; those of the cases follow from the simulation's own.
        show_progress: draw a bar on a terminal, print lines elsewhere.
        options: further arguments of `latentpde.reconstruct`, the method's options among them.

    Returns:
        ``rank (case, quantity)``, ``coverage (case, level)`` of the field at the last time, ``rmse`` of the
        posterior mean, and ``spread`` and ``error`` of the ensemble, whose mean squares agree if it is calibrated;
        for each case its ``mask_kind``, ``initial_kind``, ``regime`` and ``family``.

    Example:
        >>> tiny = Simulation(regime="helmholtz", shape=(16, 16), num_modes=2, sparsity=0.5)
        >>> result = simulation_based_calibration("exact", tiny, 2, num_draws=9, points=[(3, 4)])
        >>> [str(name) for name in result.quantity.values]
        ['kappa_x', 'kappa_y', 'k', 'u[3, 4]']
        >>> bool((result["rank"] <= 9).all())
        True
    """
    if num < 1 or num_draws < 2 or start < 0:
        raise UsageError(
            f"calibration needs a case, two draws and start >= 0; got num={num}, num_draws={num_draws}, start={start}"
        )
    cells = _cells(points, simulation.shape)
    # The first case goes alone: a method without a spread is refused before the long work.
    edges = [start, *range(start + 1, start + num, _CASES_AT_ONCE), start + num]
    parts = []
    with progress("calibrate", num, show=show_progress) as advance:
        for first, last in pairwise(edges):
            cases = simulation.cases(first, last)
            # Another seed for each batch: the cases must not share their randomness.
            with no_warnings():
                posterior = reconstruct(cases, method=method, num_draws=num_draws, seed=seed + first, **options)
            if not posterior.has_spread:
                raise UsageError(
                    f"method {method!r} returns a point estimate without a spread, so it has no calibration to check; "
                    "choose a method that returns several draws, such as exact"
                )
            parts.append(compare(posterior, cases, cells, levels, seed + first))
            advance(last - first)
    joined = xr.concat(parts, "case", data_vars="minimal", coords="minimal", compat="equals", join="exact")
    return joined.assign_attrs(method=method, seed=seed, simulation_seed=simulation.seed)


def compare(
    posterior: Posterior, cases: xr.DataTree, cells: Int[np.ndarray, "cell 2"], levels: Sequence[float], seed: int
) -> xr.Dataset:
    """Ranks, coverage, spread and error of the cases of one posterior, with truth and draws at the last time.

    Args:
        posterior: what a method returned for the cases.
        cases: the same cases with their truths, in the layout of ``cases.nc``.
        cells: rows and columns at which the field is ranked.
        levels: probabilities of the central intervals whose coverage is counted.
        seed: seed of the random numbers that break ties between truth and draws.

    Returns:
        What `simulation_based_calibration` returns, for these cases.
    """
    truth = cases["truth"].to_dataset()
    u = last_true_fields(cases).values.astype(np.float64)
    draws = posterior.draws(resolution=u.shape[-2:]).values
    at_cells, u_cells = draws[..., cells[:, 0], cells[:, 1]], u[..., cells[:, 0], cells[:, 1]]
    names = [f"u[{row}, {column}]" for row, column in cells.tolist()]
    kinds = ["field"] * len(names)
    if isinstance(posterior, LatentPosterior):
        theta = posterior.coefficients
        known = [name for name in theta.coefficient.values.tolist() if name in truth.coefficient.values]
        at_cells = np.concatenate([theta.sel(coefficient=known).values, at_cells], axis=-1)
        u_cells = np.concatenate([truth["coefficients"].sel(coefficient=known).values, u_cells], axis=-1)
        names, kinds = known + names, ["coefficient"] * len(known) + kinds
    num_cases = len(u)
    return xr.Dataset(
        {
            "rank": (("case", "quantity"), ranks(at_cells, u_cells, seed=seed)),
            "coverage": (("case", "level"), coverage_curve(np.sort(draws, axis=1), u, levels)),
            "rmse": ("case", rmse(posterior.mean(resolution=u.shape[-2:]).values, u)),
            "spread": ("case", ensemble_spread(draws)),
            "error": ("case", rmse(draws.mean(axis=1), u)),
        },
        coords={
            "case": cases["case"].values,
            "quantity": names,
            "quantity_kind": ("quantity", kinds),
            "level": list(levels),
            **{name: ("case", truth[name].values.astype(str)) for name in ("mask_kind", "initial_kind")},
            **{name: ("case", np.full(num_cases, cases.attrs[name])) for name in ("regime", "family")},
        },
        attrs={name: cases.attrs[name] for name in _ATTRIBUTES} | {"num_draws": posterior.num_draws},
    )


def uniformity(dataset: xr.Dataset) -> pd.DataFrame:
    """Test whether the ranks of each quantity are uniform.

    Args:
        dataset: from `simulation_based_calibration`.

    Returns:
        A row for each quantity: ``p`` of `latentpde.scores.ranks.rank_uniformity`, and ``p_holm``, corrected for the
        number of quantities.

    Example:
        >>> ranks = np.stack([np.arange(40), np.repeat([0, 39], 20)], axis=1)  # of 40 cases: even, and extreme
        >>> coords = {"quantity": ["kappa", "k"]}
        >>> data = xr.Dataset({"rank": (("case", "quantity"), ranks)}, coords, attrs={"num_draws": 39})
        >>> (uniformity(data)["p_holm"] < 0.01).to_dict()
        {'kappa': False, 'k': True}
    """
    num_draws = int(dataset.attrs["num_draws"])
    names = [str(name) for name in dataset.quantity.values]
    p = [rank_uniformity(ranks_of(dataset, name), num_draws) for name in names]
    return pd.DataFrame({"p": p, "p_holm": holm(p)}, index=pd.Index(names, name="quantity"))


def coverage_curve(draws: Array, truth: Array, levels: Sequence[float] = LEVELS) -> Array:
    """Coverage of the field (`latentpde.scores.metrics.coverage`) at several levels, on a new last axis ``level``.

    Args:
        draws: ensembles with the axes ``(..., draw, y, x)``; arrays of any kind, see `latentpde.scores.arrays`.
        truth: the true fields, with the axes ``(..., y, x)``.
        levels: probabilities of the central intervals, each in (0, 1).

    Example:
        >>> draws = np.linspace(-1, 1, 39)[:, None, None] * np.ones((1, 2))  # 39 draws of a field of 1 x 2 cells
        >>> coverage_curve(draws, np.array([[0.0, 0.6]]), levels=(0.1, 0.5, 0.9)).tolist()
        [0.5, 0.5, 1.0]
    """
    curve = [coverage(draws, truth, level) for level in levels]
    if not any(isinstance(array, xr.DataArray) for array in (draws, truth)):
        return np.stack(curve, axis=-1)
    return xr.concat(curve, pd.Index(list(levels), name="level")).transpose(..., "level")


def expected_coverage(dataset: xr.Dataset, by: str | Sequence[str] = ("mask_kind",)) -> pd.DataFrame:
    """Mean coverage of the field and its standard error across cases.

    Args:
        dataset: from `simulation_based_calibration`.
        by: how to group the cases, by any of ``mask_kind``, ``initial_kind``, ``regime`` and ``family``; nothing for
            all cases together.

    Returns:
        A row for each group and level; ``expected_coverage(d)["coverage"].unstack("level")`` is a table with one
        column per level.

    Example:
        >>> values = np.array([[0.4, 0.8], [0.6, 1.0]])  # of two cases at two levels
        >>> data = xr.Dataset({"coverage": (("case", "level"), values)}, {"level": [0.5, 0.9]})
        >>> expected_coverage(data, by=())["coverage"].to_dict()
        {0.5: 0.5, 0.9: 0.9}
    """
    names = [by] if isinstance(by, str) else list(by)
    rows = [
        dict(zip(names, key, strict=True))
        | {"level": level, "num": len(some), "coverage": mean, "standard_error": error}
        for key, positions in grouped(dataset, names)
        for some in [dataset["coverage"].values[positions]]
        for level, mean, error in zip(dataset.level.values.tolist(), some.mean(0), standard_error(some), strict=True)
    ]
    return pd.DataFrame(rows).set_index([*names, "level"])


def _cells(points: Sequence[tuple[int, int]] | None, shape: tuple[int, int]) -> Int[np.ndarray, "cell 2"]:
    """Rows and columns at which the field is ranked, checked against the fine grid; 4 x 2 by default."""
    if points is None:
        points = [(int((i + 0.5) / 4 * shape[0]), int((j + 0.5) / 2 * shape[1])) for i in range(4) for j in range(2)]
    cells = np.asarray(points)
    if (
        cells.ndim != 2
        or cells.shape[1] != 2
        or np.any((cells < 0) | (cells >= shape))
        or len(set(map(tuple, cells.tolist()))) < len(cells)
    ):
        raise UsageError(f"points must be different cells (row, column) of the fine grid {shape}, got {points}")
    return cells


def ranks_of(dataset: xr.Dataset, name: str) -> np.ndarray:
    """Ranks of one quantity, one per case, without the cases that do not have it.

    Such cases occur where datasets of several families were joined.

    Args:
        dataset: from `simulation_based_calibration`.
        name: the quantity.
    """
    values = dataset["rank"].sel(quantity=name).values
    return values[~np.isnan(values)].astype(int)


def grouped(dataset: xr.Dataset, by: Sequence[str]) -> Iterator[tuple[tuple[str, ...], np.ndarray]]:
    """Groups of cases in alphabetical order: the labels that a group shares, and the positions of its cases.

    Args:
        dataset: from `simulation_based_calibration`.
        by: the labels that make a group, any of ``mask_kind``, ``initial_kind``, ``regime`` and ``family``.
    """
    known = [name for name in _LABELS if name in dataset.variables]
    unknown = [name for name in by if name not in known]
    if unknown:
        raise UsageError(f"cannot group by {', '.join(unknown)}; cases have: {', '.join(known)}")
    keys = np.array([dataset[name].values.astype(str) for name in by]).reshape(len(by), dataset.sizes["case"]).T
    for key in sorted({tuple(row) for row in keys.tolist()}):
        yield key, np.flatnonzero((keys == np.array(key, dtype=keys.dtype)).all(axis=1))


def standard_error(values: Float[np.ndarray, "case *rest"]) -> Array:
    """Standard error of the mean over the first axis, the cases; NaN for a single case.

    Example:
        >>> standard_error(np.array([[1.0], [3.0]])).tolist()
        [1.0]
    """
    if len(values) < 2:
        return np.full(values.shape[1:], np.nan)
    return values.std(axis=0, ddof=1) / math.sqrt(len(values))
