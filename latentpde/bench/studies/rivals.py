"""On the rivals' own ground: the linear tasks that learned samplers report on, with the exact posterior beside them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

from latentpde.bench.benchmark import Items, Plan, Study
from latentpde.bench.lines import Line
from latentpde.bench.measurements import rounded
from latentpde.bench.rivals.dense import dense_means
from latentpde.bench.rivals.exact import LEAST, solve
from latentpde.bench.rivals.fields import EQUATIONS, NUM_READINGS, Layout, relative_errors
from latentpde.bench.rivals.heat import heat_case
from latentpde.bench.tables import NONE, Table

FIELDS = 50  # of a layout
DIRECTIONS = ("forward", "inverse", "both")
NOISES = (0.0, 1e-4, 1e-3, 1e-2, 5e-2)
WANTED = {"forward": "u", "inverse": "a"}
#: Relative errors in percent as published, forward and inverse, from 500 readings without noise: FunDPS with 500 steps
#: and DiffusionPDE from Yao et al. 2025 (arXiv 2505.17004), DDIS from its own paper.
PUBLISHED = {
    "poisson": {"FunDPS": (1.99, 20.47), "DiffusionPDE": (4.88, 21.10), "DDIS": (None, 15.78)},
    "helmholtz": {"FunDPS": (2.13, 17.16), "DiffusionPDE": (12.64, 19.07), "DDIS": (None, 15.08)},
}
NOT_LINEAR = ("Darcy flow", "Navier-Stokes", "Burgers")
#: What the notebook of boundary-constrained Gaussian processes prints: mean absolute error and diffusivity.
PUBLISHED_HEAT = (1.24e-3, 0.989)
_HEAT_CASES = 20


class Rivals(Study):
    """Poisson and Helmholtz as DiffusionPDE and FunDPS pose them, and heat between cold walls."""

    name = "rivals"
    title = "the linear tasks of DiffusionPDE, FunDPS and boundary-constrained Gaussian processes"
    num = 500
    in_all = False  # it wants a core to itself for a quarter of an hour

    def missing_tasks(self, plan: Plan) -> list[dict[str, Any]]:
        """Layouts of 50 fields, and heat cases, that were not measured."""
        known = [{name: line.get(name) for name in task} for line in self.lines(plan) for task in [_key(line)]]
        return [task for task in _tasks(plan.num) if task not in known]

    def run_task(self, task: dict[str, Any]) -> list[Line]:
        threads = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            found = heat_case(task["index"]) if task["task"] == "heat" else measure(task)
        finally:
            torch.set_num_threads(threads)
        return [{**task, **{name: rounded(value) for name, value in found.items()}}]

    def show(self, plan: Plan) -> Items:
        lines = self.lines(plan)
        return [_comparison(lines), _noise(lines), _scheme(lines), _speed(lines), _heat(lines)]


def _tasks(num: int) -> Iterator[dict[str, Any]]:
    for index in range(min(_HEAT_CASES, num)):
        yield {"task": "heat", "index": index}
    for noise, directions, scheme in (
        (0.0, DIRECTIONS, "five-point"),
        (0.0, ("inverse",), "exact"),
        *((noise, DIRECTIONS, "five-point") for noise in NOISES[1:]),
    ):
        for index in range(max(1, num // FIELDS)):
            for name in EQUATIONS:
                for direction in directions:
                    yield {"task": name, "direction": direction, "noise": noise, "scheme": scheme, "index": index}


def _key(line: Line) -> dict[str, Any]:
    names = ("task", "index") if line["task"] == "heat" else ("task", "direction", "noise", "scheme", "index")
    return {name: line[name] for name in names}


def measure(task: dict[str, Any], num: int = FIELDS) -> dict[str, float]:
    """Errors of mean and draw over the fields of a layout, and the seconds of `exact` and of a dense solution.

    Args:
        task: equation, direction, noise, scheme and index of the layout.
        num: fields.
    """
    layout = Layout.draw(task["task"], task["direction"], task["noise"], task["index"], num)
    (a, u), (drawn_a, drawn_u), of_layout, of_field = solve(layout, task["scheme"])
    dense_a, dense_u, dense_layout, dense_field = dense_means(layout, LEAST)
    errors = {"mean_a": (a, layout.a), "mean_u": (u, layout.u), "draw_a": (drawn_a, layout.a)}
    errors |= {"draw_u": (drawn_u, layout.u), "dense_a": (dense_a, layout.a), "dense_u": (dense_u, layout.u)}
    return {
        **{name: 100 * float(relative_errors(*pair).mean()) for name, pair in errors.items()},
        "seconds_layout": of_layout,
        "seconds_field": of_field,
        "dense_seconds_layout": dense_layout,
        "dense_seconds_field": dense_field,
    }


def _mean(lines: list[Line], value: str, **where: Any) -> float | None:
    chosen = [line[value] for line in lines if all(line.get(name) == wanted for name, wanted in where.items())]
    return float(np.mean(chosen)) if chosen else None


def _with_error(lines: list[Line], value: str, **where: Any) -> str:
    """The mean over layouts, and its standard error."""
    chosen = [line[value] for line in lines if all(line.get(name) == wanted for name, wanted in where.items())]
    if len(chosen) < 2:
        return _cell(chosen[0] if chosen else None)
    return f"{np.mean(chosen):.2f} ± {np.std(chosen, ddof=1) / np.sqrt(len(chosen)):.2f}"


def _cell(value: float | None, digits: int = 2) -> str:
    return NONE if value is None else f"{value:.{digits}f}"


def _comparison(lines: list[Line]) -> Table:
    rows = []
    for name in EQUATIONS:
        for side, direction in enumerate(("forward", "inverse")):
            where = {"task": name, "direction": direction, "noise": 0.0, "scheme": "five-point"}
            own = [_with_error(lines, f"{kind}_{WANTED[direction]}", **where) for kind in ("mean", "draw")]
            rows.append((name, direction, *own, *(_cell(pair[side]) for pair in PUBLISHED[name].values())))
        where = {"task": name, "direction": "both", "noise": 0.0, "scheme": "five-point"}
        for wanted in ("u", "a"):
            own = [_with_error(lines, f"{kind}_{wanted}", **where) for kind in ("mean", "draw")]
            rows.append((name, f"both, {wanted}", *own, NONE, NONE, NONE))
    rows += [(name, "not linear", NONE, NONE, NONE, NONE, NONE) for name in NOT_LINEAR]
    layouts = len({line["index"] for line in lines if line.get("noise") == 0.0 and line["task"] in EQUATIONS})
    notes = (
        f"Relative errors in percent from {NUM_READINGS} readings without noise on 128 x 128 nodes, means over "
        f"{FIELDS} fields on each of at most {layouts} layouts, with the standard error over these: forward reads the "
        "right-hand side a and asks for the solution u, inverse the other way, both reads 500 nodes of each.",
        "A draw of the exact posterior errs by about the square root of 2 times as much as its mean: that is what a "
        "perfect sampler's sample is to be compared with.",
        "FunDPS (500 steps) and DiffusionPDE as Yao et al. 2025 (arXiv 2505.17004) report them, DDIS as its authors "
        "do, on their own test fields; ours are drawn anew by the same recipe.",
        "Darcy flow, Navier-Stokes and Burgers are not linear in what is asked for: exact does not apply, and the "
        "papers' figures stand alone.",
    )
    heads = ("task", "direction", "exact mean", "exact draw", "FunDPS", "DiffusionPDE", "DDIS")
    return Table("rivals: relative L2 error, %", heads, tuple(rows), notes)


def _noise(lines: list[Line]) -> Table:
    rows = []
    for name in EQUATIONS:
        for direction in ("forward", "inverse"):
            cells = [
                _cell(_mean(lines, f"mean_{WANTED[direction]}", task=name, direction=direction, noise=noise, scheme=s))
                for s in ("five-point",)
                for noise in NOISES
            ]
            rows.append((name, direction, *cells))
    note = "Relative error of the exact mean in percent; noise as a share of the standard deviation of what is read."
    heads = ("task", "direction", *(f"noise {100 * noise:g} %" for noise in NOISES))
    return Table("rivals: noise", heads, tuple(rows), (note,))


def _scheme(lines: list[Line]) -> Table:
    rows = []
    for name in EQUATIONS:
        where = {"task": name, "direction": "inverse", "noise": 0.0}
        own = [line for line in lines if all(line.get(key) == value for key, value in where.items())]
        shared = {line["index"] for line in own if line["scheme"] == "exact"}
        own = [line for line in own if line["index"] in shared]  # on the same fields
        rows.append((name, *(_cell(_mean(own, "mean_a", scheme=s), 3) for s in ("five-point", "exact"))))
    note = (
        "Relative error of the right-hand side in percent, inverse, without noise, on the same fields: what it costs "
        "to take their solutions of five-point differences for solutions of the PDE."
    )
    return Table(
        "rivals: the discretised symbol and the plain one", ("task", "five-point", "PDE"), tuple(rows), (note,)
    )


def _speed(lines: list[Line]) -> Table:
    rows = []
    for name in EQUATIONS:
        for direction in DIRECTIONS:
            where = {"task": name, "direction": direction, "scheme": "five-point"}
            values = ("seconds_layout", "seconds_field", "dense_seconds_layout", "dense_seconds_field")
            cells = [_mean(lines, value, **where) for value in values]
            shown = [
                _cell(None if c is None else c * (1000 if "field" in value else 1), 1 if "field" in value else 2)
                for c, value in zip(cells, values, strict=True)
            ]
            rows.append((name, direction, *shown))
    note = (
        "One core: seconds for a new layout with the mean of its first field, milliseconds for the mean of each "
        "further field, both fields decoded on all nodes; beside a plain dense solution in numpy, in turn in the same "
        "process."
    )
    heads = ("task", "direction", "layout, s", "field, ms", "dense layout, s", "dense field, ms")
    return Table("rivals: time", heads, tuple(rows), (note,))


def _heat(lines: list[Line]) -> Table:
    own = [line for line in lines if line["task"] == "heat"]
    found = {name: _mean(own, name) for name in ("mae", "kappa", "mae_least_squares", "seconds")}

    def shown(value: float | None, form: str) -> str:
        return NONE if value is None else format(value, form)

    rows = (
        ("exact", shown(found["mae"], ".2e"), shown(found["kappa"], ".4f"), shown(found["seconds"], ".2f")),
        ("least squares", shown(found["mae_least_squares"], ".2e"), NONE, NONE),
        ("jax-pigp, as printed", f"{PUBLISHED_HEAT[0]:.2e}", f"{PUBLISHED_HEAT[1]:.3f}", NONE),
    )
    note = (
        f"Heat on a square of side pi between cold walls, start known, diffusivity 1 and noise 0.02 not: {len(own)} "
        "draws of 250 readings; jax-pigp (Dalton et al. 2024, JMLR 25:272) printed one, after 10,000 steps on a GPU. "
        "One draw's error depends on its noise: the diffusivity's standard deviation is 0.01."
    )
    return Table(
        "rivals: heat between cold walls", ("method", "mean absolute error", "diffusivity", "s"), rows, (note,)
    )
