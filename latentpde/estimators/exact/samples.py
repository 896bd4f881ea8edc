"""What was found of the parameters of one case: weighted samples of all that is inferred, with their priors' bounds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

from latentpde.estimators.exact.model import Model
from latentpde.estimators.exact.parameters import Parameters
from latentpde.estimators.exact.search import WeightedSamples

_NEGLIGIBLE = 1e-6  # share of the weight that may be left out


@dataclass(frozen=True, eq=False)
class ParameterSamples:
    """Samples of the parameters that are not fixed, in the user's units.

    Args:
        names: coefficients, then levels.
        bounds: of their priors.
        logarithmic: which have a prior that is uniform in the logarithm rather than in the value.
        values: the samples.
        weights: of each, which sum to 1.
        log_prior: log density of the prior with respect to the one that is uniform between the bounds.
    """

    names: tuple[str, ...]
    bounds: Float[np.ndarray, "parameter 2"]
    logarithmic: Bool[np.ndarray, " parameter"]
    values: Float[np.ndarray, "sample parameter"]
    weights: Float[np.ndarray, " sample"]
    log_prior: Float[np.ndarray, " sample"]

    @classmethod
    def of(cls, samples: WeightedSamples, parameters: Parameters, model: Model) -> ParameterSamples:
        """Those of a search."""
        order = np.argsort(-samples.log_weights)
        enough = int(np.searchsorted(np.cumsum(np.exp(samples.log_weights[order])), 1 - _NEGLIGIBLE)) + 1
        order = np.sort(order[:enough])
        num, units = len(parameters.base), model.units_of_parameters.numpy()
        free = np.concatenate([parameters.free.numpy(), num + np.arange(len(parameters.levels))])
        at = parameters.at(samples.points[order])
        levels = [[level.lower, level.upper] for level in parameters.levels]
        bounds = np.concatenate([parameters.latent.bounds.numpy(), np.array(levels).reshape(-1, 2)]) * units[:, None]
        weights = np.exp(samples.log_weights[order])
        return cls(
            names=tuple(parameters.names[j] for j in free),
            bounds=bounds[free],
            logarithmic=free >= num,
            values=at.numpy()[:, free] * units[free],
            weights=weights / weights.sum(),
            log_prior=parameters.log_density(at).numpy(),
        )
