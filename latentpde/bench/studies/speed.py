"""How long one case takes: `exact` beside `map`, turn by turn.

Both run in the same process on the same cases, so that their ratio does not depend on what else the machine does.
`map`, whose time does not depend on the case, runs on the first fifth of the cases only.
"""

from __future__ import annotations

import cProfile
import math
import pstats
import time
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from latentpde.bench.benchmark import Items, Plan, Study
from latentpde.bench.lines import Line
from latentpde.bench.tables import Table
from latentpde.errors import no_warnings
from latentpde.estimators import reconstruct
from latentpde.simulation import simulate

if TYPE_CHECKING:
    import xarray as xr

NUM_DRAWS = 12
QUANTILES = {"quickest": 0.0, "10 %": 0.1, "median": 0.5, "90 %": 0.9, "slowest": 1.0}
_NUM_PROFILED = 5


class Speed(Study):
    """The time from the call to the mean and the draws at 128 x 128, case by case."""

    name = "speed"
    title = "time of one case: exact beside map, turn by turn"
    in_all = False  # it wants the machine to itself for a quarter of an hour

    def missing_tasks(self, plan: Plan) -> list[tuple[str, int]]:
        """Regimes that were not measured with as many cases."""
        known = {line["regime"]: line["num"] for line in self.lines(plan)}
        return [(regime, plan.num) for regime in plan.regimes if known.get(regime, 0) < plan.num]

    def run_task(self, task: tuple[str, int]) -> list[Line]:
        regime, num = task
        cases, num_map = simulate(regime, num=num, seed=11), math.ceil(num / 5)
        singles = [cases.isel(case=slice(i, i + 1)) for i in range(num)]
        seconds("exact", singles[0])  # makes tables that are made once
        of_map, of_exact = [], []
        for i, case in enumerate(singles):
            if i < num_map:
                of_map.append(seconds("map", case))
            of_exact.append(seconds("exact", case))
        quantiles = np.quantile(of_exact, [*QUANTILES.values()]).round(3).tolist()
        found = {
            "map_median": round(float(np.median(of_map)), 3),
            "exact": dict(zip(QUANTILES, quantiles, strict=True)),
            "ratio_of_medians": round(float(np.median(of_exact[:num_map]) / np.median(of_map)), 3),
            "slower_than_map": int((np.array(of_exact[:num_map]) > np.array(of_map)).sum()),
            "share_of_time": share_of_time(singles[:_NUM_PROFILED]),
        }
        return [{"regime": regime, "num": num, "num_map": num_map, **found}]

    def show(self, plan: Plan) -> Items:
        lines = {line["regime"]: line for line in self.lines(plan)}
        rows = [
            (
                regime,
                *(f"{line['exact'][name]:.3f}" for name in QUANTILES),
                f"{line['map_median']:.3f}",
                f"{line['ratio_of_medians']:.2f}",
                f"{line['slower_than_map']} of {line['num_map']}",
                *(f"{line['share_of_time'][what]:.0f} %" for what in ("likelihood", "decoding")),
            )
            for regime, line in ((name, lines[name]) for name in plan.regimes if name in lines)
        ]
        heads = ("regime", *QUANTILES, "map, median", "ratio", "slower than map", "likelihood", "decoding")
        note = (
            "Seconds of exact from the call to the mean and 12 draws at 128 x 128; the median of map on the same "
            "cases; the ratio of medians over the cases that both had. Last: shares of exact's time, on one thread."
        )
        return [Table(self.title, heads, tuple(rows), (note,))]


def seconds(method: str, case: xr.DataTree) -> float:
    """The time that a method takes for one case, from the call to mean and draws."""
    start = time.perf_counter()
    with no_warnings():
        posterior = reconstruct(case, method=method, num_draws=NUM_DRAWS)
    _ = posterior.mean().values, posterior.draws().values
    return time.perf_counter() - start


def share_of_time(cases: list[xr.DataTree]) -> dict[str, float]:
    """What share of its time `exact` spends on the likelihood and on decoding, in percent.

    Args:
        cases: one by one. They run on one thread: the profiler sees no other.
    """
    threads, profile, decoding = torch.get_num_threads(), cProfile.Profile(), 0.0
    torch.set_num_threads(1)
    try:
        begin = time.perf_counter()
        profile.enable()
        for case in cases:
            with no_warnings():
                posterior = reconstruct(case, method="exact", num_draws=NUM_DRAWS)
            start = time.perf_counter()
            _ = posterior.mean().values, posterior.draws().values
            decoding += time.perf_counter() - start
        profile.disable()
        total = time.perf_counter() - begin
    finally:
        torch.set_num_threads(threads)
    spent = {"likelihood": _cumulative(profile, "log_likelihood"), "decoding": decoding}
    return {what: round(100 * value / total, 1) for what, value in spent.items()}


def _cumulative(profile: cProfile.Profile, name: str) -> float:
    """Seconds inside all functions of a name, with all that they call."""
    stats: dict[tuple, Any] = pstats.Stats(profile).stats  # pyright: ignore[reportAttributeAccessIssue]
    return sum(cumulative for (_, _, what), (_, _, _, cumulative, _) in stats.items() if what == name)
