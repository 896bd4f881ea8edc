"""What the lines of ``latentpde bench rivals`` amount to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from latentpde.bench.lines import Line
from latentpde.bench.rivals.fields import EQUATIONS, NUM_READINGS
from latentpde.bench.rivals.heat import least_expected_error
from latentpde.bench.rivals.published import HEAT, METHODS, NOT_LINEAR, PUBLISHED
from latentpde.bench.rivals.tasks import DIRECTIONS, FIELDS, INFERRED_MODES, LEASTS, NOISES, SCHEMES
from latentpde.bench.tables import NONE, Table

#: What is asked for: direction, and the field.
_ASKED = (("forward", "u"), ("inverse", "a"), ("both", "u"), ("both", "a"))
_PLAIN = {"noise": 0.0, "scheme": SCHEMES[0], "least": LEASTS[0]}


def comparison(lines: list[Line]) -> Table:
    """Errors of mean and draw beside those that others have published."""
    rows = []
    for name in EQUATIONS:
        for direction, wanted in _ASKED:
            where = {**_PLAIN, "task": name, "direction": direction}
            own = [_with_error(lines, f"{kind}_{wanted}", **where) for kind in ("mean", "draw")]
            direction = f"both, {wanted}" if direction == "both" else direction
            theirs = PUBLISHED.get((name, direction), (None,) * len(METHODS))
            rows.append((name, direction, *own, *map(_cell, theirs)))
    for (name, direction), theirs in PUBLISHED.items():
        if name in NOT_LINEAR:
            rows.append((name, direction, NONE, NONE, *map(_cell, theirs)))
    layouts = len({line["index"] for line in _chosen(lines, **_PLAIN)})
    notes = (
        f"Relative errors in percent from {NUM_READINGS} readings without noise on 128 x 128 nodes, means over "
        f"{FIELDS} fields on each of at most {layouts} layouts, with the standard error over these: forward reads the "
        "right-hand side a and asks for the solution u, inverse the other way, both reads 500 nodes of each.",
        "A draw of the exact posterior errs by about the square root of 2 times as much as its mean: that is what a "
        "perfect sampler's sample is to be compared with.",
        "FunDPS (500 steps) and DiffusionPDE (2000 steps) as Yao et al. 2025 (arXiv 2505.17004) report them, "
        "DiffusionPDE as its own authors do (Huang et al. 2024, arXiv 2406.17763), DDIS as its authors do (arXiv "
        "2601.23280), on their own test fields; ours are drawn anew by the same recipe.",
        "Darcy flow, Navier-Stokes and Burgers are not linear in what is asked for: exact does not apply, and the "
        "papers' figures stand alone. Burgers is posed with five sensors that read at all times, and walled "
        "Navier-Stokes in the older paper with readings of 1 % of the points.",
    )
    return Table(
        "rivals: relative L2 error, %", ("task", "direction", "exact mean", "exact draw", *METHODS), tuple(rows), notes
    )


def noise(lines: list[Line]) -> Table:
    """Errors of mean and draw as noise grows."""
    rows = []
    for name in EQUATIONS:
        for direction, wanted in _ASKED:
            cells = []
            for level in NOISES:
                where = {**_PLAIN, "task": name, "direction": direction, "noise": level}
                found = [_mean(lines, f"{kind}_{wanted}", **where) for kind in ("mean", "draw")]
                cells.append(" / ".join(_cell(value) for value in found) if found[0] is not None else NONE)
            rows.append((name, f"both, {wanted}" if direction == "both" else direction, *cells))
    note = (
        "Relative errors in percent, of the exact mean and of a draw; noise as a share of the standard deviation of "
        "what is read."
    )
    heads = ("task", "direction", *(f"noise {100 * level:g} %" for level in NOISES))
    return Table("rivals: noise", heads, tuple(rows), (note,))


def least_noise(lines: list[Line]) -> Table:
    """Whether it matters which noise is assumed of readings that have none."""
    rows = []
    for name in EQUATIONS:
        for direction, wanted in _ASKED[:2]:
            where = {**_PLAIN, "task": name, "direction": direction}
            own = _on_same_fields(lines, "least", LEASTS, **where)
            rows.append((name, direction, *(_cell(_mean(own, f"mean_{wanted}", least=least), 4) for least in LEASTS)))
    note = (
        "Relative error of the exact mean in percent, on the same fields without noise, by the noise that is assumed "
        "of them, as a share of the standard deviation of what is read; elsewhere it is the first."
    )
    heads = ("task", "direction", *(f"{least:g}" for least in LEASTS))
    return Table("rivals: noise that is assumed where there is none", heads, tuple(rows), (note,))


def scheme(lines: list[Line]) -> Table:
    """What the plain symbol costs."""
    rows = []
    for name in EQUATIONS:
        where = {**_PLAIN, "task": name, "direction": "inverse"}
        own = _on_same_fields(lines, "scheme", SCHEMES, **where)
        rows.append((name, *(_cell(_mean(own, "mean_a", scheme=s), 3) for s in SCHEMES)))
    note = (
        "Relative error of the right-hand side in percent, inverse, without noise, on the same fields: what it costs "
        "to take their solutions of five-point differences for solutions of the PDE."
    )
    return Table(
        "rivals: the discretised symbol and the plain one", ("task", "five-point", "PDE"), tuple(rows), (note,)
    )


def inferred(lines: list[Line]) -> Table:
    """What it costs to infer the prior's levels."""
    rows = []
    for name in EQUATIONS:
        own = [line for line in lines if line["task"] == f"{name}, inferred"]
        errors = [_with_error(own, kind) for kind in ("known_a", "inferred_a")]
        ratio = np.mean([line["inferred_a"] / line["known_a"] for line in own]) if own else None
        levels = _with_error(own, "std_over_length")
        seconds = _cell(float(np.median([line["seconds"] for line in own])) if own else None, 0)
        rows.append((name, str(sum(int(line["num"]) for line in own)), *errors, _cell(ratio, 3), levels, seconds))
    note = (
        "Relative error of the right-hand side in percent, inverse, noise 0.1 %, on the same fields: with the prior's "
        f"strength and length known, and with both inferred from the readings of each field; {INFERRED_MODES} modes "
        "along each axis. The last column but one is the inferred ratio of strength to length over the true one: "
        "readings in one rectangle tell this ratio, and hardly each of the two. The last is the seconds that a field "
        "took on one core, which had other work to do."
    )
    heads = ("task", "fields", "known", "inferred", "ratio", "strength / length", "s")
    return Table("rivals: levels of the prior known and inferred", heads, tuple(rows), (note,))


