"""One self-contained page about a reconstruction: what was read, what was found, how sure it is, what it rests on.

A reader points at its maps for values, switches between quantities and slides through time; the numbers and the script
for this are in the page, and nothing is fetched. It prints, and it is made for phones and dark screens too.
"""

from __future__ import annotations

import base64
import io
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib
import numpy as np
from markupsafe import Markup, escape
from matplotlib.figure import Figure

import latentpde
from latentpde.frame import Frame
from latentpde.io.files import atomic_path, check_writable
from latentpde.posterior import PDEPosterior, Posterior, Resolution
from latentpde.posterior.summary import Summary
from latentpde.questions.identifiability import identifiability, parameter_samples
from latentpde.report import charts, tables, words
from latentpde.report.equation import equation_found
from latentpde.report.fields import CaseFields, case_fields, psd_figure
from latentpde.report.film import Film, make_film, packed
from latentpde.report.knowledge import knowledge_sentences, plot_corner
from latentpde.report.maps import FieldMap, map_figure
from latentpde.report.render import read_template, render
from latentpde.report.scored import score_rows
from latentpde.report.source import source_film
from latentpde.scores.truth import last_true_field

if TYPE_CHECKING:
    from latentpde.scores.holdout import Holdout

MOST_CASES = 60  # that have a section of their own
#: Colours of the page's scales, by matplotlib's names.
COLOURS = {"value": "viridis", "signed": "RdBu_r", "spread": "YlOrBr", "probability": "YlGnBu"}


@dataclass(frozen=True, kw_only=True)
class Extras:
    """What a page shows beside the posterior.

    Args:
        truth: the true field, ``([case,] [time,] y, x)`` on any grid; adds the error and the scores.
        holdout: scores of held-out readings.
        threshold: in the unit of the readings; adds the probability of lying above it.
        command: that made the result, so that it can be repeated.
    """

    truth: Any = None
    holdout: Holdout | None = None
    threshold: float | None = None
    command: str = ""


def write_report(
    posterior: Posterior,
    path: str | Path,
    *,
    case: int | None = None,
    resolution: Resolution = None,
    summary: Summary | None = None,
    **extras: Any,
) -> None:
    """Write an HTML page that needs nothing but itself.

    Args:
        posterior: what to report on; sections that it has nothing to say about are left out.
        path: replaced only when the page is complete.
        case: the number of a single case, from 0; all of them by default.
        resolution: cells along the shorter side of the maps at most; as many as a page holds by default.
        summary: where the posterior is decoded already.
        extras: the arguments of `Extras`.

    `Posterior.report` is the short way to it:

    >>> import tempfile
    >>> import latentpde as lp
    >>> posterior = lp.reconstruct(lp.simulate("diffusion", num=1), method="map", num_steps=5)
    >>> path = Path(tempfile.mkdtemp()) / "out.html"
    >>> write_report(posterior, path, resolution=16)
    >>> path.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    True
    """
    check_writable(path)
    page = render_report(posterior, case=case, resolution=resolution, summary=summary, **extras)
    with atomic_path(path) as temporary:
        temporary.write_text(page, encoding="utf-8")


def render_report(
    posterior: Posterior,
    *,
    case: int | None = None,
    resolution: Resolution = None,
    summary: Summary | None = None,
    **extras: Any,
) -> str:
    """The page itself; arguments as those of `write_report`."""
    given, observation = Extras(**extras), posterior.observation
    if case is not None:
        observation.require_case(case)
    cases = range(observation.num_cases)[:MOST_CASES] if case is None else range(case, case + 1)
    finest = min(resolution) if isinstance(resolution, tuple) else resolution
    if finest is None and summary is not None:
        finest = min(summary.grid.shape)
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams["svg.hashsalt"] = "latentpde"  # the same posterior gives the same bits
        shown = [_case(posterior, one, len(cases), finest, summary, given) for one in cases]
    repeat, language = words.repeated(posterior, given.command)
    return render(
        "report.html",
        {"subscripts": _subscripts, "unbroken": _unbroken},
        title=_title(posterior),
        family=posterior.latent.family if isinstance(posterior, PDEPosterior) else None,
        method=posterior.method,
        cases=shown,
        overview=_overview(posterior, len(cases)),
        holdout=_holdout(given.holdout, observation.frame or Frame()) if given.holdout and len(cases) > 1 else None,
        repeat=repeat,
        language=language,
        settings=_json(_settings(posterior)),
        version=latentpde.__version__,
        colours=_for_script({name: _colour_table(name) for name in COLOURS}),
        css=Markup(read_template("report.css")),
        script=Markup(read_template("report.js")),
    )


