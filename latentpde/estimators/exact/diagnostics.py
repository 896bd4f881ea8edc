"""What `exact` says of its own success: evidence, effort, fit, and readings that the others do not expect."""

from __future__ import annotations

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from latentpde.estimators.exact.model import Model
from latentpde.estimators.exact.parameters import Parameters
from latentpde.estimators.exact.search import WeightedSamples
from latentpde.estimators.exact.warnings import MOST_PRIOR_TO_NOISE
from latentpde.grid import wavenumbers
from latentpde.posterior.adequacy import FALSE_ALARM, Check, combined

_MOST_LEFT_OUT, _LEFT_OUT_NODES = 3000, 8  # readings that are left out one by one, and parameters that this is done for


def left_out(model: Model, nodes: Float[Tensor, "node parameter"]) -> tuple[Tensor, Tensor] | None:
    """Of as many nodes as the time allows that a search took anyway."""
    num = len(model.likelihood.values)
    few = 0 if num > _MOST_LEFT_OUT else max(1, min(_LEFT_OUT_NODES, _MOST_LEFT_OUT // num))
    with torch.no_grad():
        return model.leave_one_out(nodes[:few]) if few else None


def prior_to_noise(model: Model, parameters: Float[Tensor, "node parameter"]) -> float:
    """How much larger the variance is that the source's prior gives a steady field than that of the noise, at the most;
    beyond `MOST_PRIOR_TO_NOISE` double precision cannot tell what the readings leave of it. Other fields are bounded by
    their time."""
    latent, noise = model.decoder.latent, model.likelihood.noise
    if latent.family.order or not latent.num_modes or noise.inferred:
        return 0.0
    k = wavenumbers((2 * latent.num_modes, latent.num_modes), model.decoder.extent)
    theta = parameters[:, : latent.num_coefficients]
    response = latent.family.source_response(k, torch.ones(1, dtype=torch.float64), theta).abs() ** 2
    return float(latent.source_prior_std**2 * response.flatten(1).mean(1).max() / noise.known.min())


def describe(
    samples: WeightedSamples,
    parameters: Parameters,
    model: Model,
    checks: dict[str, Check],
    misfit: float,
    size_of_prior: float,
    outliers_settled: bool = True,
) -> dict[str, np.ndarray]:
    """The diagnostics of one case, by name."""
    values, weights = (parameters.at(samples.points) * model.units_of_parameters).numpy(), np.exp(samples.log_weights)
    mean = weights @ values
    std = np.sqrt(weights @ (values - mean) ** 2)
    num = len(parameters.base)
    levels = {"level_mean": mean[num:], "level_std": std[num:]} if parameters.levels else {}
    aside = {}
    if model.factors is not None:
        num_aside = np.array(int((model.factors > 1).sum()))
        aside = {"num_set_aside": num_aside, "outliers_settled": np.array(outliers_settled)}
    p_model = combined(check.p for check in checks.values())
    return {
        "log_evidence": np.array(samples.log_evidence + model.log_unit_of_evidence),
        "log_evidence_error": np.array(samples.log_evidence_error),
        "evidence_gap": np.array(samples.evidence_gap),
        "effective_sample_size": np.array(samples.effective_size),
        "num_evaluations": np.array(samples.num_evaluations),
        "num_rounds": np.array(samples.num_rounds),
        "misfit": np.array(misfit),
        "prior_to_noise": np.array(size_of_prior),
        "p_model": np.array(p_model),
        **{f"p_{name}": np.array(check.p) for name, check in checks.items()},
        **{f"found_{name}": np.array(check.found) for name, check in checks.items()},
        "worst_reading": np.array(checks["reading"].reading),
        "search_trusted": np.array(samples.trusted),
        "trusted": np.array(
            samples.trusted and p_model >= FALSE_ALARM and size_of_prior < MOST_PRIOR_TO_NOISE and outliers_settled
        ),
        "coefficient_mean": mean[:num],
        "coefficient_std": std[:num],
        **levels,
        **aside,
    }
