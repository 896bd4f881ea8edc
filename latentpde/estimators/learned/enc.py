"""`enc`, the paper's amortised encoder: one pass of a trained network.

After Tsao, Chaney and Veveakis, *Learning Interpretable PDE Representations for Generative Reconstructions with
Structured Sparsity*: a network trained for what `map` minimises, so that nothing is left to optimise for a new case.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch
from jaxtyping import Float
from torch import Tensor

from latentpde.estimators.base import Estimator, decoder_for
from latentpde.estimators.learned.posterior import LearnedPosterior, learned_posterior
from latentpde.latent import Latent
from latentpde.nn import Conditions, InferenceEncoder
from latentpde.nn.weights import SHIPPED, Trained, load_weights
from latentpde.observation import Observation
from latentpde.operator import ObservationOperator


@dataclass(frozen=True, kw_only=True)
class Enc(Estimator):
    """The encoder's latent for each case: a point estimate, without a spread.

    Args:
        weights: folder of trained networks; ``shipped`` for those that come with the package.

    Example:
        >>> import latentpde as lp
        >>> cases = lp.simulate("helmholtz", num=2, seed=0, shape=(32, 32))
        >>> posterior = lp.reconstruct(cases, method="enc")
        >>> posterior.mean(resolution=64).shape
        (2, 64, 64)
        >>> posterior.warnings(0)
        ['networks were trained on [32, 32] cells, this has [8, 8]']
    """

    name = "enc"
    summary = "the paper's amortised encoder: one pass of a trained network; a point estimate"
    has_spread = False

    weights: str | Path = SHIPPED

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "weights", str(self.weights))  # settings are recorded as JSON

    def estimate(
        self, observation: Observation, latent: Latent, *, num_draws: int, seed: int, show_progress: bool = False
    ) -> LearnedPosterior:
        """Condition the prior on the readings, as `Estimator.estimate` says.

        Diagnostics are ``residual``, the masked residual of each case, and ``num_parameters`` of the network.
        """
        observation.require_initial()
        encoder = load_weights("encoder", latent.family, self.weights)
        operator = ObservationOperator(observation, decoder_for(observation, latent))
        z = encode(encoder, observation, latent)[:, None]
        diagnostics = {"num_parameters": encoder.num_parameters}
        return learned_posterior(self, operator, z, encoder, seed=seed, diagnostics=diagnostics)


def encode(encoder: Trained, observation: Observation, latent: Latent) -> Float[Tensor, "case latent"]:
    """The raw latent that a trained encoder finds for each case.

    Args:
        encoder: from ``load_weights("encoder", ...)``, for the latent's family.
        observation: readings, with an initial state.
        latent: layout and prior of the raw latents; it may have other Fourier modes than the network's.
    """
    network, units = encoder.network, encoder.units(latent)
    assert isinstance(network, InferenceEncoder)
    with torch.no_grad():
        return units.to_latent(network(Conditions.of(observation, units, network.case.num_probes)).double())
