"""The measurements that ``latentpde bench rivals`` consists of."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from latentpde.bench.lines import Line
from latentpde.bench.rivals.dense import dense_means
from latentpde.bench.rivals.exact import LEAST, infer_levels, solve
from latentpde.bench.rivals.fields import EQUATIONS, Layout, relative_errors
from latentpde.bench.rivals.heat import heat_case

FIELDS = 50  # of a layout
DIRECTIONS = ("forward", "inverse", "both")
NOISES = (0.0, 1e-4, 1e-3, 1e-2, 5e-2)
SCHEMES = ("five-point", "exact")
LEASTS = (LEAST, 1e-4, 1e-6)  # noise that is assumed of readings that have none
INFERRED_NOISE, INFERRED_MODES, INFERRED_FIELDS, INFERRED_LAYOUTS = 1e-3, 64, 2, 5
_HEAT_CASES = 20
_INFERRED = ", inferred"


def tasks(num: int) -> Iterator[Line]:
    """What is to be measured for some fields of each equation; what is timed comes first."""
    layouts, plain = range(max(1, num // FIELDS)), {"noise": 0.0, "scheme": SCHEMES[0], "least": LEASTS[0]}
    settings = [(plain, DIRECTIONS, layouts)]
    settings += [({**plain, "least": least}, DIRECTIONS[:2], layouts[:2]) for least in LEASTS[1:]]
    settings += [({**plain, "scheme": SCHEMES[1]}, DIRECTIONS[1:2], layouts)]
    settings += [({**plain, "noise": noise}, DIRECTIONS, layouts) for noise in NOISES[1:]]
    for setting, directions, indices in settings:
        for index in indices:
            for name in EQUATIONS:
                for direction in directions:
                    yield {"task": name, "direction": direction, **setting, "index": index}
    for index in range(min(_HEAT_CASES, num)):
        yield {"task": "heat", "index": index}
    for index in layouts[:INFERRED_LAYOUTS]:
        for name in EQUATIONS:
            yield {"task": name + _INFERRED, "index": index}


def key(line: Line) -> Line:
    """The task that a line is the measurement of."""
    names = ("task", "direction", "noise", "scheme", "least", "index")
    return {name: line[name] for name in names if name in line}


def measure(task: Line) -> dict[str, Any]:
    """What a task asks for."""
    if task["task"] == "heat":
        return heat_case(task["index"])
    if task["task"].endswith(_INFERRED):
        return measure_inferred(task["task"].removesuffix(_INFERRED), task["index"])
    return measure_layout(task)


def measure_layout(task: dict[str, Any], num: int = FIELDS) -> dict[str, Any]:
    """Errors of mean and draw over the fields of a layout; without noise, the seconds of `exact` and of a dense
    solution too.

    Args:
        task: equation, direction, noise, scheme, noise that is assumed where there is none, and index of the layout.
        num: fields.
    """
    layout = Layout.draw(task["task"], task["direction"], task["noise"], task["index"], num)
    (a, u), (drawn_a, drawn_u), of_layout, of_field = solve(layout, task["scheme"], task["least"])
    errors = {"mean_a": (a, layout.a), "mean_u": (u, layout.u), "draw_a": (drawn_a, layout.a)}
    errors |= {"draw_u": (drawn_u, layout.u)}
    seconds = {}
    if not task["noise"] and task["scheme"] == SCHEMES[0] and task["least"] == LEAST:
        dense_a, dense_u, dense_layout, dense_field = dense_means(layout, LEAST)
        errors |= {"dense_a": (dense_a, layout.a), "dense_u": (dense_u, layout.u)}
        seconds = {
            "seconds_layout": of_layout,
            "seconds_field": of_field,
            "dense_seconds_layout": dense_layout,
            "dense_seconds_field": dense_field,
        }
    return {**{name: 100 * float(relative_errors(*pair).mean()) for name, pair in errors.items()}, **seconds}


def measure_inferred(name: str, index: int, num: int = INFERRED_FIELDS) -> dict[str, Any]:
    """Errors of the right-hand side with the levels of its prior known, and with these inferred field by field.

    Args:
        name: of the equation.
        index: of the layout.
        num: fields.
    """
    layout = Layout.draw(name, "inverse", INFERRED_NOISE, index, num)
    known, *_ = solve(layout, num_modes=INFERRED_MODES)
    found, std_over_length, seconds = infer_levels(layout, INFERRED_MODES, seed=index)
    return {
        "num": num,
        "known_a": 100 * float(relative_errors(known[0], layout.a).mean()),
        "inferred_a": 100 * float(relative_errors(found, layout.a).mean()),
        "std_over_length": std_over_length,
        "seconds": seconds,
    }
