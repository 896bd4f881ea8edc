"""Whether intervals between walls cover what they say, with the priors' levels known and with these inferred.

Cases are drawn from the prior, so coefficients, levels, field and source must have uniform ranks among the posterior's
draws, and 90 % intervals must cover 90 %.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pandas as pd

import latentpde as lp
from latentpde.bench.benchmark import Items, Plan, Study
from latentpde.bench.lines import Line
from latentpde.bench.measurements import rounded
from latentpde.bench.points.walled_draws import (
    HIGHEST,
    KAPPA,
    LEVELS,
    NUM_CELLS,
    WalledCase,
    heat_between_walls,
    steady_between_walls,
)
from latentpde.bench.tables import NONE, Frame, Table, mean_and_error, number
from latentpde.scores.ranks import holm, rank_uniformity, ranks

NUM_DRAWS = 39  # a rank has 40 values, and the ends of 90 % intervals are draws
FAMILIES = ("heat", "poisson")
_FINER = 3  # cells in one of those that are asked for, whose middle is theirs: a grid holds no mode beyond its own
_CELLS = [NUM_CELLS * row + column for row in (2, 5) for column in (1, 6)]


class Walls(Study):
    """Simulation-based calibration between walls."""

    name = "walls"
    title = "coverage and ranks between walls, with the priors' levels known and inferred"
    num = 400
    in_all = False  # it takes some minutes
    timed = False

    def missing_tasks(self, plan: Plan) -> list[Line]:
        """Family, whether levels are inferred, and index of each case that was not run."""
        known = {(line["family"], line["inferred"], line["index"]) for line in self.lines(plan)}
        wanted = [(name, inferred, i) for i in range(plan.num) for name in FAMILIES for inferred in (False, True)]
        return [dict(zip(("family", "inferred", "index"), t, strict=True)) for t in wanted if t not in known]

    def run_task(self, task: Line) -> list[Line]:
        try:
            return [{**task, **measure(**task)}]
        except Exception as error:
            return [{**task, "failed": f"{type(error).__name__}: {error}"[:200]}]

    def show(self, plan: Plan) -> Items:
        lines: Frame = pd.DataFrame([line for line in self.lines(plan) if line["index"] < plan.num])
        rows = []
        for family in FAMILIES:
            for inferred in (False, True):
                here = lines if lines.empty else lines[(lines["family"] == family) & (lines["inferred"] == inferred)]
                if len(here):
                    rows.append(_row(family, inferred, here))
        heads = ("task", "levels", "cases", "RMSE", "field", "source", "coefficients", "levels in", "smallest p", "s")
        notes = (
            "Field, source, coefficients and levels: the share that 90 % intervals of "
            f"{NUM_DRAWS} draws cover. p: Neyman's smooth test of uniform ranks, of each coefficient, each level, and "
            "field and source at four cells; the smallest, corrected by Holm.",
            "Heat: an unknown start and source, the field read at ten stations three times, the source at six places; "
            "edges by turns dirichlet or neumann on all sides, dirichlet along y and neumann along x, and periodic "
            "along y and dirichlet along x. Poisson: between dirichlet walls, the source a sum of cosines, both read.",
        )
        return [Table(self.title, heads, tuple(rows), (*notes, *self.failures(plan)))]


def measure(family: str, inferred: bool, index: int) -> Line:
    """Scores of one case, and ranks of all that was drawn.

    Args:
        family: ``heat`` or ``poisson``.
        inferred: whether levels of priors are; else they are given.
        index: of the case.
    """
    case = heat_between_walls(index) if family == "heat" else steady_between_walls(index)
    start = time.perf_counter()
    posterior = reconstructed(case, family, inferred, seed=index)
    fine = posterior.grid(_FINER * NUM_CELLS)
    fields = {
        "field": posterior.fields(slice(None), fine, posterior.observation.times[-1:])[0, :, 0],
        "source": posterior.sources(slice(None), fine)[0],
    }
    middle = slice(_FINER // 2, None, _FINER)
    drawn = {name: field[:, middle, middle].flatten(1).T.numpy() for name, field in fields.items()}
    seconds = time.perf_counter() - start
    truths = {"field": case.field, "source": case.source}
    quantities, values = {}, {}
    for name in ("field", "source"):
        for cell in _CELLS:
            quantities[f"{name}[{cell}]"], values[f"{name}[{cell}]"] = drawn[name][cell], truths[name][cell]
    for array, axis in ((posterior.coefficients, "coefficient"), (posterior.levels, "level")):
        for name in array[axis].values.tolist():
            found = array.sel({axis: name}).values
            if np.ptp(found) > 0:
                quantities[name], values[name] = found, case.truth[name]
    found_ranks = ranks(np.stack([*quantities.values()]), np.array([*values.values()]), seed=index)
    coverage = {}
    for name in ("field", "source"):
        inside = ranks(drawn[name], truths[name], seed=index)
        coverage[f"coverage_{name}"] = rounded(float(_inside(inside).mean()))
    error = drawn["field"].mean(1) - case.field
    return {
        "rmse": rounded(float(np.sqrt((error**2).mean()))),
        **coverage,
        "seconds": rounded(seconds),
        "trusted": bool(posterior.diagnostics["trusted"][0]),
        "ranks": dict(zip(quantities, found_ranks.tolist(), strict=True)),
    }


def reconstructed(case: WalledCase, family: str, inferred: bool, seed: int) -> Any:
    """What `exact` makes of a case, told the family, the edges and the priors, with their levels or within bounds."""
    truth = case.truth
    observation = lp.Observation.from_table(
        case.values,
        y=case.places[:, 0],
        x=case.places[:, 1],
        t=case.times if family == "heat" else None,
        sigma=case.noise_std,
        reads=np.where(case.of_source, "source", "field"),
        grid=lp.Grid((NUM_CELLS, NUM_CELLS)),
        domain=lp.Domain(*case.edges),
    )

    def spectrum(name: str, **options: Any) -> lp.Matern:
        told = LEVELS if inferred else truth
        return lp.Matern(told[f"{name}_prior_std"], told[f"{name}_prior_length"], num_modes=HIGHEST, **options)

    heat = family == "heat"
    options: dict[str, Any] = {"bounds": {"kappa": KAPPA}} if heat else {"fixed": {"kappa": 1.0}}
    if heat:
        options["initial"] = spectrum("initial")
    cosines = {} if heat else {"basis": "neumann"}
    return lp.reconstruct(
        observation,
        family,
        source=spectrum("source", **cosines),
        trend="none",
        num_draws=NUM_DRAWS,
        num_spread_draws=2,
        num_mean_nodes=2,
        seed=seed,
        **options,
    )


def _inside(found: np.ndarray) -> np.ndarray:
    return (found >= 2) & (found <= NUM_DRAWS - 2)  # of 40 ranks, 36


def _row(family: str, inferred: bool, here: Frame) -> tuple[str, ...]:
    table = pd.DataFrame(here["ranks"].tolist())

    def covered(names: list[str]) -> str:
        return f"{_inside(table[names].to_numpy()).mean():.3f}" if names else NONE

    p = holm([rank_uniformity(table[column].dropna().to_numpy().astype(int), NUM_DRAWS) for column in table]).min()
    columns = [str(name) for name in table]
    return (
        family,
        "inferred" if inferred else "known",
        str(len(here)),
        number(*mean_and_error(here["rmse"])),
        f"{here['coverage_field'].mean():.3f}",
        f"{here['coverage_source'].mean():.3f}",
        covered([name for name in columns if name == "kappa"]),
        covered([name for name in columns if name in LEVELS]),
        number(float(p)),
        f"{here['seconds'].median():.1f}",
    )