def _case(
    posterior: Posterior, case: int, num_cases: int, finest: int | None, summary: Summary | None, given: Extras
) -> dict[str, Any]:
    """All that the page shows of one case."""
    observation = posterior.observation
    truth = None if given.truth is None else last_true_field(given.truth, observation, case)
    film = make_film(
        posterior,
        case,
        resolution=finest,
        threshold=given.threshold,
        truth=truth,
        num_cases=num_cases,
        most_frames=24 if num_cases < 4 else 8,
    )
    odd = tables.outliers(posterior, case)
    alone = num_cases == 1
    fields = None
    if truth is not None or (alone and observation.positions is None):
        at_hand = summary if summary is not None and case in summary.draws else None
        fields = case_fields(posterior, case, given.truth, finest if truth is None else None, at_hand)
    holdout = given.holdout if alone else None  # its scores are of all cases together, and stand before them
    return {
        "case": case,
        "has_spread": posterior.has_spread,
        "warnings": posterior.warnings(case),
        "summary": words.summary(posterior, film, holdout, given.threshold, len(odd or ())),
        "short": words.short(posterior, film),
        "data": _for_script(packed(film, posterior, odd or {})),
        "num_frames": len(film.times),
        "film_note": words.film_note(posterior, film),
        "has_dots": bool(len(film.times)),
        "still": _still(film) if case == 0 or alone else "",
        "holdout": _holdout(holdout, observation.frame or Frame()) if holdout else None,
        "scores": score_rows(fields) if fields is not None and truth is not None else None,
        "parameters": [
            {**one.row(), "chart": charts.density(one.draws, one.bounds, f"Distribution of {one.name}")}
            for one in tables.parameters(posterior, case)
        ],
        "knowledge": _knowledge(posterior, case, alone),
        "equation": equation_found(posterior, case),
        "source": _source(posterior, case, film),
        "fit": _fit(posterior, case, odd),
        "assumptions": words.assumptions(posterior, case),
        "psd": _psd(fields, posterior) if fields is not None and alone and observation.positions is None else None,
        "diagnostics": tables.diagnostics(posterior, case),
    }


def _title(posterior: Posterior) -> str:
    frame = posterior.observation.frame or Frame()
    name = "Field" if frame.value == "value" else frame.value_attributes.get("long_name", frame.value)
    return f"{name[:1].upper()}{name[1:]} reconstructed from sparse readings"


def _overview(posterior: Posterior, num_shown: int) -> str:
    num, bad = posterior.observation.num_cases, sum(bool(posterior.warnings(c)) for c in range(num_shown))
    trusted = f"{bad} of them come with a warning" if bad else "none of them comes with a warning"
    more = f"; the first {num_shown} have a section here" if num_shown < num else ""
    return f"{num} cases, each reconstructed by itself; {trusted}{more}."


def _holdout(holdout: Holdout, frame: Frame) -> dict[str, Any]:
    table = holdout.readings
    chart = charts.predicted_and_read(
        table["mean"].to_numpy(),
        table["std"].to_numpy(),
        table["value"].to_numpy(),
        frame.value_unit,
        "Held-out readings against what was predicted for them",
    )
    rows = [
        {"name": name, "cells": ["not said" if c == "-" else c.replace("-", words.MINUS) for c in cells]}
        for name, *cells in holdout.rows()
    ]
    return {"sentence": holdout.sentence, "num_kept": holdout.num_kept, "rows": rows, "chart": chart}


