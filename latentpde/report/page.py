"""One self-contained page about one case: what was observed, what was reconstructed, and how sure it is."""

from __future__ import annotations

import base64
import io
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from markupsafe import Markup, escape
from matplotlib.figure import Figure

import latentpde
from latentpde.io.files import atomic_path, check_writable
from latentpde.observation import Observation
from latentpde.posterior import PDEPosterior, Posterior, Resolution
from latentpde.posterior.spread import QUANTILES, interval_probability
from latentpde.posterior.summary import Summary
from latentpde.report.fields import (
    CaseFields,
    case_fields,
    observation_maps,
    plot_coefficients,
    psd_figure,
    reconstruction_maps,
    shown_snapshots,
    source_maps,
)
from latentpde.report.maps import map_figure
from latentpde.report.render import render
from latentpde.report.style import WIDTH
from latentpde.scores.metrics import PSD_FLOOR, ensemble_size, score

NARROW = 3.8  # inches: what a phone shows at full size
_TIMES, _MINUS = "\u00d7", "\u2212"
_READINGS = {
    "lowres-solve": "cells of a coarse-grid solution",
    "pooled": "cell averages",
    "point": "point sensors",
}


def write_report(
    posterior: Posterior,
    path: str | Path,
    *,
    truth=None,
    case: int = 0,
    resolution: Resolution = None,
    summary: Summary | None = None,
) -> None:
    """Write an HTML page that needs nothing but itself.

    Args:
        posterior: what to report on; sections that it has nothing to say about are left out.
        path: replaced only when the page is complete.
        truth: the true field, ``([case,] [time,] y, x)`` on any grid; adds the error and the scores.
        case: its number, from 0.
        resolution: of the maps; by default the truth's own, else the posterior's.
        summary: where the posterior is decoded already, with the draws of this case: its numbers are shown.

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
    page = render_report(posterior, truth=truth, case=case, resolution=resolution, summary=summary)
    with atomic_path(path) as temporary:
        temporary.write_text(page, encoding="utf-8")


def render_report(
    posterior: Posterior,
    *,
    truth=None,
    case: int = 0,
    resolution: Resolution = None,
    summary: Summary | None = None,
) -> str:
    """The page itself; arguments as those of `write_report`."""
    fields = case_fields(posterior, case, truth, resolution, summary)
    latent = posterior if isinstance(posterior, PDEPosterior) else None
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams["svg.hashsalt"] = "latentpde"  # the same posterior gives the same bits
        figures = _figures(posterior, latent, fields, case)
    return render(
        "report.html",
        {"subscripts": _subscripts},
        family=latent.latent.family if latent else None,
        facts=_facts(posterior, latent, fields, case),
        has_spread=fields.has_spread,
        has_truth=fields.truth is not None,
        num_hidden=len(posterior.observation.times) - len(shown_snapshots(posterior.observation)),
        observation=posterior.observation,
        time=_number(posterior.observation.times[-1]),
        method=posterior.method,
        figures=figures,
        coefficients=_coefficients(latent, case) if latent else None,
        has_source=latent is not None and latent.latent.num_modes > 0,
        scores=_scores(fields) if fields.truth is not None else None,
        diagnostics=_diagnostics(posterior, case),
        warnings=posterior.warnings(case),
        settings=_json(_settings(posterior, latent, fields, case)),
        version=latentpde.__version__,
    )


def _figures(
    posterior: Posterior, latent: PDEPosterior | None, fields: CaseFields, case: int
) -> dict[str, dict[str, Any]]:
    """Each figure at two widths: for a screen, and for a phone."""
    coarse = posterior.observation.grid
    steady = latent is not None and latent.latent.family.order == 0
    initial = "Coarse right-hand side u0" if steady else "Coarse initial state"
    maps = {
        "observed": observation_maps(posterior.observation, case, initial),
        "field": reconstruction_maps(fields),
    }
    if latent and latent.latent.num_modes:
        maps["source"] = source_maps(fields)
    figures = {name: _both(lambda width, group=group: map_figure(group, width)) for name, group in maps.items()}
    if latent:
        figures["coefficients"] = _both(lambda width: plot_coefficients(latent, case, width=width))
    figures["psd"] = _both(lambda width: psd_figure(fields, coarse, width=min(width, 6.5)))
    return figures


def _both(draw: Callable[[float], Figure]) -> dict[str, Any]:
    return {name: _image(_svg(draw(width))) for name, width in (("wide", WIDTH), ("narrow", NARROW))}


def _svg(figure: Figure) -> bytes:
    buffer = io.BytesIO()
    metadata = {"Date": None, "Creator": None}
    figure.savefig(buffer, format="svg", metadata=metadata, bbox_inches="tight", pad_inches=0.05)
    return buffer.getvalue()


def _image(svg: bytes) -> dict[str, Any]:
    points = re.search(rb'width="([\d.]+)pt"', svg)
    assert points
    source = "data:image/svg+xml;base64," + base64.b64encode(svg).decode("ascii")
    return {"source": source, "width": round(float(points[1]) * 4 / 3)}


def _facts(posterior: Posterior, latent: PDEPosterior | None, fields: CaseFields, case: int) -> dict[str, str]:
    observation = posterior.observation
    family = latent.latent.family if latent else None
    steady = family is not None and family.order == 0
    times = ", ".join(map(_number, observation.times[:8])) + (" …" if len(observation.times) > 8 else "")
    noise = posterior.noise_stds(case).numpy()
    known = not bool(observation.noise_std[case][observation.mask[case]].isnan().any())
    return {
        "Method": posterior.method,
        "Estimate": _estimate(fields, float(np.median(noise))),
        **({"Quantiles": posterior.quantiles_note} if fields.has_spread else {}),
        "Readings": _readings(observation, case),
        "Noise (standard deviation)": _range(noise) + ("" if known else ", inferred"),
        "PDE time": "none (steady state)" if steady else times,
        "Domain, width and height": f"{_number(fields.grid.extent[1])} {_TIMES} {_number(fields.grid.extent[0])}",
        "Grid, width and height": f"{_shape(observation.grid)} observed, {_shape(fields.grid)} shown",
        "Case": f"{case} (of {observation.num_cases}, counted from 0)",
        "Seed": str(posterior.settings.get("seed", "not recorded")),
        "LatentPDE version": latentpde.__version__,
    }


def _estimate(fields: CaseFields, noise: float) -> str:
    if not fields.has_spread:
        return "point estimate, without uncertainty"
    if len(fields.draws) == 1:
        return "1 draw"
    enough = int(ensemble_size(fields.draws, noise / 10))
    return f"{len(fields.draws)} draws; the mean of {enough} would be known to a tenth of the noise"


def _readings(observation: Observation, case: int) -> str:
    count, places = int(observation.num_readings[case]), observation.mask[case].numel()
    share = "" if observation.observed == "point" else f" of {places} ({100 * count / places:.1f} %)"
    return f"{count}{share}, {_READINGS[observation.observed]}"


def _coefficients(posterior: PDEPosterior, case: int) -> list[dict[str, str]]:
    latent, spread = posterior.latent, posterior.coefficient_spread()
    low, high = QUANTILES.index(0.05), QUANTILES.index(0.95)
    rows = []
    for k, (bounds, coefficient) in enumerate(zip(latent.bounds.tolist(), latent.family.coefficients, strict=True)):
        row = {"name": coefficient.name, "meaning": coefficient.meaning, "unit": coefficient.unit}
        row["bounds"] = f"{_number(bounds[0])} to {_number(bounds[1])}"
        row["mean"] = _number(posterior.spread_thetas[case, :, k].mean())
        if posterior.has_spread:
            quantiles = spread.quantiles[case, :, k]
            row |= {
                "std": _number(spread.std[case, k]),
                "q05": _number(quantiles[low]),
                "q95": _number(quantiles[high]),
            }
        rows.append(row)
    return rows


def _scores(fields: CaseFields) -> list[tuple[str, str, str]]:
    assert fields.truth is not None
    values = score(fields.mean, fields.truth, fields.draws)
    num_draws = len(fields.draws)
    relative = values["rmse"] / (fields.truth.std() or np.nan)
    rows = [
        ("rmse", "RMSE", f"root mean square error; {100 * relative:.3g} % of the truth's standard deviation"),
        ("mae", "MAE", "mean absolute error"),
        ("psd", "PSD log error", f"decades between the power spectra, which are floored at {PSD_FLOOR:g}"),
    ]
    if num_draws > 1:
        calibrated = f"{interval_probability(num_draws):.2f} if calibrated, with {num_draws} draws"
        rows += [
            ("crps", "CRPS (fair)", "error of the whole distribution, in the field's units; lower is better"),
            ("coverage90", "Coverage of the 90 % interval", calibrated),
            ("spread_error", "Spread over error", "1 if calibrated, below 1 if overconfident"),
        ]
    return [(label, _number(values[name]), meaning) for name, label, meaning in rows]


def _diagnostics(posterior: Posterior, case: int) -> list[tuple[str, str]]:
    rows = []
    for name, value in posterior.diagnostics.items():
        array = None if isinstance(value, str | dict) else np.asarray(value)
        if array is not None and array.ndim and len(array) == posterior.observation.num_cases:
            array = array[case]
        rows.append((str(name).replace("_", " "), _short(value if array is None else array)))
    return rows


def _settings(posterior: Posterior, latent: PDEPosterior | None, fields: CaseFields, case: int) -> dict[str, Any]:
    prior = {}
    if latent:
        layout = latent.latent
        bounds = dict(zip(layout.family.coefficient_names, layout.bounds.tolist(), strict=True))
        prior = {"family": layout.family.name, "bounds": bounds, "source_prior_std": layout.source_prior_std}
        prior["num_modes"] = layout.num_modes
    shown = {"case": case, "resolution": list(fields.grid.shape), "latentpde": latentpde.__version__}
    return {"method": posterior.method, "options": posterior.settings, **prior, **shown}


def _subscripts(equation: str) -> Markup:
    """``u_t`` with its subscript lowered, and everything else escaped."""
    return Markup(re.sub(r"_(\w+)", r"<sub>\1</sub>", str(escape(equation))))


def _json(settings: dict[str, Any]) -> str:
    text = json.dumps(settings, indent=2, ensure_ascii=False, default=str)
    # short lists of numbers on one line; strings hold no raw newline, so they stay as they are
    return re.sub(r'\[\n([^\[\]{}"]*)\]', lambda found: f"[{' '.join(found[1].split())}]", text)


def _short(value: Any, most: int = 6) -> str:
    """A value in a table's cell: numbers to four digits, the first few of many."""
    if not isinstance(value, np.ndarray | np.generic):
        text = str(value)
        return text if len(text) <= 200 else text[:200] + " …"
    if np.ndim(value) == 0:
        return _number(value)
    flat = np.ravel(value)
    more = f" … ({f' {_TIMES} '.join(map(str, np.shape(value)))} values)" if flat.size > most else ""
    return ", ".join(_number(v) for v in flat[:most]) + more


def _number(value: Any) -> str:
    value = np.asarray(value).item()
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.4g}".replace("-", _MINUS) if isinstance(value, float) else str(value)


def _range(values: np.ndarray) -> str:
    low, high = _number(values.min()), _number(values.max())
    return low if low == high else f"{low} to {high}"


def _shape(grid) -> str:
    return f"{grid.shape[1]} {_TIMES} {grid.shape[0]}"
