"""Scores against the truth, as a page shows them."""

from __future__ import annotations

import numpy as np

from latentpde.posterior.spread import interval_probability
from latentpde.report.fields import CaseFields
from latentpde.report.words import number
from latentpde.scores.metrics import PSD_FLOOR, score


def score_rows(fields: CaseFields) -> list[tuple[str, str, str]]:
    """Name, value and meaning of each score."""
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
    return [(label, number(values[name]), meaning) for name, label, meaning in rows]
