"""The amortised encoder: one pass of a trained network.

After Tsao, Chaney and Veveakis, *Learning Interpretable PDE Representations for Generative Reconstructions with
Structured Sparsity*: a network trained for what `map` minimises, so that nothing is left to optimise for a new case.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from latentpde.estimators.base import Estimator, decoder_for
from latentpde.estimators.learned.posterior import LearnedPosterior, encode, posterior
from latentpde.latent import Latent
from latentpde.nn.weights import SHIPPED, load_weights
from latentpde.observation import Observation
from latentpde.operator import ObservationOperator


@dataclass(frozen=True, kw_only=True)
class Enc(Estimator):
    """The paper's encoder branch without its diffusion: a point estimate, without a spread.

    Args:
        weights: folder of trained networks; ``shipped`` for those that come with the package.
    """

    name = "enc"
    summary = "the paper's amortised encoder: one pass of a trained network; a point estimate"
    has_spread = False

    weights: str | Path = SHIPPED

    def __post_init__(self):
        object.__setattr__(self, "weights", str(self.weights))  # settings are recorded as JSON

    def estimate(
        self, observation: Observation, latent: Latent, *, num_draws: int, seed: int, show_progress: bool = False
    ) -> LearnedPosterior:
        observation.require_initial()
        encoder = load_weights("encoder", latent.family, self.weights)
        decoder = decoder_for(observation, latent)
        operator = ObservationOperator(observation, decoder)
        z = encode(encoder, observation, latent)[:, None]
        return posterior(
            self.name,
            self.settings(seed),
            observation,
            decoder,
            z,
            operator.residual,
            encoder,
            {"num_parameters": encoder.num_parameters},
        )
