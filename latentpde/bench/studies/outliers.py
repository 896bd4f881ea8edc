"""What outliers cost: a tenth of the readings moved by 5 to 100 standard deviations of their noise, with and without
the noise of heavy tails that sets them aside, beside the same readings without those that lie."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from latentpde.bench.benchmark import Items, Plan, Study
from latentpde.bench.lines import Line
from latentpde.bench.tables import Frame, Table
from latentpde.simulation import PAPER_REGIMES

if TYPE_CHECKING:
    from latentpde.observation import Observation

_SHAPE, _NUM_MODES, _SPARSITY = (64, 64), 2, 0.6  # of the true field; of the source; of the cells that are read
_RESOLUTION = 64
_KNOWN, _INFERRED = "known", "inferred"


class Outliers(Study):
    """Errors with outliers in units of those without, regime by regime, with noise that is known and inferred."""

    name = "outliers"
    title = "what outliers cost, with robust noise and without"
    num = 8
    regimes = (*PAPER_REGIMES, "telegraph")
    in_all = False  # it takes a while, and its seconds want a quiet machine

    def missing_tasks(self, plan: Plan) -> list[tuple[str, str, int]]:
        """Regime, noise and index of each case that was not run."""
        known = {(line["regime"], line["noise"], line["index"]) for line in self.lines(plan)}
        wanted = [
            (regime, noise, index)
            for index in range(plan.num)
            for regime in plan.regimes
            for noise in (_KNOWN, _INFERRED)
        ]
        return [task for task in wanted if task not in known]

    def run_task(self, task: tuple[str, str, int]) -> list[Line]:
        regime, noise, index = task
        line: Line = {"regime": regime, "noise": noise, "index": index}
        try:
            found = measure(regime, noise == _INFERRED, index)
        except Exception as error:
            found = {"failed": f"{type(error).__name__}: {error}"[:200]}
        return [{**line, **found}]

    def show(self, plan: Plan) -> Items:
        lines: Frame = pd.DataFrame([line for line in self.lines(plan) if line["index"] < plan.num])
        heads = (
            *("regime, noise", "cases", "robust", "robust, worst", "Gaussian", "Gaussian, worst"),
            *("found", "false", "same bits", "time", "settled"),
        )
        groups = [] if lines.empty else [*lines.groupby(["regime", "noise"], sort=False)]
        rows = [_row(f"{regime}, {noise}", here) for (regime, noise), here in groups]
        if len(rows) > 1:
            rows.append(_row("all", lines))
        notes = (
            "Robust, Gaussian: the error with outliers over that of the same readings without them, as the geometric "
            "mean over cases, and the worst. Found: the share of outliers that are set aside; false: readings set "
            "aside that are none, of a case. Same bits: clean cases in which nothing is set aside and the mean is the "
            "same to the last bit, of those in which nothing is set aside. Time: of clean readings, with robust over "
            "without.",
        )
        return [Table(self.title, heads, tuple(rows), (*notes, *self.failures(plan)))]


def measure(regime: str, inferred: bool, index: int) -> dict[str, Any]:
    """Errors of one case with its outliers, and without them.

    Args:
        regime: of the case.
        inferred: whether the noise is not told.
        index: of the case.
    """
    from latentpde.bench.points.outliers import of_unknown_noise, spoilt, without
    from latentpde.observation import Observation
    from latentpde.simulation import simulate

    cases = simulate(regime, num=1, seed=index, shape=_SHAPE, num_modes=_NUM_MODES, sparsity=_SPARSITY)
    observation, truth = Observation.from_dataset(cases), np.asarray(cases["truth"]["field"])
    noise_std = float(observation.noise_std[observation.mask][0])
    bad, lying = spoilt(observation, noise_std, index)
    clean, told = without(observation, lying), of_unknown_noise if inferred else (lambda one: one)
    plain, seconds = _timed(told(clean), robust=False)
    careful, seconds_of_robust = _timed(told(clean), robust=True)
    (deceived, _), (posterior, _) = (_timed(told(bad), robust=robust) for robust in (False, True))
    fields = [one.mean(resolution=_RESOLUTION).values for one in (plain, posterior, deceived, careful)]
    errors = [round(float(np.sqrt(((field - truth) ** 2).mean())), 5) for field in fields[:3]]
    aside = set(posterior.set_aside()["reading"].values.tolist())
    nothing_aside = int(careful.diagnostics["num_set_aside"][0]) == 0
    return {
        **dict(zip(("clean", "robust", "gaussian"), errors, strict=True)),
        "outliers": len(lying),
        "found": len(aside & set(lying)),
        "false": len(aside - set(lying)),
        "nothing_aside": nothing_aside,
        "same_bits": nothing_aside and bool(np.array_equal(fields[0], fields[3])),
        "time": round(seconds_of_robust / seconds, 2),
        "settled": bool(posterior.diagnostics["outliers_settled"][0]),
    }


def _timed(observation: Observation, *, robust: bool) -> tuple[Any, float]:
    """The posterior of a case, and the seconds that it took."""
    from latentpde.errors import no_warnings
    from latentpde.estimators import reconstruct

    start = time.perf_counter()
    with no_warnings():
        posterior = reconstruct(observation, robust=robust)
    return posterior, time.perf_counter() - start


def _row(name: str, lines: Frame) -> tuple[str, ...]:
    robust, gaussian = (lines[column] / lines["clean"] for column in ("robust", "gaussian"))
    clean = int(lines["nothing_aside"].sum())
    return (
        name,
        f"{len(lines)}",
        f"{np.exp(np.log(robust).mean()):.2f}",
        f"{robust.max():.2f}",
        f"{np.exp(np.log(gaussian).mean()):.2f}",
        f"{gaussian.max():.2f}",
        f"{lines['found'].sum() / lines['outliers'].sum():.3f}",
        f"{lines['false'].mean():.2f}",
        f"{int(lines['same_bits'].sum())} of {clean}",
        f"{lines['time'].median():.1f}",
        f"{int(lines['settled'].sum())} of {len(lines)}",
    )
