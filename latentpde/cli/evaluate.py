"""`latentpde evaluate`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from latentpde.cli.options import AsJson


def evaluate(
    reconstruction: Annotated[Path, typer.Argument(help="File that `reconstruct` wrote.")],
    cases: Annotated[Path, typer.Argument(help="File that `simulate` wrote, with the truths.")],
    as_json: AsJson = False,
) -> None:
    """Score a reconstruction against the truth."""
    from latentpde.io.netcdf import open_cases, open_observed
    from latentpde.scores.evaluate import evaluate as run

    scores = run(open_observed(reconstruction), open_cases(cases))
    if as_json:
        print(json.dumps(scores))
        return
    labels = {
        "rmse": "RMSE",
        "mae": "MAE",
        "psd": f"PSD log error (floor {scores['psd_floor']:g})",
        "crps": {
            "fair": "CRPS (fair)",
            "quantiles": "CRPS (from quantiles; exact with --keep-draws)",
            "point": "CRPS (of a point estimate: the MAE)",
        }[scores["crps_estimator"]],
        "coverage90": "coverage of 90 % intervals",
        "spread_error": "spread / error",
    }
    print(f"{scores['num_cases']} case(s), method {scores['method']}, means over cases")
    for name, label in labels.items():
        value = scores.get(name)
        print(f"  {label:<52}{'none' if value is None else f'{value:.4f}'}")
