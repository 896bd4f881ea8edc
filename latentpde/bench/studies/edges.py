"""What open edges are worth: a cloud that drifts out of the domain, with open edges and on a torus."""

from __future__ import annotations

import time
import warnings

import numpy as np

from latentpde.bench.benchmark import Items, Plan, Study
from latentpde.bench.lines import Line
from latentpde.bench.tables import Table

_EDGES = {"open": "open", "torus": "periodic"}


class Edges(Study):
    """Errors near the edges and inside, over several sets of stations."""

    name = "edges"
    title = "a cloud that drifts out of the domain: errors near its edges and inside"
    num = 8
    in_all = False  # its cases have nothing to do with regimes and methods
    timed = False

    def missing_tasks(self, plan: Plan) -> list[tuple[str, int]]:
        """Edges and seed of each case that was not run."""
        known = {(line["edges"], line["seed"]) for line in self.lines(plan)}
        return [(edges, seed) for seed in range(plan.num) for edges in _EDGES if (edges, seed) not in known]

    def run_task(self, task: tuple[str, int]) -> list[Line]:
        from latentpde.bench.points.blob import reconstructed

        edges, seed = task
        start = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = reconstructed(seed, _EDGES[edges])
        seconds, notes = time.perf_counter() - start, found.posterior.diagnostics
        line = {"near": round(found.near, 5), "inside": round(found.inside, 5), "seconds": round(seconds, 2)}
        return [{"edges": edges, "seed": seed, **line, "trusted": bool(notes["trusted"][0])}]

    def show(self, plan: Plan) -> Items:
        rows = []
        for edges in _EDGES:
            here = [line for line in self.lines(plan) if line["edges"] == edges and line["seed"] < plan.num]
            if here:
                near, inside, seconds = (
                    np.array([line[name] for line in here]) for name in ("near", "inside", "seconds")
                )
                cells = (f"{near.mean():.3f}", f"{inside.mean():.3f}", f"{near.mean() / inside.mean():.2f}")
                trusted = sum(line["trusted"] for line in here)
                rows.append((edges, f"{len(here)}", *cells, f"{np.median(seconds):.1f}", f"{trusted} of {len(here)}"))
        heads = ("edges", "cases", "RMSE near", "RMSE inside", "near / inside", "seconds", "trusted")
        note = (
            "30 stations at four times, noise of 0.03; errors at three times, within a tenth of the side and elsewhere."
        )
        return [Table(self.title, heads, tuple(rows), (note,))]