def _fit(posterior: Posterior, case: int, odd: dict[int, float] | None) -> dict[str, Any] | None:
    if odd is None:
        return None
    z = tables.z_scores(posterior, case)
    assert z is not None
    chart = charts.histogram_of_z(z, "Histogram of z-scores of the readings, each predicted from the others")
    many = f"; the {tables.MOST_OUTLIERS} worst are listed" if len(odd) > tables.MOST_OUTLIERS else ""
    found = (
        f"{len(odd)} of {len(z)} readings lie more than {tables.OUTLIER} standard deviations from what the others and "
        f"the PDE predict for them, ringed in orange on the map{many}. Look at these first: a bad instrument, a wrong "
        "unit, or something that the equation does not know."
        if odd
        else f"All {len(z)} readings lie within {tables.OUTLIER} standard deviations of what the others predict."
    )
    spread = (
        f" Each reading was predicted from all others: their z-scores have a standard deviation of {z.std():.2f}, "
        "where 1 is expected (the dashed curve)."
    )
    spread += tables.set_aside_sentence(posterior, case)
    return {"chart": chart, "sentence": found + spread, "rows": tables.outlier_rows(posterior, case, odd)}


def _source(posterior: Posterior, case: int, film: Film) -> dict[str, Any] | None:
    if not isinstance(posterior, PDEPosterior) or not posterior.latent.num_modes:
        return None
    found = source_film(posterior, case, film.grid)
    if not np.nan_to_num(np.stack([layer.values for layer in found.layers])).any():
        return None  # none was asked for
    return {"data": _for_script(packed(found, posterior, {}) | {"stations": []}), "sentence": words.source(found)}


def _knowledge(posterior: Posterior, case: int, alone: bool) -> dict[str, Any] | None:
    if parameter_samples(posterior, case) is None:
        return None
    known = identifiability(posterior, case)
    chart = _image(_svg(plot_corner(known))) if alone and len(known.names) > 1 else None
    return {"sentences": knowledge_sentences(known), "chart": chart}


def _still(film: Film) -> str:
    """The last snapshot as a picture, for readers without scripts."""
    maps = []
    for layer in film.layers[:2]:
        low, high, colours = film.scales[layer.scale]
        values = np.ma.masked_invalid(layer.values[-1])
        maps.append(FieldMap(layer.title, film.grid, values, high, low=low, colours=COLOURS[colours]))
    return _image(_svg(map_figure(maps, 7.0)))["source"]


def _psd(fields: CaseFields, posterior: Posterior) -> dict[str, Any]:
    return _image(_svg(psd_figure(fields, posterior.observation.grid, width=6.5)))


def _svg(figure: Figure) -> bytes:
    buffer = io.BytesIO()
    metadata = {"Date": None, "Creator": None}
    figure.savefig(buffer, format="svg", metadata=metadata, bbox_inches="tight", pad_inches=0.05, transparent=True)
    return buffer.getvalue()


def _image(svg: bytes) -> dict[str, Any]:
    points = re.search(rb'width="([\d.]+)pt"', svg)
    assert points
    source = "data:image/svg+xml;base64," + base64.b64encode(svg).decode("ascii")
    return {"source": source, "width": round(float(points[1]) * 4 / 3)}


def _colour_table(name: str) -> str:
    table = matplotlib.colormaps[COLOURS[name]](np.arange(256), bytes=True)[:, :3]
    return base64.b64encode(np.ascontiguousarray(table).tobytes()).decode()


def _settings(posterior: Posterior) -> dict[str, Any]:
    prior = {}
    if isinstance(posterior, PDEPosterior):
        layout = posterior.latent
        bounds = dict(zip(layout.family.coefficient_names, layout.bounds.tolist(), strict=True))
        prior = {"family": layout.family.name, "bounds": bounds, "source_prior_std": layout.source_prior_std}
        prior["num_modes"] = layout.num_modes
    return {"method": posterior.method, "options": posterior.settings, **prior, "latentpde": latentpde.__version__}


def _subscripts(equation: str) -> Markup:
    """``u_t`` with its subscript lowered, and everything else escaped."""
    return Markup(re.sub(r"_(\w+)", r"<sub>\1</sub>", str(escape(equation))))


def _unbroken(text: str) -> str:
    """The same with numbers that stay in one line with their percent signs."""
    return str(text).replace(" %", f"{words.SPACE}%")


def _json(settings: dict[str, Any]) -> str:
    text = json.dumps(settings, indent=2, ensure_ascii=False, default=str)
    # short lists of numbers on one line; strings hold no raw newline, so they stay as they are
    return re.sub(r'\[\n([^\[\]{}"]*)\]', lambda found: f"[{' '.join(found[1].split())}]", text)


def _for_script(data: dict[str, Any]) -> str:
    """JSON that nothing in it can end early, whatever names the user has."""
    text = json.dumps(data, allow_nan=False, separators=(",", ":"))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")
