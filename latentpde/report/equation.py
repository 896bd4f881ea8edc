"""What speaks for the equation, in words and as a table: families that were compared, and the checks of the model."""

from __future__ import annotations

from typing import Any

from latentpde.posterior import Posterior
from latentpde.posterior.adequacy import FALSE_ALARM
from latentpde.questions.model_check import model_sentences


def equation_found(posterior: Posterior, case: int) -> dict[str, Any] | None:
    """Rows of the families that were compared, the likeliest first, and sentences; ``None`` where there is nothing to
    say.

    >>> import latentpde as lp
    >>> cases = lp.simulate("diffusion", num=1, seed=2, shape=(32, 32), num_modes=3, sparsity=0.1)
    >>> equation_found(lp.reconstruct(cases), 0)["rows"]
    []

    Args:
        posterior: of any method.
        case: its number, from 0.
    """
    families = posterior.settings.get("families", {})
    rows = [
        {
            "name": name,
            "probability": f"{one['probability']:.3g}",
            "evidence": f"{one['log_evidence']:.1f} ± {one['error']:.2f}",
            "wide": f"{one['log_evidence_wide']:.1f}" if "log_evidence_wide" in one else "not tried",
        }
        for name, one in families.items()
    ]
    said = list(posterior.settings.get("families_notes", ()))
    p = float(posterior.diagnostics["p_model"][case]) if "p_model" in posterior.diagnostics else 0.0
    if p >= FALSE_ALARM:  # below, a warning says what was found
        said.append(
            "The checks that every run makes find nothing against it: by chance alone readings deviate as far from a "
            f"right equation with a probability of {p:.2g}."
        )
    said += model_sentences(posterior, case)
    return {"rows": rows, "sentences": said} if rows or said else None