def speed(lines: list[Line]) -> Table:
    """Seconds, beside those of plain dense algebra."""
    values = ("seconds_layout", "seconds_field", "dense_seconds_layout", "dense_seconds_field")
    rows = []
    for name in EQUATIONS:
        for direction in DIRECTIONS:
            own = _chosen(lines, **_PLAIN, task=name, direction=direction)
            found = [float(np.median([line[value] for line in own])) if own else None for value in values]
            shown = [_cell(found[0]), _in_ms(found[1]), _cell(found[2]), _in_ms(found[3])]
            rows.append((name, direction, *shown))
    note = (
        "One core, medians over layouts: seconds for a new layout with the mean of its first field, milliseconds for "
        "the mean of each further field, both fields decoded on all nodes; beside a plain dense solution in numpy, in "
        "turn in the same process. Both directions at once have twice as many readings."
    )
    heads = ("task", "direction", "layout, s", "field, ms", "dense layout, s", "dense field, ms")
    return Table("rivals: time", heads, tuple(rows), (note,))


def heat(lines: list[Line]) -> Table:
    """Heat between cold walls."""
    own = [line for line in lines if line["task"] == "heat"]
    found = {name: _mean(own, name) for name in ("kappa", "seconds")}
    least, lucky = least_expected_error()

    def shown(value: float | None, form: str) -> str:
        return NONE if value is None else format(value, form)

    def errors(name: str) -> tuple[str, str]:
        drawn = [line[name] for line in own]
        return shown(_mean(own, name), ".2e"), f"{min(drawn):.1e} to {max(drawn):.1e}" if drawn else NONE

    rows = (
        ("exact", *errors("mae"), shown(found["kappa"], ".4f"), shown(found["seconds"], ".2f")),
        ("least squares", *errors("mae_least_squares"), NONE, NONE),
        ("least that is possible", f"{least:.2e}", NONE, NONE, NONE),
        ("jax-pigp, as printed", NONE, f"{HEAT[0]:.2e}", f"{HEAT[1]:.3f}", NONE),
    )
    note = (
        f"Heat on a square of side pi between cold walls, start known, diffusivity 1 and noise 0.02 not: {len(own)} "
        "draws of 250 readings; jax-pigp (Dalton et al. 2024, JMLR 25:272) printed one, after 10,000 steps on a GPU. "
        "Absolute errors are means over place and time. The third row is the Cramer-Rao bound, which no unbiased "
        f"estimate stays below on average; in {100 * lucky:.0f} % of draws the best one errs by less than 2.5e-4."
    )
    heads = ("method", "mean absolute error", "of single draws", "diffusivity", "s")
    return Table("rivals: heat between cold walls", heads, rows, (note,))


#: All of them, in order.
TABLES: tuple[Callable[[list[Line]], Table], ...] = (
    comparison,
    noise,
    inferred,
    least_noise,
    scheme,
    speed,
    heat,
)


def _chosen(lines: list[Line], **where: Any) -> list[Line]:
    return [line for line in lines if all(line.get(name) == wanted for name, wanted in where.items())]


def _on_same_fields(lines: list[Line], setting: str, values: tuple[Any, ...], **where: Any) -> list[Line]:
    """Lines of the layouts that were measured with all values of a setting."""
    own = [line for value in values for line in _chosen(lines, **{**where, setting: value})]
    shared = set.intersection(*({line["index"] for line in own if line[setting] == value} for value in values))
    return [line for line in own if line["index"] in shared]


def _mean(lines: list[Line], value: str, **where: Any) -> float | None:
    chosen = [line[value] for line in _chosen(lines, **where)]
    return float(np.mean(chosen)) if chosen else None


def _with_error(lines: list[Line], value: str, **where: Any) -> str:
    """The mean over layouts, and its standard error."""
    chosen = [line[value] for line in _chosen(lines, **where)]
    if len(chosen) < 2:
        return _cell(chosen[0] if chosen else None)
    return f"{np.mean(chosen):.2f} ± {np.std(chosen, ddof=1) / np.sqrt(len(chosen)):.2f}"


def _cell(value: Any, digits: int = 2) -> str:
    return NONE if value is None else f"{value:.{digits}f}"


def _in_ms(seconds: float | None) -> str:
    return _cell(None if seconds is None else 1000 * seconds, 1)
