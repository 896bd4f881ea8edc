"""What is measured of solved cases: by default the scores of the field and the coefficients.

A study that needs something else adds a function to `measurements` under a name, and names it in its jobs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from latentpde.bench.solving import Solved
from latentpde.posterior import PDEPosterior, Posterior
from latentpde.scores.metrics import score

#: By name, functions from some solved cases to a dictionary for each of them.
measurements: dict[str, Callable[[Solved], list[dict[str, Any]]]] = {}


def measure_scores(solved: Solved) -> list[dict[str, Any]]:
    """Scores of the field, errors of the coefficients and the evidence, as far as a method has them.

    Example:
        >>> from latentpde.bench.jobs import Job, Part, cases_of
        >>> from latentpde.bench.rows import row
        >>> from latentpde.bench.solving import solve
        >>> (found,) = measure_scores(solve(Part(Job(row=row("map"), simulation=cases_of("helmholtz")), 0, 1)))
        >>> sorted(found)
        ['crps', 'mae', 'psd', 'rms_of_truth', 'rmse', 'theta_error']
    """
    scores, posterior = score(solved.mean, solved.truth, solved.draws), solved.posterior
    found = []
    for i, truth in enumerate(solved.truth):
        line = {name: rounded(values[i]) for name, values in scores.items() if np.isfinite(values[i])}
        line["rms_of_truth"] = rounded(np.sqrt(np.mean(truth**2)))
        if solved.job.family is None:
            line |= _coefficients(posterior, i, solved.theta[i])
        if "log_evidence" in posterior.diagnostics:
            line["log_evidence"] = round(float(posterior.diagnostics["log_evidence"][i]), 4)
        found.append(line)
    return found


def measure_time(solved: Solved) -> list[dict[str, Any]]:
    """Scores, and how many numbers a method had learned; the seconds are added to every line anyway."""
    size = solved.posterior.diagnostics.get("num_parameters")
    return [{**line, **({} if size is None else {"parameters": int(size)})} for line in measure_scores(solved)]


measurements["scores"], measurements["time"] = measure_scores, measure_time


def _coefficients(posterior: Posterior, i: int, truth: np.ndarray) -> dict[str, Any]:
    """Errors and standard deviations of the coefficients, as shares of the widths of their bounds."""
    if not isinstance(posterior, PDEPosterior):
        return {}
    width = np.ptp(posterior.latent.bounds.numpy(), axis=1)
    theta = posterior.thetas[i].numpy()
    found = {"theta_error": [rounded(v) for v in np.abs(theta.mean(0) - truth) / width]}
    if len(theta) > 1:
        found["theta_std"] = [rounded(v) for v in theta.std(0, ddof=1) / width]
    return found


def rounded(value: float) -> float:
    """A number to four significant digits, as files hold it.

    Example:
        >>> rounded(0.0123456)
        0.01235
    """
    return float(f"{value:.4g}")
