"""What it is worth that the learned methods draw all at once: a batch of draws beside the same draws one by one.

Both ways run in the same process on the same case, turn by turn, so that their ratio does not depend on what else the
machine does. Draw by draw, each call asks for one draw that starts from the noise that it has in the batch.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from latentpde.bench.benchmark import Items, Plan, Study
from latentpde.bench.jobs import REPRESENTATIVES, cases_of
from latentpde.bench.lines import Line
from latentpde.bench.tables import Table
from latentpde.estimators import make_estimator, reconstruct
from latentpde.estimators.learned.diffusion import EncDiffusion

NUM_DRAWS = 12


class Batching(Study):
    """The time of `enc-diffusion` from the call to the draws at 128 x 128, for the draws together and one by one."""

    name = "batching"
    title = "draws of a learned method in one batch, beside draws one by one"
    num = 5  # how often each is timed
    regimes = REPRESENTATIVES
    in_all = False  # it wants the machine to itself

    def missing_tasks(self, plan: Plan) -> list[tuple[str, int]]:
        """Regimes that were not timed as often."""
        known = {line["regime"]: line["num"] for line in self.lines(plan)}
        return [(regime, plan.num) for regime in plan.regimes if known.get(regime, 0) < plan.num]

    def run_task(self, task: tuple[str, int]) -> list[Line]:
        regime, num = task
        case = cases_of(regime).cases(0, 1)
        method = make_estimator("enc-diffusion")
        assert isinstance(method, EncDiffusion)
        levels = np.linspace(method.sigma_max, method.sigma_min, NUM_DRAWS).tolist()

        def together() -> None:
            _ = reconstruct(case, method=method.name, num_draws=NUM_DRAWS).draws().values

        def one_by_one() -> None:
            for level in levels:
                _ = reconstruct(case, method=method.name, num_draws=1, sigma_min=level, sigma_max=level).draws().values

        together()  # reads the weights for the first time
        times = np.array([[seconds(way) for way in (together, one_by_one)] for _ in range(num)])
        found = dict(zip(("together", "one_by_one"), np.median(times, axis=0).round(3).tolist(), strict=True))
        return [{"regime": regime, "num": num, **found, "ratio": round(float(np.median(times[:, 1] / times[:, 0])), 2)}]

    def show(self, plan: Plan) -> Items:
        lines = {line["regime"]: line for line in self.lines(plan)}
        rows = [
            (regime, f"{line['num']}", f"{line['together']:.2f}", f"{line['one_by_one']:.2f}", f"{line['ratio']:.1f}")
            for regime, line in ((name, lines[name]) for name in plan.regimes if name in lines)
        ]
        heads = ("regime", "times", "together", "one by one", "ratio")
        note = f"Median seconds of enc-diffusion for one case and {NUM_DRAWS} draws at 128 x 128; the median ratio."
        return [Table(self.title, heads, tuple(rows), (note,))]


def seconds(function: Callable[[], None]) -> float:
    """How long a call takes.

    Example:
        >>> seconds(lambda: None) >= 0
        True
    """
    start = time.perf_counter()
    function()
    return time.perf_counter() - start
