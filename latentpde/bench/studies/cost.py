"""What data as they come cost, in time and in memory, with no option but the family; beside the benchmark's cases, of
which the initial state and the noise are known, and beside the estimate that is made before the work begins."""

from __future__ import annotations

import resource
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from latentpde.bench.benchmark import Items, Plan, Study
from latentpde.bench.execution import in_fresh_process
from latentpde.bench.lines import Line
from latentpde.bench.tables import NONE, Table
from latentpde.simulation import PAPER_REGIMES

if TYPE_CHECKING:
    from latentpde.observation import Observation

_NUM_DRAWS = 12
_TWO_OF_EACH = 2 * len(PAPER_REGIMES)


def benchmark_case(index: int) -> Observation:
    """A case of the paper's benchmark, the regimes in turn."""
    from latentpde.observation import Observation
    from latentpde.simulation import simulate

    regime, seed = PAPER_REGIMES[index % len(PAPER_REGIMES)], index // len(PAPER_REGIMES)
    return Observation.from_dataset(simulate(regime, num=1, seed=11 + seed))


def _usual(name: str, index: int, **options: Any) -> Observation:
    from latentpde.bench.points import usual

    return getattr(usual, name)(index, **options)


@dataclass(frozen=True)
class Kind:
    """Data of one kind.

    Args:
        make: a case of an index.
        seconds: that it may take on two cores; ``None`` where that is not asked.
        gigabytes: likewise.
        most: how many cases of it are measured, at most.
    """

    make: Callable[[int], Observation]
    seconds: float | None = None
    gigabytes: float | None = None
    most: int = 3


KINDS = {
    "benchmark": Kind(benchmark_case, most=_TWO_OF_EACH),
    "100 readings, three times": Kind(partial(_usual, "at_common_times"), seconds=5.0),
    "100 readings, own times": Kind(partial(_usual, "at_own_times"), seconds=5.0),
    "36 stations, six times": Kind(partial(_usual, "stations"), seconds=20.0),
    "36 stations, on a torus": Kind(partial(_usual, "stations", edges="periodic")),
    "20 x 30 cells, three times": Kind(
        partial(_usual, "snapshots", shape=(20, 30), share=0.85), seconds=60.0, gigabytes=2.0, most=2
    ),
    "2,500 readings, three times": Kind(partial(_usual, "snapshots", shape=(30, 40), share=0.7), seconds=180.0, most=2),
}
_OPEN, _TORUS = "36 stations, six times", "36 stations, on a torus"


def cost(kind: str, index: int) -> dict[str, Any]:
    """What one case costs, from the observation to the mean and standard deviation on its grid; in a fresh process.

    Args:
        kind: of the data.
        index: of the case, from 0.
    """
    from latentpde.errors import no_warnings
    from latentpde.estimators import reconstruct
    from latentpde.estimators.exact.estimator import Exact
    from latentpde.estimators.setup import Setup
    from latentpde.memory import keep_freed_memory
    from latentpde.settings import Settings

    keep_freed_memory()  # as the program does
    observation = KINDS[kind].make(index)
    family = observation.family or "advection_diffusion"
    with no_warnings():
        reconstruct(benchmark_case(index), num_draws=1)  # what is imported and made once
        setup = Setup.of(observation, family, Settings())
        estimate = Exact().needs(setup.observation, setup.latent, _NUM_DRAWS)
        start, own = time.perf_counter(), time.process_time()
        posterior = reconstruct(observation, family, num_draws=_NUM_DRAWS)
        _ = posterior.mean().values, posterior.std().values
        seconds, cpu = time.perf_counter() - start, time.process_time() - own
    diagnostics = posterior.diagnostics
    return {
        "readings": int(observation.num_readings[0]),
        "seconds": round(seconds, 2),
        "cpu": round(cpu, 2),
        "estimate": round(estimate.seconds, 2),
        "gigabytes": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, 2),
        "evaluations": int(diagnostics["num_evaluations"][0]),
        "effective": round(float(diagnostics["effective_sample_size"][0])),
        "trusted": bool(diagnostics["trusted"][0]),
    }


class Cost(Study):
    """Time and memory of cases of several kinds."""

    name = "cost"
    title = "what data as they come cost, in time and memory"
    num = _TWO_OF_EACH  # of each kind, or as many as it has
    in_all = False  # it wants the machine to itself

    def missing_tasks(self, plan: Plan) -> list[tuple[str, int]]:
        """Kind and index of each case that was not measured."""
        known = {(line["kind"], line["index"]) for line in self.lines(plan)}
        wanted = [(name, index) for name, kind in KINDS.items() for index in range(min(plan.num, kind.most))]
        return [task for task in wanted if task not in known]

    def run_task(self, task: tuple[str, int]) -> list[Line]:
        kind, index = task
        try:
            found = in_fresh_process(cost, kind, index)
        except Exception as error:
            found = {"failed": f"{type(error).__name__}: {error}"[:200]}
        return [{"kind": kind, "index": index, **found}]

    def show(self, plan: Plan) -> Items:
        lines = [line for line in self.lines(plan) if line["index"] < plan.num]
        rows = []
        for name, kind in KINDS.items():
            here = [line for line in lines if line["kind"] == name]
            if here:
                rows.append(_row(name, kind, here))
        heads = (
            *("data", "cases", "readings", "seconds", "slowest", "asked", "estimate", "CPU", "memory, GB", "asked, GB"),
            *("evaluations", "effective", "trusted"),
        )
        notes = [
            "Seconds from the call to mean and standard deviation on the grid, on two cores, with no option but the "
            "family: the median, and the slowest case. Estimate: what is said beforehand, for one core. Evaluations of "
            "the likelihood (a gradient counts as four) and effective samples: medians.",
        ]
        medians = {name: np.median([line["seconds"] for line in lines if line["kind"] == name]) for name in KINDS}
        if np.isfinite(medians[_OPEN] + medians[_TORUS]):
            notes.append(f"Open edges take {medians[_OPEN] / medians[_TORUS]:.1f} times as long as a torus.")
        return [Table(self.title, heads, tuple(rows), (*notes, *self.failures(plan)))]


def _row(name: str, kind: Kind, lines: list[Line]) -> tuple[str, ...]:
    def median(column: str) -> float:
        return float(np.median([line[column] for line in lines]))

    return (
        name,
        f"{len(lines)}",
        f"{median('readings'):,.0f}",
        f"{median('seconds'):.2f}",
        f"{max(line['seconds'] for line in lines):.2f}",
        NONE if kind.seconds is None else f"{kind.seconds:.0f}",
        f"{median('estimate'):.2f}",
        f"{median('cpu'):.2f}",
        f"{max(line['gigabytes'] for line in lines):.2f}",
        NONE if kind.gigabytes is None else f"{kind.gigabytes:.0f}",
        f"{median('evaluations'):,.0f}",
        f"{median('effective'):.0f}",
        f"{sum(line['trusted'] for line in lines)} of {len(lines)}",
    )
