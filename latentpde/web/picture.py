"""Fields and posteriors as JSON."""

from __future__ import annotations

from base64 import b64encode

from jaxtyping import Float
from torch import Tensor

from latentpde.posterior import PDEPosterior


def encoded(field: Float[Tensor, "y x"]) -> dict:
    """A field as `latentpde.web.models.FieldData`.

    >>> import torch
    >>> encoded(torch.zeros(1, 1))
    {'shape': [1, 1], 'data': 'AAAAAA=='}
    """
    return {"shape": list(field.shape), "data": b64encode(field.numpy().astype("<f4").tobytes()).decode()}


def coefficient_results(posterior: PDEPosterior, truth: Float[Tensor, " coefficient"] | None = None) -> list[dict]:
    """Posteriors of the first case's coefficients, each as `latentpde.web.models.CoefficientResult`."""
    draws, latent = posterior.spread_thetas[0], posterior.latent
    return [
        {
            "name": coefficient.name,
            "meaning": coefficient.meaning,
            "unit": coefficient.unit,
            "bounds": latent.bounds[i].tolist(),
            "draws": draws[:, i].tolist(),
            "truth": None if truth is None else float(truth[i]),
        }
        for i, coefficient in enumerate(latent.family.coefficients)
    ]
